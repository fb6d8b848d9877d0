"""One link over one channel: drives protocol.link's machine until it is over. Must not know dialling, peers or
back-off.

One task reads, one owns the machine; what others want (leave, new models) goes through the same mailbox as frames do.
"""

import logging
from collections.abc import Callable
from typing import TypeAlias

import trio

from node.net.errors import root_cause
from node.net.limits import LinkTiming
from protocol.channel import FrameChannel
from protocol.errors import ChannelClosed, ChannelError, DeadlinePassed, RemoteProtocolError
from protocol.fields import Frame
from protocol.frames.link import ByeCode, Hello, Load, ModelAdvert
from protocol.link import (
    AddressesChanged,
    GrantChanged,
    Leave,
    LinkMachine,
    ModelsChanged,
    Open,
    PeerDown,
    PeerUp,
    Probe,
    Readvertise,
    Regrant,
    Relocate,
    RoundTrip,
)
from protocol.machine import ChannelBroken, FinishSending, PeerFinished, Received, ResetChannel, Send, Tick

__all__ = ["Link", "News"]

_log = logging.getLogger(__name__)
_MAILBOX = 32
_READ_S = 60.0

News: TypeAlias = PeerUp | RoundTrip | ModelsChanged | GrantChanged | AddressesChanged


class Link:
    """A link to one peer. opened_here: which side opened the channel. up: hellos exchanged and one echo seen. hello:
    what we greeted with."""

    def __init__(
        self, channel: FrameChannel, hello: Hello, *, opened_here: bool, tell: Callable[["Link", News], None],
        timing: LinkTiming,
    ) -> None:
        self.channel = channel
        self.hello = hello
        self.opened_here = opened_here
        self.up = False
        self.over = trio.Event()
        self._machine = LinkMachine(hello)
        self._tell = tell
        self._timing = timing
        self._post, self._mailbox = trio.open_memory_channel[object](_MAILBOX)

    def leave(self, code: ByeCode) -> None:
        """End the link on purpose; the peer is told the code."""
        self._put(Leave(code))

    def readvertise(self, models: tuple[ModelAdvert, ...], load: Load) -> None:
        """Tell the peer what we serve now, and how busy we are."""
        self._put(Readvertise(models, load))

    def regrant(self, grant: bytes) -> None:
        """Tell the peer what it may do here now."""
        self._put(Regrant(grant))

    def relocate(self, addresses: bytes, seen_at: str | None) -> None:
        """Tell the peer where we can be reached now, and where we see it."""
        self._put(Relocate(addresses, seen_at))

    def probe(self) -> None:
        """Measure the round trip now."""
        self._put(Probe())

    def _put(self, event: object) -> None:
        try:
            self._post.send_nowait(event)
        except trio.WouldBlock:
            _log.info("a link to %s is too busy to be told %s", self.channel.peer_id, type(event).__name__)

    async def run(self) -> str:
        """Keep the link until it is over; returns why, as events.LinkDown spells it. The channel is finished with."""
        try:
            async with trio.open_nursery() as nursery:
                nursery.start_soon(self._read)
                reason = await self._drive()
                nursery.cancel_scope.cancel()
        finally:
            self.over.set()
        return reason

    async def _read(self) -> None:
        while True:
            try:
                frame = await self.channel.receive(deadline_s=_READ_S)
                event: object = Received(frame)
            except DeadlinePassed:
                continue  # silence is the machine's matter
            except ChannelClosed:
                event = PeerFinished()
            except ChannelError:
                event = ChannelBroken()
            except RemoteProtocolError as error:
                event = error
            except Exception as error:  # a bug in a channel ends this link and nothing else
                _log.error("the channel of a link failed: %s", type(root_cause(error)).__name__)
                event = ChannelBroken()
            await self._post.send(event)
            if not isinstance(event, Received):
                return

    async def _drive(self) -> str:
        event: object = Open()
        while True:
            if isinstance(event, RemoteProtocolError):
                return await self._break_off(event)
            try:
                commands = self._machine.handle(event, trio.current_time())
                for command in commands:
                    if (reason := await self._carry_out(command)) is not None:
                        return reason
            except RemoteProtocolError as error:
                return await self._break_off(error)
            except Exception as error:  # mostly a dead channel; a bug in one ends this link and nothing else
                if not isinstance(error, ChannelError | trio.TooSlowError):
                    _log.error("the channel of a link failed: %s", type(root_cause(error)).__name__)
                await self.channel.reset()
                return "lost"
            event = await self._next_event()

    async def _next_event(self) -> object:
        due_s = self._machine.due_s
        with trio.CancelScope(deadline=due_s if due_s is not None else trio.current_time()):
            return await self._mailbox.receive()
        return Tick()

    async def _carry_out(self, command: object) -> str | None:
        match command:
            case Send(frame):
                await self._send(frame)
            case FinishSending():
                await self.channel.finish()
            case ResetChannel():
                await self.channel.reset()
            case PeerDown(reason, code):
                return f"bye:{code}" if reason == "bye" else reason
            case PeerUp() | RoundTrip() | ModelsChanged() | GrantChanged() | AddressesChanged():
                self._tell(self, command)
        return None

    async def _send(self, frame: Frame) -> None:
        with trio.fail_after(self._timing.send_s):
            await self.channel.send(frame)

    async def _break_off(self, error: RemoteProtocolError) -> str:
        _log.warning("the link to %s broke the protocol: %s", self.channel.peer_id, error.code)
        await self.channel.reset()
        return "protocol"
