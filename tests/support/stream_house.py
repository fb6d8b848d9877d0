"""An asker with the real thinker and guard, providers with the real server, roads between them that break in every way,
and engines whose answer is known word for word. All in memory, under the test's clock.

A provider can die, freeze (nothing it sends arrives any more), get stuck (it beats, but its counters stand still), lose
its link, or withdraw its grant; the asker can be killed and started again from what was durable. Must not know what is
tested.
"""

import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import AbstractContextManager, asynccontextmanager
from dataclasses import dataclass, field, replace
from typing import Any

import trio
from guard_bench import GuardBench, MemoryLedgerRows, guard_bench
from guard_bench import Owner as ConsentingOwner
from stream_provider import NumberedEngine, Provider, words

from node.agent.ports import ThinkJob, ThinkPart, ThinkResult
from node.daemon.thinker import Thinker
from node.daemon.under_way import UnderWay
from node.privacy.inspector import Inspector
from node.privacy.labels import owner_text
from node.privacy.nets import SecretsNet, VaultNet
from node.privacy.policy import PeerView
from node.privacy.vault import Hit, Vault
from node.store.answers import KeptAnswer, KeptPiece
from offload.ports import ModelInfo
from offload.router import PeerCandidate

__all__ = ["NAME", "House"]

NAME = "Zdravka Korenjak"
REFUSAL_REMEMBERED_S = 10.0


class Peers:
    """The providers as router and guard see them."""

    def __init__(self, providers: Sequence[Provider]) -> None:
        self.providers = {one.peer_id: one for one in providers}
        self.at_work = 0

    def candidates(self) -> tuple[PeerCandidate, ...]:
        return tuple(one.candidate() for one in self.providers.values())

    def served(self, peer_id: str) -> frozenset[str]:
        return frozenset({self.providers[peer_id].engine.info.digest})

    async def view(self, peer_id: str, model_digest: str | None) -> PeerView | None:
        one = self.providers[peer_id]
        return PeerView(peer_id, one.name, one.trust)

    def find(self, name: str) -> str:
        return next(one.peer_id for one in self.providers.values() if one.name == name)

    def note_refusal(self, peer_id: str, words: str) -> None:
        one = self.providers[peer_id]
        one.refused, one.refused_until_s = words, trio.current_time() + REFUSAL_REMEMBERED_S

    def reserved(self, peer_id: str, seconds: float) -> AbstractContextManager[None]:
        return contextlib.nullcontext()

    def started(self, peer_id: str) -> None:
        self.at_work += 1

    def ended(self, peer_id: str) -> None:
        self.at_work -= 1


@dataclass
class Disk:
    """What is durable of one answer; a killed asker writes no more to it."""

    kept: KeptAnswer | None = None
    pieces: list[KeptPiece] = field(default_factory=list)
    dead: bool = False
    stopping: bool = False

    async def begin(self, answer: UnderWay) -> None:
        await trio.lowlevel.checkpoint()
        if not self.dead:
            self.kept, self.pieces = answer.kept(1), []

    async def note_leg(self, answer: UnderWay) -> None:
        await trio.lowlevel.checkpoint()
        if not self.dead and self.kept is not None:
            self.kept = replace(self.kept, carried=answer.encoded_form(), legs=answer.encoded_legs())

    async def extend(self, request_id: str, first: int, pieces: Sequence[KeptPiece]) -> None:
        await trio.sleep(0.005)     # a commit takes its time, and the asker may be killed meanwhile
        if not self.dead:
            assert first == len(self.pieces), "pieces are kept in order, each once"
            self.pieces += pieces

    async def leave(self, answer: UnderWay, *, whole: bool) -> None:
        if not self.dead and not whole:
            self.kept = None

    def crash(self) -> "Disk":
        """The asker is killed; what the next one finds."""
        self.dead = True
        return Disk(self.kept, list(self.pieces))

    @property
    def stored(self) -> KeptAnswer:
        assert self.kept is not None
        return replace(self.kept, pieces=tuple(self.pieces))


class _Detectors:
    """There, and finding nothing: so nobody has to be asked."""

    name = "detectors"

    async def scan(self, text: str, returned: Vault) -> list[Hit]:
        return []


class House:
    """One asker and its providers. Use `async with house.open():`."""

    def __init__(self, near: GuardBench, providers: Sequence[Provider], here: NumberedEngine | None) -> None:
        self.near = near
        self.providers = list(providers)
        self.peers = Peers(providers)
        self.here = here
        self.mode = "lan"
        self.disk = Disk()
        self.shown: list[str] = []
        self.notes: list[str] = []

    @classmethod
    async def build(
        cls, *models: str, here: str | None, count: int = 60, asks: bool = False, rows: Any = None, pace_s: float = 0.1,
    ) -> "House":
        """A provider for each model, of which the first is the home PC; here: this device's model. asks: without
        detectors, so that the owner is asked each time."""
        near = await _guard(asks=asks, rows=rows)
        providers = [
            Provider(
                ("home-pc", "laptop", "dana", "tower")[number], 0xB0 + number, NumberedEngine(model, count, pace_s),
                await guard_bench(), ("home", "self", "friend", "home")[number])
            for number, model in enumerate(models)
        ]
        return cls(near, providers, None if here is None else NumberedEngine(here, count, pace_s))

    @asynccontextmanager
    async def open(self) -> AsyncIterator["House"]:
        """Providers serve inside."""
        async with trio.open_nursery() as nursery:
            for provider in self.providers:
                provider.nursery = nursery
            try:
                yield self
            finally:
                for provider in self.providers:
                    provider.thaw()
            nursery.cancel_scope.cancel()

    def thinker(self) -> Thinker:
        """A thinker of the asker as it is now."""
        return Thinker(
            node_name="phone", engine=self.here, egress=self.near.egress, peers=self.peers,  # type: ignore[arg-type]
            open_channel=self._open, ask=self.near.owner, mode=lambda: self.mode, default_model=self._default,
            answers=self.disk,
        )

    def job(self, text: str = f"Write to {NAME}.", **more: Any) -> ThinkJob:
        """A kept job."""
        async def on_note(line: str) -> None:
            self.notes.append(line)

        fields: dict[str, Any] = {"max_tokens": 200, "keep": True, "on_note": on_note} | more
        return ThinkJob("0f" * 16, "c1", (ThinkPart("user", owner_text(text)),), self.on_text, **fields)

    async def think(self, **more: Any) -> ThinkResult:
        """One answer."""
        return await self.thinker().think(self.job(**more))

    async def think_until_killed(self, at_s: float, think: Callable[[], Awaitable[ThinkResult]]) -> ThinkResult | None:
        """The result when it is there before the asker is killed. Then only the disk and the ledger's rows are left,
        and its reader keeps what was read."""
        results: list[ThinkResult] = []

        async def run() -> None:
            results.append(await think())
            nursery.cancel_scope.cancel()

        async with trio.open_nursery() as nursery:
            nursery.start_soon(run)
            await trio.sleep(at_s)
            if not results:
                disk = self.disk.crash()
            nursery.cancel_scope.cancel()
        if results:
            return results[0]
        self.disk = disk
        before = self.near
        self.near = await _guard(asks=False, rows=before.rows)
        self.near.heads.stored = before.heads.stored
        return None

    async def take_up(self) -> ThinkResult:
        """Go on from the disk."""
        answer = UnderWay.taken_up(self.disk.stored, self.on_text)
        assert answer.shown.startswith("".join(self.shown)), "what was read is durable"
        self.shown[:] = [answer.shown]
        return await self.thinker().take_up(answer)

    async def on_text(self, text: str) -> bool:
        await trio.lowlevel.checkpoint()
        self.shown.append(text)
        return True

    @property
    def text(self) -> str:
        """What the owner has read."""
        return "".join(self.shown)

    def expected(self, model: str) -> str:
        """The whole undisturbed answer of one model, as the owner reads it."""
        count = self.providers[0].engine.count if self.providers else self.here.count if self.here else 0
        return "".join(words(model, count)).replace("[PERSON_1]", NAME)

    async def _default(self) -> ModelInfo | None:
        return None if self.here is None else self.here.info

    async def _open(self, peer_id: str, protocol: str) -> Any:
        near = await self.peers.providers[peer_id].open()
        return self.near.egress.channel(near)


async def _guard(*, asks: bool, rows: MemoryLedgerRows | None) -> GuardBench:
    vault = VaultNet()
    await vault.load([(NAME, "PERSON")])
    inspector = Inspector(vault=vault, secrets=SecretsNet(), detectors=None if asks else _Detectors())
    return await guard_bench(inspector=inspector, owner=ConsentingOwner(), rows=rows)
