"""Keeps the mode: looks at the machine while the owner wants a network, drives the machine, carries out and announces.

In offline mode nothing is looked at: there is nothing to decide, and offline stays without a trace. Must not know how
sockets are opened, nor who listens to announcements.
"""

import logging
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

import trio

from node.clock import Clock
from node.errors import KithError
from node.modes.facts import Facts, Mode, Policy
from node.modes.machine import (
    Announce,
    Applied,
    Apply,
    Chosen,
    Command,
    Failed,
    Looked,
    ModeMachine,
    ModeState,
    Reached,
    Refresh,
    Tick,
)

__all__ = ["Change", "ModeKeeper", "Sockets"]

log = logging.getLogger(__name__)

LOOK_S = 0.5  # half a millisecond of work each; a new address is called from within a second
LOOK_TIMEOUT_S = 5.0
REMEMBERED = 20


class Sockets(Protocol):
    """Who owns the sockets."""

    async def set_mode(self, mode: str) -> int:
        """Make the sockets fit; how many peers were connected before. Raises KithError: then none is open."""
        ...

    async def refresh(self, addresses: frozenset[str]) -> None:
        """Fit the listeners to these addresses of the machine and call absent peers now."""
        ...


@dataclass(frozen=True, slots=True)
class Change:
    """One transition, for the owner."""

    at: datetime
    before: Mode
    state: ModeState


class ModeKeeper:
    """One per node. run() looks and follows; choose() may be called once the sockets exist."""

    def __init__(
        self, sockets: Sockets, chosen: Mode, policy: Policy, look: Callable[[], Facts],
        reached: Callable[[], tuple[int, int]], clock: Clock, on_change: Callable[[Change], None],
    ) -> None:
        """look blocks for a moment and runs in a thread. reached: how many paired peers are here, and how many there
        are. on_change must not block or raise."""
        self._sockets = sockets
        self._look = look
        self._reached = reached
        self._clock = clock
        self._on_change = on_change
        self._machine = ModeMachine(chosen, policy)
        self._turn = trio.Lock()
        self._bell = trio.Event()
        self._thread = trio.CapacityLimiter(1)
        self.changes: deque[Change] = deque(maxlen=REMEMBERED)

    @property
    def state(self) -> ModeState:
        """What is in force and why."""
        self._machine.handle(Reached(*self._reached()), trio.current_time())
        return self._machine.state

    @property
    def facts(self) -> Facts:
        """What was last seen."""
        return self._machine.facts

    async def choose(self, mode: Mode) -> int:
        """The owner's switch, carried out; how many peers were connected before. Raises KithError when the sockets
        cannot be had: the node is offline then, and the choice as before."""
        async with self._turn:
            if mode is not Mode.OFFLINE:
                await self._take_a_look()
            before = await self._carry_out(self._machine.handle(Chosen(mode), trio.current_time()), raising=True)
            self._bell.set()
            self._bell = trio.Event()
        return before

    async def run(self) -> None:
        """Follow the machine's network and power until cancelled."""
        while True:
            bell = self._bell
            if self._is_off():
                await bell.wait()
                continue
            due_s = self._machine.due_s
            pause_s = LOOK_S if due_s is None else max(0.0, min(LOOK_S, due_s - trio.current_time()))
            with trio.move_on_after(pause_s):
                await bell.wait()
            async with self._turn:
                if not self._is_off():
                    await self._take_a_look()
                    await self._carry_out(self._machine.handle(Tick(), trio.current_time()))

    def _is_off(self) -> bool:
        return self._machine.chosen is Mode.OFFLINE

    async def _take_a_look(self) -> None:
        try:
            with trio.fail_after(LOOK_TIMEOUT_S):
                facts = await trio.to_thread.run_sync(
                    self._look, abandon_on_cancel=True, limiter=self._thread)
        except (OSError, ValueError, trio.TooSlowError) as error:
            log.warning("the network cannot be looked at: %s", type(error).__name__)
            return
        await self._carry_out(self._machine.handle(Looked(facts), trio.current_time()))

    async def _carry_out(self, commands: tuple[Command, ...], *, raising: bool = False) -> int:
        """Do what the machine wants. The peers connected before come back. raising: hand a failure to the caller."""
        connected = 0
        todo = list(commands)
        while todo:
            match todo.pop(0):
                case Apply(mode, work):
                    log.info("mode: %s sockets for %s", work, mode)
                    try:
                        connected = await self._sockets.set_mode(mode)
                    except KithError as error:
                        log.warning("mode: no sockets for %s: %s", mode, error.code)
                        todo += self._machine.handle(Failed(str(error)), trio.current_time())
                        if raising:
                            await self._carry_out(tuple(todo))
                            raise
                    else:
                        todo += self._machine.handle(Applied(), trio.current_time())
                case Refresh():
                    await self._sockets.refresh(self._machine.facts.addresses)
                case Announce(before, state):
                    self._announce(Change(self._clock.now(), before, state))
        return connected

    def _announce(self, change: Change) -> None:
        state = change.state
        log.info("mode: %s -> %s (%s)", change.before, state.effective, state.why)
        self.changes.append(change)
        self._on_change(change)
