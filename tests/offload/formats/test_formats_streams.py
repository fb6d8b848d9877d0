"""Outputs in any pieces, cut anywhere, in any disorder: the same deltas, no character lost, nothing raised."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tool_samples import TOOLS, VALUES, answer_of, calls_of, parse, raw_of, thought_of

from offload.engine.deltas import CallDropped, CallFinished, CallStarted, Delta
from offload.engine.formats.detection import FORMATS
from offload.engine.formats.format import ToolFormat, WrittenCall
from offload.engine.formats.parser import AnswerParser
from offload.engine.thinking import ThoughtMarks

MARKS = ThoughtMarks()
SIZES = ((1,), (2,), (3, 1, 7, 2), (11,))
# What a value can't hold where the format itself has no way to write it.
UNSPEAKABLE = {
    "qwen-xml": (), "hermes-json": (), "lfm2": (), "minicpm5": ("]]>",), "llama-3": (), "gemma": (), "generic": (),
}
PIECES = [
    "<tool_call>", "</tool_call>", "<function=", "<function=note_write>", "</function>", "<parameter=", "text>",
    "<parameter=text>", "</parameter>", "<|tool_call_start|>", "<|tool_call_end|>", "<|python_tag|>",
    '<function name="', 'clock_now">', '<param name="text">', "</param>", "<![CDATA[", "]]>", "```tool_code", "```json",
    "```", "<think>", "</think>", "\n", " ", "{", "}", "[", "]", "(", ")", '"', "'", "\\", ":", ",", ";", "=",
    '"name": ', '"clock_now"', '"arguments": ', "note_write(", "text=", "clock_now()", "1", "-0.5e9", "True", "null",
    "words", "é", "🙂", "\u2028", "<", "</", "{}", '{"name": "clock_now", "arguments": {}}',
    '<tool_call>\n{"name": "clock_now", "arguments": {}}\n</tool_call>',
    "<tool_call>\n<function=clock_now>\n</function>\n</tool_call>",
]


def parser(source: ToolFormat, *, inside: bool = False, thinks: bool = True) -> AnswerParser:
    return AnswerParser(source, TOOLS, marks=MARKS if thinks else None, inside_thought=inside)


def check(deltas: list[Delta], text: str) -> None:
    """Every character is accounted for, and starts and ends of calls belong together."""
    assert raw_of(deltas) == text
    open_call: int | None = None
    number = 0
    for delta in deltas:
        if isinstance(delta, CallStarted):
            assert open_call is None
            assert delta.index == number
            open_call = delta.index
        elif isinstance(delta, (CallFinished, CallDropped)):
            assert delta.index == open_call
            open_call = None
            number += isinstance(delta, CallFinished)
    assert open_call is None


@pytest.mark.parametrize("source", FORMATS, ids=lambda one: one.name)
@given(st.lists(st.sampled_from(PIECES), max_size=30).map("".join), st.booleans(), st.booleans())
@settings(max_examples=150, deadline=None)
def test_disorder_of_any_kind_in_any_pieces(source: ToolFormat, text: str, inside: bool, cut: bool) -> None:
    whole = parse(parser(source, inside=inside), text, cut=cut)
    check(whole, text)
    for sizes in SIZES:
        assert parse(parser(source, inside=inside), text, sizes, cut=cut) == whole


@pytest.mark.parametrize("source", FORMATS, ids=lambda one: one.name)
@given(st.text(max_size=80), st.booleans())
@settings(max_examples=60, deadline=None)
def test_any_text_in_any_pieces(source: ToolFormat, text: str, inside: bool) -> None:
    whole = parse(parser(source, inside=inside), text)
    check(whole, text)
    assert parse(parser(source, inside=inside), text, (1,)) == whole


@pytest.mark.parametrize("source", FORMATS, ids=lambda one: one.name)
@pytest.mark.parametrize("value", VALUES)
def test_a_written_call_is_read_back_as_it_was(source: ToolFormat, value: str) -> None:
    if value in UNSPEAKABLE[source.name]:
        pytest.skip("the format can't write this value")
    arguments = {
        "text": value, "pages": 3, "share": 0.5, "loud": True, "kind": "plain text", "tags": [value, "b"],
        "place": {"room": value, "floor": None}}
    text = source.write([WrittenCall("note_write", arguments)])
    deltas = parse(parser(source), text, (1,))
    check(deltas, text)
    assert answer_of(deltas) == ""
    call, = calls_of(deltas)
    assert (call.name, call.arguments, call.repairs, call.faults) == ("note_write", arguments, (), ())


@pytest.mark.parametrize("source", FORMATS, ids=lambda one: one.name)
def test_parallel_calls_come_apart_in_order(source: ToolFormat) -> None:
    wanted = [WrittenCall("clock_now", {}), WrittenCall("calendar_list", {"when": "today"}),
        WrittenCall("clock_now", {})]
    text = source.write(wanted)
    deltas = parse(parser(source), text, (2,))
    check(deltas, text)
    assert [(call.name, call.arguments) for call in calls_of(deltas)] == [(one.name, one.arguments) for one in wanted]
    assert not any(call.repaired for call in calls_of(deltas))
    assert answer_of(deltas) == ""


SPEAKS_BEFORE = [one for one in FORMATS if not one.trigger.only_first]


@pytest.mark.parametrize("source", SPEAKS_BEFORE, ids=lambda one: one.name)
def test_text_before_and_behind_a_call_stays_and_the_space_between_goes(source: ToolFormat) -> None:
    call = source.write([WrittenCall("calendar_list", {"when": "Montag"})])
    text = f"One moment,\nI look.\n\n{call}\n"
    deltas = parse(parser(source), text, (3,))
    check(deltas, text)
    assert answer_of(deltas) == "One moment,\nI look."
    assert [one.arguments for one in calls_of(deltas)] == [{"when": "Montag"}]
    starts = [number for number, delta in enumerate(deltas) if isinstance(delta, CallStarted)]
    assert starts == [1]


@pytest.mark.parametrize("source", [one for one in FORMATS if one.trigger.only_first], ids=lambda one: one.name)
@pytest.mark.parametrize("text", [
    '{"answer": 42}', '{"name": "Bob", "age": 3}', "[1, 2, 3]", "{not json", 'Use {"name": "clock_now"} here',
    '[{"name": "Bob", "arguments": {}}]', "{", "[", "{}", "[]",
])
def test_an_answer_in_json_is_no_call(source: ToolFormat, text: str) -> None:
    deltas = parse(parser(source), text, (1,))
    check(deltas, text)
    assert calls_of(deltas) == []
    assert answer_of(deltas) == text


def test_an_answer_in_json_is_given_up_as_a_call_with_its_first_key() -> None:
    """Otherwise it would be shown at its end only."""
    reader = parser(next(one for one in FORMATS if one.name == "generic"))
    assert reader.feed('{"answe') == []
    assert answer_of(reader.feed('r":')) == '{"answer":'


@pytest.mark.parametrize("source", FORMATS, ids=lambda one: one.name)
@pytest.mark.parametrize("cut", [True, False])
def test_cut_off_anywhere_nothing_is_lost_and_no_value_is_shortened(source: ToolFormat, cut: bool) -> None:
    arguments = {
        "text": "a <b> 'c'\n\"d\" 漢🙂", "pages": 1234, "tags": ["x", "y"], "place": {"room": "R", "floor": 12}}
    text = source.write([WrittenCall("note_write", arguments), WrittenCall("calendar_list", {"when": "now, please"})])
    for end in range(len(text) + 1):
        deltas = parse(parser(source), text[:end], cut=cut)
        check(deltas, text[:end])
        for call in calls_of(deltas):
            if cut:
                assert call.arguments in (arguments, {"when": "now, please"})
            else:                       # ended by the model's will: what stands is taken, texts are still whole
                assert call.arguments.get("text", arguments["text"]) == arguments["text"]
                assert call.arguments.get("when", "now, please") == "now, please"


@pytest.mark.parametrize("source", FORMATS, ids=lambda one: one.name)
def test_without_tools_nothing_is_a_call(source: ToolFormat) -> None:
    text = source.write([WrittenCall("clock_now", {})])
    deltas = parse(AnswerParser(source), text, (1,))
    assert answer_of(deltas) == text
    assert calls_of(deltas) == []


def test_plain_text_is_not_held_back() -> None:
    for source in FORMATS:
        reader = parser(source)
        assert answer_of(reader.feed("Hello")) == "Hello"
        assert answer_of(reader.feed(" you")) == " you"


@pytest.mark.parametrize("text", [
    "Write <tool_call> in front of it.", "`<tool_call>` is a tag", "a <tool_call> b <tool_call> c", "<function= is odd",
])
def test_a_tag_in_prose_is_text_and_does_not_hold_up_the_rest(text: str) -> None:
    for name in ("qwen-xml", "hermes-json"):
        source = next(one for one in FORMATS if one.name == name)
        reader = parser(source)
        shown = answer_of(reader.feed(text + " and so on"))
        assert shown == text + " and so on" or text.startswith("<function=")
        deltas = parse(parser(source), text)
        assert answer_of(deltas) == text
        assert calls_of(deltas) == []


def test_a_call_without_end_is_bounded() -> None:
    """64 Ki characters, then it is text; what follows is read as before."""
    source = next(one for one in FORMATS if one.name == "hermes-json")
    text = '<tool_call>\n{"name": "clock_now", "arguments": {"x": "' + "y" * 70_000
    reader = parser(source)
    deltas = reader.feed(text)
    assert len(answer_of(deltas)) > 65_000
    assert any(isinstance(delta, CallDropped) for delta in deltas)


def test_thoughts_and_calls_in_one_output() -> None:
    source = next(one for one in FORMATS if one.name == "qwen-xml")
    call = source.write([WrittenCall("calendar_list", {"when": "a\n<think>\nb\n</think>"})])
    text = f"I need\nthe date.\n</think>\n\nLet me see.\n\n{call}"
    for sizes in SIZES:
        deltas = parse(parser(source, inside=True), text, sizes)
        check(deltas, text)
        assert thought_of(deltas) == "I need\nthe date."
        assert answer_of(deltas) == "Let me see."
        assert [one.arguments for one in calls_of(deltas)] == [{"when": "a\n<think>\nb\n</think>"}]
