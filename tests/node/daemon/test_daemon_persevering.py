"""A full disk, whoever caused it, ends no loop of the node: the contacts, the figures, the index, the port."""

import errno
import logging
from collections.abc import Awaitable, Callable
from types import SimpleNamespace
from typing import Any, cast

import pytest
import trio

from node.daemon import life
from node.daemon.control import Figures
from node.daemon.life import Node
from node.daemon.persevering import Persevering, in_words
from node.daemon.serving import Serving
from node.errors import StorageError
from node.net.events import LinkUp
from offload.errors import NoModel, WorkerDied
from offload.ports import EngineHealth
from protocol.frames.link import Hello

FULL = StorageError("The disk is full.", hint="df -h")


class Step:
    """Fails as often as it is told to, then works."""

    def __init__(self, *failures: BaseException) -> None:
        self.failures = list(failures)
        self.done = 0
        self.calls: list[tuple[Any, ...]] = []

    async def __call__(self, *args: Any) -> Any:
        await trio.lowlevel.checkpoint()
        self.calls.append(args)
        if self.failures:
            raise self.failures.pop(0)
        self.done += 1
        return []


# -- the guard around a step --

@pytest.mark.parametrize("failure", [
    FULL, WorkerDied(), OSError(errno.ENOSPC, "No space left on device"), trio.TooSlowError(),
    ExceptionGroup("of a nursery", [FULL, ExceptionGroup("inside", [NoModel()])]),
])
async def test_a_failed_step_is_logged_and_the_next_one_tried(
    failure: Exception, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    step, keeping = Step(failure, failure), Persevering("writing it down")
    assert [await keeping.attempt(step) for _ in range(4)] == [False, False, True, True]
    said = [record.getMessage() for record in caplog.records]
    assert len(said) == 2               # not again while the same reason lasts
    assert said[0].startswith("writing it down failed and is tried again later: ")
    assert said[1] == "writing it down works again"


@pytest.mark.parametrize("fault", [ValueError("a bug"), ExceptionGroup("mixed", [FULL, KeyError("a bug")])])
async def test_a_fault_of_the_code_is_not_hidden(fault: Exception) -> None:
    with pytest.raises((ValueError, ExceptionGroup)):
        await Persevering("x").attempt(Step(fault))


async def test_until_done_goes_on_until_it_worked_once(autojump_clock: trio.testing.MockClock) -> None:
    step = Step(FULL, FULL, FULL)
    await Persevering("x").until_done(step, every_s=30)
    assert (step.done, len(step.calls), trio.current_time() >= 90) == (1, 4, True)


def test_only_texts_of_ours_reach_the_log() -> None:
    assert in_words(FULL) == "The disk is full."
    assert in_words(OSError(errno.EIO, "Input/output error", "/home/me/secret.txt")) == "Input/output error"
    assert in_words(NoModel("a text with /a/path")) == "no_model"
    assert in_words(ValueError("personal")) == "ValueError"


# -- the loops of the node --

def link_up(peer_id: str) -> LinkUp:
    nothing: frozenset[str] = frozenset()
    hello = Hello("n", "1", (), (), ())
    return LinkUp(peer_id, hello, protocols=nothing, capabilities=nothing, address="/ip4/10.0.0.7/tcp/1", rtt_ms=1.0)


class ContactBook:
    """A roster that cannot write at first."""

    def __init__(self, *failures: BaseException) -> None:
        self.note_contact = Step(*failures)
        self.keep_grant = Step()

    def link_up(self, event: LinkUp) -> None:
        pass


async def contacts(roster: ContactBook) -> None:
    serving = Serving("n", cast("Any", None), cast("Any", None), cast("Any", roster))
    async with trio.open_nursery() as nursery:
        await nursery.start(serving.run)
        for peer_id in ("anna", "bea"):
            serving.on_event(link_up(peer_id))
        await trio.testing.wait_all_tasks_blocked()
        nursery.cancel_scope.cancel()


async def test_a_peer_that_greets_while_the_disk_is_full_does_not_stop_the_node() -> None:
    roster = ContactBook(FULL)
    await contacts(roster)
    assert roster.note_contact.calls == [("anna",), ("bea",)]
    assert roster.note_contact.done == 1


async def test_negative_control_an_error_that_nobody_catches_does_stop_it() -> None:
    with pytest.raises(ExceptionGroup) as stopped:
        await contacts(ContactBook(ValueError("a bug")))
    assert stopped.group_contains(ValueError, match="a bug")


class Worn:
    """What life asks of the parts, over a disk that fails."""

    def __init__(self) -> None:
        self.read = Step(FULL, FULL)
        self.write = Step(FULL, FULL)
        self.expire = Step(FULL)
        self.refresh = Step(FULL, NoModel())
        self.start = Step(FULL, OSError(errno.EIO, "Input/output error"))
        self.readvertised = 0
        listening = trio.Event()
        listening.set()
        self.parts: Any = SimpleNamespace(
            networking=SimpleNamespace(
                stage="ready", readvertise=self._readvertise, listening=listening,
                addresses=lambda: ["/ip4/127.0.0.1/tcp/4001"],
            ),
            ledger_desk=SimpleNamespace(today=self._today), engine=SimpleNamespace(health=self._health),
            outbox=SimpleNamespace(expire=self.expire), serving=SimpleNamespace(refresh_adverts=self._adverts),
            searching=SimpleNamespace(start=self.start), upkeep=SimpleNamespace(tick=trio.lowlevel.checkpoint),
        )
        self.database: Any = SimpleNamespace(read=self._waiting, write=self.write)
        self.control = SimpleNamespace(figures=Figures())
        self.node = object.__new__(Node)
        self.node._control = cast("Any", self.control)
        self.ready: list[bool] = []
        self.node._on_ready = lambda: self.ready.append(True)

    def _readvertise(self) -> None:
        self.readvertised += 1

    async def _waiting(self, *args: Any) -> dict[str, int]:
        await self.read()
        return {"bea": 2}

    async def _today(self) -> tuple[int, int, int]:
        return 3, 400, 5

    async def _health(self) -> EngineHealth:
        raise NoModel

    async def _adverts(self) -> bool:
        await self.refresh()
        return True


async def run_for(seconds: float, task: Callable[[], Awaitable[None]]) -> None:
    with trio.move_on_after(seconds):
        await task()


async def test_the_figures_go_on_when_the_disk_does(autojump_clock: trio.testing.MockClock) -> None:
    worn = Worn()
    seconds = life.REFRESH_S * (life.ADVERT_EVERY * 2 + 1.5)
    await run_for(seconds, lambda: worn.node._keep_figures(worn.parts, worn.database))
    assert worn.ready == [True]         # though the very first reading failed
    assert worn.control.figures == Figures(queued_messages=2, left_entries=3, left_bytes=400, kept_back=5)
    assert (worn.expire.done, worn.refresh.done, worn.readvertised) == (2, 1, 1)


async def test_the_index_and_the_port_are_tried_again(autojump_clock: trio.testing.MockClock) -> None:
    worn = Worn()
    await worn.node._index(worn.parts)
    await worn.node._keep_port(worn.parts, worn.database)
    assert (worn.start.done, len(worn.start.calls)) == (1, 3)
    assert (worn.write.done, len(worn.write.calls)) == (1, 3)
    assert worn.write.calls[-1][1:] == ("net.port", "4001")
