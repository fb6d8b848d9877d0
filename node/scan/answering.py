"""A supervised child that answers numbered orders: each caller gets the report with its number, or the reason why none
came. A child that dies on an order is tried once more.

Must not know what the orders ask for.
"""

import contextlib
import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import msgspec
import trio
from trio import TaskStatus

from node.scan.errors import ScanBusy, ScanUnavailable
from node.scan.frames import Order, ScanReady, ScanRefused, ScanReport, Spans, Vectors, decode_report, encode
from offload.child.errors import ChildError, ChildGone, ChildStartFailed
from offload.child.policy import RestartPolicy
from offload.child.process import Child, Death
from offload.child.supervisor import ChildState, Supervisor

__all__ = ["AnsweringChild", "FrontOfChild"]

_MOST_WAITING = 64
_log = logging.getLogger(__name__)


@dataclass(slots=True)
class _Waiting:
    reason: str
    done: trio.Event = field(default_factory=trio.Event)
    report: "Vectors | Spans | None" = None


class AnsweringChild:
    """One such child. run() must be running."""

    def __init__(
        self, name: str, *, launch: Callable[[], Child], greeting: Order, idle_stop_s: float,
        policy: RestartPolicy | None = None,
    ) -> None:
        """name: as told in errors and logs. idle_stop_s: the process ends when nobody asked for so long."""
        self._name = name
        self._launch = launch
        self._greeting = greeting
        self._waiting: dict[int, _Waiting] = {}
        self._numbers = 0
        self._ready: ScanReady | None = None
        self._supervisor = Supervisor(
            name, self, policy=policy, idle_stop_s=idle_stop_s, is_busy=lambda: bool(self._waiting))

    @property
    def state(self) -> ChildState:
        """How it is; idle also means not started yet."""
        return self._supervisor.state

    @property
    def pid(self) -> int | None:
        """The present process."""
        child = self._supervisor.child
        return child.pid if child is not None else None

    @property
    def box(self) -> Mapping[str, str]:
        """The walls around it as it reported them; empty before its first start."""
        return {} if self._ready is None else self._ready.box

    @property
    def probe(self) -> Mapping[str, str]:
        """What it could do all the same."""
        return {} if self._ready is None else self._ready.probe

    @property
    def dimensions(self) -> int:
        """Of its vectors."""
        return 0 if self._ready is None else self._ready.dimensions

    async def run(self) -> None:
        """Serve until cancelled; the process is then ended."""
        await self._supervisor.run()

    def kill(self) -> None:
        """End the present process, for one that no longer moves; it is started again when it is wanted."""
        self._supervisor.kill()

    async def warm(self) -> None:
        """Have it started. Raises ChildError."""
        await self._supervisor.ready()

    async def ask(self, order: Callable[[int], Order]) -> Vectors | Spans:
        """The report on order(number). Waits without a deadline of its own. Raises ScanBusy or ScanUnavailable."""
        report, reason = await self._ask_once(order)
        if report is None:
            report, reason = await self._ask_once(order)
        if report is None:
            raise ScanUnavailable(f"The {self._name} failed: {reason}.")
        return report

    async def _ask_once(self, order: Callable[[int], Order]) -> tuple[Vectors | Spans | None, str]:
        if len(self._waiting) >= _MOST_WAITING:
            raise ScanBusy()
        self._numbers += 1
        number = self._numbers
        waiting = self._waiting[number] = _Waiting(f"the {self._name} ended")
        try:
            child = await self._supervisor.ready()
            waiting = self._waiting[number] = _Waiting(waiting.reason)  # the death of an earlier process is not meant
            with contextlib.suppress(ChildGone):    # it is dying: those who wait are told, and then there is another
                await child.send(encode(order(number)))
            await waiting.done.wait()
        except ChildError as error:
            return None, str(error)
        finally:
            del self._waiting[number]
        return waiting.report, waiting.reason

    # -- what the supervisor asks

    def launch(self) -> Child:
        """Start the process."""
        return self._launch()

    def greeting(self) -> bytes:
        """Its set-up."""
        return encode(self._greeting)

    def became_ready(self, payload: bytes) -> None:
        """Take note of the box."""
        match _decoded(payload):
            case ScanReady() as ready:
                self._ready = ready
                missing = {layer: state for layer, state in ready.box.items() if state != "held"}
                open_ways = [attempt for attempt, found in ready.probe.items() if found == "possible"]
                if missing or open_ways:
                    _log.warning("the box of the %s has gaps: %s %s", self._name, missing, open_ways)
            case ScanRefused(reason=reason):
                raise ChildStartFailed(reason)
            case _:
                raise ChildStartFailed("it spoke out of turn")

    def received(self, payload: bytes) -> None:
        """Hand an answer to who waits for it."""
        report = _decoded(payload)
        if isinstance(report, ScanReady):
            raise ChildError("it spoke out of turn")
        waiting = self._waiting.get(report.number)
        if waiting is None:
            return      # whoever asked has gone
        if isinstance(report, ScanRefused):
            waiting.reason = report.reason
        else:
            waiting.report = report
        waiting.done.set()

    def died(self, death: Death, *, was_ready: bool) -> bool:
        """Those who wait ask again, which starts it again."""
        wanted_back = bool(self._waiting)
        if was_ready:
            for waiting in self._waiting.values():
                waiting.reason = f"the {self._name} ended ({death.reason})"
                waiting.done.set()
        return wanted_back

    def gave_up(self, reason: str) -> None:
        """Nobody needs to wait any longer."""
        for waiting in self._waiting.values():
            waiting.reason = reason
            waiting.done.set()


class FrontOfChild:
    """What the node's side of each such process shows of it. run() must be running."""

    def __init__(self, child: AnsweringChild) -> None:
        self._child = child

    @property
    def state(self) -> ChildState:
        """How the process is; idle also means not started yet."""
        return self._child.state

    @property
    def pid(self) -> int | None:
        """The present process."""
        return self._child.pid

    @property
    def box(self) -> Mapping[str, str]:
        """The walls around it; empty before its first start."""
        return self._child.box

    @property
    def probe(self) -> Mapping[str, str]:
        """What it could do all the same."""
        return self._child.probe

    async def run(self, *, task_status: TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        """Serve until cancelled; the process is then ended."""
        task_status.started()
        await self._child.run()


def _decoded(payload: bytes) -> ScanReport:
    try:
        return decode_report(payload)
    except msgspec.DecodeError as error:
        raise ChildError("it sent what can't be read") from error
