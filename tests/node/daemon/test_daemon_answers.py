"""Answers under way over the real database: kept, followed by any number of readers, erased with their turn."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
import trio
from fixed import FixedClock

from node.agent.ports import Leg, ThinkJob, ThinkPart, ThinkResult
from node.agent.repetition import RepeatedText
from node.daemon.answers import Answers
from node.daemon.delivery import Delivery
from node.daemon.restarted import Restarted
from node.daemon.under_way import UnderWay
from node.errors import StorageError, UsageError
from node.privacy.labels import owner_text
from node.store import answers, conversations
from node.store.answers import KeptPiece
from node.store.database import Database
from node.store.schema import KITH

ID = "0f" * 16
LEG = Leg("home-pc", "m", "ab" * 32, 0, peer_id="12D3KooWHome")


@pytest.fixture
async def database(tmp_path: Path) -> AsyncIterator[Database]:
    opened = await Database.open(tmp_path / "kith.db", b"k" * 32, KITH)
    await opened.write(conversations.create, "c1", 1, confidentiality=0, integrity=2)
    yield opened
    await opened.close()


async def _read(text: str) -> bool:
    return True


def under_way(request_id: str = ID) -> UnderWay:
    return UnderWay(ThinkJob(request_id, "c1", (ThinkPart("user", owner_text("Tell me all")),), _read, keep=True))


async def written(kept: Answers, answer: UnderWay, *texts: str, end: bool = True) -> None:
    await kept.begin(answer)
    answer.begin_leg(LEG, carried=None)
    await kept.note_leg(answer)

    async def keep(first: int, pieces: Any) -> None:
        await kept.extend(answer.job.job_id, first, pieces)

    delivery = Delivery(answer, keep)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(delivery.run)
        for number, text in enumerate(texts):
            await delivery.feed(KeptPiece(text, "", 1, (number,)))
        await delivery.finish()
        nursery.cancel_scope.cancel()
    if end:
        answer.end()


async def follow(kept: Answers, name: str, start: int = 0) -> tuple[str, list[dict[str, Any]]]:
    events: list[dict[str, Any]] = []

    async def emit(event: Any) -> None:
        events.append(dict(event))

    await kept.follow(name, start, emit)
    return "".join(event["text"] for event in events if event["event"] == "delta"), events


async def test_each_reader_gets_each_character_once(database: Database) -> None:
    kept, answer = Answers(database, FixedClock()), under_way()
    texts = [f"{number} " for number in range(40)]
    got: list[str] = []

    async def read(start: int) -> None:
        text, events = await follow(kept, ID[:6], start)
        got.append("".join(texts)[:start] + text)
        assert (events[0]["event"], events[-1]) == ("following", {"event": "answer", "text": "whole"})

    async with trio.open_nursery() as nursery:
        await kept.begin(answer)
        for start in (0, 3, 17):
            nursery.start_soon(read, start)
        await written(kept, answer, *texts)
        assert [(view.id, view.title, view.chars, view.ran_on) for view in kept.under_way()] == [
            (ID, "Tell me all", len("".join(texts)), "home-pc")]
        kept.conclude(ID, {"event": "answer", "text": "whole"})
    assert got == ["".join(texts)] * 3
    assert kept.under_way() == []
    assert (await follow(kept, "last"))[0] == "".join(texts)     # who comes late reads it all the same
    with pytest.raises(UsageError):
        await follow(kept, "ff")


async def test_what_is_kept_is_what_was_shown_and_goes_on_from_there(database: Database) -> None:
    kept, answer = Answers(database, FixedClock()), under_way()
    await written(kept, answer, "Hel", "lo ", end=False)
    (row,) = await database.read(answers.every)
    again = UnderWay.taken_up(row, _read)
    assert (again.shown, again.text, again.token_ids, again.tokens) == ("Hello ", "Hello ", (0, 1), 2)
    assert again.legs[0].ended == "this node was stopped"


@pytest.mark.parametrize(("stopping", "left"), [(False, 0), (True, 1)])
async def test_what_is_cut_off_is_erased_unless_the_node_stops(database: Database, stopping: bool, left: int) -> None:
    kept, answer = Answers(database, FixedClock()), under_way()
    await written(kept, answer, "Hel")
    kept.stopping = stopping
    await kept.leave(answer, whole=False)
    assert len(await database.read(answers.every)) == left
    if not stopping:
        assert (await follow(kept, ID))[1][-1]["code"] == "unfinished"


async def test_a_disk_that_takes_nothing_costs_only_the_restart(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    kept, answer = Answers(database, FixedClock()), under_way()

    async def full(*_: Any, **__: Any) -> None:
        await trio.lowlevel.checkpoint()
        raise StorageError("The disk is full.")

    monkeypatch.setattr(database, "write", full)
    await written(kept, answer, "Hel", "lo")
    assert answer.shown == "Hello"


class Writing:
    """A thinker and an agent that only count."""

    def __init__(self, *, ends_the_node: bool = False) -> None:
        self.ends_the_node = ends_the_node
        self.taken_up: list[str] = []
        self.finished: list[ThinkResult] = []

    async def take_up(self, answer: UnderWay) -> ThinkResult:
        self.taken_up.append(answer.shown)
        if self.ends_the_node:
            raise KeyboardInterrupt
        return ThinkResult(answer.shown + "more", "phone", "went on")

    async def finish(self, job: ThinkJob, result: ThinkResult, watch: RepeatedText) -> Any:
        self.finished.append(result)
        raise UsageError("enough for this test")


async def restarted(database: Database, writing: Writing) -> None:
    kept = Answers(database, FixedClock())
    await Restarted(database, kept, writing, writing, "phone").run()  # type: ignore[arg-type]


async def test_an_answer_that_ends_its_node_each_time_is_given_up(database: Database) -> None:
    await written(Answers(database, FixedClock()), under_way(), "Hel", end=False)
    deadly = Writing(ends_the_node=True)
    for _ in range(3):
        with pytest.raises(BaseExceptionGroup):
            await restarted(database, deadly)
    assert deadly.taken_up == ["Hel"] * 3
    calm = Writing()
    await restarted(database, calm)
    assert calm.taken_up == []
    assert [(result.text, result.finish_reason) for result in calm.finished] == [("Hel", "broken")]


async def test_a_record_that_cannot_be_read_is_dropped(database: Database) -> None:
    await written(Answers(database, FixedClock()), under_way(), "Hel", end=False)
    await database.write(answers.note_leg, ID, carried=b"\xc1", legs=b"\xc1")
    writing = Writing()
    await restarted(database, writing)
    assert (writing.taken_up, await database.read(answers.every)) == ([], [])
