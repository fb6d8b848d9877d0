"""What a tool choice means: auto, required, none, a named tool, models too small to choose; tools that are refused."""

import re
from typing import Any

import numpy as np
import pytest
from tool_samples import TOOLS, answer_of, by_name, calls_of, parse

from offload.engine.automaton import Automaton
from offload.engine.formats.choice import SMALL_MODEL_PARAMETERS, NamedTool, plan_calls
from offload.engine.formats.detection import FORMATS
from offload.engine.formats.errors import BadTools
from offload.engine.formats.format import WrittenCall
from offload.engine.formats.marker_tokens import MarkerVocabulary
from offload.engine.formats.tools import read_tools
from offload.engine.rules import SchemaRule
from offload.errors import BadGrammar, RequestRefused
from offload.language import Row, Text, Times, Unicode

QWEN = by_name("qwen-xml")
THINKING = "{{ messages }}<think></think><tool_call><function=<parameter="


def test_auto_leaves_the_model_free_until_a_call_begins() -> None:
    plan = plan_calls(QWEN, TOOLS)
    assert (plan.starts, plan.forced, plan.tools) == ("at_call", "", TOOLS)
    assert plan.grammar is not None
    reader = plan.parser(THINKING, "<|im_start|>assistant\n<think>\n\n</think>\n\n")
    reader.feed("Let me see.\n\n<tool_call")
    assert reader.call_text is None
    reader.feed(">")
    assert reader.call_text == "<tool_call>"
    reader.feed("\n<function=clo")
    assert reader.call_text == "<tool_call>\n<function=clo"


def test_required_holds_from_the_first_token() -> None:
    plan = plan_calls(QWEN, TOOLS, choice="required")
    assert (plan.starts, plan.forced) == ("at_once", "required")


def test_none_offers_nothing_and_calls_are_text() -> None:
    plan = plan_calls(QWEN, TOOLS, choice="none")
    assert (plan.starts, plan.tools, plan.grammar, plan.language) == ("never", (), None, None)
    text = QWEN.write([WrittenCall("clock_now", {})])
    deltas = parse(plan.parser(None, ""), text)
    assert (answer_of(deltas), calls_of(deltas)) == (text, [])


def test_a_named_tool_is_the_only_one() -> None:
    plan = plan_calls(QWEN, TOOLS, choice=NamedTool("clock_now"))
    assert [tool.name for tool in plan.tools] == ["clock_now"]
    assert plan.forced == "named"
    assert plan.grammar is not None
    assert "note_write" not in plan.grammar


@pytest.mark.parametrize("source", FORMATS, ids=lambda one: one.name)
def test_a_small_model_is_always_held_to_a_call(source: Any) -> None:
    small = plan_calls(source, TOOLS, model_parameters=SMALL_MODEL_PARAMETERS - 1)
    assert (small.starts, small.forced) == ("at_once", "small_model")
    large = plan_calls(source, TOOLS, model_parameters=SMALL_MODEL_PARAMETERS)
    assert large.starts == "at_call"
    assert plan_calls(source, TOOLS, choice="none", model_parameters=1).starts == "never"
    assert plan_calls(source, (), model_parameters=1).starts == "never"


def test_parallel_calls_only_when_asked_for() -> None:
    two = QWEN.write([WrittenCall("clock_now", {})] * 2)
    for parallel in (False, True):
        plan = plan_calls(QWEN, TOOLS, choice="required", parallel=parallel)
        assert plan.grammar is not None
        assert (re.search(r"\{0,7\}", plan.grammar) is not None) == parallel
    assert len(calls_of(parse(plan_calls(QWEN, TOOLS).parser(None, ""), two))) == 2


def test_the_parser_begins_inside_a_thought_when_the_prompt_does() -> None:
    plan = plan_calls(QWEN, TOOLS)
    inside = plan.parser(THINKING, "<|im_start|>assistant\n<think>\n", thought_budget_tokens=2)
    assert inside.in_thought
    inside.feed("hm", tokens=2)
    assert inside.over_budget
    assert not plan.parser(THINKING, "<|im_start|>assistant\n").in_thought
    assert not plan.parser("no thoughts here", "<think>\n").in_thought


def test_what_can_not_be_chosen_is_refused() -> None:
    with pytest.raises(BadTools):
        plan_calls(QWEN, TOOLS, choice=NamedTool("fly"))
    with pytest.raises(BadTools):
        plan_calls(QWEN, (), choice="required")
    assert issubclass(BadTools, RequestRefused)
    with pytest.raises(BadGrammar):
        plan_calls(QWEN, read_tools([{"name": "f", "parameters": {"properties": {
            "n": {"type": "integer", "minimum": 5, "maximum": 3}}}}]))


@pytest.mark.parametrize("offers", [
    [{}], [{"name": ""}], [{"name": "a b"}], [{"name": "x" * 65}], [{"name": "a>b"}], [{"name": 3}], ["f"],
    [{"name": "f"}, {"name": "f"}], [{"name": f"f{number}"} for number in range(65)],
    [{"name": "f", "parameters": [1]}], [{"name": "f", "parameters": {"type": "array"}}],
    [{"name": "f", "parameters": {"properties": {"a b": {}}}}],
    [{"name": "f", "parameters": {"properties": {"a>": {}}}}],
    [{"name": "f", "parameters": {"properties": {"a": 3}}}],
    [{"name": "f", "parameters": {"description": "x" * 40_000}}],
    [{"name": "f", "parameters": {"properties": {f"p{number}": {} for number in range(65)}}}],
    [{"name": "f", "parameters": {"x": {1, 2}}}], [{"name": "f", "parameters": "{"}],
    [{"name": "f", "parameters": "[1]"}],
    [{"name": "f", "parameters": "[" * 20_000}],
])
def test_tools_that_no_format_could_write_are_refused(offers: list[Any]) -> None:
    with pytest.raises(BadTools):
        read_tools(offers)


def test_a_schema_may_come_as_text() -> None:
    tool, = read_tools([{"name": "f", "description": "d", "parameters": '{"properties": {"a": {"type": "string"}}}'}])
    assert list(tool.properties) == ["a"]


def test_schemas_of_any_kind_become_a_grammar_in_every_format() -> None:
    """Keywords that nobody knows, references in a circle, deep nesting: a grammar all the same."""
    deep: dict[str, Any] = {"type": "string"}
    for _ in range(30):
        deep = {"type": "object", "properties": {"in": deep}, "required": ["in"]}
    tools = read_tools([{"name": "f", "parameters": {
        "type": "dict", "$defs": {"node": {"type": "object", "properties": {"next": {"$ref": "#/$defs/node"}}}},
        "properties": {
            "a": {"type": "any"}, "b": {"$ref": "#/$defs/node"}, "c": deep, "d": {"type": "string", "pattern": "^x"},
            "e": {"type": "wizard"}, "f": {"$ref": "#/nowhere"}, "g": {"type": "tuple"}, "h": {"enum": []},
            "i": {"type": "number", "minimum": 0.5, "multipleOf": 3}, "j": {"anyOf": []}, "k": {"type": []},
            "l": {"type": "integer", "minimum": 10**30}, "m": {"enum": ["", "a", "a"]},
        }, "required": ["a", "nobody"]}}])
    for source in FORMATS:
        assert plan_calls(source, tools, parallel=True).grammar


class Words:
    """A vocabulary of single characters and three control tokens."""

    texts = ("<|tool_call_start|>", "<|tool_call_end|>", "<|im_end|>")
    control_tokens = frozenset({1000, 1001, 1002})
    end_tokens = frozenset({1002})
    first_bytes = np.array([*range(256), *[-1] * 747], dtype=np.int16)

    def piece(self, token: int) -> bytes:
        return b"" if token >= 1000 else bytes((token,))

    def tokenise(self, text: str, *, begin: bool, control: bool) -> list[int]:
        found = [999] if begin else []
        while text:
            mark = next((at for at, one in enumerate(self.texts) if control and text.startswith(one)), None)
            found.append(ord(text[0]) if mark is None else 1000 + mark)
            text = text[1:] if mark is None else text[len(self.texts[mark]):]
        return found


def test_markers_that_are_control_tokens_are_seen_and_nothing_else_is() -> None:
    lfm2 = by_name("lfm2")
    words = MarkerVocabulary(Words(), (*lfm2.markers, "<|im_end|>"))
    assert words.markers == {1000, 1001}
    assert words.control_tokens == {1002}
    assert words.end_tokens == {1002}
    text = "a<|tool_call_start|>[f()]<|tool_call_end|><|im_end|>"
    ids = words.tokenise(text, begin=True, control=False)
    assert ids[:3] == [999, ord("a"), 1000]
    assert 1002 not in ids
    assert b"".join(words.shown(token) for token in ids[1:]).decode() == text
    assert b"".join(words.piece(token) for token in ids[1:]) == b"a\xf8[f()]\xf9<|im_end|>"
    assert words.tokenise("\udcf8[", begin=False, control=False) == [1000, ord("[")]
    assert words.first_bytes[[97, 1000, 1001, 1002]].tolist() == [97, 0xF8, 0xF9, -1]
    assert Words.first_bytes[1000] == -1
    plain = MarkerVocabulary(Words(), ("<tool_call>",))
    assert plain.tokenise("<|im_end|>", begin=False, control=True) == [1002]
    assert plain.piece(1000) == plain.shown(1000) == b""


def test_under_a_rule_a_marker_is_written_by_its_token_only_and_fits_into_no_argument() -> None:
    lfm2 = by_name("lfm2")
    words = MarkerVocabulary(Words(), lfm2.markers)
    tools = read_tools([{"name": "f", "parameters": {
        "type": "object", "properties": {"a": {"type": "string"}}, "required": ["a"]}}])
    walker = Automaton(words.language(lfm2.language(tools, parallel=False)))
    rule = SchemaRule(words, walker)
    assert rule.allowed(np.array([ord("<"), 1000])).tolist() == [False, True]
    for token in words.tokenise("\udcf8[f(a=\"x", begin=False, control=False):
        rule.accept(token)
    inside = np.array([ord("y"), ord("'"), 1000, 1001, 1002])
    assert rule.allowed(inside).tolist() == [True, True, False, False, False]
    # control: a rule that sees the marker as its name takes it for a part of a text without that bar
    naive = Automaton(Row((Text("a"), Times(Unicode(without='"'), 0, None))))
    assert naive.walk(naive.start, b"a" + words.shown(1000)) is not None
    assert naive.walk(naive.start, b"a" + words.piece(1000)) is None


def test_a_marker_code_ends_no_forced_text() -> None:
    """What must follow is split into tokens across a marker."""
    words = MarkerVocabulary(Words(), by_name("lfm2").markers)
    tools = read_tools([{"name": "f", "parameters": {"type": "object", "properties": {}}}])
    walker = Automaton(words.language(by_name("lfm2").language(tools, parallel=False)))
    must = walker.forced(walker.start)
    assert must == b"\xf8[f()]\xf9"
    assert words.tokenise(must.decode(errors="surrogateescape"), begin=False, control=False) == [
        1000, *map(ord, "[f()]"), 1001]
