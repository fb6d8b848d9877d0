"""Grammars: every sentence parses as a clean, valid call; bounds hold; llama.cpp takes them and agrees."""

import json
import re
from collections.abc import Iterator
from typing import Any

import pytest
from embedded_model import model_path
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from shape_sentences import pattern, sentences
from tool_samples import TOOLS, answer_of, by_name, calls_of, parse

from offload.engine.formats.detection import FORMATS
from offload.engine.formats.format import ToolFormat, WrittenCall, grammar
from offload.engine.formats.parser import AnswerParser
from offload.engine.formats.shape import Chars, Choice, Literal, Repeat, Row, Shape, choice, gbnf, optional, row
from offload.engine.formats.tools import Tool, read_tools
from offload.engine.formats.value_shapes import Notation, members, text_without
from offload.errors import BadGrammar

IDS = [one.name for one in FORMATS]
SHAPES = {(one.name, parallel): one.shape(TOOLS, parallel=parallel) for one in FORMATS for parallel in (False, True)}


def tool(**properties: Any) -> Tool:
    return read_tools([{"name": "f", "parameters": {"type": "object", "properties": properties}}])[0]


def fits(shape: Shape, text: str) -> bool:
    return re.fullmatch(pattern(shape), text) is not None


@pytest.mark.parametrize("source", FORMATS, ids=IDS)
@pytest.mark.parametrize("parallel", [False, True])
@given(st.data())
@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])
def test_every_sentence_of_a_grammar_is_a_clean_call(source: ToolFormat, parallel: bool, data: st.DataObject) -> None:
    text = data.draw(sentences(SHAPES[source.name, parallel]))
    deltas = parse(AnswerParser(source, TOOLS), text, (4,))
    found = calls_of(deltas)
    assert answer_of(deltas) == ""
    assert len(found) >= 1 if parallel else len(found) == 1
    for call in found:
        assert (call.repairs, call.faults) == ((), ())


@pytest.mark.parametrize("source", FORMATS, ids=IDS)
def test_a_grammar_begins_with_the_trigger_and_knows_written_calls(source: ToolFormat) -> None:
    call = WrittenCall("note_write", {
        "text": "größer 🙂 a < b", "pages": 12, "share": 0.5, "loud": True, "kind": "list", "tags": ["x", "y"],
        "place": {"room": "R", "floor": 3}})
    text = source.write([call])
    if source.name != "qwen-xml":                   # its template writes True, its grammar JSON's true
        assert fits(SHAPES[source.name, False], text)
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
    ({"type": "array", "items": {"type": "boolean"}}, ["[]", "[true]", "[true, false]"], ["[true,false]", "[1]", "[,]"]),
    ({"type": "array", "items": {"const": 1}, "minItems": 2, "maxItems": 3}, ["[1, 1]", "[1, 1, 1]"],
     ["[]", "[1]", "[1, 1, 1, 1]"]),
    ({"type": "object", "properties": {"a": {"const": 1}, "b": {"const": 2}}, "required": ["b"]},
     ['{"a": 1, "b": 2}', '{"b": 2}'], ["{}", '{"a": 1}', '{"b": 2, "a": 1}', '{"a":1,"b":2}']),
    ({"type": "object"}, ["{}", '{"k": [1, "x"]}', '{"k": {"l": null}}'], ['{"": 1}', "[]"]),
    ({}, ["1", '"x"', "null", "[1, [2]]"], ["x", "[[[[1]]]]"]),
    ({"anyOf": [{"type": "null"}, {"type": "integer"}]}, ["null", "5"], ['"5"']),
])
def test_values_are_written_as_json_dumps_would_and_bounded(schema: dict[str, Any], good: list[str], bad: list[str]) -> None:
    shape = Notation().value(schema, schema)
    for text in good:
        assert fits(shape, text), text
        json.loads(text)
    for text in bad:
        assert not fits(shape, text), text


@given(st.data(), st.lists(st.booleans(), min_size=0, max_size=5))
def test_members_come_in_order_with_separators_only_between(data: st.DataObject, required: list[bool]) -> None:
    """The reference: any choice of members that holds all required ones."""
    shape = members([(Literal(chr(97 + at)), need) for at, need in enumerate(required)], ", ")
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


def test_the_grammar_text_names_each_part_once() -> None:
    digit = Chars((("0", "9"),))
    pair = Row((digit, Literal(":"), digit))
    text = gbnf(row("a\"\n\\", Repeat(pair, 1, 3), optional(pair), choice("x", "y", "x"), Repeat(digit, 0, None)))
    assert text == 'root ::= "a\\"\\n\\\\" r1{1,3} r1? r2 [0-9]*\nr1 ::= [0-9] ":" [0-9]\nr2 ::= "x" | "y"\n'


def test_the_grammar_of_the_largest_list_of_tools_stays_within_its_limit() -> None:
    many = read_tools([{"name": f"tool_{number}", "parameters": {"type": "object", "properties": {
        f"argument_{at}": {"type": "string", "maxLength": 40 + at} for at in range(6)}}} for number in range(32)])
    for source in FORMATS:
        assert len(grammar(source, many, parallel=True).encode()) < 64 * 1024


@pytest.fixture(scope="module")
def model() -> Iterator[Any]:
    from offload.engine.library import Model

    opened = Model(str(model_path()), extra_buffers=True)
    yield opened
    opened.close()


@pytest.mark.model
@pytest.mark.parametrize("source", FORMATS, ids=IDS)
@given(st.data())
@settings(max_examples=8, deadline=None, suppress_health_check=list(HealthCheck), database=None)
def test_llama_cpp_takes_the_grammar_and_its_sentences(source: ToolFormat, model: Any, data: st.DataObject) -> None:
    from offload.engine.sampling import Sampler

    text = data.draw(sentences(SHAPES[source.name, True]))
    sampler = Sampler(
        model, temperature=0.0, top_p=1.0, seed=0, grammar=grammar(source, TOOLS, parallel=True))
    try:
        sampler.follow(model.tokenise(text, begin=False, control=False))
        with pytest.raises(BadGrammar):
            sampler.follow(model.tokenise("\x07 no call", begin=False, control=False))
    finally:
        sampler.close()


@pytest.mark.model
@pytest.mark.parametrize("source", FORMATS, ids=IDS)
def test_the_smallest_model_makes_valid_calls_under_each_grammar(source: ToolFormat, model: Any) -> None:
    """It never makes one by itself."""
    from offload.engine.context import Context
    from offload.engine.sampling import Sampler

    offered = read_tools([
        {"name": "calendar_list", "description": "Show appointments", "parameters": {
            "type": "object", "properties": {"when": {"type": "string", "maxLength": 12}, "most": {"type": "integer"}},
            "required": ["when", "most"]}},
    ])
    context = Context(model, context_tokens=512, sequences=1, threads=1)
    sampler = Sampler(
        model, temperature=0.0, top_p=1.0, seed=0, grammar=grammar(source, offered, parallel=False))
    prompt = f"{source.describe(offered)}\n\nUser: what is on today? at most 3\nCall: "
    fed, position, written = model.tokenise(prompt, begin=True, control=False), 0, b""
    try:
        for _ in range(90):
            context.begin_batch()
            line = context.add(0, position, fed, want_last=True)
            assert context.decode() == 0
            position += len(fed)
            token = sampler.next(context, line)
            if token is None or token in model.end_tokens:
                break
            written += model.piece(token)
            fed = [token]
    finally:
        sampler.close()
        context.close()
    deltas = parse(AnswerParser(source, offered), written.decode(), (3,))
    call, = calls_of(deltas)
    assert (call.name, call.repairs, call.faults) == ("calendar_list", (), ())
    assert set(call.arguments) == {"when", "most"}


def test_a_choice_of_one_is_that_one() -> None:
    assert choice("a") == Literal("a")
    assert choice("a", "b") == Choice((Literal("a"), Literal("b")))
