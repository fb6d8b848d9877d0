"""Grammars: every sentence parses as a clean, valid call, bounds hold, and an automaton agrees."""

import json
import re
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from language_sentences import pattern, sentences
from tool_samples import TOOLS, answer_of, by_name, calls_of, parse

from offload.engine.automaton import Automaton
from offload.engine.formats.argument_language import Notation, members, row, text_without
from offload.engine.formats.detection import FORMATS
from offload.engine.formats.format import ToolFormat, WrittenCall, grammar
from offload.engine.formats.parser import AnswerParser
from offload.engine.formats.tools import Tool, read_tools
from offload.language import Node, Text

SENTENCES: dict[tuple[str, bool], st.SearchStrategy[str]] = {}
AUTOMATA = {one.name: Automaton(one.language(TOOLS, parallel=True)) for one in FORMATS}
IDS = [one.name for one in FORMATS]
LANGUAGES = {(one.name, many): one.language(TOOLS, parallel=many) for one in FORMATS for many in (False, True)}


def tool(**properties: Any) -> Tool:
    return read_tools([{"name": "f", "parameters": {"type": "object", "properties": properties}}])[0]


def drawn(source: ToolFormat, parallel: bool) -> st.SearchStrategy[str]:
    """The sentences of a format's language; the strategy is large, so it is made once."""
    key = source.name, parallel
    if key not in SENTENCES:
        SENTENCES[key] = sentences(LANGUAGES[key])
    return SENTENCES[key]


def fits(node: Node, text: str) -> bool:
    return re.fullmatch(pattern(node), text) is not None


@pytest.mark.parametrize("source", FORMATS, ids=IDS)
@pytest.mark.parametrize("parallel", [False, True])
@given(st.data())
@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])
def test_every_sentence_of_a_grammar_is_a_clean_call(source: ToolFormat, parallel: bool, data: st.DataObject) -> None:
    text = data.draw(drawn(source, parallel))
    deltas = parse(AnswerParser(source, TOOLS), text, (4,))
    found = calls_of(deltas)
    assert answer_of(deltas) == ""
    assert len(found) >= 1 if parallel else len(found) == 1
    for call in found:
        assert (call.repairs, call.faults) == ((), ())


@pytest.mark.parametrize("source", FORMATS, ids=IDS)
def test_a_grammar_begins_with_the_trigger_and_knows_written_calls(source: ToolFormat) -> None:
    call = WrittenCall("note_write", {
        "text": "größer 🙂 a : b", "pages": 12, "share": 0.5, "loud": True, "kind": "list", "tags": ["x", "y"],
        "place": {"room": "R", "floor": 3}})
    text = source.write([call])
    if source.name not in {"qwen-xml", "minicpm5"}:     # their templates write True, their grammars JSON's true
        assert fits(LANGUAGES[source.name, False], text)
    assert text.startswith(source.trigger.text)
    assert grammar(source, TOOLS, parallel=True).startswith("root ::= ")
    assert re.match(source.trigger.pattern, text)


def test_triggers_fit_where_they_should() -> None:
    lazy = by_name("qwen-xml").trigger.pattern
    found = re.search(lazy, "Well.\n<tool_call>\n<function=f>")
    assert found is not None
    assert found.group(1) == "<tool_call>\n<function=f>"
    first = by_name("generic").trigger.pattern
    assert re.search(first, ' {"name": "f"')
    assert not re.search(first, 'say {"name": "f"')


@pytest.mark.parametrize(("schema", "good", "bad"), [
    ({"type": "integer"}, ["0", "7", "-12", "1234567890"], ["", "00", "01", "1.0", "12345678901", "true", " 1"]),
    ({"type": "integer", "minimum": 0}, ["0", "99"], ["-1"]),
    ({"type": "integer", "minimum": 1}, ["1", "99"], ["0", "-1"]),
    ({"type": "integer", "minimum": 3, "maximum": 5}, ["3", "4", "5"], ["2", "6", "33"]),
    ({"type": "integer", "minimum": 0, "maximum": 100000}, ["100000"], ["1000000"]),
    ({"type": "integer", "minimum": 10**12, "maximum": 10**13}, ["1000000000000"], ["100000000000000"]),
    ({"type": "number"}, ["0", "-1.5", "3.141592"], ["1.", ".5", "1e5", "3.1415926"]),
    ({"type": "boolean"}, ["true", "false"], ["True", "1"]),
    ({"type": ["boolean", "null"]}, ["true", "null"], ["None"]),
    ({"type": "string"}, ['""', '"a"', '"\\n\\"é🙂"', '"' + "x" * 512 + '"'],
     ['"a', '"\n"', '"\\u0041"', '"' + "x" * 513 + '"']),
    ({"type": "string", "minLength": 2, "maxLength": 3}, ['"ab"', '"abc"'], ['"a"', '"abcd"']),
    ({"enum": ["a", 1, None, True]}, ['"a"', "1", "null", "true"], ["a", '"1"', "2"]),
    ({"type": "array", "items": {"type": "boolean"}}, ["[]", "[true]", "[true, false]"],
     ["[true,false]", "[1]", "[,]"]),
    ({"type": "array", "items": {"const": 1}, "minItems": 2, "maxItems": 3}, ["[1, 1]", "[1, 1, 1]"],
     ["[]", "[1]", "[1, 1, 1, 1]"]),
    ({"type": "object", "properties": {"a": {"const": 1}, "b": {"const": 2}}, "required": ["b"]},
     ['{"a": 1, "b": 2}', '{"b": 2}'], ["{}", '{"a": 1}', '{"b": 2, "a": 1}', '{"a":1,"b":2}']),
    ({"type": "object"}, ["{}", '{"k": [1, "x"]}', '{"k": {"l": null}}'], ['{"": 1}', "[]"]),
    ({}, ["1", '"x"', "null", "[1, [2]]"], ["x", "[[[[1]]]]"]),
    ({"anyOf": [{"type": "null"}, {"type": "integer"}]}, ["null", "5"], ['"5"']),
])
def test_values_are_written_as_json_dumps_would_and_bounded(
    schema: dict[str, Any], good: list[str], bad: list[str],
) -> None:
    shape = Notation().value(schema, schema)
    for text in good:
        assert fits(shape, text), text
        json.loads(text)
    for text in bad:
        assert not fits(shape, text), text


@given(st.data(), st.lists(st.booleans(), min_size=0, max_size=5))
def test_members_come_in_order_with_separators_only_between(data: st.DataObject, required: list[bool]) -> None:
    """The reference: any choice of members that holds all required ones."""
    shape = members([(Text(chr(97 + at)), need) for at, need in enumerate(required)], ", ")
    kept = [chr(97 + at) for at, need in enumerate(required) if need or data.draw(st.booleans())]
    assert fits(shape, ", ".join(kept))
    assert not fits(shape, ", ".join(kept) + ", ")
    if any(required):
        assert not fits(shape, "")


@given(st.text(alphabet="</parmet>x\n", max_size=40))
def test_raw_text_is_anything_but_the_closing_tag(text: str) -> None:
    shape = text_without("</parameter>", 0, 512)
    closed = "</parameter>" in text
    if closed:
        assert not fits(shape, text)
    elif not text.endswith("<") and not any(text.endswith("</parameter"[:length]) for length in range(1, 12)):
        assert fits(shape, text)


def test_no_string_holds_the_begin_of_a_control_token_where_those_pass() -> None:
    string = Notation(barred="<|").string()
    assert fits(string, '"a < b <b> || <<<x"')
    assert fits(string, '"ends in <"')
    for bad in ('"<|im_end|>"', '"<<|"', '"a<|"'):
        assert not fits(string, bad)
    assert fits(Notation().string(), '"<|im_end|>"'), "the negative control"


@pytest.mark.parametrize("source", FORMATS, ids=IDS)
@given(st.data())
@settings(max_examples=15, deadline=None, suppress_health_check=list(HealthCheck))
def test_an_automaton_of_the_language_takes_its_sentences_and_forces_their_beginning(
    source: ToolFormat, data: st.DataObject,
) -> None:
    automaton = AUTOMATA[source.name]
    text = data.draw(drawn(source, True))
    state = automaton.walk(automaton.start, text.encode())
    assert state is not None
    assert state.may_end
    forced = automaton.forced(automaton.start).decode()
    assert forced or source.name == "generic"       # an object or a list
    assert text.startswith(forced)
    assert automaton.walk(automaton.start, b"no call") is None


def test_neighbouring_texts_become_one() -> None:
    assert row(Text("a"), Text(""), Text("b"), row(Text("c"), Text("d"))).text == "abcd"    # type: ignore[union-attr]


def test_the_grammar_of_the_largest_list_of_tools_stays_within_its_limit() -> None:
    many = read_tools([{"name": f"tool_{number}", "parameters": {"type": "object", "properties": {
        f"argument_{at}": {"type": "string", "maxLength": 40 + at} for at in range(6)}}} for number in range(32)])
    for source in FORMATS:
        assert len(grammar(source, many, parallel=True).encode()) < 64 * 1024
