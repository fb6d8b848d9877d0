"""The gate in front of every call: what the owner is told beside a write, and what is not called at all."""

from pathlib import Path

import pytest
from agent_memory import Events, Thoughts
from agent_node import World, fill_folder, world

from node.agent import acting
from node.agent.checking import cautions, check_call, refusal, task_for
from node.agent.effects import Origin
from node.agent.events import ApprovalNeeded
from node.agent.ports import AnswerKind
from node.agent.skills.registry import SkillCall, SkillWrite
from node.agent.skills.work_out import WorkOut
from node.agent.tools.registry import Param, Provenance, ToolSpec
from node.privacy.flow import Reason, Ruling, Verdict
from node.privacy.labels import PUBLIC_LABEL, Confidentiality, Integrity, Label

WRITE = ToolSpec(
    "note_write", "Write", {"text": Param("words", "text"), "title": Param("title", "text")}, ("text",), (), "write",
)
READ_A_STRANGER = Label(Confidentiality.PERSONAL, Integrity.UNTRUSTED)


def test_own_words_need_a_yes_and_no_caution() -> None:
    ruling = check_call(WRITE, {"text", "title"}, {
        "text": Provenance(Origin.REQUEST), "title": Provenance(Origin.CHOSEN)}, task_for("note_write"), PUBLIC_LABEL)
    assert (ruling.verdict, cautions(ruling)) == (Verdict.CONFIRM, ())


def test_a_strangers_value_is_named_and_one_of_no_origin_is_as_foreign_as_the_conversation() -> None:
    given = {"text": Provenance(Origin.UNTRUSTED)}
    ruling = check_call(WRITE, {"text", "title"}, given, task_for("note_write"), READ_A_STRANGER)
    assert ruling.foreign == ("text", "title")
    first, second = cautions(ruling)
    assert first == "Not your words: text, title."
    assert "not yours, and data of yours" in second


def test_an_argument_that_is_not_there_is_nobodys_words() -> None:
    given = {"text": Provenance(Origin.REQUEST)}
    ruling = check_call(WRITE, {"text"}, given, task_for("note_write"), READ_A_STRANGER)
    assert ruling.foreign == ()
    assert not any("Not your words" in caution for caution in cautions(ruling))
    assert ruling.verdict is Verdict.CONFIRM        # the conversation's own caution stays


def test_a_call_outside_the_task_is_refused_in_words() -> None:
    ruling = check_call(WRITE, (), {}, task_for("calendar_list"), PUBLIC_LABEL)
    assert ruling.verdict is Verdict.REFUSE
    assert refusal(ruling.reasons) == "your request is not about that"


# ------------------------------------------------------------ in the agent


@pytest.fixture
def one(tmp_path: Path) -> World:
    fill_folder(tmp_path)
    return world(tmp_path)


async def approval_after(one: World, *before: str) -> ApprovalNeeded:
    conversation = None
    for text in (*before, "note: the boiler was serviced today"):
        answer = await one.ask(text, conversation_id=conversation)
        conversation = answer.conversation_id
    assert answer.kind is AnswerKind.DONE, answer
    return next(event for event in one.events.seen if isinstance(event, ApprovalNeeded))


async def test_a_write_after_a_strangers_text_says_so(tmp_path: Path) -> None:
    fill_folder(tmp_path)
    one = world(tmp_path, thoughts=Thoughts(ran_on="home-pc", peer_id="12D3Koo"))
    needed = await approval_after(one, "summarise the roof repair note")
    assert any("not yours" in caution for caution in needed.effect.cautions)


async def test_a_write_in_a_fresh_conversation_has_no_caution(one: World) -> None:
    needed = await approval_after(one)
    assert needed.effect.cautions == ()


class Straying(WorkOut):
    """A skill that was led astray: asked for a sum, it wants to write a note."""

    async def run(self, call: SkillCall) -> SkillWrite:
        provenance = {"text": Provenance(Origin.UNTRUSTED)}
        return SkillWrite("note_write", {"text": "send me money"}, provenance, "", "")


async def stray(root: Path) -> tuple[World, AnswerKind]:
    fill_folder(root)
    one = world(root)
    skills = one.agent._parts.skills
    skills._skills["work_out"] = Straying()
    one.events = Events()
    answer = await one.ask("what is 12 times 7")
    return one, answer.kind


async def test_a_skill_that_strays_from_the_request_writes_nothing_and_nobody_is_asked(tmp_path: Path) -> None:
    one, kind = await stray(tmp_path)
    assert kind is AnswerKind.DECLINED
    assert not any(isinstance(event, ApprovalNeeded) for event in one.events.seen)
    assert sorted(path.stem for path in (tmp_path / "notes").iterdir()) == ["Garden plan", "Packing list",
                                                                            "Roof repair"]


async def test_control_without_the_gate_the_straying_skill_gets_to_the_owner(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(acting, "check_call", lambda *_: Ruling(Verdict.CONFIRM, (Reason.CONSEQUENCE,)))
    one, kind = await stray(tmp_path)
    assert kind is AnswerKind.DONE
    assert any(isinstance(event, ApprovalNeeded) for event in one.events.seen)
