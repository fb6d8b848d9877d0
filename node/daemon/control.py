"""The node as status, mode and doctor see it. Implements node.api.ports.NodeControl; answers from the first moment on.

status never waits: what needs the database is refreshed in the background and shown as last seen. Must not know
services.
"""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from importlib.metadata import version
from typing import Any

from msgspec.structs import replace

from node.api.failures import Starting
from node.api.mode_views import ModeView
from node.api.views import DoctorView, HealthView, PeerView, StatusView
from node.clock import Clock
from node.counting import counted
from node.daemon.readiness import Readiness
from node.daemon.removal_clock import RemovalClock
from node.errors import KithError, Locked, UsageError
from node.net.turned_away import TurnedAway

__all__ = ["Control", "Figures"]

MODES = ("offline", "lan", "online")


@dataclass(frozen=True, slots=True)
class Figures:
    """What status shows besides the node itself."""

    peers: tuple[PeerView, ...] = ()
    queued_messages: int = 0
    waiting_requests: int = 0
    undecided_requests: int = 0
    new_answers: int = 0
    left_entries: int = 0
    left_bytes: int = 0
    kept_back: int = 0
    model: str | None = None
    model_state: str = "unknown"


class Control:
    """State of one node. The callables are set as the parts come up."""

    def __init__(self, name: str, peer_id: str, mode: str, clock: Clock, stop: Callable[[], None]) -> None:
        self._name = name
        self._peer_id = peer_id
        self._clock = clock
        self._stop = stop
        self._begun_s = clock.monotonic_s()
        self.figures = Figures()
        self.stage: Callable[[], str] = lambda: "opening data"
        self.mode: Callable[[], str] = lambda: mode
        self.addresses: Callable[[], list[str]] = list
        self.peers: Callable[[], tuple[PeerView, ...]] = tuple
        self.switch: Callable[[str], Awaitable[int]] | None = None
        self.mode_view: Callable[[], ModeView] | None = None
        self.stopping: Callable[[], bool] = lambda: False
        self.locked: Callable[[], bool] = lambda: False
        self._detached = (self.stage, self.mode, self.addresses, self.peers)
        self.readiness: Readiness | None = None
        self.turned_away: Callable[[], TurnedAway] = TurnedAway
        self.look: Callable[[], Awaitable[DoctorView]] | None = None
        self.dates: RemovalClock | None = None

    def status(self) -> StatusView:
        """One screen; never waits."""
        figures = self.figures
        stage = "locked" if self.locked() else self.stage()
        return StatusView(
            version=version("kith-node"), name=self._name, peer_id=self._peer_id, mode=self.mode(), stage=stage,
            uptime_s=round(self._clock.monotonic_s() - self._begun_s, 1), model=figures.model,
            model_state=figures.model_state, addresses=self.addresses(), peers=list(self.peers()),
            waiting_requests=figures.waiting_requests, undecided_requests=figures.undecided_requests,
            new_answers=figures.new_answers, queued_messages=figures.queued_messages,
            left_today_entries=figures.left_entries,
            left_today_bytes=figures.left_bytes, kept_back_today=figures.kept_back,
            clock_doubt=self.dates.doubt() if self.dates else "",
        )

    async def health(self, *, probe: bool) -> HealthView:
        """Whether the node can do its work; answers from the first moment on."""
        if self.stopping():
            return HealthView(state="stopping", ready=False, detail="the node is stopping")
        if self.locked():
            return HealthView(state="locked", ready=False, detail="the node is locked: kith unlock")
        if self.readiness is None or self.stage() != "ready":
            return HealthView(state="starting", ready=False, detail=self.stage())
        view = await self.readiness.look(probe=probe)
        away = self.turned_away()
        flood = "calls come faster than they are taken: kith net" if away.lately else ""
        return replace(view, turned_away=away.calls, detail=view.detail or flood)

    def detach(self) -> None:
        """The data is closed: show nothing of it."""
        mode = self.mode()
        self.figures = Figures()
        self.stage, _, self.addresses, self.peers = self._detached
        self.mode = lambda: mode
        self.switch = self.mode_view = self.readiness = self.look = self.dates = None

    def _absent(self) -> KithError:
        return Locked() if self.locked() else Starting(f"The node is still starting ({self.stage()}).")

    async def doctor(self) -> DoctorView:
        """All checks. Raises Starting before the data is open, Locked while it is closed."""
        if self.look is None:
            raise self._absent()
        return await self.look()

    async def confirm_clock(self) -> dict[str, Any]:
        """The owner says that this machine's clock is right. Raises StorageError, and Starting or Locked."""
        if self.dates is None:
            raise self._absent()
        await self.dates.confirm()
        return {"confirmed": self._clock.now().isoformat(timespec="seconds")}

    def mode_now(self) -> ModeView:
        """The mode and why. Raises Starting, Locked."""
        if self.mode_view is None:
            raise self._absent()
        return self.mode_view()

    async def set_mode(self, mode: str) -> dict[str, Any]:
        """Switch the mode. Raises UsageError, Starting, ListenError (the mode is as before then)."""
        if mode not in MODES:
            raise UsageError(f"{mode!r} is no mode.", hint=f"Choose one of: {', '.join(MODES)}")
        if self.switch is None:
            raise self._absent()
        before = self.mode()
        closed = await self.switch(mode)
        after = self.mode()
        if after != mode:
            text = self.mode_now().why
        elif mode == before:
            text = "unchanged"
        elif mode == "offline":
            text = f"{counted(closed, 'peer')} closed; messages wait; the agent works on"
        else:
            text = "peers are being called"
        return {"from": before, "to": after, "chosen": mode, "text": text}

    def stop(self) -> None:
        """Begin an ordered shutdown."""
        self._stop()
