"""What all machines share: events that a driver reports, commands that a driver carries out, and how they are called.

A machine is pure. `handle(event, now_s)` returns the commands that follow, in order; now_s is any steady clock in
seconds. Frames that break the rules raise RemoteProtocolError (the driver resets the stream), events that make no sense
raise LocalProtocolError (our bug); either way the machine is finished. `due_s` tells when it wants a Tick at the
latest. Must not know any particular protocol.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import msgspec

from protocol.fields import Frame

__all__ = ["ChannelBroken", "FinishSending", "Machine", "PeerFinished", "Received", "ResetChannel", "Send", "Tick"]


@dataclass(frozen=True, slots=True)
class Received:
    """Event: a frame came, decoded and validated."""

    frame: msgspec.Struct


@dataclass(frozen=True, slots=True)
class PeerFinished:
    """Event: the peer ended its side of the stream. It never means success."""


@dataclass(frozen=True, slots=True)
class ChannelBroken:
    """Event: the stream is gone in both directions."""


@dataclass(frozen=True, slots=True)
class Tick:
    """Event: time has passed."""


@dataclass(frozen=True, slots=True)
class Send:
    """Command: send this frame. A content frame needs the driver's clearance."""

    frame: Frame


@dataclass(frozen=True, slots=True)
class FinishSending:
    """Command: nothing more will be sent; end our side cleanly."""


@dataclass(frozen=True, slots=True)
class ResetChannel:
    """Command: drop the stream in both directions."""


class Machine(Protocol):
    """The way in which drivers and tests call every machine."""

    @property
    def due_s(self) -> float | None:
        """When a Tick is due at the latest, on the clock of now_s; None when time changes nothing."""
        ...

    def handle(self, event: object, now_s: float) -> Sequence[object]:
        """Take one event; returns the commands to carry out, in order."""
        ...
