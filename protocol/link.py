"""The link to a known peer, /kith/link/1: greet, keep alive, notice silence, say goodbye. Both sides run the same
machine.

             Open               Received(Hello)              Beat, Echo, Advert, Granted, Located
    IDLE -----------> GREETING ----------------> UP ----+
                         |                       |  ^---+
                         |  no Hello in 5 s,     |  silent for 2 s, Bye, Leave,
                         |  Bye, closed, lost    |  closed, lost
                         +-----------+-----------+
                                     v
                                   DOWN
    Any frame that breaks the rules raises and leads to DOWN.

Must not know addresses, dialling, back-off or trust.
"""

import enum
from dataclasses import dataclass
from typing import Final, Literal, TypeAlias

import msgspec

from protocol import limits
from protocol.errors import LocalProtocolError, OutOfOrder
from protocol.frames.link import (
    CAPABILITIES,
    IDLE,
    Advert,
    Beat,
    Bye,
    ByeCode,
    Echo,
    Granted,
    Hello,
    LinkFrame,
    Load,
    Located,
    ModelAdvert,
)
from protocol.machine import ChannelBroken, FinishSending, PeerFinished, Received, ResetChannel, Send, Tick

__all__ = [
    "CAPABILITIES", "IDLE", "AddressesChanged", "Advert", "Beat", "Bye", "ByeCode", "DownReason", "Echo",
    "GrantChanged", "Granted", "Hello", "Leave", "LinkFrame", "LinkMachine", "LinkState", "Load", "Located",
    "ModelAdvert", "ModelsChanged", "Open", "PeerDown", "PeerUp", "Probe", "Readvertise", "Regrant", "Relocate",
    "RoundTrip",
]

DownReason = Literal["no_hello", "silent", "bye", "left", "closed", "lost"]


class LinkState(enum.Enum):
    """See the drawing above."""

    IDLE = enum.auto()
    GREETING = enum.auto()
    UP = enum.auto()
    DOWN = enum.auto()


@dataclass(frozen=True, slots=True)
class Open:
    """Event: the stream is open; greet."""


@dataclass(frozen=True, slots=True)
class Readvertise:
    """Event: our models or our load changed."""

    models: tuple[ModelAdvert, ...]
    load: Load = IDLE


@dataclass(frozen=True, slots=True)
class Regrant:
    """Event: we decided anew what the peer may do."""

    grant: bytes


@dataclass(frozen=True, slots=True)
class Relocate:
    """Event: where we can be reached changed, or where we see the peer."""

    addresses: bytes
    seen_at: str | None = None


@dataclass(frozen=True, slots=True)
class Probe:
    """Event: somebody wants the round trip measured now, not at the next beat."""


@dataclass(frozen=True, slots=True)
class Leave:
    """Event: we end the link on purpose."""

    code: ByeCode


@dataclass(frozen=True, slots=True)
class PeerUp:
    """Command: tell that the peer is here. `protocols` and `capabilities` are what both sides can do."""

    hello: Hello
    protocols: frozenset[str]
    capabilities: frozenset[str]


@dataclass(frozen=True, slots=True)
class ModelsChanged:
    """Command: tell what the peer serves now, and how busy it is."""

    models: tuple[ModelAdvert, ...]
    load: Load = IDLE


@dataclass(frozen=True, slots=True)
class AddressesChanged:
    """Command: tell where the peer says it can be reached, and where it sees us. Nothing is verified yet."""

    addresses: bytes
    seen_at: str | None


@dataclass(frozen=True, slots=True)
class GrantChanged:
    """Command: tell that the peer decided anew what we may do there. The grant is not verified yet."""

    grant: bytes


@dataclass(frozen=True, slots=True)
class RoundTrip:
    """Command: tell the measured round trip."""

    rtt_s: float


@dataclass(frozen=True, slots=True)
class PeerDown:
    """Command: tell that the link is over, and why. The last one."""

    reason: DownReason
    code: ByeCode | None = None


LinkCommand: TypeAlias = (
    Send | FinishSending | ResetChannel | PeerUp | ModelsChanged | GrantChanged | AddressesChanged | RoundTrip
    | PeerDown
)
Commands: TypeAlias = tuple[LinkCommand, ...]

_S = LinkState
_OPEN_BEATS: Final = 8  # beats whose echo may still come; older ones are long past the allowed silence


class LinkMachine:
    """One link over one stream.

    Events: Open, Readvertise, Regrant, Relocate, Probe, Leave, Received, PeerFinished, ChannelBroken, Tick.
    """

    def __init__(self, hello: Hello) -> None:
        """hello: what we say about ourselves. Raises LocalProtocolError for a capability that nobody knows."""
        if not CAPABILITIES.issuperset(hello.capabilities):
            raise LocalProtocolError("only known capabilities may be announced")
        self.state = _S.IDLE
        self._hello = hello
        self._opened_s = self._heard_s = self._beat_s = self._window_s = 0.0
        self._window_frames = 0
        self._beat_n = 0
        self._beats_sent_s: dict[int, float] = {}
        self._to_tell: dict[type[LinkFrame], LinkFrame] = {}

    @property
    def due_s(self) -> float | None:
        """When a Tick is due: the next beat, or the end of the allowed silence."""
        if self.state is _S.GREETING:
            return self._opened_s + limits.HELLO_TIMEOUT_S
        if self.state is _S.UP:
            return min(self._beat_s + limits.BEAT_INTERVAL_S, self._heard_s + limits.LINK_DEAD_S)
        return None

    def handle(self, event: object, now_s: float) -> Commands:
        """The commands that follow from one event. Raises OutOfOrder for a frame that breaks the rules."""
        if isinstance(event, Open) and self.state is _S.IDLE:
            self.state, self._opened_s, self._window_s = _S.GREETING, now_s, now_s
            return (Send(self._hello),)
        if self.state is _S.IDLE or isinstance(event, Open):
            raise LocalProtocolError(f"{type(event).__name__} in state {self.state.name}")
        if self.state is _S.DOWN:
            return ()
        match event:
            case Received(frame):
                try:
                    return self._receive(frame, now_s)
                except OutOfOrder:
                    self.state = _S.DOWN
                    raise
            case Readvertise(models, load):
                return self._tell(Advert(models, load))
            case Regrant(grant):
                return self._tell(Granted(grant))
            case Relocate(addresses, seen_at):
                return self._tell(Located(addresses, seen_at))
            case Probe():
                return self._beat(now_s) if self.state is _S.UP else ()
            case Leave(code):
                return (Send(Bye(code)), FinishSending(), *self._down(PeerDown("left", code)))
            case PeerFinished():
                return (ResetChannel(), *self._down(PeerDown("closed")))
            case ChannelBroken():
                return self._down(PeerDown("lost"))
            case Tick():
                return self._tick(now_s)
        raise LocalProtocolError(f"{type(event).__name__} is no event of this machine")

    def _receive(self, frame: msgspec.Struct, now_s: float) -> Commands:
        self._count(now_s)
        self._heard_s = now_s
        match frame:
            case Bye(code):
                return (FinishSending(), *self._down(PeerDown("bye", code)))
            case Hello() if self.state is _S.GREETING:
                return self._greet(frame, now_s)
            case Beat(n) if self.state is _S.UP:
                return (Send(Echo(n)),)
            case Echo(n) if self.state is _S.UP:
                return self._measure(n, now_s)
            case Advert(models, load) if self.state is _S.UP:
                return (ModelsChanged(models, load),)
            case Granted(grant) if self.state is _S.UP:
                return (GrantChanged(grant),)
            case Located(addresses, seen_at) if self.state is _S.UP:
                return (AddressesChanged(addresses, seen_at),)
        raise OutOfOrder(f"{type(frame).__name__} in state {self.state.name}")

    def _count(self, now_s: float) -> None:
        """A peer that beats a hundred times a second makes us answer as often: refuse that."""
        if now_s >= self._window_s + 1.0:
            self._window_s, self._window_frames = now_s, 0
        self._window_frames += 1
        if self._window_frames > limits.MAX_LINK_FRAMES_PER_S:
            raise OutOfOrder("more link frames than anyone needs")

    def _greet(self, hello: Hello, now_s: float) -> Commands:
        self.state = _S.UP
        up = PeerUp(
            hello=hello,
            protocols=frozenset(hello.versions) & frozenset(self._hello.versions),
            capabilities=frozenset(hello.capabilities) & frozenset(self._hello.capabilities),
        )
        return (up, *map(Send, self._to_tell.values()), *self._beat(now_s))

    def _tell(self, news: Advert | Granted | Located) -> Commands:
        if self.state is _S.UP:
            return (Send(news),)
        self._to_tell[type(news)] = news  # our Hello left with the old state; news may only follow the peer's Hello
        return ()

    def _beat(self, now_s: float) -> Commands:
        self._beat_n += 1
        self._beat_s = self._beats_sent_s[self._beat_n] = now_s
        self._beats_sent_s.pop(self._beat_n - _OPEN_BEATS, None)
        return (Send(Beat(self._beat_n)),)

    def _measure(self, n: int, now_s: float) -> Commands:
        if not 1 <= n <= self._beat_n:
            raise OutOfOrder("an echo of a beat that was never sent")
        sent_s = self._beats_sent_s.pop(n, None)
        return () if sent_s is None else (RoundTrip(now_s - sent_s),)

    def _tick(self, now_s: float) -> Commands:
        if self.state is _S.GREETING:
            if now_s < self._opened_s + limits.HELLO_TIMEOUT_S:
                return ()
            return (ResetChannel(), *self._down(PeerDown("no_hello")))
        if now_s >= self._heard_s + limits.LINK_DEAD_S:
            return (ResetChannel(), *self._down(PeerDown("silent")))
        return self._beat(now_s) if now_s >= self._beat_s + limits.BEAT_INTERVAL_S else ()

    def _down(self, outcome: PeerDown) -> Commands:
        self.state = _S.DOWN
        return (outcome,)
