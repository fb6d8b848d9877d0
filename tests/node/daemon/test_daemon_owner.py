"""The owner's desk: questions out, answers back, and no whenever there is no clear yes."""

from typing import Any

import pytest
import trio
from fixed import FixedClock

from node.agent.effects import Effect, EffectValue, Origin
from node.agent.events import Answered, ApprovalNeeded, ConsentNeeded, Delta, Status, ToolFinished, ToolStarted
from node.agent.ports import Answer, AnswerKind
from node.api.questions import MAX_PENDING, Questions
from node.daemon.owner import ApiEventSink, OwnerDesk
from node.privacy.consent import Choice, ConsentQuestion, OutgoingText, Substitution
from node.privacy.policy import Level, Purpose

EFFECT = Effect(
    "calendar_create", "write", "Write one event.",
    (EffectValue("title", "Roof", "Roof", Origin.COPIED, 'your words: "roof"', None, ("Tank",)),), "key-1",
)
QUESTION = ConsentQuestion(
    "q", "r", "c", "12D3KooWx", "home-pc", Purpose.INFER, Level.MASKED, "heavy work",
    (OutgoingText("user", "Write to [PERSON_1].", "owner", (Substitution(9, 19, "[PERSON_1]", "Dana", "PERSON"),)),),
    ("vault",), ("detectors",), 30.0, "digest-1",
)


class Desk:
    """A desk, its questions, and what was shown."""

    def __init__(self) -> None:
        numbers = iter(range(10_000))
        self.questions = Questions(lambda: f"q{next(numbers)}")
        self.desk = OwnerDesk(self.questions, FixedClock())
        self.shown: list[dict[str, Any]] = []

    async def answered(self, ask: Any, reply: dict[str, Any] | None) -> Any:
        """The desk's result when the owner gives this reply; None: says nothing."""
        results: list[Any] = []

        async def run() -> None:
            async def show(event: Any) -> None:
                self.shown.append(dict(event))

            self.desk.speak_to(show)
            results.append(await ask())

        async with trio.open_nursery() as nursery:
            nursery.start_soon(run)
            await trio.testing.wait_all_tasks_blocked()
            if reply is not None:
                self.questions.answer(self.questions.pending()[0].question_id, reply)
        return results[0]


@pytest.fixture
def desk() -> Desk:
    return Desk()


async def test_consent_shows_everything_and_names_the_question_answered(desk: Desk, autojump_clock: object) -> None:
    answer = await desk.answered(lambda: desk.desk.ask(QUESTION), {"allow": True, "digest": "digest-1", "by": "owner"})
    assert (answer.allowed, answer.digest, answer.by) == (True, "digest-1", "owner")
    (shown,) = desk.shown
    assert (shown["event"], shown["kind"], shown["deadline_s"]) == ("question", "consent", 30.0)
    assert (shown["peer"], shown["why"], shown["texts"]) == ("home-pc", "heavy work", ["Write to [PERSON_1]."])
    assert shown["replaced"] == [{"shown_to_peer": "[PERSON_1]", "stands_for": "Dana", "type": "PERSON"}]
    assert (shown["substitutions"], shown["level"], shown["purpose"]) == (1, "masked", "infer")
    assert shown["nets"] == "Checked by: vault. Missing: detectors."


@pytest.mark.parametrize("reply", [
    None, {}, {"allow": False}, {"allow": "yes"}, {"allow": 1}, {"allow": "true"},
    {"allow": True, "digest": "of another question"}, {"allow": True},
])
async def test_anything_but_a_clear_yes_to_this_text_is_no(desk: Desk, reply: Any, autojump_clock: object) -> None:
    answer = await desk.answered(lambda: desk.desk.ask(QUESTION), reply)
    assert answer.allowed is False


@pytest.mark.parametrize("reply", [
    None, {}, {"allow": False}, {"allow": 1}, {"allow": True, "key": "key-2"}, {"allow": True},
])
async def test_approval_needs_a_clear_yes_to_this_effect(desk: Desk, reply: Any, autojump_clock: object) -> None:
    approval = await desk.answered(lambda: desk.desk.approve(EFFECT), reply)
    assert (approval.approved, approval.idempotency_key) == (False, "key-1")


async def test_an_approval_carries_what_was_chosen_and_by_whom(desk: Desk, autojump_clock: object) -> None:
    reply = {"allow": True, "key": "key-1", "by": "owner, terminal", "chosen": {"title": "Tank"}}
    approval = await desk.answered(lambda: desk.desk.approve(EFFECT), reply)
    assert (approval.approved, approval.by, approval.chosen) == (True, "owner, terminal", {"title": "Tank"})
    assert approval.at == FixedClock().now()
    (shown,) = desk.shown
    assert (shown["kind"], shown["tool"], shown["text"], shown["key"]) == (
        "approval", "calendar_create", "Write one event.", "key-1",
    )
    assert shown["values"] == [{
        "name": "title", "value": "Roof", "shown": "Roof", "origin": "copied", "source": 'your words: "roof"',
        "alternatives": ["Tank"],
    }]


@pytest.mark.parametrize("by", [7, None, "x" * 81, ["owner"]])
async def test_a_strange_name_of_the_owner_is_not_kept(desk: Desk, by: Any, autojump_clock: object) -> None:
    answer = await desk.answered(lambda: desk.desk.ask(QUESTION), {"allow": True, "by": by})
    assert answer.by == "owner"


async def test_too_many_open_questions_are_a_no(desk: Desk, autojump_clock: object) -> None:
    async with trio.open_nursery() as nursery:
        for _ in range(MAX_PENDING):
            nursery.start_soon(desk.questions.ask, "consent", {}, 60)
        await trio.testing.wait_all_tasks_blocked()
        answer = await desk.desk.ask(QUESTION)
        assert answer.allowed is False
        refused = await desk.desk.check_pairing({}, 60)
        assert refused == {"allow": False, "by": f"{MAX_PENDING} questions are already open"}
        nursery.cancel_scope.cancel()


async def test_silence_on_a_pairing_is_a_no(desk: Desk, autojump_clock: object) -> None:
    assert await desk.answered(lambda: desk.desk.check_pairing({"name": "x"}, 5), None) == {
        "allow": False, "by": "deadline",
    }


async def test_while_nobody_is_there_a_question_is_unanswered_at_once(desk: Desk, autojump_clock: object) -> None:
    async def both() -> tuple[Any, Any]:
        return await desk.desk.ask(QUESTION), await desk.desk.approve(EFFECT)

    began_s = trio.current_time()
    answer, approval = await desk.desk.unattended(both)
    assert trio.current_time() == began_s
    assert (answer.allowed, answer.unanswered, answer.by, approval.approved) == (False, True, "no terminal", False)
    assert desk.questions.pending() == []
    answer = await desk.desk.ask(QUESTION)      # the control: afterwards somebody may still come
    assert trio.current_time() == began_s + QUESTION.deadline_s
    assert (answer.allowed, answer.by) == (False, "deadline")


async def test_what_is_asked_elsewhere_meanwhile_waits_for_its_own_owner(desk: Desk, autojump_clock: object) -> None:
    async def act() -> None:
        await trio.testing.wait_all_tasks_blocked()

    async with trio.open_nursery() as nursery:
        nursery.start_soon(desk.desk.unattended, act)
        answer = await desk.answered(lambda: desk.desk.ask(QUESTION), {"allow": True, "digest": "digest-1"})
    assert answer.allowed


async def test_the_agents_events_become_lines() -> None:
    lines: list[Any] = []

    async def emit(line: Any) -> None:
        lines.append(line)

    sink = ApiEventSink(emit)
    tool = "clock_now"
    for event in (
        Status("Reading"), Delta("Hel"), ToolStarted(tool, {"zone": "UTC"}), ToolFinished(tool, True, "9:30"),
        ApprovalNeeded(EFFECT, 5), ConsentNeeded("q", "p", "infer", (), 5),
        Answered(Answer("It is 9:30.", AnswerKind.DONE, "phone", "a tool", "c1", (tool,), ("clock",), (EFFECT,))),
    ):
        await sink.emit(event)
    assert [line["event"] for line in lines] == ["status", "delta", "tool", "tool", "answer"]
    assert lines[2]["text"] == "zone=UTC"
    answer = lines[-1]
    assert (answer["text"], answer["kind"], answer["ran_on"], answer["reason"]) == (
        "It is 9:30.", "done", "phone", "a tool",
    )
    assert answer["effects"][0]["key"] == "key-1"
    assert (answer["tools"], answer["sources"], answer["conversation_id"]) == (["clock_now"], ["clock"], "c1")


@pytest.mark.parametrize(("reply", "allowed", "choice", "unanswered"), [
    ({"allow": True, "digest": "digest-1"}, True, Choice.ONCE, False),
    ({"allow": True, "digest": "digest-1", "choice": "clear"}, True, Choice.CLEAR, False),
    ({"allow": False, "digest": "digest-1", "choice": "deny_always"}, False, Choice.DENY_ALWAYS, False),
    ({"allow": True, "digest": "digest-1", "choice": "deny_always"}, False, Choice.DENY_ALWAYS, False),
    ({"allow": True, "digest": "digest-1", "choice": "always"}, False, Choice.ONCE, False),
    ({"allow": True, "digest": "digest-1", "choice": ["clear"]}, False, Choice.ONCE, False),
    ({"allow": True, "digest": "another", "choice": "clear"}, False, Choice.CLEAR, False),
    ({"allow": False, "by": "no terminal"}, False, Choice.ONCE, True),
    (None, False, Choice.ONCE, True),
])
async def test_what_the_owner_chose_comes_through(
    desk: Desk, autojump_clock: object, reply: dict[str, Any] | None, allowed: bool, choice: Choice, unanswered: bool,
) -> None:
    answer = await desk.answered(lambda: desk.desk.ask(QUESTION), reply)
    assert (answer.allowed, answer.choice, answer.unanswered) == (allowed, choice, unanswered)
    (shown,) = desk.shown
    assert shown["choices"] == ["once", "deny", "deny_always", "clear"]
    assert shown["diff"] == [{
        "role": "user", "source": "owner", "leaves": "Write to [PERSON_1].",
        "marks": [{"start": 9, "end": 19, "stands_for": "Dana", "type": "PERSON"}],
    }]
