"""The copy grammar only ever derives a contiguous run of the request's words; agreement, disagreement, failure."""

import json
import re

import pytest
import trio
from agent_memory import ScriptedModel
from hypothesis import given, settings
from hypothesis import strategies as st

from node.agent.copy_grammar import Copyist, agree, beside, copy_grammar, parse_copy
from node.agent.effects import Origin, Span
from node.agent.slots import SlotValue

_ALTERNATIVE = re.compile(r'("(?:[^"\\]|\\.)*")(?: (w\d+))?(?: \| |$)')


def derive(grammar: str, choose: st.DataObject) -> str:
    """One sentence of the grammar, by walking its rules: a third reading of GBNF, independent of how it was written."""
    rules = dict(line.split(" ::= ", 1) for line in grammar.strip().splitlines())
    name = choose.draw(st.sampled_from(rules["w"].split(" | ")))
    out = ""
    while name:
        options = _ALTERNATIVE.findall(rules[name])
        literal, name = choose.draw(st.sampled_from(options))
        out += json.loads(literal)
    return '{"text": "' + out + '"}'


@settings(max_examples=300, deadline=None)
@given(st.text(st.characters(codec="utf-8", exclude_categories=("Cc", "Cs", "Zl", "Zp")), min_size=1,
    max_size=60).filter(lambda t: t.split()),
       st.data())
def test_every_sentence_is_a_run_of_the_words(text: str, data: st.DataObject) -> None:
    output = derive(copy_grammar(text), data)
    copied = json.loads(output)["text"]
    assert copied in " ".join(text.split())
    assert parse_copy(output, text) in {copied, None}


@pytest.mark.parametrize("text", ["say \"hi\" to C:\\temp, äöü's mum", "it's Tom's", "“so”"])
def test_awkward_characters(text: str) -> None:
    grammar = copy_grammar(text)
    assert grammar.count("::=") == len(text.split()) + 2


def test_a_text_without_words_is_refused() -> None:
    with pytest.raises(ValueError, match="nothing"):
        copy_grammar("   ")


@pytest.mark.parametrize("output", ["", "no json", '{"text": 5}', '{"text": ""}', '["x"]', '{"text": "not there"}',
    '{"other": "call"}'])
def test_anything_else_from_the_model_is_nothing(output: str) -> None:
    assert parse_copy(output, "call the vet") is None


READ = SlotValue("the vet", "the vet", Origin.REQUEST, 'your words: "the vet"', Span(5, 12))


def test_agreement_makes_sure_and_disagreement_shows_both() -> None:
    same = agree(READ, "vet")
    assert same.certain
    assert same.alternatives == ()
    other = agree(READ, "call the vet")
    assert not other.certain
    assert other.alternatives == ("call the vet",)


@pytest.mark.parametrize(("copied", "left", "shown", "certain"), [
    (None, None, (), False), ("vet", "call the vet", (), True),         # the model agrees: nothing else is shown
    (None, "call the vet", ("call the vet",), False), ("the vet", None, (), True),
    ("tomorrow", "call the vet", ("call the vet",), False),             # one other reading, the better one
    ("tomorrow", "the vet", ("tomorrow",), False), ("tomorrow", None, ("tomorrow",), False),
])
def test_one_other_reading_is_shown_beside_the_rules(
    copied: str | None, left: str | None, shown: tuple[str, ...], certain: bool,
) -> None:
    value = beside(READ, copied, left)
    assert (value.alternatives, value.certain, value.value) == (shown, certain, READ.value)


async def test_the_prompt_holds_the_left_over_words_and_never_a_date() -> None:
    model = ScriptedModel(['{"text": "the vet"}'])
    assert await Copyist(model).copy("the title", "call the vet", [("book the hall", "the hall")]) == "the vet"
    messages, grammar = model.asked[0]
    assert messages[-1].text == "call the vet"
    assert grammar == copy_grammar("call the vet")
    assert not re.search(r"20\d\d|\d{1,2}:\d\d", " ".join(message.text for message in messages))


async def test_a_slow_model_is_not_waited_for(autojump_clock: object) -> None:
    class Slow:
        async def complete(self, *_: object, **__: object) -> str:
            await trio.sleep(60)
            return "{}"

    assert await Copyist(Slow(), deadline_s=3).copy("the title", "call the vet", []) is None


async def test_nothing_left_over_asks_no_model() -> None:
    model = ScriptedModel([])
    assert await Copyist(model).copy("the title", "", []) is None
    assert await Copyist(model).copy("the title", "word " * 100, []) is None
    assert model.asked == []
