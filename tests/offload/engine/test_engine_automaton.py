"""JSON schemas as automata: what they take is held against json, Python's own numbers and UTF-8 decoder."""

import json
import random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from offload.engine.automaton import Automaton
from offload.errors import BadGrammar
from offload.language import Chars, Choice, Row, Text, Times, Unicode, optional, to_gbnf
from offload.schema import BeyondAutomaton, read_schema, schema_language

CALL = {
    "anyOf": [
        {"type": "object", "required": ["name", "arguments"], "properties": {
            "name": {"const": "get_weather"},
            "arguments": {"type": "object", "required": ["city"], "properties": {
                "city": {"type": "string", "maxLength": 20},
                "days": {"type": "integer", "minimum": 1, "maximum": 14},
                "unit": {"enum": ["celsius", "fahrenheit"]}}}}},
        {"type": "object", "required": ["name", "arguments"], "properties": {
            "name": {"const": "get_time"},
            "arguments": {"type": "object", "properties": {"zone": {"type": "string"}}}}},
    ],
}


def automaton(schema: Any) -> Automaton:
    return Automaton(schema_language(schema))


def takes(machine: Automaton, text: str | bytes) -> bool:
    state = machine.walk(machine.start, text if isinstance(text, bytes) else text.encode())
    return state is not None and state.may_end


def any_text(machine: Automaton, seed: int) -> bytes:
    """A random text of the language: short repetitions, as it tends to close what is open."""
    choice = random.Random(seed)
    state, text = machine.start, bytearray()
    while not (state.may_end and (not state.next_bytes or choice.random() < 0.5)):
        options = [byte for byte in range(256) if state.next_bytes >> byte & 1]
        closing = [byte for byte in options if byte in b'"]},0.']
        byte = choice.choice(closing if closing and choice.random() < 0.4 else options)
        text.append(byte)
        following = machine.walk(state, bytes([byte]))
        assert following is not None
        state = following
    return bytes(text)


@pytest.mark.parametrize(("schema", "right", "wrong"), [
    ({"type": "boolean"}, ["true", "false"], ["True", "1", "tru", "true "]),
    ({"type": "null"}, ["null"], ["", "nul"]),
    ({"const": {"a": [1, "é"]}}, ['{"a": [1, "é"]}'], ['{"a":[1, "é"]}']),
    ({"enum": ["a", "ab", 3, None]}, ['"a"', '"ab"', "3", "null"], ['"abc"', "a", "4"]),
    ({"type": "string"}, ['""', '"é🙂"', r'"\n\"\\\u00e9\ud83d\ude00"'],
     ['"a', 'a"', '"a"b"', '"\n"', r'"\x"', r'"\ud83d"', r'"\ude00"', '"\x7f"', '"\0"']),
    ({"type": "string", "minLength": 2, "maxLength": 3}, ['"ab"', '"éé🙂"', r'"\n\n"'], ['"a"', '"abcd"', '""']),
    ({"type": "array", "items": {"type": "integer"}}, ["[]", "[1]", "[1, 2]"], ["[1,2]", "[1, ]", "[, 1]", "[1"]),
    ({"type": "array", "items": {"type": "null"}, "minItems": 1, "maxItems": 2}, ["[null]", "[null, null]"],
     ["[]", "[null, null, null]"]),
    ({"type": "array", "items": {"type": "null"}, "maxItems": 0}, ["[]"], ["[null]"]),
    ({"type": "array", "items": {"type": "null"}, "minItems": 2}, ["[null, null]", "[null, null, null]"], ["[null]"]),
    ({"type": ["string", "null"], "maxLength": 1}, ['"a"', "null"], ['"ab"', "nul"]),
    ({"type": "string", "nullable": True}, ['"a"', "null"], ["0"]),
    ({"type": "object", "properties": {"a": {"type": "null"}, "b": {"type": "null"}, "c": {"type": "null"}},
      "required": ["b"]},
     ['{"b": null}', '{"a": null, "b": null}', '{"b": null, "c": null}', '{"a": null, "b": null, "c": null}'],
     ["{}", '{"a": null}', '{"b": null, "a": null}', '{"b": null,"c": null}', '{"b": null, "b": null}']),
    ({"type": "object", "properties": {"a": {"type": "null"}, "b": {"type": "null"}}},
     ["{}", '{"a": null}', '{"b": null}', '{"a": null, "b": null}'], ['{, "b": null}']),
    ({"type": "object", "properties": {}, "additionalProperties": False}, ["{}"], ["{ }"]),
    ({"anyOf": [{"type": "integer"}, {"type": "string"}]}, ["1", '"1"'], ["true"]),
    (CALL, ['{"name": "get_weather", "arguments": {"city": "Paris", "days": 14}}',
            '{"name": "get_time", "arguments": {}}', '{"name": "get_weather", "arguments": {"city": "", "unit": '
            '"celsius"}}'],
     ['{"name": "get_weather", "arguments": {}}', '{"name": "get_time", "arguments": {"city": "Paris"}}',
      '{"name": "get_weather", "arguments": {"city": "Paris", "days": 15}}']),
    ({"type": "integer"}, ["0", "-1", "999999999999999"], ["-0", "01", "1.0", "1e3", "1000000000000000", "+1", ""]),
    ({"type": "number"}, ["0", "0.5", "-0.25", "12.000001"], [".5", "1.", "1.0000001", "00.1", "1e5", "--1"]),
])
def test_it_takes_what_is_written_as_the_schema_says(schema: Any, right: list[str], wrong: list[str]) -> None:
    machine = automaton(schema)
    for text in right:
        assert takes(machine, text), text
        json.loads(text)
    for text in wrong:
        assert not takes(machine, text), text


@settings(deadline=None)
@given(st.integers(-1200, 1200), st.integers(-1200, 1200), st.booleans(), st.booleans())
def test_integers_keep_their_bounds(low: int, high: int, above: bool, below: bool) -> None:
    schema = {"type": "integer", "exclusiveMinimum" if above else "minimum": low,
              "exclusiveMaximum" if below else "maximum": high}
    wanted = set(range(low + above, high + 1 - below))
    if not wanted:
        with pytest.raises(BadGrammar):
            automaton(schema)
        return
    machine = automaton(schema)
    near = {*range(low - 3, low + 4), *range(high - 3, high + 4), *range(-20, 21), *range(-1300, 1300, 37)}
    assert {number for number in near if takes(machine, str(number))} == near & wanted


@settings(deadline=None)
@given(st.integers(-30, 30), st.integers(-30, 30), st.booleans(), st.booleans())
def test_decimals_keep_their_bounds(low: int, high: int, above: bool, below: bool) -> None:
    schema = {"type": "number", "exclusiveMinimum" if above else "minimum": low,
              "exclusiveMaximum" if below else "maximum": high}
    try:
        machine = automaton(schema)
    except BadGrammar:
        assert high < low or (high == low and (above or below))
        return
    for tenths in range(-320, 321):
        text = f"{tenths / 10:.1f}"
        number = float(text)
        inside = (low < number if above else low <= number) and (number < high if below else number <= high)
        if takes(machine, text):
            assert inside, text
        elif inside and not (above and number == int(number)) and number != high and number != low:
            # with an open bound whole numbers are written without a point; so is a bound itself
            assert text.startswith("-0.0") or (below and number == int(number)) or number == 0, text


@pytest.mark.parametrize("bound", [0.5, True, "3"])
def test_a_bound_that_is_no_whole_number_is_refused(bound: Any) -> None:
    with pytest.raises(BadGrammar):
        automaton({"type": "number", "minimum": bound})


@settings(deadline=None)
@given(st.binary(min_size=1, max_size=5))
def test_a_string_takes_just_what_decodes_as_utf8(data: bytes) -> None:
    """The reference is Python's strict decoder."""
    try:
        text = data.decode()
        fine = not any(char in '"\\\x7f' or char < " " for char in text)
    except UnicodeDecodeError:
        fine = False
    machine = automaton({"type": "string"})
    if not set(data) & set(b'\\"'):
        assert takes(machine, b'"' + data + b'"') == fine


@settings(deadline=None)
@given(st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\x7f"), max_size=30))
def test_any_text_that_json_dumps_writes_is_taken(text: str) -> None:
    machine = automaton({"type": "string"})
    assert takes(machine, json.dumps(text))
    assert takes(machine, json.dumps(text, ensure_ascii=False))


def schemas(depth: int = 2) -> st.SearchStrategy[Any]:
    plain = st.sampled_from([
        {"type": "string", "maxLength": 6}, {"type": "integer", "minimum": -5, "maximum": 120}, {"type": "number"},
        {"type": "boolean"}, {"type": "null"}, {"enum": ["a", "ab", "é"]}, {"const": "x y"}])
    if depth == 0:
        return plain
    inner = schemas(depth - 1)
    names = st.lists(st.sampled_from(["a", "b", "ab", "ö"]), unique=True, max_size=3)
    objects = names.flatmap(lambda keys: st.fixed_dictionaries({
        "type": st.just("object"), "additionalProperties": st.just(False),
        "properties": st.fixed_dictionaries(dict.fromkeys(keys, inner)),
        "required": st.sets(st.sampled_from(keys)).map(sorted) if keys else st.just([])}))
    arrays = st.fixed_dictionaries({"type": st.just("array"), "items": inner, "maxItems": st.integers(0, 3)})
    return st.one_of(plain, objects, arrays, st.lists(inner, min_size=1, max_size=3).map(lambda some: {"anyOf": some}))


def fits(value: Any, schema: Any) -> bool:
    """Whether a value is valid under a schema of `schemas`: a second, plain reading of the words used there."""
    if "anyOf" in schema:
        return any(fits(value, option) for option in schema["anyOf"])
    if "enum" in schema or "const" in schema:
        return value in schema.get("enum", [schema.get("const")])
    match schema["type"]:
        case "string":
            return isinstance(value, str) and len(value) <= 6
        case "integer":
            return isinstance(value, int) and not isinstance(value, bool) and -5 <= value <= 120
        case "number":
            return isinstance(value, int | float) and not isinstance(value, bool)
        case "boolean":
            return isinstance(value, bool)
        case "null":
            return value is None
        case "array":
            return isinstance(value, list) and len(value) <= schema["maxItems"] and all(
                fits(item, schema["items"]) for item in value)
        case _:
            return isinstance(value, dict) and set(schema["required"]) <= set(value) <= set(schema["properties"]) and \
                all(fits(item, schema["properties"][key]) for key, item in value.items()) and \
                list(value) == [key for key in schema["properties"] if key in value]


@settings(deadline=None)
@given(schemas(), st.integers(0, 2**32))
def test_every_text_of_the_language_is_valid_under_the_schema(schema: Any, seed: int) -> None:
    machine = automaton(schema)
    text = any_text(machine, seed)
    assert takes(machine, text)
    assert fits(json.loads(text), schema)


@settings(deadline=None)
@given(schemas(), st.integers(0, 2**32), st.integers(0, 200))
def test_forced_text_is_in_every_continuation_and_never_crosses_a_choice(schema: Any, seed: int, at: int) -> None:
    machine = automaton(schema)
    text = any_text(machine, seed)
    at = min(at, len(text))
    state = machine.walk(machine.start, text[:at])
    assert state is not None
    must = machine.forced(state)
    assert text[at:].startswith(must)
    end = machine.walk(state, must)
    assert end is not None
    assert end.may_end or end.next_bytes.bit_count() > 1


def test_forced_text_of_a_call() -> None:
    machine = automaton(CALL)

    def forced(text: str) -> bytes:
        state = machine.walk(machine.start, text.encode())
        assert state is not None
        return machine.forced(state)

    assert forced("") == b'{"name": "get_'
    assert forced('{"name": "get_w') == b'eather", "arguments": {"city": "'
    assert forced('{"name": "get_weather", "arguments": {"city": "Par') == b""
    assert forced('{"name": "get_weather", "arguments": {"city": "Par"') == b""
    assert forced('{"name": "get_weather", "arguments": {"city": "Par", ') == b'"'
    assert forced('{"name": "get_weather", "arguments": {"city": "Par", "d') == b'ays": '
    assert forced('{"name": "get_weather", "arguments": {"city": "Par", "unit": "c') == b'elsius"}}'
    assert forced('{"name": "get_weather", "arguments": {"city": "01234567890123456789') == b'"'


def test_a_finished_text_takes_nothing_more() -> None:
    machine = automaton(CALL)
    state = machine.walk(machine.start, b'{"name": "get_time", "arguments": {}}')
    assert state is not None
    assert machine.done(state)
    assert machine.walk(state, b" ") is None
    number = automaton({"type": "integer"})
    state = number.walk(number.start, b"12")
    assert state is not None
    assert state.may_end
    assert not number.done(state)


def test_states_are_worked_out_once_and_their_number_has_an_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("offload.engine.automaton._KEPT_WAYS", 100)
    machine = automaton({"type": "string", "maxLength": 500})
    text = b'"' + b"a" * 500
    end = machine.walk(machine.start, text)
    assert end is not None
    assert machine.forced(end) == b'"'
    assert machine.walk(machine.start, text) is end
    assert len(machine._states) <= 50


@pytest.mark.parametrize("schema", [
    {}, {"type": "object"}, {"type": "array"}, {"$ref": "#/$defs/a"}, {"type": "string", "pattern": "a+"},
    {"type": "object", "properties": {"a": True}}, {"allOf": [{"type": "string"}]}, {"description": "anything"},
])
def test_what_only_a_grammar_can_hold_is_named_as_that(schema: Any) -> None:
    with pytest.raises(BeyondAutomaton):
        schema_language(schema)


@pytest.mark.parametrize("schema", [
    {"type": "integer", "multipleOf": 3}, {"not": {"type": "string"}, "type": "string"}, {"type": "text"}, {"type": []},
    {"type": "string", "minLength": 3, "maxLength": 2}, {"type": "string", "maxLength": 10**9}, {"anyOf": []},
    {"enum": []}, {"type": "object", "properties": {"a": {"type": "null"}}, "required": ["b"]},
    {"type": "object", "properties": 3}, {"type": "array", "items": {"type": "null"}, "uniqueItems": True},
    {"type": "object", "properties": {"a": 3}}, {"const": "\ud800"}, {"type": "integer", "minimum": 3, "maximum": 2},
])
def test_what_can_not_be_kept_is_refused(schema: Any) -> None:
    with pytest.raises(BadGrammar):
        schema_language(schema)


def test_deep_and_long_schemas_are_refused() -> None:
    schema: Any = {"type": "null"}
    for _ in range(40):
        schema = {"type": "array", "items": schema}
    with pytest.raises(BadGrammar):
        schema_language(schema)
    for text in ("", "[]", "3", "{", '{"a": ' * 5000, "[" * 60_000, '{"const": "' + "x" * 70_000 + '"}', "\ud800"):
        with pytest.raises(BadGrammar):
            read_schema(text)
    assert read_schema('{"type": "null"}') == {"type": "null"}


def test_many_optional_properties_take_no_recursion() -> None:
    names = [f"p{number:03}" for number in range(128)]
    machine = automaton({"type": "object", "properties": {name: {"type": "null"} for name in names}})
    assert takes(machine, json.dumps(dict.fromkeys(names[::3])))
    assert takes(machine, json.dumps(dict.fromkeys(names)))
    assert not takes(machine, json.dumps(dict.fromkeys(reversed(names))))
    with pytest.raises(BadGrammar):
        schema_language({"type": "object", "properties": {f"q{number}": {"type": "null"} for number in range(129)}})


def test_the_same_language_as_gbnf() -> None:
    node = Row((Text('{"a": "'), Times(Unicode('"\\'), 0, 5), optional(Chars("0-9]")), Choice((Text("é\n"), Text("")))))
    assert to_gbnf(node) == (
        'root ::= "{\\"a\\": \\"" r0 r1 r2\n'
        'r0 ::= [^\\x22\\x5C]{0,5}\n'
        'r1 ::= [0\\x2D9\\x5D]{0,1}\n'
        'r2 ::= "é\\n" | r3\n'
        'r3 ::= ""\n')
    shared = Row((Text("a"), Times(Text("b"), 1, None)))
    assert to_gbnf(Choice((shared, shared))) == 'root ::= r0 | r0\nr0 ::= "a" r1\nr1 ::= "b"{1,}\n'


@given(st.integers(0, 10_000), st.integers(0, 200))
@settings(max_examples=60, deadline=None)
def test_the_shortest_end_ends_the_text_and_none_is_shorter(seed: int, cut: int) -> None:
    machine = automaton(CALL)
    text = any_text(machine, seed)
    state = machine.walk(machine.start, text[:cut])
    assert state is not None
    end = machine.ending(state)
    assert machine.fewest(state) == len(end) <= len(text[cut:])
    assert takes(machine, text[:cut] + end)
    json.loads(text[:cut] + end)


def test_shortest_ends_worked_out_by_hand() -> None:
    machine = automaton({"type": "object", "required": ["a", "b"], "properties": {
        "a": {"type": "array", "items": {"type": "string", "minLength": 2}, "minItems": 1}, "b": {"type": "null"}}})
    for begun, end in (("", '{"a": ["  "], "b": null}'), ('{"a": ["x', ' "], "b": null}'),
                       ('{"a": ["xyz', '"], "b": null}'), ('{"a": ["xy", ', '"  "], "b": null}'),
                       ('{"a": ["xy"], "b": nu', "ll}"), ('{"a": ["xy"], "b": null}', "")):
        state = machine.walk(machine.start, begun.encode())
        assert state is not None
        assert machine.ending(state).decode() == end
