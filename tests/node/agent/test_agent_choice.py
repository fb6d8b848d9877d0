"""Choice and gate on the development bank with the real static vectors; vetoes hold whatever the scores say.

The bank's author also wrote readers, cues and gate constants: these counts are a floor against regressions, not a claim
about unseen wording.
"""

from collections.abc import Sequence

import agent_bank as bank
import pytest
from agent_node import StaticEmbedder

from node.agent.choice import Choosable, Chooser, Ranking, Scored, forbids, is_question, nobody_can, removes
from node.agent.gate import Band, Gate, GateConstants, load_gate


class AllAlike:
    """Every text has the same vector: the tools' scores differ by cues and evidence alone."""

    async def embed(self, texts: Sequence[str]) -> Sequence[Sequence[float]]:
        return [[1.0, 0.0] for _ in texts]


async def test_the_bank_with_the_real_vectors() -> None:
    specs, reader, gate = bank.specs(), bank.reader(), load_gate()
    by_name = {spec.name: spec for spec in specs}
    chooser = Chooser([Choosable.of(spec) for spec in specs], StaticEmbedder())
    right = exact = kept = rejected = asked_slot = wrong_calls = 0
    for case in bank.cases():
        reading = reader.read(case.text, bank.NOW)
        filled = {spec.name: reader.fill(spec, reading, {}) for spec in specs}
        evidence = {spec.name: filled[spec.name].evidence(spec) for spec in specs}
        ranking = await chooser.choose(case.text, evidence)
        verdict = gate.judge(ranking)
        if case.tool is None:
            rejected += verdict.band is not Band.ACT
            wrong_calls += verdict.band is Band.ACT and not filled[verdict.best[0]].missing
            continue
        right += ranking.tools[0].name == case.tool
        kept += verdict.band is Band.ACT
        good = ranking.tools[0].name == case.tool and verdict.band is Band.ACT and not bank.differs(filled[case.tool],
            case)
        exact += good and not case.missing
        asked_slot += good and bool(case.missing)
        wrong_calls += bool(case.missing) and verdict.band is Band.ACT and not filled[verdict.best[0]].missing
    assert by_name
    assert right >= 46          # of 47
    assert kept >= 45           # of 47
    assert exact >= 36          # of 38 complete ones
    assert asked_slot >= 8      # of 9 with a missing argument: exactly that slot is asked for
    assert rejected >= 12       # of 13 that no tool can do: declined, or asked about
    assert exact + asked_slot + rejected >= 56   # of 60
    assert wrong_calls == 0


@pytest.mark.parametrize("text", [
    "cancel my dentist appointment on Monday", "delete the note Garden plan", "please remove lunch from my calendar",
    "take the meeting off my calendar", "can you erase everything", "I want to cancel the meeting with Dana",
    "get rid of the roof note", "move my dentist appointment to Tuesday", "reschedule the review", "clear my agenda",
    "make it an hour earlier", "no, half an hour later", "actually make it 20 minutes later",
])
async def test_removal_never_reaches_a_tool_that_is_not_destructive(text: str) -> None:
    tools = [Choosable.of(spec) for spec in bank.specs()]
    gone = Choosable("calendar_delete", "Delete an event", ("delete the event",), ("delete",), "destructive")
    assert removes(text)
    ranking = await Chooser([*tools, gone], AllAlike()).choose(text, {spec.name: 1.0 for spec in tools})
    assert [tool.name for tool in ranking.tools] == ["calendar_delete"]
    assert ranking.vetoed
    empty = await Chooser(tools, AllAlike()).choose(text, {})
    assert load_gate().judge(empty).band is Band.DECLINE


@pytest.mark.parametrize("text", [
    "remind me to cancel my gym", "write down that the meeting was cancelled", "take the bread out at six",
    "add the removal van on Monday", "remind me an hour later", "call mum a bit later", "make it an hour",
])
def test_speaking_of_removal_is_no_removal(text: str) -> None:
    assert not removes(text)


@pytest.mark.parametrize(("text", "forbidden"), [
    ("don't tell Dana I'm late", True), ("please don't add anything to the shopping note", True),
    ("never send Robin a message about the party", True), ("don’t remind me about the ferns", True),
    ("stop reminding me about the ferns", True), ("don't put lunch with Dana in my calendar on Friday", True),
    ("don't write that down", True),
    ("don't let me forget the milk", False), ("never mind", False), ("tell Dana: don't book it", False),
    ("remind me not to book the car", False), ("don't book anything on Friday, just tell me whether I am free", False),
    ("never buy that brand of paint again", False), ("don't book the dentist but the barber on Friday", False),
])
async def test_a_request_not_to_do_something_reaches_no_tool_that_does_it(text: str, forbidden: bool) -> None:
    assert forbids(text) is forbidden
    specs = [Choosable.of(spec) for spec in bank.specs()]
    ranking = await Chooser(specs, AllAlike()).choose(text, {tool.name: 1.0 for tool in specs})
    kinds = {tool.name: tool.kind for tool in specs}
    assert ranking.vetoed is forbidden
    assert not forbidden or all(kinds[tool.name] == "destructive" for tool in ranking.tools)


async def test_a_purchase_is_no_appointment() -> None:
    ranking = await Chooser([Choosable.of(spec) for spec in bank.specs()],
        AllAlike()).choose("book a flight to Lisbon", {})
    assert "calendar_create" not in [tool.name for tool in ranking.tools]


@pytest.mark.parametrize(("text", "asks"), [
    ("do I have anything on Friday", True), ("what is on", True), ("can you book a room", False),
    ("book a room", False),
    ("could I see my notes", True), ("is Dana free", True),
])
def test_mood(text: str, asks: bool) -> None:
    assert is_question(text) is asks


def test_gate_bands() -> None:
    gate = load_gate()

    def ranking(score: float, margin: float) -> Ranking:
        return Ranking((Scored("a", score, score, 1.0, 1.0), Scored("b", score - margin, 0.1, 0.0, 0.0),
            Scored("c", 0, 0, 0, 0)), 0.1)

    assert gate.judge(ranking(0.8, 0.4)).band is Band.ACT
    close = gate.judge(ranking(0.8, 0.0))
    assert close.band is Band.ASK
    assert close.best == ("a", "b")
    low = gate.judge(Ranking((Scored("a", 0.05, 0.05, 0, 0), Scored("b", 0.04, 0, 0, 0), Scored("c", 0.03, 0, 0, 0)),
        0.6))
    assert low.band is Band.DECLINE
    assert low.best == ("a", "b", "c")


def test_what_is_shown_before_it_is_done_needs_less() -> None:
    flat = GateConstants(("score",), (0.0,), (1.0,), (1.0,), 0.0, "by hand")         # p = 1 / (1 + exp(-score))

    class One(Ranking):
        @property
        def features(self) -> tuple[float, ...]:
            return (self.tools[0].score,)

    # 1 / (1 + e**-1.1) is 0.750: between what suffices for a write that is shown and for a read that runs at once
    for shown, band in ((True, Band.ACT), (False, Band.ASK)):
        ranking = One((Scored("a", 1.1, 1, 1, 1, shown=shown), Scored("b", 0.1, 0, 0, 0)), 0.1)
        assert Gate(flat).judge(ranking).band is band


def test_shipped_sentences() -> None:
    assert len(nobody_can()) >= 30
    assert not set(nobody_can()) & {case.text.lower() for case in bank.cases()}
    assert all(len(spec.examples) >= 8 for spec in bank.specs())
    assert not {example for spec in bank.specs() for example in spec.examples} & {case.text for case in bank.cases()}


@pytest.mark.parametrize("text", [
    "tell Dana that we meet on Tuesday at 4pm about the roof", "let Ravi know the meeting is on Friday at 3",
    "could you text Priya that dinner is at eight tomorrow", "inform everyone in the guests note that it starts at 8",
])
async def test_words_for_somebody_else_can_only_be_sent(text: str) -> None:
    ranking = await Chooser([Choosable.of(spec) for spec in bank.specs()], AllAlike()).choose(text, {})
    assert [tool.name for tool in ranking.tools] == ["message_send"]


@pytest.mark.parametrize("text", [
    "tell me what is on tomorrow", "let me know that my reminder is set", "tell us that again", "let's meet on Friday",
])
async def test_words_for_the_owner_are_no_message(text: str) -> None:
    ranking = await Chooser([Choosable.of(spec) for spec in bank.specs()], AllAlike()).choose(text, {})
    assert len(ranking.tools) == len(bank.specs())
