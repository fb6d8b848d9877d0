"""Keeps one child process available: starts it when it is wanted, starts it again when it died, gives up on a bad one.

What the frames mean is its owner's business, through `ChildOwner`. Must not know engines, models or vectors.
"""

import logging
import math
from collections.abc import Callable
from typing import Literal, Protocol

import trio

from offload.child.errors import ChildClosed, ChildError, ChildGone, ChildQuarantined, ChildStartFailed
from offload.child.policy import CrashLog, RestartPolicy
from offload.child.process import Child, Death

__all__ = ["ChildOwner", "ChildState", "Supervisor"]

ChildState = Literal["idle", "starting", "ready", "restarting", "quarantined", "stopped"]
_log = logging.getLogger(__name__)


class ChildOwner(Protocol):
    """What a supervisor asks of the one who wanted the child. None of these may block, or raise but as they say."""

    def launch(self) -> Child:
        """Start the process. Raises OSError."""
        ...

    def greeting(self) -> bytes:
        """The first frame to send it: its set-up."""
        ...

    def became_ready(self, payload: bytes) -> None:
        """Its first frame. Raises ChildStartFailed when it says that it can't work."""
        ...

    def received(self, payload: bytes) -> None:
        """Any later frame. Raises ChildError for nonsense; the child is then killed."""
        ...

    def died(self, death: Death, *, was_ready: bool) -> bool:
        """It is gone. Returns whether it is wanted back now; if not, whoever waits for it gets ChildStartFailed."""
        ...

    def gave_up(self, reason: str) -> None:
        """It died too often: nothing that waits will be served."""
        ...


class Supervisor:
    """One child, at most one process at a time."""

    def __init__(
        self, name: str, owner: ChildOwner, *, policy: RestartPolicy | None = None, start_deadline_s: float = 60.0,
        idle_stop_s: float = math.inf, is_busy: Callable[[], bool] = lambda: False,
    ) -> None:
        """idle_stop_s: end the process when is_busy() was False for so long; it starts again when it is wanted."""
        self._name = name
        self._owner = owner
        self._crashes = CrashLog(policy or RestartPolicy())
        self._start_deadline_s = start_deadline_s
        self._idle_stop_s = idle_stop_s
        self._is_busy = is_busy
        self._wanted = trio.Event()
        self._changed = trio.Condition()
        self.child: Child | None = None       # the present process, ready or not
        self._failed_starts = 0
        self._last_use_s = 0.0
        self.state: ChildState = "idle"
        self.detail = ""

    @property
    def restarts(self) -> int:
        """How often the child died without being told to."""
        return self._crashes.total

    def release(self) -> None:
        """End a quarantine before its time."""
        self._crashes.release()
        if self.state == "quarantined":
            self.state = "idle"

    def kill(self) -> None:
        """End the present process as a crash: for a child that no longer moves."""
        if self.child is not None:
            self.child.kill()

    async def ready(self, *, deadline_s: float = 120.0) -> Child:
        """The child, started when necessary.

        Raises ChildStartFailed, ChildQuarantined, ChildClosed, or ChildGone at the deadline.
        """
        failed_before = self._failed_starts
        with trio.move_on_after(deadline_s):
            async with self._changed:
                while True:
                    self._last_use_s = trio.current_time()
                    if self.state == "ready" and self.child is not None:
                        return self.child
                    if self.state == "stopped":
                        raise ChildClosed()
                    if self.state == "quarantined" and self._crashes.quarantined(trio.current_time()):
                        raise ChildQuarantined(self.detail)
                    if self.state == "idle" and self._failed_starts != failed_before:
                        raise ChildStartFailed(self.detail)
                    self._wanted.set()
                    await self._changed.wait()
        raise ChildGone(f"{self._name} was not ready within {deadline_s:g} s")

    async def run(self) -> None:
        """Serve until cancelled; then the process is ended and reaped."""
        try:
            while True:
                await self._wanted.wait()
                self._wanted = trio.Event()
                if not self._crashes.quarantined(trio.current_time()):
                    await self._keep_alive()
        finally:
            with trio.CancelScope(shield=True):
                await self._set_state("stopped")

    async def _keep_alive(self) -> None:
        """Run the child, again and again while it dies and is wanted back."""
        await self._set_state("starting")
        while True:
            started_s = trio.current_time()
            death, was_ready = await self._live()
            lived_s = trio.current_time() - started_s
            back = self._owner.died(death, was_ready=was_ready)
            if death.wanted:
                await self._set_state("idle")
                return
            delay_s = self._crashes.crashed(now_s=trio.current_time(), lived_s=lived_s)
            _log.warning("%s ended (%s), %s", self._name, death.reason, "running" if was_ready else "starting")
            if delay_s is None:
                self.detail = f"it ended {self._crashes.total} times, last by {self.detail or death.reason}"
                self._owner.gave_up(self.detail)
                await self._set_state("quarantined")
                return
            if not back:
                self._failed_starts += not was_ready
                await self._set_state("idle")
                return
            await self._set_state("restarting")
            await trio.sleep(delay_s)

    async def _live(self) -> tuple[Death, bool]:
        """One life: start, become ready, pump frames, die. Returns how it ended and whether it was ever ready."""
        self.detail = ""
        try:
            child = self._owner.launch()
        except OSError as error:
            self.detail = error.strerror or "could not be started"
            return Death(127, wanted=False), False
        self.child = child
        was_ready = False
        try:
            was_ready = await self._pump(child)
        finally:
            self.child = None
            with trio.CancelScope(shield=True):
                death = await child.end()
        return death, was_ready

    async def _pump(self, child: Child) -> bool:
        was_ready = False
        try:
            with trio.fail_after(self._start_deadline_s):
                await child.send(self._owner.greeting())
                first = await child.receive()
            if first is None:
                return False
            self._owner.became_ready(first)
            was_ready = True
            self._wanted = trio.Event()
            self._last_use_s = trio.current_time()
            await self._set_state("ready")
            async with trio.open_nursery() as nursery:
                if math.isfinite(self._idle_stop_s):
                    nursery.start_soon(self._stop_when_idle, child)
                while (payload := await child.receive()) is not None:
                    self._owner.received(payload)
                nursery.cancel_scope.cancel()
        except* trio.TooSlowError:
            self.detail = f"not ready within {self._start_deadline_s:g} s"
        except* ChildStartFailed as group:
            self.detail = str(group.exceptions[0])
        except* ChildError as group:
            self.detail = str(group.exceptions[0])
        if self.detail:
            child.kill()
        return was_ready

    async def _stop_when_idle(self, child: Child) -> None:
        while True:
            if self._is_busy():
                self._last_use_s = trio.current_time()
            idle_s = trio.current_time() - self._last_use_s
            if idle_s >= self._idle_stop_s:
                # From here on nobody is handed this process any more.
                await self._set_state("idle")
                child.kill(wanted=True)
                return
            await trio.sleep(max(0.01, self._idle_stop_s - idle_s))

    async def _set_state(self, state: ChildState) -> None:
        async with self._changed:
            self.state = state
            self._changed.notify_all()
