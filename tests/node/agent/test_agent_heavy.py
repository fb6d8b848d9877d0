"""The split of what no tool does: a model's work, news of the moment, the owner's own affairs, deeds."""

import pytest

from node.agent.heavy import Work, answer_label, build_job, is_language, lacks_means, needs_material, work_of
from node.agent.ports import ThinkPart, ThinkResult
from node.privacy.labels import Confidentiality, Integrity, Labeled, Value, owner_text


@pytest.mark.parametrize(("text", "work"), [
    ("summarise the minutes", Work.THINK), ("What is entropy?", Work.THINK), ("how do I bleed a radiator", Work.THINK),
    ("why does my code fail", Work.THINK), ("should I learn Rust or Go", Work.THINK),
    ("please write me a haiku", Work.THINK),
    ("compare tea and coffee", Work.THINK), ("help me write a letter to the council", Work.THINK),
    ("thanks!", Work.THINK),
    ("what's the weather like", Work.LIVE), ("who is going to win tonight", Work.LIVE), ("bitcoin price", Work.LIVE),
    ("how much is 30 euros in dollars", Work.LIVE), ("convert 100 USD to pounds", Work.LIVE),
    ("what is a pound in history", Work.THINK),
    ("How am I feeling today?", Work.PRIVATE), ("what's my bank balance", Work.PRIVATE),
    ("did I pay the rent", Work.PRIVATE),
    ("lock the door", Work.DEED), ("can you feed the cat", Work.DEED), ("sing", Work.DEED),
])
def test_split(text: str, work: Work) -> None:
    assert work_of(text, has_material=False) is work


def test_material_makes_everything_a_models_work() -> None:
    assert work_of("lock the door", has_material=True) is Work.THINK


@pytest.mark.parametrize(("text", "language"), [
    ("Summarise this", True), ("could you translate it", True), ("write a poem", True), ("write a note", False),
    ("write down the code", False), ("draft a reply to Dana", True), ("create an event", False),
    ("list the files", False),
])
def test_language_work_is_never_a_tools(text: str, language: bool) -> None:
    assert is_language(text) is language


@pytest.mark.parametrize(("text", "lacks"), [
    ("call Dana", True), ("switch the light off", True), ("turn on bluetooth", True), ("buy milk", True),
    ("print it", True),
    ("show my notes", False), ("book a meeting", False), ("open the note", False),
])
def test_deeds_that_need_means_nobody_has(text: str, lacks: bool) -> None:
    assert lacks_means(text) is lacks


@pytest.mark.parametrize(("text", "needs"), [
    ("translate this letter", True), ("summarise it", True), ("make this shorter: " + "a long sentence " * 3, False),
    ("what is the meaning of life", False), ("rewrite the following text\n" + "word " * 20, False),
])
def test_a_text_that_is_not_there(text: str, needs: bool) -> None:
    assert needs_material(text) is needs


async def never(piece: str) -> bool:
    return True


def test_every_part_keeps_its_label_and_the_answer_joins_them() -> None:
    note = Labeled("Dana owes 20", Confidentiality.PERSONAL, Integrity.LOCAL, "note", (Value("Dana", "PERSON"),))
    job = build_job(job_id="j", conversation_id="c", text="who owes",
        history=(ThinkPart("user", owner_text("hi"), "history"),),
                    material=(("note", note),), on_text=never, place="auto", model=None)
    assert [part.name for part in job.parts] == ["instruction", "history", "request", "note"]
    assert job.parts[3].text is note
    here = answer_label(ThinkResult("Dana", "phone", "r"), job)
    assert (here.confidentiality, here.integrity) == (Confidentiality.PERSONAL, Integrity.LOCAL)
    assert here.values == (Value("Dana", "PERSON"),)
    there = answer_label(ThinkResult("Dana", "home", "r", peer_id="12D3"), job)
    assert there.integrity is Integrity.UNTRUSTED
