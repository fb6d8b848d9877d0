"""Which mode is in force, as a table: the owner's choice, narrowed by rules over facts; and what each change opens
or closes.

         chosen (owner)      rules (failed, metered, low battery; others are only told)
              \\                  /
               narrowest of all of them = wanted
                       |
        wider: at once | narrower by a fact: once it has held for SETTLE_S; by the owner: at once
                       v
      OFFLINE <--Close/Open--> LAN <--Widen/Narrow--> ONLINE       (Open and Close also between OFFLINE and ONLINE)

A switch whose sockets cannot be had leaves the node offline: a failed switch of the owner is taken back, a failed
change by facts waits for the next change of the network. Sans-IO: time comes with the event. Must not know sockets,
interfaces or how anything is shown.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, TypeAlias

from node.modes.facts import Facts, Mode, Policy, narrowest

__all__ = [
    "SETTLE_S", "Announce", "Applied", "Apply", "Chosen", "Failed", "InTheWay", "Looked", "ModeMachine", "ModeState",
    "Reached", "Refresh", "Tick",
]

SETTLE_S: Final = 3.0
"""How long a network must be gone before a mode gets narrower for it: a lease that is renewed is no loss."""


@dataclass(frozen=True, slots=True)
class Chosen:
    """Event: the owner's switch."""

    mode: Mode


@dataclass(frozen=True, slots=True)
class Looked:
    """Event: this machine was looked at."""

    facts: Facts


@dataclass(frozen=True, slots=True)
class Reached:
    """Event: so many of the paired peers are here."""

    here: int
    known: int


@dataclass(frozen=True, slots=True)
class Applied:
    """Event: the sockets are as the last Apply wanted them."""


@dataclass(frozen=True, slots=True)
class Failed:
    """Event: the sockets could not be had; none is open now."""

    text: str


@dataclass(frozen=True, slots=True)
class Tick:
    """Event: due_s was reached."""


@dataclass(frozen=True, slots=True)
class Apply:
    """Command: make the sockets fit. work: open, close, widen, narrow. Answer with Applied or Failed."""

    mode: Mode
    work: str


@dataclass(frozen=True, slots=True)
class Refresh:
    """Command: the network changed within a mode: fit the listeners to it and call absent peers now."""


@dataclass(frozen=True, slots=True)
class InTheWay:
    """A rule that applies. widest: the widest mode it allows; None when it is only told."""

    name: str
    widest: Mode | None
    text: str


@dataclass(frozen=True, slots=True)
class ModeState:
    """What is in force and why."""

    chosen: Mode
    effective: Mode
    why: str
    rules: tuple["InTheWay", ...] = ()
    """Everything that stands in the way now."""


@dataclass(frozen=True, slots=True)
class Announce:
    """Command: tell everybody of a transition."""

    before: Mode
    state: ModeState


Event: TypeAlias = Chosen | Looked | Reached | Applied | Failed | Tick
Command: TypeAlias = Apply | Refresh | Announce

WORK: Final[dict[tuple[Mode, Mode], str]] = {
    (Mode.OFFLINE, Mode.LAN): "open",
    (Mode.OFFLINE, Mode.ONLINE): "open",
    (Mode.LAN, Mode.OFFLINE): "close",
    (Mode.ONLINE, Mode.OFFLINE): "close",
    (Mode.LAN, Mode.ONLINE): "widen",
    (Mode.ONLINE, Mode.LAN): "narrow",
}


class ModeMachine:
    """One node's mode. It starts with what the owner chose last, as if its sockets were that already."""

    def __init__(self, chosen: Mode, policy: Policy) -> None:
        self.policy = policy
        self.facts = Facts()
        self.peers_here = self.peers_known = 0
        self.failure = ""
        self.chosen = chosen
        self.effective = chosen
        self._applying: Mode | None = None
        self._by_owner: Mode | None = None
        """What was chosen before a switch of the owner that is being applied."""
        self._narrow_at_s: float | None = None

    @property
    def state(self) -> ModeState:
        """What is in force now and why."""
        rules = self._rules()
        return ModeState(self.chosen, self.effective, self._why(rules), rules)

    @property
    def due_s(self) -> float | None:
        """When a Tick is due."""
        return self._narrow_at_s

    def handle(self, event: Event, now_s: float) -> tuple[Command, ...]:
        """The commands that follow. While an Apply is being carried out, only Applied or Failed may come."""
        match event:
            case Chosen(mode):
                return self._choose(mode, now_s)
            case Looked(facts):
                return self._look(facts, now_s)
            case Reached(here, known):
                self.peers_here, self.peers_known = here, known
                return ()
            case Applied():
                return self._applied()
            case Failed(text):
                return self._failed(text)
            case Tick():
                return self._follow(now_s)

    def _choose(self, mode: Mode, now_s: float) -> tuple[Command, ...]:
        before, self.chosen, self.failure = self.chosen, mode, ""
        commands = self._follow(now_s, at_once=True)
        self._by_owner = before if commands else None
        return commands

    def _look(self, facts: Facts, now_s: float) -> tuple[Command, ...]:
        moved = facts.network != self.facts.network
        self.facts = facts
        if moved:
            self.failure = ""  # other addresses may be had now
        commands = self._follow(now_s)
        if moved and not commands and self.effective is not Mode.OFFLINE:
            return (Refresh(),)
        return commands

    def _follow(self, now_s: float, *, at_once: bool = False) -> tuple[Command, ...]:
        """Towards the wanted mode: wider at once, narrower by a fact only after it has held."""
        wanted = narrowest(self.chosen, *(rule.widest for rule in self._rules() if rule.widest is not None))
        if wanted is self.effective:
            self._narrow_at_s = None
            return ()
        if wanted.width < self.effective.width and not at_once:
            if self._narrow_at_s is None:
                self._narrow_at_s = now_s + SETTLE_S
            if now_s < self._narrow_at_s:
                return ()
        self._narrow_at_s = None
        self._applying = wanted
        return (Apply(wanted, WORK[self.effective, wanted]),)

    def _applied(self) -> tuple[Command, ...]:
        assert self._applying is not None
        before, self.effective = self.effective, self._applying
        self._applying = self._by_owner = None
        return (Announce(before, self.state),)

    def _failed(self, text: str) -> tuple[Command, ...]:
        before, self.effective = self.effective, Mode.OFFLINE
        if self._by_owner is not None and before is Mode.OFFLINE:
            self.chosen = self._by_owner  # the switch did not happen
        else:
            self.failure = text
        self._applying = self._by_owner = None
        return () if before is Mode.OFFLINE else (Announce(before, self.state),)

    def _rules(self) -> tuple[InTheWay, ...]:
        return tuple(InTheWay(one.name, one.cap(self), one.words(self)) for one in _RULES if one.applies(self))

    def _why(self, rules: tuple[InTheWay, ...]) -> str:
        if self.effective is self.chosen:
            told = [rule.text for rule in rules] if self.chosen is not Mode.OFFLINE else []
            return "; ".join(["as you chose", *told])
        binding = [rule.text for rule in rules if rule.widest is not None and rule.widest.width < self.chosen.width]
        return "; ".join(binding) or "this is about to change"


@dataclass(frozen=True, slots=True)
class _Rule:
    """One thing that stands in the way: its name, whether it applies, the widest mode it allows (None: it is only
    told), its words."""

    name: str
    applies: Callable[["ModeMachine"], bool]
    cap: Callable[["ModeMachine"], Mode | None]
    words: Callable[["ModeMachine"], str]


def _battery_is_low(machine: "ModeMachine") -> bool:
    percent = machine.facts.battery_percent
    return machine.facts.on_battery and percent is not None and percent <= machine.policy.low_battery_percent


def _nothing(machine: "ModeMachine") -> None:
    """A missing network closes nothing: peers on this machine, behind a VPN or on a cable to come stay reachable."""


_RULES: Final = (
    _Rule("failed", lambda m: bool(m.failure), lambda m: Mode.OFFLINE, lambda m: m.failure),
    _Rule("metered", lambda m: m.facts.metered, lambda m: m.policy.metered, lambda m: "the connection is metered"),
    _Rule(
        "low_battery", _battery_is_low, lambda m: m.policy.low_battery,
        lambda m: f"the battery is at {m.facts.battery_percent} %",
    ),
    _Rule(
        "no_network", lambda m: not m.facts.addresses, _nothing,
        lambda m: "no network is up, only nodes on this machine can be reached",
    ),
    _Rule(
        "no_way_out", lambda m: bool(m.facts.addresses) and not m.facts.default_route, _nothing,
        lambda m: "there is no way out of the local network",
    ),
    _Rule(
        "no_peer", lambda m: m.peers_known > 0 == m.peers_here, _nothing,
        lambda m: f"none of {m.peers_known} paired peers answers",
    ),
)
