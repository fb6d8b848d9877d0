"""Copies a model file from a peer into a part file: any number of streams, each going on where the last one broke off.

What arrived is nobody's model until all of it has the digest that was wanted. Must not know how a stream comes about,
which peer it is, or where models are kept.
"""

import errno
import logging
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

import trio

from offload.catalogue import digest_of
from offload.model_errors import CopyBroken, CopyMismatch, CopyRefused, NoRoom
from offload.model_folder import require_room
from protocol.channel import FrameChannel
from protocol.errors import ChannelClosed, ChannelError, DeadlinePassed, RemoteProtocolError
from protocol.fields import Frame
from protocol.machine import ChannelBroken, FinishSending, PeerFinished, Received, ResetChannel, Send, Tick
from protocol.model import Ask, CopierMachine, CopyOver, ModelOffer, ModelRequest, Offered, Store

__all__ = ["Copied", "copy_model"]

log = logging.getLogger(__name__)

PATIENCE_S = 120.0      # without a new byte; a provider that restarts is back well before
FIRST_PAUSE_S = 0.25
LONGEST_PAUSE_S = 5.0
SMALLEST_WAIT_S = 0.05
TELL_EVERY_BYTES = 1024 * 1024
_PASSING = frozenset({"busy", "shutting_down"})
_REFUSALS = {
    "not_granted": "it has not granted this device the copying of models",
    "grant_expired": "its grant for this device has run out",
    "busy": "it is busy with other copies",
    "model_absent": "it does not give that model to this device",
    "revoked": "the grant there was withdrawn or changed",
    "shutting_down": "it is shutting down",
    "bad_request": "what is here already is longer than its file; it was deleted, so try again",
    "internal": "it could not read its file",
}

Opener = Callable[[], Awaitable[FrameChannel]]
OnProgress = Callable[[str, int, int], Awaitable[None]]


@dataclass(frozen=True, slots=True)
class Copied:
    """A model file that arrived whole: where it is for now, its checked digest, and what it is called there."""

    part: Path
    digest: str
    name: str
    licence: str


async def copy_model(
    opener: Opener, *, digest: str, folder: Path, new_id: Callable[[], bytes], on_progress: OnProgress,
) -> Copied:
    """Copy the file with this digest into folder, as a hidden part file named by it.

    opener: a fresh channel; raises ChannelError while the peer is away. on_progress(name, done, total bytes). Raises
    CopyRefused, CopyBroken (what came is kept), CopyMismatch (it was deleted), NoRoom, OSError.
    """
    part = folder / f".{digest}.part"
    copying = _Copying(digest, part, on_progress)
    patience = _Patience()
    while True:
        reached = await trio.to_thread.run_sync(_size_of, part)
        patience.note(reached)
        over = await copying.one_stream(opener, new_id(), reached)
        if over.reason == "complete":
            break
        if over.reason == "refused" and over.code not in _PASSING:
            if over.code == "bad_request":
                part.unlink(missing_ok=True)
            raise CopyRefused(f"The peer refuses: {_REFUSALS.get(over.code or '', 'no reason given')}.")
        log.info("a copy of %s broke off at byte %d (%s)", digest[:12], over.reached_bytes, over.code or over.reason)
        await patience.pause(over.reached_bytes)
    if await trio.to_thread.run_sync(digest_of, part) != digest:
        await trio.to_thread.run_sync(lambda: part.unlink(missing_ok=True))
        raise CopyMismatch()
    offer = copying.offer
    assert offer is not None
    return Copied(part, digest, offer.name, offer.licence or "")


class _Patience:
    """How long it is worth going on without a new byte."""

    def __init__(self) -> None:
        self._reached = -1
        self._moved_s = trio.current_time()
        self._pause_s = FIRST_PAUSE_S

    async def pause(self, reached: int) -> None:
        """Wait a little longer each time. Raises CopyBroken when nothing came for PATIENCE_S."""
        self.note(reached)
        if trio.current_time() - self._moved_s >= PATIENCE_S:
            raise CopyBroken(f"The peer is gone, or sent nothing new for {PATIENCE_S:g} seconds. What came is kept.")
        await trio.sleep(self._pause_s)
        self._pause_s = min(2 * self._pause_s, LONGEST_PAUSE_S)

    def note(self, reached: int) -> None:
        """How far the file is; when that is further than ever, there is time again."""
        if reached > self._reached:
            self._reached, self._moved_s, self._pause_s = reached, trio.current_time(), FIRST_PAUSE_S


class _Copying:
    """The file under way."""

    def __init__(self, digest: str, part: Path, on_progress: OnProgress) -> None:
        self.offer: ModelOffer | None = None
        self._digest = digest
        self._part = part
        self._on_progress = on_progress
        self._told = -TELL_EVERY_BYTES

    async def one_stream(self, opener: Opener, request_id: bytes, reached: int) -> CopyOver:
        """Drive one stream to its outcome. Raises NoRoom, CopyRefused for a peer that breaks the rules."""
        try:
            channel = await opener()
        except ChannelError:
            return CopyOver("lost", reached)
        machine = CopierMachine(ModelRequest(request_id, self._digest, reached))
        try:
            async with _opened(self._part) as file:
                over = await self._carry_out(channel, file, machine.handle(Ask(), trio.current_time()))
                while over is None:
                    event = await _next_event(channel, machine)
                    over = await self._carry_out(channel, file, machine.handle(event, trio.current_time()))
        except RemoteProtocolError as error:
            raise CopyRefused(f"The peer breaks the protocol ({error.code}); no more is taken from it.") from error
        finally:
            with trio.CancelScope(shield=True):
                await channel.reset()   # after a clean end it changes nothing; a cancelled copy ends there and then
        return over

    async def _carry_out(
        self, channel: FrameChannel, file: BinaryIO, commands: tuple[object, ...],
    ) -> CopyOver | None:
        for command in commands:
            match command:
                case Send(frame):
                    try:
                        await channel.send(frame)
                    except ChannelError:
                        return CopyOver("lost", 0)
                case FinishSending():
                    try:
                        await channel.finish()
                    except ChannelError:
                        log.debug("the peer was gone before the last byte was acknowledged")
                case ResetChannel():
                    await channel.reset()
                case Offered(offer):
                    await self._admit(offer)
                case Store(offset, data):
                    await trio.to_thread.run_sync(_write_at, file, offset, data)
                    await self._tell(offset + len(data))
                case CopyOver() as over:
                    return over
        return None

    async def _admit(self, offer: ModelOffer) -> None:
        """Raises NoRoom; CopyMismatch for a peer that now names another size for the same digest."""
        if self.offer is not None and self.offer.size_bytes != offer.size_bytes:
            raise CopyMismatch("The peer names another size than before for the same file; do not use it.")
        self.offer = offer
        have = await trio.to_thread.run_sync(_size_of, self._part)
        await trio.to_thread.run_sync(require_room, self._part.parent, offer.size_bytes - have)
        await self._tell(have)

    async def _tell(self, done: int) -> None:
        assert self.offer is not None
        total = self.offer.size_bytes
        if done - self._told >= TELL_EVERY_BYTES or done == total:
            self._told = done
            await self._on_progress(self.offer.name, done, total)


@asynccontextmanager
async def _opened(part: Path) -> AsyncIterator[BinaryIO]:
    file = await trio.to_thread.run_sync(lambda: part.open("ab", buffering=0))
    try:
        yield file
    finally:
        file.close()


def _write_at(file: BinaryIO, offset: int, data: bytes) -> None:
    """Append. Raises NoRoom when the disk is full after all, OSError."""
    if file.tell() != offset:
        raise OSError("the part file was changed meanwhile")
    view = memoryview(data)
    try:
        while view:
            view = view[file.write(view):]
    except OSError as error:
        if error.errno == errno.ENOSPC:
            raise NoRoom("The disk is full. What came is kept.") from error
        raise


async def _next_event(channel: FrameChannel, machine: CopierMachine) -> object:
    due_s = machine.due_s
    wait_s = SMALLEST_WAIT_S if due_s is None else max(due_s - trio.current_time(), SMALLEST_WAIT_S)
    try:
        frame = await channel.receive(deadline_s=wait_s)
    except DeadlinePassed:
        return Tick()
    except ChannelClosed:
        return PeerFinished()
    except ChannelError:
        return ChannelBroken()
    assert isinstance(frame, Frame)
    return Received(frame)


def _size_of(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError:
        return 0
