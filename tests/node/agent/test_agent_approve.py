"""A write happens once, only after a yes, and a crash between yes and write repeats nothing."""

from datetime import UTC, datetime
from pathlib import Path

import pytest
from agent_memory import Crash, Events, MemoryJournal, Owner
from agent_node import World, fill_folder, world

from node.agent.approve import Approvals
from node.agent.effects import Approval, Effect
from node.agent.events import ApprovalNeeded
from node.agent.ports import AnswerKind
from node.agent.tools.registry import Registry
from node.errors import KithError, StorageError, UnknownPeer
from node.privacy.errors import ConsentRefused, ConsentUnanswered, GuardFailed, HoldsSecret

BOOKING = "put dentist on my calendar for Monday at 8"


def events_in(one: World) -> int:
    return one.calendar_text().count("SUMMARY:dentist")


def contents(root: Path) -> dict[Path, bytes]:
    return {path: path.read_bytes() for path in root.rglob("*") if path.is_file()}


@pytest.fixture
def root(tmp_path: Path) -> Path:
    fill_folder(tmp_path)
    return tmp_path


async def test_approved_is_written_once_and_recorded(root: Path) -> None:
    one = world(root)
    answer = await one.ask(BOOKING)
    assert answer.kind is AnswerKind.DONE
    assert events_in(one) == 1
    assert one.journal.calls == ["approved", "applied"]
    shown = one.events.of(ApprovalNeeded)[0].effect
    assert shown == one.owner.shown[0] == answer.effects[0]
    assert {value.name: value.value for value in shown.values}["title"] == "dentist"
    assert all(value.origin for value in shown.values)
    start = next(value for value in shown.values if value.name == "start")
    assert start.span is not None
    assert start.span.of(BOOKING) in BOOKING


async def test_denied_writes_nothing(root: Path) -> None:
    before = contents(root)
    one = world(root, owner=Owner(lambda effect: False))
    answer = await one.ask(BOOKING)
    assert answer.kind is AnswerKind.DENIED
    assert answer.effects == ()
    assert one.journal.calls == ["denied"]
    assert contents(root) == before


@pytest.mark.parametrize(("by", "said"), [
    ("owner, terminal", "You did not approve it, so nothing was written."),
    ("no terminal", "There was no terminal to ask you at, so nothing was written."),
    ("deadline", "Nobody answered the question in time, so nothing was written."),
])
async def test_a_no_says_whose_it_is(root: Path, by: str, said: str) -> None:
    class Absent(Owner):
        async def approve(self, effect: Effect) -> Approval:
            return Approval(effect.idempotency_key, False, by, datetime(2026, 3, 18, 8, 31, tzinfo=UTC))

    answer = await world(root, owner=Absent()).ask(BOOKING)
    assert answer.kind is AnswerKind.DENIED
    assert answer.text.startswith(said)


async def test_negative_control_without_the_approval_the_same_request_does_write(root: Path) -> None:
    """The check of the test above fails when the decision is ignored: an owner who says yes to everything."""
    before = contents(root)
    await world(root).ask(BOOKING)
    assert contents(root) != before


async def test_dry_run_shows_and_asks_nobody(root: Path) -> None:
    one = world(root)
    answer = await one.ask(BOOKING, dry_run=True)
    assert answer.kind is AnswerKind.PROPOSED
    assert answer.effects[0].value("title") == "dentist"
    assert events_in(one) == 0
    assert one.owner.shown == []
    assert one.journal.calls == []


async def test_killed_between_approval_and_write(root: Path) -> None:
    journal = MemoryJournal()
    journal.crash_after_approval = True
    with pytest.raises(Crash):
        await world(root, journal=journal).ask(BOOKING, request_id="r-1")
    restarted = world(root, journal=journal, owner=Owner(lambda effect: False))
    assert events_in(restarted) == 0
    assert await restarted.agent.start() == 1
    assert events_in(restarted) == 1
    assert await restarted.agent.start() == 0
    again = await restarted.ask(BOOKING, request_id="r-1")      # the client asks again: same request, same key
    assert "already" in again.text
    assert events_in(restarted) == 1
    assert restarted.owner.shown == []


async def test_killed_between_write_and_record(root: Path) -> None:
    class DiesOnApplied(MemoryJournal):
        async def applied(self, idempotency_key: str, undo: object) -> None:
            raise Crash

    journal = DiesOnApplied()
    with pytest.raises(Crash):
        await world(root, journal=journal).ask(BOOKING, request_id="r-1")
    healthy = MemoryJournal()
    healthy.entries = journal.entries
    restarted = world(root, journal=healthy)
    assert events_in(restarted) == 1
    assert await restarted.agent.start() == 1
    assert events_in(restarted) == 1


async def test_undo_takes_the_last_write_back_once(root: Path) -> None:
    one = world(root)
    before = one.calendar_text()
    await one.ask(BOOKING)
    undone = await one.agent.undo()
    assert undone is not None
    assert "dentist" in undone.text
    assert one.calendar_text() == before
    assert await one.agent.undo() is None


async def test_what_was_taken_back_is_not_said_to_be_in_place(root: Path) -> None:
    one = world(root)
    await one.ask(BOOKING, request_id="r-1")
    await one.agent.undo()
    again = await one.ask(BOOKING, request_id="r-1")
    assert "already" not in again.text
    assert (len(one.owner.shown), events_in(one)) == (2, 1)


async def test_the_owner_may_choose_another_of_the_shown_times(root: Path) -> None:
    text = "book 45 minutes with Dana next week about the roof"
    first = await world(root).ask(text, dry_run=True)
    start = next(value for value in first.effects[0].values if value.name == "start")
    assert len(start.alternatives) == 2
    one = world(root, owner=Owner(chosen={"start": start.alternatives[0]}))
    answer = await one.ask(text)
    assert answer.effects[0].value("start") != first.effects[0].value("start")
    assert one.calendar_text().count("SUMMARY:Roof") == 1
    entry, = one.journal.entries.values()
    assert entry.effect == answer.effects[0]
    assert entry.approval.chosen == {"start": start.alternatives[0]}


async def test_a_choice_that_was_never_shown_is_refused(root: Path) -> None:
    one = world(root, owner=Owner(chosen={"start": "some other day"}))
    with pytest.raises(LookupError):
        await one.ask("book 45 minutes with Dana next week about the roof")
    assert "SUMMARY:Roof" not in one.calendar_text()


async def test_an_approval_for_another_effect_counts_for_nothing() -> None:
    class Confused:
        async def approve(self, effect: Effect) -> Approval:
            return Approval("another key", True, "owner", datetime(2026, 3, 18, tzinfo=UTC))

    approvals = Approvals(Confused(), MemoryJournal(), Registry(()), deadline_s=1)
    with pytest.raises(ValueError, match="another"):
        await approvals.carry_out(Effect("note_write", "write", "x", (), "key"), Events())


async def test_a_refused_write_is_recorded_so_and_never_tried_again_unasked(root: Path) -> None:
    one = world(root)
    calendar = root / "calendars" / "owner.ics"

    whole = calendar.read_text()

    def break_file(effect: Effect) -> bool:
        calendar.write_text("BEGIN:VCALENDAR\nthis is no calendar")
        return True

    one.owner.decide = break_file
    answer = await one.ask(BOOKING, request_id="r-1")
    assert answer.kind is AnswerKind.STOPPED
    assert one.journal.calls == ["approved", "failed"]
    assert calendar.read_text() == "BEGIN:VCALENDAR\nthis is no calendar"
    calendar.write_text(whole)
    assert await one.agent.start() == 0             # the file is mended: nothing is written behind the owner's back
    assert "dentist" not in calendar.read_text()
    one.owner.decide = lambda effect: True
    assert (await one.ask(BOOKING, request_id="r-1")).kind is AnswerKind.DONE
    assert len(one.owner.shown) == 2
    assert events_in(one) == 1


@pytest.mark.parametrize("refusal", [HoldsSecret(), ConsentRefused(), GuardFailed(), UnknownPeer()])
async def test_what_the_guard_stopped_does_not_happen_at_the_next_start(
    root: Path, monkeypatch: pytest.MonkeyPatch, refusal: KithError
) -> None:
    one = world(root)
    writer = one.agent.approvals._tool(Effect("calendar_create", "write", "", (), ""))

    async def refuse(effect: Effect, idempotency_key: str) -> None:
        raise refusal

    with monkeypatch.context() as patched:
        patched.setattr(writer, "apply", refuse)
        with pytest.raises(type(refusal)):
            await one.ask(BOOKING, request_id="r-1")
    assert one.journal.calls == ["approved", "failed"]
    assert await one.agent.start() == 0             # the owner was told that it did not happen
    assert events_in(one) == 0


async def test_what_needs_the_owner_at_a_start_waits_for_him_and_holds_up_nothing(
    root: Path, monkeypatch: pytest.MonkeyPatch,
) -> None:
    journal = MemoryJournal()
    for number in (1, 2):
        journal.crash_after_approval = True
        text = f"put dentist on my calendar for Monday at {number}"
        with pytest.raises(Crash):
            await world(root, journal=journal).ask(text, request_id=f"r-{number}")
    one = world(root, journal=journal)
    approvals, there = one.agent.approvals, False
    apply, tried = approvals._apply, list[str]()

    async def first_asks(effect: Effect) -> object:
        tried.append(effect.idempotency_key)
        if not there and effect.idempotency_key == first:
            raise ConsentUnanswered
        return await apply(effect)

    first, second = journal.entries
    monkeypatch.setattr(approvals, "_apply", first_asks)
    assert await one.agent.start() == 1
    assert (tried, approvals.waiting, events_in(one)) == ([first, second], 1, 1)
    assert await approvals.finish_waiting() == []           # he is there and does not answer either
    assert (approvals.waiting, journal.calls.count("failed")) == (1, 0)
    there = True
    assert [effect.idempotency_key for effect in await approvals.finish_waiting()] == [first]
    assert (approvals.waiting, events_in(one)) == (0, 2)
    assert await approvals.finish_waiting() == []
    assert await world(root, journal=journal).agent.start() == 0


async def test_a_disk_that_failed_is_no_refusal(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    one = world(root)
    writer = one.agent.approvals._tool(Effect("calendar_create", "write", "", (), ""))

    async def full(effect: Effect, idempotency_key: str) -> None:
        raise StorageError

    with monkeypatch.context() as patched:
        patched.setattr(writer, "apply", full)
        with pytest.raises(StorageError):
            await one.ask(BOOKING, request_id="r-1")
    assert await one.agent.start() == 1
    assert events_in(one) == 1


async def test_a_choice_after_a_refused_write_keeps_the_new_key(root: Path) -> None:
    text = "book 45 minutes with Dana next week about the roof"
    first = await world(root).ask(text, dry_run=True)
    start = next(value for value in first.effects[0].values if value.name == "start")
    calendar = root / "calendars" / "owner.ics"
    whole = calendar.read_text()

    def break_file(effect: Effect) -> bool:
        calendar.write_text("BEGIN:VCALENDAR\nthis is no calendar")
        return True

    one = world(root, owner=Owner(break_file))
    assert (await one.ask(text, request_id="r-1")).kind is AnswerKind.STOPPED
    calendar.write_text(whole)
    one.owner.decide, one.owner.chosen = lambda effect: True, {"start": start.alternatives[0]}
    answer = await one.ask(text, request_id="r-1")
    assert answer.kind is AnswerKind.DONE
    refused, done = one.journal.entries.values()
    assert done.effect.idempotency_key == f"{refused.effect.idempotency_key}+"
    assert (refused.failed, done.applied, done.failed) == (True, True, False)


@pytest.mark.parametrize("failure", [OSError(28, "No space left on device"), ValueError("a bug"), StorageError("full")])
async def test_one_write_that_cannot_be_finished_keeps_no_node_from_starting(
    root: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, failure: Exception
) -> None:
    journal = MemoryJournal()
    journal.crash_after_approval = True
    with pytest.raises(Crash):
        await world(root, journal=journal).ask(BOOKING, request_id="r-1")
    restarted = world(root, journal=journal)
    approvals = restarted.agent.approvals

    async def fail(effect: Effect) -> None:
        raise failure

    with monkeypatch.context() as patched:
        patched.setattr(approvals, "_apply", fail)
        assert await restarted.agent.start() == 0
    (said,) = [record.getMessage() for record in caplog.records if record.name == "node.agent.approve"]
    assert said.endswith(f"could not be finished: {type(failure).__name__}")
    assert "dentist" not in said
    assert await restarted.agent.start() == 1       # control: the next start finishes it
    assert events_in(restarted) == 1


async def test_a_journal_that_cannot_be_read_keeps_no_node_from_starting(root: Path) -> None:
    class Damaged(MemoryJournal):
        async def unfinished(self) -> list[object]:    # type: ignore[override]
            raise ValueError("damaged row")

    assert await world(root, journal=Damaged()).agent.start() == 0
