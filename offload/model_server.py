"""Gives model files to peers: checks the grant for each file and again for each chunk, and drives the giver's machine.

Must not know how streams are made, how a grant was issued, or how the guard checks what leaves. Refusals are codes;
no path of this machine is ever told.
"""

import contextlib
import logging
import re
from collections.abc import Callable
from typing import Protocol

import trio

from offload.claim import GrantBook
from protocol import limits
from protocol.channel import FrameChannel
from protocol.errors import ChannelClosed, ChannelError, ChannelLost, DeadlinePassed, RemoteProtocolError
from protocol.fields import Frame
from protocol.grants import Grant, permits
from protocol.machine import ChannelBroken, FinishSending, PeerFinished, Received, Send
from protocol.model import Decide, Give, GiverMachine, ModelRefusalCode, ModelRequest, Offer, Refuse, StopGiving

__all__ = ["ModelServer", "SharedFile", "SharedFiles"]

log = logging.getLogger(__name__)

REQUEST_WAIT_S = 5.0
WRITE_WAIT_S = 30.0
LISTEN_S = 3600.0
LAST_WORD_S = 5.0
CONCURRENT = 4
CONCURRENT_PER_PEER = 2
_ODD = re.compile(r"[^A-Za-z0-9._+-]+")


class SharedFile(Protocol):
    """One model file that may be read from. Reading blocks for a moment, so it is asynchronous."""

    @property
    def name(self) -> str:
        """What the model is called here."""
        ...

    @property
    def licence(self) -> str:
        """Its licence, or a word that says that it is unknown."""
        ...

    @property
    def size_bytes(self) -> int:
        """The whole file."""
        ...

    async def read(self, offset: int, most_bytes: int) -> bytes:
        """The bytes from there on; fewer than wanted at the end only. Raises OSError."""
        ...

    def close(self) -> None:
        """Let go of it."""
        ...


class SharedFiles(Protocol):
    """The catalogue's files."""

    async def open(self, digest: str) -> SharedFile | None:
        """The whole and unchanged file with this digest; None when there is none. Raises OSError."""
        ...


class ModelServer:
    """Serves /kith/model/1. One call of serve() per stream."""

    def __init__(
        self, files: SharedFiles, grants: GrantBook,
        on_refusal: Callable[[str, str], None] = lambda peer_id, code: None,
    ) -> None:
        """on_refusal(peer_id, code): a copy was refused or broken off, for the owner to read."""
        self._files = files
        self._grants = grants
        self._on_refusal = on_refusal
        self._active: dict[str, int] = {}

    @property
    def active(self) -> int:
        """How many files are being given."""
        return sum(self._active.values())

    async def serve(self, channel: FrameChannel) -> None:
        """Give the one file of this stream. Never raises for what the peer does."""
        peer_id = channel.peer_id
        giving = _Giving(channel, self._grants)
        try:
            request = await giving.request()
            if request is None:
                return
            if self.active >= CONCURRENT or self._active.get(peer_id, 0) >= CONCURRENT_PER_PEER:
                return await giving.refuse("busy")
            self._active[peer_id] = self._active.get(peer_id, 0) + 1
            try:
                refusal = await self._give(giving, request)
            finally:
                self._active[peer_id] -= 1
                if not self._active[peer_id]:
                    del self._active[peer_id]
            if refusal is not None:
                self._on_refusal(peer_id, refusal)
                await giving.refuse(refusal)
        except* (ChannelError, RemoteProtocolError) as errors:
            log.info("a copy for %s ended: %s", peer_id, errors.exceptions[0])
        finally:
            with trio.CancelScope(shield=True):
                await giving.close()

    async def _give(self, giving: "_Giving", request: ModelRequest) -> ModelRefusalCode | None:
        """Give the file; why not, or not to its end, comes back."""
        grant = self._grants.grant_for(giving.peer_id)
        if grant is None or "models" not in grant.services:
            return "grant_expired" if self._grants.ran_out(giving.peer_id) else "not_granted"
        try:
            file = await self._files.open(request.model_digest)
        except OSError as error:
            log.warning("a model file could not be opened for a peer: %s", error.strerror)
            return "internal"
        if file is None:
            return "model_absent"
        try:
            if not _allows(grant, file, request):
                return "model_absent"   # what is not granted is not told apart from what is not there
            if request.offset > file.size_bytes:
                return "bad_request"
            log.info("giving %s to %s from byte %d", request.model_digest[:12], giving.peer_id, request.offset)
            return await giving.all_of(file, request)
        finally:
            file.close()


class _Giving:
    """One stream: the machine and the channel."""

    def __init__(self, channel: FrameChannel, grants: GrantBook) -> None:
        self.peer_id = channel.peer_id
        self._channel = channel
        self._grants = grants
        self._machine = GiverMachine()
        self._peer_left = trio.CancelScope()
        self._finished = False

    async def request(self) -> ModelRequest | None:
        frame = await self._channel.receive(deadline_s=REQUEST_WAIT_S)
        assert isinstance(frame, Frame)
        for command in self._machine.handle(Received(frame), trio.current_time()):
            if isinstance(command, Decide):
                return command.request
        return None

    async def refuse(self, code: ModelRefusalCode) -> None:
        await self._feed(Refuse(code))

    async def all_of(self, file: SharedFile, request: ModelRequest) -> ModelRefusalCode | None:
        refusal: ModelRefusalCode | None = None
        async with trio.open_nursery() as nursery:
            nursery.start_soon(self._listen)
            with self._peer_left:
                refusal = await self._chunks(file, request)
            nursery.cancel_scope.cancel()
        return refusal

    async def _chunks(self, file: SharedFile, request: ModelRequest) -> ModelRefusalCode | None:
        await self._feed(Offer(file.size_bytes, _plain(file.name), _plain(file.licence) or None))
        offset = request.offset
        while self._machine.left_bytes:
            grant = self._grants.grant_for(self.peer_id)
            if grant is None or not _allows(grant, file, request):
                return "revoked"
            try:
                data = await file.read(offset, limits.MAX_MODEL_CHUNK_BYTES)
            except OSError as error:
                log.warning("a model file could not be read for a peer: %s", error.strerror)
                return "internal"
            if not data:
                return "internal"   # the file became shorter
            offset += len(data)
            await self._feed(Give(data))
        return None

    async def _listen(self) -> None:
        """The copier says nothing more; when it ends its side or breaks the rules, nobody reads any more."""
        try:
            while True:
                try:
                    frame = await self._channel.receive(deadline_s=LISTEN_S)
                except DeadlinePassed:
                    continue
                assert isinstance(frame, Frame)
                self._machine.handle(Received(frame), trio.current_time())
        except RemoteProtocolError as error:
            log.info("a copy for %s ended: %s", self.peer_id, error.code)
            self._peer_left.cancel()    # the machine is over by now, and says nothing more
            return
        except ChannelClosed:
            event: object = PeerFinished()
        except ChannelLost:
            event = ChannelBroken()
        for command in self._machine.handle(event, trio.current_time()):
            if isinstance(command, StopGiving):
                self._peer_left.cancel()

    async def _feed(self, event: object) -> None:
        for command in self._machine.handle(event, trio.current_time()):
            match command:
                case Send(frame):
                    try:
                        with trio.fail_after(WRITE_WAIT_S):
                            await self._channel.send(frame)
                    except trio.TooSlowError:
                        raise DeadlinePassed("The copier takes no more data.") from None
                case FinishSending():
                    self._finished = True
                    await self._channel.finish()

    async def close(self) -> None:
        """Give the last word time to arrive, then drop the stream. Never raises."""
        if self._finished:
            with contextlib.suppress(ChannelError, RemoteProtocolError):    # however it ends, it is over
                await self._channel.receive(deadline_s=LAST_WORD_S)
        await self._channel.reset()


def _allows(grant: Grant, file: SharedFile, request: ModelRequest) -> bool:
    return permits(grant, "models", model_name=file.name, model_digest=request.model_digest)


def _plain(name: str) -> str:
    return _ODD.sub("-", name).strip("-._+")[:64]
