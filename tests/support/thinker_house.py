"""This node's thinker and one peer, with a real guard and real drivers over streams in memory, scripted engines."""

import contextlib
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import date
from typing import Any

import trio
from guard_bench import GuardBench, MemoryStream, guard_bench, memory_streams
from guard_bench import Owner as ConsentingOwner
from memory_channel import ALICE, BOB

from node.agent.ports import ThinkJob, ThinkPart
from node.daemon.thinker import Thinker
from node.errors import KithError, UnknownPeer
from node.privacy.labels import Labeled, owner_text
from node.privacy.policy import PeerView
from offload.ports import ChatPrompt, Failed, Finished, GenerateRequest, ModelInfo, Piece, Queued, Started, Usage
from offload.quota import QuotaBook
from offload.router import Offer, PeerCandidate
from offload.server import InferenceServer
from protocol.grants import ANY_MODEL, Grant
from protocol.names import INFER

__all__ = ["DIE", "DIGEST", "MODEL", "NAME", "FreeUsage", "Grants", "House", "Peers", "ScriptedEngine", "house"]


DIGEST = "ab" * 32
MODEL = ModelInfo(name="smollm2", digest=DIGEST, size_bytes=1, context_tokens=2048)
NAME = "Dana Whitfield"
DIE = object()


class ScriptedEngine:
    """Plays pieces; `{name}` in one stands for the placeholder that the prompt held. DIE cuts the road."""

    def __init__(self, *script: Any) -> None:
        self.script = script
        self.requests: list[GenerateRequest] = []
        self.produced = 0
        self.die: Any = None

    async def models(self) -> list[ModelInfo]:
        return [MODEL]

    def prompt(self, number: int = -1) -> str:
        prompt = self.requests[number].prompt
        assert isinstance(prompt, ChatPrompt)
        return "\n".join(message.content for message in prompt.messages)

    @asynccontextmanager
    async def stream(self, request: GenerateRequest) -> AsyncIterator[Any]:
        self.requests.append(request)

        async def play() -> AsyncIterator[Any]:
            yield Started(10, 0, DIGEST)
            for number, item in enumerate(self.script):
                await trio.lowlevel.checkpoint()
                if item is DIE:
                    await trio.sleep(0.1)   # what was sent before has arrived
                    await self.die()
                    await trio.sleep_forever()
                if isinstance(item, Failed | Queued):
                    yield item
                    if isinstance(item, Failed):
                        return
                    continue
                self.produced += 1
                yield Piece(item, (number,))
            yield Finished("stop", Usage(10, 0, len(self.script)))

        events = play()
        try:
            yield events
        finally:
            await events.aclose()


class Peers:
    """One peer, as the router and the guard see it."""

    def __init__(self) -> None:
        self.connected = True
        self.granted = True
        self.known = True
        self.refused = ""
        self.hindrance = ""
        self.notes: list[tuple[str, str]] = []
        self.at_work = 0
        self.most_at_work = 0

    def candidates(self) -> tuple[PeerCandidate, ...]:
        if not self.known:
            return ()
        models = (Offer("smollm2", DIGEST, 2048),)
        return (PeerCandidate(
            BOB, "home-pc", "home", self.connected, self.granted, models, self.refused, hindrance=self.hindrance),)

    def served(self, peer_id: str) -> frozenset[str]:
        return frozenset()

    async def view(self, peer_id: str, model_digest: str | None) -> PeerView | None:
        assert (peer_id, model_digest) == (BOB, DIGEST)
        return PeerView(BOB, "home-pc", "home") if self.known else None

    def find(self, name: str) -> str:
        if name != "home-pc":
            raise UnknownPeer
        return BOB

    def note_refusal(self, peer_id: str, words: str) -> None:
        self.notes.append((peer_id, words))
        self.refused = words

    def reserved(self, peer_id: str, seconds: float) -> contextlib.AbstractContextManager[None]:
        assert (peer_id, seconds > 0) == (BOB, True)
        return contextlib.nullcontext()

    def started(self, peer_id: str) -> None:
        self.at_work += 1
        self.most_at_work = max(self.most_at_work, self.at_work)

    def ended(self, peer_id: str) -> None:
        self.at_work -= 1


class FreeUsage:
    async def tokens_on(self, peer_id: str, day: date) -> int:
        return 0

    async def add_tokens(
        self, peer_id: str, day: date, *, prompt_tokens: int, output_tokens: int, requests: int = 1
    ) -> None:
        pass


class Grants:
    """Bob's grants for Alice."""

    def __init__(self) -> None:
        self.services: tuple[Any, ...] = ("infer",)

    def grant_for(self, peer_id: str) -> Grant | None:
        return Grant(
            services=self.services, models=(ANY_MODEL,), tokens_per_day=10_000, max_context=4096, max_concurrency=2,
            not_after_s=2**40, issued_by=BOB, issued_to=ALICE, epoch=1,
        )

    def reopens_in_s(self, peer_id: str) -> int | None:
        """Never closed."""
        return None

    def ran_out(self, peer_id: str) -> bool:
        return False


class House:
    """Alice's thinker, Bob's server, and the road between them."""

    def __init__(self, near: GuardBench, far: GuardBench, here: ScriptedEngine, there: ScriptedEngine) -> None:
        self.near, self.far, self.here, self.there = near, far, here, there
        self.peers, self.grants = Peers(), Grants()
        self.mode = "lan"
        self.model: ModelInfo | None = MODEL
        self.shown: list[str] = []
        self.enough_after: int | None = None
        self.nursery: trio.Nursery | None = None
        self.server = InferenceServer(there, self.grants, QuotaBook(FreeUsage(), lambda: date(2026, 3, 1)))  # type: ignore[arg-type]
        self.thinker = Thinker(
            node_name="phone", engine=here, egress=near.egress, peers=self.peers, open_channel=self._open,  # type: ignore[arg-type]
            ask=near.owner, mode=lambda: self.mode, default_model=self._default,
        )

    async def _default(self) -> ModelInfo | None:
        return self.model

    async def _open(self, peer_id: str, protocol: str) -> Any:
        await trio.lowlevel.checkpoint()
        near, far = memory_streams(INFER, near_peer=BOB, far_peer=ALICE)
        self.there.die = near.reset
        assert self.nursery is not None
        self.nursery.start_soon(self._serve, far)
        return self.near.egress.channel(near)

    async def _serve(self, far: MemoryStream) -> None:
        await self.server.serve(self.far.egress.channel(far))

    async def on_text(self, text: str) -> bool:
        self.shown.append(text)
        return self.enough_after is None or len(self.shown) < self.enough_after

    async def think(self, text: str | Labeled = f"Write to {NAME}.", **more: Any) -> Any:
        part = owner_text(text) if isinstance(text, str) else text
        job = ThinkJob(
            job_id="0f" * 16, conversation_id="c1", parts=(ThinkPart("user", part),), on_text=self.on_text,
            max_tokens=64, **more,
        )
        result = failure = None
        async with trio.open_nursery() as nursery:
            self.nursery = nursery
            try:
                result = await self.thinker.think(job)
            except KithError as error:
                failure = error
            nursery.cancel_scope.cancel()
        if failure is not None:
            raise failure
        return result

    async def outcomes(self) -> list[str]:
        report = await self.near.ledger.verify()
        assert (report.ok, report.open_entries) == (True, 0)
        return [entry.close.outcome for entry in reversed(await self.near.ledger.newest(limit=9)) if entry.close]


async def house(*there: Any, here: tuple[Any, ...] = ("Here ", "it is."), allows: bool = True) -> House:
    near = await guard_bench([(NAME, "PERSON")], owner=ConsentingOwner(allows=allows))
    return House(near, await guard_bench(), ScriptedEngine(*here), ScriptedEngine(*there))
