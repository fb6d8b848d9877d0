"""When a waiting request is tried: a sans-IO machine over those that wait, those that run, and news of who is here.

    Added / PutBack --> WAITING --Look, then Found(yes)--> RUNNING --Ended--> gone, or WAITING after a pause
                          |   \\-- held while its draft is being written
                          +-- Parked: not looked at until the owner has decided

Bounded: at most MOST_RUNNING run; each is looked at when something changed, and else once in LOOK_AGAIN_S; pauses after
failures double up to PAUSE_MOST_S. Time and chance come in with the events. Must not know rows, peers or models.
"""

from dataclasses import dataclass
from typing import Final, TypeAlias

__all__ = [
    "LOOK_AGAIN_S", "MOST_RUNNING", "PAUSE_FIRST_S", "PAUSE_MOST_S", "Added", "Changed", "Ended", "Found", "Gone",
    "Look", "Released", "Schedule", "Start", "Tick",
]

MOST_RUNNING: Final = 2
LOOK_AGAIN_S: Final = 60.0
PAUSE_FIRST_S: Final = 2.0
PAUSE_MOST_S: Final = 600.0
_SWING: Final = 0.2


@dataclass(frozen=True, slots=True)
class Added:
    """Event: a request waits. held: until Released comes for it."""

    intent_id: str
    held: bool = False


@dataclass(frozen=True, slots=True)
class Released:
    """Event: its draft is stored, or the owner allowed it: it may run."""

    intent_id: str


@dataclass(frozen=True, slots=True)
class Gone:
    """Event: it is settled, and waits no longer."""

    intent_id: str


@dataclass(frozen=True, slots=True)
class Changed:
    """Event: somebody came or went, the mode changed: look again at what waits."""


@dataclass(frozen=True, slots=True)
class Found:
    """Event: the answer to a Look."""

    intent_id: str
    able: bool


@dataclass(frozen=True, slots=True)
class Ended:
    """Event: a run is over. again: it brought no answer and shall be tried again; chance in [0, 1) spreads it."""

    intent_id: str
    again: bool
    chance: float = 0.5


@dataclass(frozen=True, slots=True)
class Tick:
    """Event: due_s was reached."""


@dataclass(frozen=True, slots=True)
class Look:
    """Command: find out whether it could run now, and answer with Found."""

    intent_id: str


@dataclass(frozen=True, slots=True)
class Start:
    """Command: run it; say Ended when that is over."""

    intent_id: str


Event: TypeAlias = Added | Released | Gone | Changed | Found | Ended | Tick
Command: TypeAlias = Look | Start


@dataclass(slots=True)
class _Entry:
    due_s: float
    held: bool = False
    looking: bool = False
    outdated: bool = False
    """News came while it was looked at: what the look finds may not be so any more."""
    running: bool = False
    released: bool = False
    """Allowed anew before the end of its run was told."""
    failures: int = 0


class Schedule:
    """All live requests of one node, in the order they were added."""

    def __init__(self) -> None:
        self._entries: dict[str, _Entry] = {}

    @property
    def running(self) -> frozenset[str]:
        """Those that run now."""
        return frozenset(name for name, entry in self._entries.items() if entry.running)

    @property
    def due_s(self) -> float | None:
        """When a Tick is due; None while nothing waits or no place is free, one that is looked at counted in."""
        if self._free <= 0:
            return None
        times = [one.due_s for one in self._entries.values() if not (one.held or one.looking or one.running)]
        return min(times, default=None)

    @property
    def _free(self) -> int:
        return MOST_RUNNING - sum(entry.looking or entry.running for entry in self._entries.values())

    def handle(self, event: Event, now_s: float) -> tuple[Command, ...]:
        """The commands that follow from one event."""
        match event:
            case Added(name, held):
                self._entries.setdefault(name, _Entry(now_s, held))
            case Released(name):
                entry = self._entries.setdefault(name, _Entry(now_s))
                entry.held, entry.due_s, entry.failures, entry.released = False, now_s, 0, entry.running
            case Gone(name):
                self._entries.pop(name, None)
            case Changed():
                self._hurry(now_s)
            case Found(name, able):
                return self._found(name, able, now_s)
            case Ended(name, again, chance):
                self._ended(name, again, chance, now_s)
            case Tick():
                pass
        return self._looks(now_s)

    def _hurry(self, now_s: float) -> None:
        """News may be what a request waits for. After failures it still waits a little: a peer that comes and goes
        each second is not tried each second."""
        for entry in self._entries.values():
            entry.due_s = min(entry.due_s, now_s + entry.failures * PAUSE_FIRST_S)
            entry.outdated = entry.looking

    def _looks(self, now_s: float) -> tuple[Command, ...]:
        free = self._free
        found: list[Command] = []
        for name, entry in self._entries.items():
            if len(found) >= free:
                break
            if not (entry.held or entry.looking or entry.running) and entry.due_s <= now_s:
                entry.looking = True
                found.append(Look(name))
        return tuple(found)

    def _found(self, name: str, able: bool, now_s: float) -> tuple[Command, ...]:
        entry = self._entries.get(name)
        if entry is None or not entry.looking:
            return self._looks(now_s)  # taken back meanwhile
        again_s = entry.failures * PAUSE_FIRST_S if entry.outdated else LOOK_AGAIN_S
        entry.looking = entry.outdated = False
        if able:
            entry.running = True
            return (Start(name), *self._looks(now_s))
        entry.due_s = now_s + again_s
        return self._looks(now_s)

    def _ended(self, name: str, again: bool, chance: float, now_s: float) -> None:
        entry = self._entries.get(name)
        if entry is None:
            return
        if not again:
            if entry.released:
                self._entries[name] = _Entry(now_s)
            else:
                del self._entries[name]
            return
        pause_s = min(PAUSE_MOST_S, PAUSE_FIRST_S * 2 ** min(entry.failures, 16))
        entry.failures += 1
        entry.running = False
        entry.due_s = now_s + pause_s * (1 - _SWING + 2 * _SWING * chance)
