"""An upstream engine on another machine, treated as what it is: a peer that the owner does not control.

It stands beside the paired peers for the router and the guard, under an id that no device can hold. What goes to it
passes the same guarded channel as to a peer: masked, shown to the owner, in the ledger, looked at once more as bytes.
Only behind that channel is it put into an HTTP request. Nobody else's prompt goes there. Must not know HTTP, masking or
where work is better done.
"""

import hashlib
import ipaddress
import logging
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AbstractContextManager, asynccontextmanager, nullcontext
from dataclasses import dataclass
from datetime import date

import msgspec
import trio
from trio import TaskStatus

from node.daemon.memory_stream import StreamEnd, stream_pair
from node.daemon.thinker import OpenChannel, PeerDirectory
from node.errors import PeerUnreachable
from node.privacy.policy import PeerView
from offload.ports import OutsideClearance
from offload.quota import QuotaBook
from offload.router import Offer, PeerCandidate
from offload.server import InferenceServer
from offload.upstream import UpstreamEngine, UpstreamSettings
from offload.upstream_errors import OutsideRefused
from offload.upstream_place import parse_place
from protocol import canonical, limits, names
from protocol.channel import Clearance, FrameChannel
from protocol.framing import FrameDecoder, encode_frame
from protocol.grants import ANY_MODEL, Grant
from protocol.ids import peer_id_from_public_key
from protocol.names import INFER

__all__ = ["Outside", "outside_id"]

log = logging.getLogger(__name__)

_TRUST = "friend"       # masked, always: there is no switch that sends it in clear
_LOOK_EVERY_S = 0.2
_READ_BYTES = 64 * 1024
_REFUSAL_REMEMBERED_S = 10.0


def outside_id(url: str) -> str:
    """The id that the engine at url goes by. No device can hold it."""
    return peer_id_from_public_key(hashlib.sha256(f"kith upstream {url}".encode()).digest())


@dataclass(slots=True)
class _State:
    in_flight: int = 0
    refusal: str = ""
    refused_until_s: float = float("-inf")


class Outside:
    """Implements node.daemon.thinker.PeerDirectory over the paired peers' one. Streams live while run() runs."""

    def __init__(
        self, settings: UpstreamSettings, peers: PeerDirectory, open_channel: OpenChannel,
        guarded: Callable[[StreamEnd], FrameChannel], mode: Callable[[], str], own_id: str,
    ) -> None:
        """open_channel: to real peers. guarded: the egress guard's channel over a stream. Raises UpstreamMisconfigured.
        """
        place = parse_place(settings.url)
        self.name = place.host
        self.peer_id = outside_id(settings.url)
        self._nearby = _is_private(place.host)
        self._peers = peers
        self._open_channel = open_channel
        self._guarded = guarded
        self._mode = mode
        self._own_id = own_id
        self._engine = UpstreamEngine(settings, guard=self)
        self._server = InferenceServer(self._engine, self, QuotaBook(_Uncounted(), lambda: date.min))
        self._models: tuple[Offer, ...] = ()
        self._state = _State()
        self._nursery: trio.Nursery | None = None

    async def run(self, *, task_status: TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        """Serve until cancelled."""
        self._models = tuple(Offer(one.name, one.digest, one.context_tokens) for one in await self._engine.models())
        try:
            async with trio.open_nursery() as nursery:
                self._nursery = nursery
                task_status.started()
                await trio.sleep_forever()
        finally:
            self._nursery = None

    @property
    def allowed(self) -> bool:
        """Whether the mode lets a request go there: everywhere in online, private addresses in lan."""
        return self._mode() == "online" or (self._mode() == "lan" and self._nearby)

    # -- beside the peers ---------------------------------------------------------------------------------------------

    def candidates(self) -> tuple[PeerCandidate, ...]:
        """The paired peers, and this one behind them."""
        state = self._state
        refusal = state.refusal if trio.current_time() < state.refused_until_s else ""
        own = PeerCandidate(
            self.peer_id, self.name, _TRUST, self.allowed, True, self._models, refusal, state.in_flight)
        return (*self._peers.candidates(), own)

    def served(self, peer_id: str) -> frozenset[str]:
        """The digests of the models that a peer served when it was last here."""
        return frozenset() if peer_id == self.peer_id else self._peers.served(peer_id)

    async def view(self, peer_id: str, model_digest: str | None) -> PeerView | None:
        """The peer as the guard sees it."""
        if peer_id == self.peer_id:
            return PeerView(self.peer_id, self.name, _TRUST)
        return await self._peers.view(peer_id, model_digest)

    def find(self, name: str) -> str:
        """The id behind a name: this one's host, or a paired peer. Raises UnknownPeer or AmbiguousPeer."""
        return self.peer_id if name in (self.name, self.peer_id) else self._peers.find(name)

    def note_refusal(self, peer_id: str, code: str) -> None:
        """Remember for a moment that it refused."""
        if peer_id == self.peer_id:
            self._state.refusal, self._state.refused_until_s = code, trio.current_time() + _REFUSAL_REMEMBERED_S
        else:
            self._peers.note_refusal(peer_id, code)

    def reserved(self, peer_id: str, seconds: float) -> AbstractContextManager[None]:
        """It is at work for us for about so long."""
        return nullcontext() if peer_id == self.peer_id else self._peers.reserved(peer_id, seconds)

    def started(self, peer_id: str) -> None:
        """One more request is at work there."""
        if peer_id == self.peer_id:
            self._state.in_flight += 1
        else:
            self._peers.started(peer_id)

    def ended(self, peer_id: str) -> None:
        """One request less."""
        if peer_id == self.peer_id:
            self._state.in_flight -= 1
        else:
            self._peers.ended(peer_id)

    async def open_channel(self, peer_id: str, protocol: str) -> FrameChannel:
        """A guarded channel to this engine or to a real peer. Raises PeerUnreachable or NotPaired."""
        if peer_id != self.peer_id:
            return await self._open_channel(peer_id, protocol)
        if self._nursery is None or protocol != INFER or not self.allowed:
            raise PeerUnreachable(f"{self.name} is not used in mode {self._mode()}.", hint="See: kith mode")
        near, far = stream_pair(protocol, near_sees=self.peer_id, far_sees=self._own_id)
        self._nursery.start_soon(self._serve, far)
        await trio.lowlevel.checkpoint()
        return self._guarded(near)

    # -- behind the guard ---------------------------------------------------------------------------------------------

    async def _serve(self, far: StreamEnd) -> None:
        """One request; cut off when the mode no longer allows it."""
        async with trio.open_nursery() as nursery:
            nursery.start_soon(self._watch, far, nursery.cancel_scope)
            await self._server.serve(_FarChannel(far))
            nursery.cancel_scope.cancel()

    async def _watch(self, far: StreamEnd, scope: trio.CancelScope) -> None:
        while self.allowed:  # noqa: ASYNC110 - the mode announces nothing
            await trio.sleep(_LOOK_EVERY_S)
        log.info("the mode changed: a request to the upstream engine was cut off")
        far.drop()
        scope.cancel()

    @asynccontextmanager
    async def clear(
        self, *, place: str, principal: str, request_id: str, texts: Sequence[str],
    ) -> AsyncIterator[OutsideClearance]:
        """Implements offload.ports.OutsideGuard: what comes from behind the guarded channel was cleared there; nothing
        else may pass. Raises OutsideRefused."""
        if principal != self._own_id or not self.allowed:
            raise OutsideRefused()
        yield _Cleared(texts)

    def grant_for(self, peer_id: str) -> Grant | None:
        """Implements offload.claim.GrantBook: this node itself, and nobody else."""
        if peer_id != self._own_id:
            return None
        return Grant(
            services=("infer",), models=(ANY_MODEL,), tokens_per_day=limits.MAX_TOKENS_PER_DAY,
            max_context=limits.MAX_CONTEXT_TOKENS, max_concurrency=limits.MAX_CONCURRENCY, not_after_s=2**40,
            issued_by=self.peer_id, issued_to=self._own_id, epoch=1)

    def reopens_in_s(self, peer_id: str) -> int | None:
        """Never closed."""
        return None

    def ran_out(self, peer_id: str) -> bool:
        """Never."""
        return False


class _Cleared:
    """The texts as they came through the guarded channel; counted and restored on its other side."""

    def __init__(self, texts: Sequence[str]) -> None:
        self.texts = texts

    def count(self, data: bytes) -> None:
        """The guarded channel has counted it."""

    def restore(self, text: str) -> str:
        """As it came: the owner's side fills the names in."""
        return text

    def restore_end(self) -> str:
        """Nothing is held back."""
        return ""


class _Uncounted:
    """No quota: it is the owner's own use."""

    async def tokens_on(self, peer_id: str, day: date) -> int:
        return 0

    async def add_tokens(
        self, peer_id: str, day: date, *, prompt_tokens: int, output_tokens: int, requests: int = 1
    ) -> None:
        """Not kept."""


class _FarChannel:
    """The unguarded end: what comes out of it has passed the guard. Implements protocol.channel.FrameChannel."""

    def __init__(self, stream: StreamEnd) -> None:
        self._stream = stream
        self._decoder = FrameDecoder(names.FRAME_LIMITS[stream.protocol])

    @property
    def peer_id(self) -> str:
        return self._stream.peer_id

    @property
    def protocol(self) -> str:
        return self._stream.protocol

    async def send(self, frame: msgspec.Struct) -> None:
        await self._stream.write(encode_frame(canonical.encode(frame)))

    async def send_cleared(self, frame: msgspec.Struct, clearance: Clearance) -> None:
        await self.send(frame)

    async def receive(self, *, deadline_s: float) -> msgspec.Struct:
        while (payload := self._decoder.next_frame()) is None:
            self._decoder.receive_data(await self._stream.read(_READ_BYTES, deadline_s=deadline_s))
        frame: msgspec.Struct = canonical.decode(payload, names.FRAMES[self._stream.protocol])
        return frame

    async def finish(self) -> None:
        await self._stream.close_write()

    async def reset(self) -> None:
        await self._stream.reset()


def _is_private(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_private
    except ValueError:
        return False
