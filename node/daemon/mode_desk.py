"""The mode for the owner: the switch, what is in force and why, and every transition told to all who follow.

Joins node.modes to the network, the settings and the events. Must not know which rules there are.
"""

from collections.abc import Callable
from functools import partial
from pathlib import Path

import trio

from node.api.events import Events
from node.api.mode_views import InTheWayView, ModeChangeView, ModeView
from node.clock import Clock
from node.config import set_value
from node.daemon.networking import Networking
from node.daemon.peers import Roster
from node.modes.facts import Mode, Policy
from node.modes.keeper import Change, ModeKeeper
from node.modes.looking import look
from node.settings import Settings

__all__ = ["ModeDesk"]


def _policy(settings: Settings) -> Policy:
    def cap(wish: str) -> Mode | None:
        return None if wish == "stay" else Mode(wish)

    wanted = settings.modes
    return Policy(cap(wanted.metered), cap(wanted.low_battery), wanted.low_battery_percent)


class ModeDesk:
    """One per node; run() once the network runs."""

    def __init__(
        self, networking: Networking, roster: Roster, settings: Settings, config_file: Path, clock: Clock,
        events: Events,
    ) -> None:
        self._networking = networking
        self._roster = roster
        self._config_file = config_file
        self._events = events
        self._clock = clock
        self._keeper = ModeKeeper(
            networking, Mode(networking.mode), _policy(settings), partial(look, settings.modes.metered_interfaces),
            self._reached, clock, self._tell,
        )
        self.on_change: Callable[[], None] = lambda: None
        """Rung after every transition, and when a peer comes or goes; must not block."""
        roster.on_change = self._tell_of_peer

    async def run(self) -> None:
        """Follow network and power until cancelled."""
        await self._keeper.run()

    async def switch(self, mode: str) -> int:
        """The owner's switch, for now and the next start; how many peers were connected before. Raises KithError when
        the sockets cannot be had; nothing is changed then."""
        connected = await self._keeper.choose(Mode(mode))
        await trio.to_thread.run_sync(set_value, self._config_file, "node.mode", mode)
        return connected

    def battery(self) -> float | None:
        """What is left of the battery, 0 to 1, while this machine runs on it; None on mains."""
        facts = self._keeper.facts
        return None if not facts.on_battery else (facts.battery_percent or 0) / 100

    def view(self) -> ModeView:
        """What was chosen, what is in force, and why."""
        state, facts = self._keeper.state, self._keeper.facts
        return ModeView(
            chosen=state.chosen, effective=state.effective, why=state.why,
            in_the_way=[InTheWayView(name=one.name, widest=one.widest, text=one.text) for one in state.rules],
            listening=self._networking.addresses(), peers_here=self._reached()[0],
            addresses=len(facts.addresses), default_route=facts.default_route, metered=facts.metered,
            on_battery=facts.on_battery, battery_percent=facts.battery_percent,
            changes=[_change(one) for one in self._keeper.changes],
        )

    def _reached(self) -> tuple[int, int]:
        known = [peer_id for peer_id, _ in self._roster.known()]
        return sum(map(self._roster.is_present, known)), len(known)

    def _tell_of_peer(self, peer_id: str, here: bool) -> None:
        at = self._clock.now().isoformat(timespec="milliseconds")
        name = self._roster.name_of(peer_id)
        self._events.publish({"event": "peer", "at": at, "peer": name, "peer_id": peer_id, "here": here})
        self.on_change()

    def _tell(self, change: Change) -> None:
        view = _change(change)
        self._events.publish({
            "event": "mode", "at": view.at, "before": view.before, "chosen": view.chosen, "effective": view.effective,
            "why": view.why,
        })
        self.on_change()


def _change(change: Change) -> ModeChangeView:
    state = change.state
    return ModeChangeView(
        at=change.at.isoformat(timespec="milliseconds"), before=change.before, chosen=state.chosen,
        effective=state.effective, why=state.why,
    )
