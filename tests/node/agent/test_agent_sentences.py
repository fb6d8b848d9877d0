"""Frames, the odds that examples teach, and how the choice uses them: worked by hand on small sets of sentences."""

from collections.abc import Sequence
from math import log

import agent_bank as bank
import pytest
from agent_node import StaticEmbedder

from node.agent.choice import Choosable, Chooser, is_question, removes
from node.agent.sentences import WordOdds, frame, unlike
from node.agent.tools.examples import examples_of, sections
from node.agent.tools.registry import ToolSpec


@pytest.mark.parametrize(("text", "bare"), [
    ("Remind me on Friday at 9:30 to call Robin", "remind me on at to call"),
    ('please Message Kim "see you at six" now', "message now"),              # at the front a capital is no name
    ("Note for the house: the tap drips", "note for the house"),
    ("I'm late, tell Bo I'll come", "i'm late tell i'll come"),
    ("Tuesday 10", "Tuesday 10"),                                           # nothing but content: all of it
])
def test_a_frame_is_what_is_left_without_content(text: str, bare: str) -> None:
    assert frame(text) == bare


def test_odds_by_hand() -> None:
    odds = WordOdds({"a": ("ring the bell", "ring twice"), "b": ("paint the wall", "paint it")})
    # "ring", at the beginning or not, is in 2 of 2 of a and 0 of 2 of b; half a count beside them, spread over five:
    a, b = (2 + 0.1) / 2.5, 0.1 / 2.5
    assert odds.of("ring")["a"] == pytest.approx(2 * log(a * 2 / (a + b)))
    assert odds.of("ring")["b"] == pytest.approx(2 * log(b * 2 / (a + b)))
    assert odds.of("the") == pytest.approx({"a": 0.0, "b": 0.0})            # both alike
    assert odds.of("bell") == {}                                            # one example alone teaches nothing
    assert odds.of("ring")["a"] < odds.of("ring ring")["a"] + 1e-9          # said twice counts once
    assert WordOdds({}).of("anything") == {}


def test_the_beginning_of_a_sentence_counts_as_a_word() -> None:
    odds = WordOdds({"a": ("note the time", "note it down"), "b": ("read the note", "show my note")})
    assert odds.of("note this")["a"] > odds.of("a note")["a"]


def test_what_a_tool_here_serves_is_not_hopeless() -> None:
    hopeless = ("read me my reminders", "open the garage", "what can you do")
    assert unlike(hopeless, ("read me the reminders", "open a note")) == ("open the garage", "what can you do")
    assert unlike(hopeless, ()) == hopeless


def test_sections() -> None:
    assert sections(["# about", "[a]", "one", "", "two", "[b]", "three"]) == {"a": ("one", "two"), "b": ("three",)}
    assert len(examples_of("calendar_list")) >= 25
    assert examples_of("nothing") == ()


def test_shipped_examples_are_each_given_once_and_are_no_test_request() -> None:
    asked = {case.text.casefold().strip(" .?!") for case in bank.cases()}
    for spec in bank.specs():
        assert len(spec.examples) == len(set(spec.examples)) >= 25, spec.name
        assert not asked & {example.casefold().strip(" .?!") for example in spec.examples}, spec.name


@pytest.mark.parametrize(("text", "asks"), [
    ("tell me where Anna lives", True), ("tell me at noon to phone the garage", False), ("let me see my notes", True),
    ("tell me to leave at five", False), ("I wonder if I am free", True), ("tell Anna I am free", False),
    ("let me know what is on", True), ("let Anna know what is on", False),
])
def test_asking_in_the_form_of_a_command(text: str, asks: bool) -> None:
    assert is_question(text) is asks


@pytest.mark.parametrize(("text", "gone"), [
    ("drop Marcus a line for me", False), ("drop the meeting", True), ("cross off milk from my list", True),
    ("take it off of my to do list", True), ("push my haircut back by an hour", True), ("snooze my reminder", True),
    ("change my yoga reminder from 6 to 7", True), ("that event can be taken out", True),
    ("put milk on my list", False),
])
def test_removing_and_moving(text: str, gone: bool) -> None:
    assert removes(text) is gone


class Letters:
    """One number per letter: sentences are alike that use the same letters."""

    async def embed(self, texts: Sequence[str]) -> Sequence[Sequence[float]]:
        return [[float(text.lower().count(chr(97 + n))) + 0.01 for n in range(26)] for text in texts]


async def test_the_score_is_the_sum_of_its_parts() -> None:
    tool = Choosable("paint", "Paint a wall", ("paint the wall", "paint my room blue"), ("paint",), "write")
    other = Choosable("ring", "Ring a bell", ("ring the bell", "ring twice"), (), "read")
    ranking = await Chooser([tool, other], Letters()).choose("paint this", {"paint": 0.5})
    best = ranking.tools[0]
    assert best.name == "paint"
    assert best.cue == 1.5                                                  # said, and said first
    # "paint" and "< paint" are in both of its two examples and nowhere else here
    assert best.words > 0
    assert best.score == pytest.approx(best.vector + 0.05 * 1.5 + 0.1 * 0.5 + 0.007 * best.words)
    asked = await Chooser([tool, other], Letters()).choose("what is paint", {})
    writes = next(one for one in asked.tools if one.name == "paint")
    assert writes.score == pytest.approx(writes.vector + 0.05 * writes.cue + 0.007 * writes.words - 0.1)
    assert asked.against_mood is (asked.tools[0].name == "paint")


async def test_a_tool_with_eight_examples_is_chosen_among_tools_with_forty() -> None:
    fresh = ToolSpec(
        "plant_water", "Water a plant in the house", {}, (), (
            "water the ficus", "give the orchid some water", "the basil needs watering", "can you water my plants",
            "water the plants on the balcony", "please see to the watering of the fern", "my cactus wants a drink",
            "turn on watering for the roses",
        ), "write",
    )
    chooser = Chooser([Choosable.of(spec) for spec in (*bank.specs(), fresh)], StaticEmbedder())
    for text in ("please water the tomatoes", "the ivy needs watering", "could you give my palm some water"):
        ranking = await chooser.choose(text, {})
        assert ranking.tools[0].name == "plant_water", text
    ranking = await chooser.choose("remind me to water the plants at six", {"reminder_set": 1.0})
    assert ranking.tools[0].name == "reminder_set"


async def test_without_vectors_words_and_cues_still_choose() -> None:
    class Broken:
        async def embed(self, texts: Sequence[str]) -> Sequence[Sequence[float]]:
            raise RuntimeError("the worker is down")

    specs = bank.specs()
    ranking = await Chooser([Choosable.of(spec) for spec in specs], Broken()).choose("remind me to pay the rent", {})
    assert ranking.tools[0].name == "reminder_set"
    assert ranking.tools[0].vector == 0.0
    assert ranking.nobody == 0.0
