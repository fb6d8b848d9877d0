"""A provider with the real server, whose engine writes numbered words; it dies, freezes or comes back when told."""

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from datetime import date
from typing import Any

import trio
from guard_bench import GuardBench, MemoryStream

from node.errors import PeerUnreachable
from offload.ports import ChatPrompt, Event, Finished, GenerateRequest, ModelInfo, Piece, Started, Usage
from offload.quota import QuotaBook
from offload.router import Offer, PeerCandidate
from offload.server import InferenceServer
from protocol.errors import ChannelLost
from protocol.grants import ANY_MODEL, Grant
from protocol.ids import peer_id_from_public_key
from protocol.names import INFER

__all__ = ["ASKER", "DIGESTS", "Counted", "NumberedEngine", "Provider", "Road", "words"]


ASKER = peer_id_from_public_key(bytes([0xA5]) * 32)
DIGESTS = {"alpha": "aa" * 32, "beta": "bb" * 32}


def words(model: str, count: int, begin: int = 0) -> list[str]:
    """What a model writes: numbered words that name it, and now and then the placeholder."""
    return ["[PERSON_1] " if number % 7 == 3 else f"{model[0]}{number} " for number in range(begin, count)]


class NumberedEngine:
    """Writes words(model, count), a token each; a token's text comes one token late, as with a held-back character."""

    def __init__(self, model: str, count: int, pace_s: float = 0.1) -> None:
        self.info = ModelInfo(
            name=model, digest=DIGESTS[model], size_bytes=1, context_tokens=4096, loaded=True)
        self.model = model
        self.count = count
        self.pace_s = pace_s
        self.stuck = False
        self.requests: list[GenerateRequest] = []
        self.produced = 0

    async def models(self) -> list[ModelInfo]:
        return [self.info]

    @asynccontextmanager
    async def stream(self, request: GenerateRequest) -> AsyncIterator[AsyncIterator[Event]]:
        self.requests.append(request)
        events = self._write(request)
        try:
            yield events
        finally:
            await events.aclose()

    async def _write(self, request: GenerateRequest) -> Any:
        assert isinstance(request.prompt, ChatPrompt)
        written = request.text_so_far.count(" ")
        assert request.text_so_far.endswith(" ") or not request.text_so_far, "texts break off between words"
        ids = request.token_ids_so_far
        await trio.sleep(self.pace_s)
        yield Started(40, 0, self.info.digest)
        late = ""
        if ids:
            assert ids == tuple(range(len(ids)))
            assert written <= len(ids)
            late = "".join(words(self.model, len(ids), written))
        begin = len(ids) or written
        for number in range(begin, min(self.count, begin + request.max_tokens)):
            while self.stuck:
                await trio.sleep(0.2)
            await trio.sleep(self.pace_s)
            self.produced += 1
            yield Piece(late, (number,))
            late = words(self.model, number + 1, number)[0]
        if late:
            yield Piece(late, ())
        yield Finished("stop", Usage(40, 0, self.count - begin))


class Road(MemoryStream):
    """A stream whose far end may freeze: what it writes then waits."""

    def __init__(self, peer_id: str, protocol: str, may_write: Callable[[], trio.Event | None]) -> None:
        super().__init__(peer_id, protocol)
        self._may_write = may_write

    async def write(self, data: bytes) -> None:
        while (thawed := self._may_write()) is not None:
            await thawed.wait()
        if self.was_reset:
            raise ChannelLost
        await super().write(data)


class Counted:
    async def tokens_on(self, peer_id: str, day: date) -> int:
        return 0

    async def add_tokens(
        self, peer_id: str, day: date, *, prompt_tokens: int, output_tokens: int, requests: int = 1,
    ) -> None:
        pass


class Provider:
    """A node that computes for the asker, and everything that can happen to it."""

    def __init__(self, name: str, number: int, engine: NumberedEngine, guard: GuardBench, trust: str) -> None:
        self.name = name
        self.peer_id = peer_id_from_public_key(bytes([number]) * 32)
        self.engine = engine
        self.trust = trust
        self.connected = True
        self.granted = True
        self.refused = ""
        self.refused_until_s = 0.0
        self.nursery: trio.Nursery | None = None
        self._guard = guard
        self._thawed: trio.Event | None = None
        self._roads: list[Road] = []
        self._scopes: list[trio.CancelScope] = []
        self.server = self._make_server()

    def _make_server(self) -> InferenceServer:
        return InferenceServer(self.engine, self, QuotaBook(Counted(), lambda: date(2026, 3, 1)))  # type: ignore[arg-type]

    def grant_for(self, peer_id: str) -> Grant | None:
        if not self.granted:
            return None
        return Grant(
            services=("infer",), models=(ANY_MODEL,), tokens_per_day=10**9, max_context=4096, max_concurrency=4,
            not_after_s=2**40, issued_by=self.peer_id, issued_to=ASKER, epoch=1,
        )

    def ran_out(self, peer_id: str) -> bool:
        return False

    def reopens_in_s(self, peer_id: str) -> int | None:
        return None

    async def open(self) -> Any:
        """The asker's end of a new stream. Raises PeerUnreachable."""
        await trio.lowlevel.checkpoint()
        if not self.connected:
            raise PeerUnreachable(f"{self.name} is away.")
        near = MemoryStream(self.peer_id, INFER)
        far = Road(ASKER, INFER, lambda: self._thawed)
        near.other, far.other = far, near
        self._roads.append(far)
        assert self.nursery is not None
        self.nursery.start_soon(self._serve, far)
        return near

    async def _serve(self, far: Road) -> None:
        with trio.CancelScope() as scope:
            self._scopes.append(scope)
            await self.server.serve(self._guard.egress.channel(far))

    # -- what can happen --

    async def die(self) -> None:
        """kill -9: the links break at once, nothing more is computed."""
        self.connected = False
        for scope in self._scopes:
            scope.cancel()
        await self.cut()
        self.thaw()
        self.server = self._make_server()

    async def cut(self) -> None:
        """The links break; both nodes live."""
        for road in self._roads:
            await road.reset()
        self._roads.clear()

    def freeze(self) -> None:
        """SIGSTOP: nothing it sends arrives."""
        self._thawed = trio.Event() if self._thawed is None else self._thawed

    def thaw(self) -> None:
        """SIGCONT."""
        thawed, self._thawed = self._thawed, None
        if thawed is not None:
            thawed.set()

    def come_back(self) -> None:
        """It greets again."""
        self.thaw()
        self.connected = self.granted = True
        self.engine.stuck = False
        self.refused = ""

    def candidate(self) -> PeerCandidate:
        if trio.current_time() >= self.refused_until_s:
            self.refused = ""
        info = self.engine.info
        offers = (Offer(info.name, info.digest, info.context_tokens),) if self.connected else ()
        return PeerCandidate(
            self.peer_id, self.name, self.trust, self.connected, self.granted, offers, self.refused)
