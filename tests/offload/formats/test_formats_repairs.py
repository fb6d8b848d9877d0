"""What models get wrong, format by format: mended and named, or text. Cases are slips seen in public issue threads."""

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tool_samples import TOOLS, answer_of, by_name, calls_of, parse, raw_of

from offload.engine.deltas import Fault, ToolCall
from offload.engine.formats.coercion import RawCall, finish_call
from offload.engine.formats.loose_values import read_json, read_python_calls
from offload.engine.formats.parser import AnswerParser
from offload.engine.formats.tools import read_tools

NOW = ("clock_now", {})
LISTED = ("calendar_list", {"when": "x"})


def calls(name: str, text: str, *, cut: bool = False) -> list[ToolCall]:
    whole = parse(AnswerParser(by_name(name), TOOLS), text, cut=cut)
    assert raw_of(whole) == text
    assert parse(AnswerParser(by_name(name), TOOLS), text, (1,), cut=cut) == whole
    return calls_of(whole)


@pytest.mark.parametrize(("name", "text", "wanted", "repair"), [
    # JSON between tags
    ("hermes-json", "<tool_call>{'name': 'clock_now', 'arguments': {}}</tool_call>", [NOW], "quotes"),
    ("hermes-json", '<tool_call>{"name": "clock_now", "arguments": {},}</tool_call>', [NOW], "comma"),
    ("hermes-json", '<tool_call>{"name": "calendar_list", "arguments": {"when": "x"}</tool_call>', [LISTED], "closing"),
    ("hermes-json", '<tool_call>{"name": "calendar_list", "arguments": {"when": "x"}}}</tool_call>',
     [LISTED], "closing"),
    ("hermes-json", '<tool_call>{"name": "calendar_list", "arguments": {"when": "x"}}', [LISTED], "closing"),
    ("hermes-json", '<tool_call>{"name": "calendar_list", "parameters": "{\\"when\\": \\"x\\"}"}</tool_call>',
     [LISTED], "shape"),
    ("hermes-json", '<tool_call>{"name": "calendar_list", "when": "x"}</tool_call>', [LISTED], "shape"),
    ("hermes-json", '<tool_call>{"function": {"name": "clock_now", "arguments": {}}}</tool_call>', [NOW], "shape"),
    ("hermes-json",
     '<tool_call>\n{"name": "clock_now", "arguments": {}}\n{"name": "clock_now", "arguments": {}}\n</tool_call>',
     [NOW, NOW], "shape"),
    ("hermes-json",
     "<tool_call>\n<tool_call>\n{\"name\": \"clock_now\", \"arguments\": {}}\n</tool_call>\n</tool_call>",
     [NOW], "opening"),
    ("hermes-json", "<tool_call>\n<function=clock_now>\n</function>\n</tool_call>", [NOW], "shape"),
    ("hermes-json", '<tool_call>{"name": "clock_now", "arguments": null}</tool_call>', [NOW], None),
    # functions as tags
    ("qwen-xml", "<function=clock_now>\n</function>\n</tool_call>", [NOW], "opening"),
    ("qwen-xml", "<function=clock_now>\n</function>", [NOW], "opening"),
    ("qwen-xml", "<tool_call>\n<function=calendar_list>\n<parameter=when>\nx\n</parameter>\n</tool_call>",
     [LISTED], "closing"),
    ("qwen-xml", "<tool_call>\n<function=calendar_list>\n<parameter=when>\nx\n</function>\n</tool_call>",
     [LISTED], "closing"),
    ("qwen-xml", "<tool_call>\n<function=calendar_list>\n<parameter=when>\nx\n</parameter>\n</function>",
     [LISTED], "closing"),
    ("qwen-xml", "<tool_call>\n<function=calendar_list>\n<parameter=when>\nx\n</parameter>", [LISTED], "closing"),
    ("qwen-xml", "<tool_call><function=calendar_list><parameter=when>x</parameter></function></tool_call>",
     [LISTED], None),
    ("qwen-xml", '<tool_call>\n<function=calendar_list>\n{"when": "x"}\n</function>\n</tool_call>', [LISTED], "shape"),
    ("qwen-xml", '<tool_call>\n{"name": "calendar_list", "arguments": {"when": "x"}}\n</tool_call>', [LISTED], "shape"),
    ("qwen-xml", "<tool_call>\n<function=clock_now>\n</function>\n<function=clock_now>\n</function>\n</tool_call>",
     [NOW, NOW], "shape"),
    # Python's notation
    ("lfm2", '<|tool_call_start|>[calendar_list(when="x")]', [LISTED], "closing"),
    ("lfm2", "<|tool_call_start|>[calendar_list('x')]<|tool_call_end|>", [LISTED], "positional"),
    ("lfm2", "<|tool_call_start|>calendar_list(when='x')<|tool_call_end|>", [LISTED], None),
    ("lfm2", "<|tool_call_start|>[calendar_list(when='it's x')]<|tool_call_end|>",
     [("calendar_list", {"when": "it's x"})], "quotes"),
    ("lfm2", '<|tool_call_start|>[{"name": "calendar_list", "arguments": {"when": "x"}}]<|tool_call_end|>',
     [LISTED], "shape"),
    ("lfm2", "[calendar_list(when='x')]", [LISTED], None),
    ("lfm2", "[clock_now(), calendar_list(when='x')]", [NOW, LISTED], None),
    # bare JSON
    ("llama-3", '<|python_tag|>{"name": "calendar_list", "parameters": {"when": "x"}}', [LISTED], None),
    ("llama-3", '{"type": "function", "name": "calendar_list", "parameters": {"when": "x"}}', [LISTED], None),
    ("llama-3", '{"name": "clock_now", "parameters": {}}\n{"name": "clock_now", "parameters": {}}', [NOW, NOW], None),
    ("generic", '{"tool": "clock_now", "args": {}}', [NOW], "shape"),
    ("generic", '{"name": "calendar_list", "arguments": {"when": "x"}', [LISTED], "closing"),
    # fences
    ("gemma", '```tool_code\nprint(calendar_list(when="x"))\n```', [LISTED], None),
    ("gemma", '```json\n{"name": "calendar_list", "parameters": {"when": "x"}}\n```', [LISTED], None),
    ("gemma", "[calendar_list(when='x')]", [LISTED], None),
    ("gemma", '```tool_code\ncalendar_list(when="x")', [LISTED], "closing"),
    # attributes
    ("minicpm5", '<function name="calendar_list"><param name="when">x</function>', [LISTED], "closing"),
    ("minicpm5", '<function name="calendar_list"><param name="when">x</param>', [LISTED], "closing"),
    ("minicpm5", '<function name="calendar_list">\n<param name="when">x</param>\n</function>', [LISTED], None),
])
def test_a_slip_is_mended_and_named(name: str, text: str, wanted: list[tuple[str, object]], repair: str | None) -> None:
    found = calls(name, text)
    assert [(call.name, call.arguments) for call in found] == wanted
    if repair is None:
        assert not any(call.repaired for call in found)
    else:
        assert all(repair in call.repairs for call in found)


@pytest.mark.parametrize(("name", "text"), [
    ("hermes-json", "<tool_call>"),
    ("hermes-json", "<tool_call></tool_call>"),
    ("hermes-json", "<tool_call>\n\n</tool_call>"),
    ("hermes-json", "<tool_call>{}</tool_call>"),
    ("hermes-json", '<tool_call>{"name": 3, "arguments": {}}</tool_call>'),
    ("hermes-json", '<tool_call>{"name": "clock_now", "arguments": [1]}</tool_call>'),
    ("hermes-json", '<tool_call>{"name": "clock_now", "arguments": ' + "[" * 5000),
    ("hermes-json", '<tool_call>{"name": "clock_now", "arguments": {"a": 1e999}}</tool_call>'),
    ("hermes-json", "<tool_call>{broken: so: broken}</tool_call>"),
    ("qwen-xml", "<tool_call>\n<function=>\n</function>\n</tool_call>"),
    ("qwen-xml", "<tool_call>\n<function=calendar_list>\n<parameter=when>\nx"),
    ("lfm2", "<|tool_call_start|>[]<|tool_call_end|>"),
    ("lfm2", "<|tool_call_start|>[calendar_list(when=)]<|tool_call_end|>"),
    ("lfm2", "<|tool_call_start|>no call<|tool_call_end|>"),
    ("lfm2", "[1, 2]"),
    ("llama-3", "<|python_tag|>print(1)"),
    ("gemma", "```python\nprint(1)\n```"),
    ("gemma", '```json\n{"a": 1}\n```'),
    ("minicpm5", '<function name=""></function>'),
    ("minicpm5", '<function name="x'),
])
def test_what_can_not_be_read_is_text_word_for_word(name: str, text: str) -> None:
    deltas = parse(AnswerParser(by_name(name), TOOLS), text)
    assert calls(name, text) == []
    assert answer_of(deltas) == text


def test_a_good_call_behind_a_broken_one_is_found() -> None:
    text = ('<tool_call>\n{"name": "clock_now", "arguments": {"x": "no end}}\n</tool_call>\n'
        '<tool_call>\n{"name": "calendar_list", "arguments": {"when": "x"}}\n</tool_call>')
    found = calls("hermes-json", text)
    assert [(call.name, call.arguments) for call in found] == [LISTED]


def test_a_call_of_an_unknown_tool_is_a_call_with_a_fault() -> None:
    call, = calls("hermes-json", '<tool_call>\n{"name": "fly", "arguments": {"to": "x"}}\n</tool_call>')
    assert (call.name, call.arguments, call.faults) == ("fly", {"to": "x"}, (Fault("unknown_tool"),))


def test_missing_and_unknown_arguments_are_faults() -> None:
    text = "<tool_call>\n<function=calendar_list>\n<parameter=day>\n3\n</parameter>\n</function>\n</tool_call>"
    call, = calls("qwen-xml", text)
    assert call.arguments == {"day": 3}
    assert set(call.faults) == {Fault("unknown_argument", "day"), Fault("missing_argument", "when")}


def one(schema: dict[str, object], value: object, *, written: bool) -> ToolCall:
    tools = read_tools([{"name": "f", "parameters": {
        "type": "object", "properties": {"v": schema}, "$defs": {"count": {"type": "integer"}}}}])
    return finish_call(RawCall("f", {"v": value}, written=written), tools)


@pytest.mark.parametrize(("schema", "text", "value"), [
    ({"type": "string"}, "5", "5"), ({"type": "string"}, "true", "true"), ({"type": "string"}, " x\n", " x\n"),
    ({"type": "string"}, '{"a": 1}', '{"a": 1}'), ({"type": "string"}, '"q"', '"q"'),
    ({"type": "integer"}, "5", 5), ({"type": "integer"}, "-12", -12), ({"type": "integer"}, " 7 ", 7),
    ({"type": "number"}, "2.5", 2.5), ({"type": "number"}, "3", 3), ({"type": "float"}, "1e3", 1000.0),
    ({"type": "boolean"}, "True", True), ({"type": "boolean"}, "false", False), ({"type": "bool"}, "False", False),
    ({"type": "null"}, "None", None), ({"type": ["string", "null"]}, "None", None),
    ({"type": ["string", "null"]}, "null", None), ({"type": ["string", "null"]}, "nothing", "nothing"),
    ({"type": ["integer", "string"]}, "5", 5), ({"type": ["string", "integer"]}, "5", "5"),
    ({"type": "array"}, "[1, 2]", [1, 2]), ({"type": "array"}, "['a', True]", ["a", True]),
    ({"type": "array", "items": {"type": "string"}}, '["1", "2"]', ["1", "2"]),
    ({"type": "object"}, '{"a": {"b": null}}', {"a": {"b": None}}), ({"type": "dict"}, "{'a': None}", {"a": None}),
    ({"enum": ["low", "high"]}, "low", "low"), ({"enum": [1, 2]}, "2", 2), ({"enum": ["1", "2"]}, "2", "2"),
    ({"enum": [True]}, "True", True), ({"const": "x"}, "x", "x"), ({}, "5", 5), ({}, "word", "word"),
    ({"type": "any"}, "[1]", [1]), ({"$ref": "#/$defs/count"}, "4", 4),
    ({"anyOf": [{"type": "integer"}, {"type": "null"}]}, "None", None),
])
def test_written_values_get_the_type_of_the_schema(schema: dict[str, object], text: str, value: object) -> None:
    call = one(schema, text, written=True)
    assert call.arguments == {"v": value}
    assert type(call.arguments["v"]) is type(value)
    assert call.faults == ()


@pytest.mark.parametrize(("schema", "given_value", "value"), [
    ({"type": "integer"}, "5", 5), ({"type": "integer"}, 5.0, 5), ({"type": "string"}, 5, "5"),
    ({"type": "string"}, True, "true"), ({"type": "boolean"}, "true", True), ({"type": "array"}, "[1]", [1]),
    ({"enum": ["Low", "High"]}, "low", "Low"), ({"type": "object"}, '{"a": 1}', {"a": 1}),
    ({"type": "array", "items": {"type": "integer"}}, ["1", 2], [1, 2]),
    ({"type": "null"}, "null", None),
])
def test_a_value_of_another_type_that_means_the_same_is_changed_and_named(
    schema: dict[str, object], given_value: object, value: object,
) -> None:
    call = one(schema, given_value, written=False)
    assert call.arguments == {"v": value}
    assert type(call.arguments["v"]) is type(value)
    assert (call.repairs, call.faults) == (("type",), ())


@pytest.mark.parametrize(("schema", "given_value"), [
    ({"type": "integer"}, True), ({"type": "integer"}, False), ({"type": "number"}, True), ({"type": "integer"}, 1.5),
    ({"type": "integer"}, "many"), ({"type": "boolean"}, 1), ({"type": "boolean"}, "yes"), ({"type": "string"}, [1]),
    ({"type": "string"}, None), ({"type": "array"}, 1), ({"type": "object"}, [1]), ({"enum": [1, 2]}, True),
    ({"enum": ["a", "b"]}, "c"), ({"type": "null"}, 0), ({"type": "integer", "minimum": 1}, 0),
    ({"type": "integer", "maximum": 9}, 10), ({"type": "object", "required": ["a"]}, {}),
])
def test_a_value_that_fits_no_schema_stays_and_is_a_fault(schema: dict[str, object], given_value: object) -> None:
    call = one(schema, given_value, written=False)
    assert call.arguments == {"v": given_value}
    assert type(call.arguments["v"]) is type(given_value)
    assert call.faults == (Fault("bad_value", "v"),)


def test_a_boolean_is_never_an_integer_also_when_written() -> None:
    call = one({"type": "integer"}, "True", written=True)
    assert call.arguments == {"v": "True"}
    assert call.faults == (Fault("bad_value", "v"),)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4), max_leaves=12)


@given(JSON)
def test_right_json_is_read_as_json_reads_it_and_nothing_is_called_a_repair(value: object) -> None:
    for text in (json.dumps(value), json.dumps(value, ensure_ascii=False, indent=1)):
        found = read_json(text)
        assert found is not None
        assert (found.value, found.repairs) == (value, ())


@given(JSON.filter(lambda value: isinstance(value, (dict, list))))
def test_python_literals_are_read_as_python_reads_them(value: object) -> None:
    found = read_json(repr(value))
    assert found is not None
    assert found.value == value
    calls_found = read_python_calls(f"f(a={value!r})")
    assert calls_found is not None
    assert calls_found[0].arguments == {"a": value}


@given(st.text(alphabet='{}[]()"\',:=\\ \nabtnu0123.-eTrFaNl', max_size=60))
@settings(max_examples=400)
def test_readers_never_raise_and_give_finite_values(text: str) -> None:
    found = read_json(text)
    if found is not None:
        json.dumps(found.value, allow_nan=False)
    for call in read_python_calls(text) or ():
        json.dumps([call.arguments, call.positional], allow_nan=False)


@pytest.mark.parametrize("text", [
    "", " ", "NaN", "Infinity", "1e999", "[1", '{"a": "b', '{"a": tru', "1 2", '"a" "b"', "[" * 4000, "{'a':" * 4000,
])
def test_what_is_no_whole_value_is_none(text: str) -> None:
    found = read_json(text)
    assert found is None or isinstance(found.value, str)


def test_half_characters_become_replacement_characters() -> None:
    found = read_json('"\\ud83d x \\ud83d\\ude42"')
    assert found is not None
    assert found.value == "\ufffd x 🙂"
