"""Cases out of files, the sample, the schemas that hold answers, and the plain chooser with a scripted engine."""

import json
from contextlib import aclosing, asynccontextmanager

import pytest
from hypothesis import given
from hypothesis import strategies as st

from offload.errors import EngineError
from offload.evaluation.cases import Case, Tool, read_answers, read_cases, stratified_sample
from offload.evaluation.errors import BadCases
from offload.evaluation.native_chooser import NativeChooser
from offload.evaluation.plain_chooser import PlainChooser
from offload.evaluation.runner import run_cases
from offload.evaluation.schemas import calls_schema, parameter_schema
from offload.ports import Failed, Finished, Piece, ToolCall, Usage

AREA = {"name": "area", "description": "Area of a rectangle.", "parameters": {
    "type": "dict", "required": ["width"], "properties": {
        "width": {"type": "float", "description": "in m"}, "unit": {"type": "string", "enum": ["m", "cm"]}}}}
TIME = {"name": "clock.now", "parameters": {"type": "dict", "properties": {}}}


def line(case_id, functions, truth=None, turns=1):
    made = {"id": case_id, "question": [[{"role": "user", "content": "How big is it?"}]] * turns, "function": functions}
    return made if truth is None else {**made, "ground_truth": truth}


def lines(*made):
    return "\n".join(map(json.dumps, made)).encode() + b"\n"


def test_kinds_come_from_what_is_offered_and_what_is_right():
    truth = [{"area": {"width": [3, 3.0], "unit": ["m", ""]}}]
    loaded = read_cases(lines(
        line("simple_1", [AREA], truth), line("multiple_1", [AREA, TIME], truth), line("irrelevance_1", [TIME]),
        line("live_irrelevance_9", TIME), line("any", [AREA], [])))
    assert [(case.kind, case.right_tool) for case in loaded.cases] == [
        ("simple", "area"), ("multiple", "area"), *[("irrelevance", None)] * 3]
    assert loaded.cases[0].accepted == {"width": [3, 3.0], "unit": ["m", ""]} and loaded.left_out == {}
    assert loaded.cases[0].messages == [("user", "How big is it?")]
    assert read_cases(b"[" + lines(line("s", [AREA], truth)).strip() + b"]").cases[0].case_id == "s"


def test_answers_of_another_file_and_what_is_left_out():
    answers = read_answers(lines(
        {"id": "s1", "ground_truth": [{"area": {"width": [3]}}]},
        {"id": "s2", "ground_truth": [{"area": {"width": [3]}}, {"area": {"width": [4]}}]},
        {"id": "s3", "ground_truth": [{"volume": {}}]}))
    loaded = read_cases(lines(
        line("s1", [AREA]), line("s2", [AREA]), line("s3", [AREA]), line("s4", [AREA]), line("s5", [AREA], [], 2),
        line("s6", [])), answers)
    assert [case.case_id for case in loaded.cases] == ["s1"]
    assert loaded.left_out == {
        "several calls at once": 1, "the right function is not offered": 1, "no answer known": 1, "several turns": 1,
        "no question or no function": 1}


@pytest.mark.parametrize("data", [b"", b"hello", b"[]", b'{"no": "id"}', b'{"id": 3}', b"\xff\xfe", b'[{"id": "a"'])
def test_other_files_are_refused(data):
    with pytest.raises(BadCases):
        read_cases(data)


@given(st.binary(max_size=200))
def test_any_bytes_are_cases_or_refused(data):
    try:
        read_cases(data)
    except BadCases:
        return


def cases(kind, count):
    return [Case(case_id=f"{kind} {number}", kind=kind, messages=[("user", "x")], tools=[Tool(name="t")],
                 right_tool=None if kind == "irrelevance" else "t") for number in range(count)]


def test_the_sample_is_fixed_and_has_all_kinds_alike():
    every = [*cases("simple", 400), *cases("multiple", 200), *cases("irrelevance", 3)]
    chosen = stratified_sample(every, 30)
    counts = {kind: sum(case.kind == kind for case in chosen) for kind in ("simple", "multiple", "irrelevance")}
    assert sorted(counts.values()) == [3, 13, 14] and counts["irrelevance"] == 3
    assert stratified_sample(list(reversed(every)), 30)[::-1] == chosen
    assert {case.case_id for case in stratified_sample(every, 12)} <= {case.case_id for case in chosen}
    assert stratified_sample(every, 9999) == every and stratified_sample([], 5) == []


def test_types_of_the_files_become_schemas():
    assert parameter_schema(AREA["parameters"]) == {
        "type": "object", "additionalProperties": False, "required": ["width"], "properties": {
            "width": {"type": "number"}, "unit": {"enum": ["m", "cm"]}}}
    assert parameter_schema({"type": "tuple", "items": {"type": "integer"}})["items"] == {"type": "integer"}
    for odd in ({}, {"type": "any"}, {"type": ["string"]}, {"type": None}, {"enum": []}):
        assert parameter_schema(odd)["type"] == "string"
    deep: dict = {"type": "string"}
    for _ in range(50):
        deep = {"type": "dict", "properties": {"x": deep}, "required": ["x", "y"]}
    assert json.dumps(parameter_schema(deep)).count('"x": {') < 10


def test_a_call_may_be_of_each_tool_or_none():
    tools = [Tool(name="area", parameters=AREA["parameters"]), Tool(name="clock.now")]
    names = [option["properties"]["name"]["const"] for option in calls_schema(tools)["anyOf"]]
    assert names == ["area", "clock.now", "no_suitable_function", "ask_user"]
    assert len(calls_schema(tools, may_decline=False, may_ask=False)["anyOf"]) == 2


class Scripted:
    """Answers with what the test wrote, 10 tokens read and 4 written each time."""

    def __init__(self, *answers):
        self.answers, self.asked = list(answers), []

    @asynccontextmanager
    async def stream(self, request):
        self.asked.append(request)
        async with aclosing(self._events(self.answers.pop(0))) as events:
            yield events

    async def _events(self, answer):
        if isinstance(answer, Failed):
            yield answer
            return
        for piece in answer:
            yield piece if isinstance(piece, ToolCall) else Piece(piece)
        yield Finished("stop", Usage(10, 0, 4))


CASE = Case(case_id="1", kind="simple", messages=[("user", "3 m wide?")], tools=[
    Tool(name="area", description="Area.", parameters=AREA["parameters"])], right_tool="area", accepted={"width": [3]})


@pytest.mark.parametrize(("answer", "kind"), [
    ('{"name": "area", "arguments": {"width": 3}}', "call"),
    ('{"name": "no_suitable_function", "arguments": {}}', "none"),
    ('{"name": "ask_user", "arguments": {"question": "Which unit?"}}', "ask"),
])
async def test_the_plain_chooser_reads_one_call(answer, kind):
    engine = Scripted(answer)
    choice = await PlainChooser(engine, "m").choose(CASE)
    assert (choice.kind, choice.tries, choice.prompt_tokens, choice.output_tokens) == (kind, 1, 10, 4)
    (request,) = engine.asked
    assert json.loads(request.schema)["anyOf"][0]["properties"]["name"] == {"const": "area"}
    shown = request.prompt.messages[0].content
    assert "Area." in shown and "accepted" not in shown and request.prompt.messages[1].content == "3 m wide?"


async def test_an_answer_that_was_cut_off_is_tried_once_more_with_room():
    engine = Scripted('{"name": "area", "argum', '{"name": "area", "arguments": {}}')
    choice = await PlainChooser(engine, "m").choose(CASE)
    assert (choice.kind, choice.tries, choice.output_tokens) == ("call", 2, 8)
    assert engine.asked[1].max_tokens > engine.asked[0].max_tokens


@pytest.mark.parametrize("answer", ["{", "[]", '"x"', "null", '{"name": 3, "arguments": {}}', '{"name": "area"}'])
async def test_what_can_not_be_read_is_broken_and_no_error(answer):
    assert (await PlainChooser(Scripted(answer, answer), "m").choose(CASE)).kind == "broken"


async def test_a_case_beyond_the_engine_is_broken_and_a_dead_engine_ends_the_run():
    too_long = Failed("prompt_too_long", "Too long.")
    assert (await PlainChooser(Scripted(too_long, too_long), "m").choose(CASE)).kind == "broken"
    with pytest.raises(EngineError, match="worker_died"):
        await PlainChooser(Scripted(Failed("worker_died", "It died.")), "m").choose(CASE)


async def test_the_runner_tells_each_case():
    told = []

    async def tell(one):
        told.append((one.case.case_id, one.score.right))

    chooser = PlainChooser(Scripted('{"name": "area", "arguments": {"width": 3.0}}', "{", "{"), "m")
    results = await run_cases([CASE, CASE], chooser, tell=tell)
    assert told == [("1", True), ("1", False)] and [one.choice.kind for one in results] == ["call", "broken"]


CALLED = ToolCall("area", '{"width": 3}', ("closing",))


@pytest.mark.parametrize(("answer", "options", "kind"), [
    ((CALLED,), {}, "call"),
    ((CALLED,), {"may_decline": False}, "call"),
    (("None of these.",), {}, "none"),
    (("Which unit?",), {}, "none"),
    (("Which unit?",), {"may_ask": True}, "ask"),
])
async def test_the_native_chooser_takes_the_engines_calls(answer, options, kind):
    engine = Scripted(answer)
    choice = await NativeChooser(engine, "m", **options).choose(CASE)
    assert (choice.kind, choice.tries, choice.prompt_tokens, choice.output_tokens) == (kind, 1, 10, 4)
    assert (choice.name, choice.arguments) == (("area", {"width": 3}) if kind == "call" else ("", {}))
    (request,) = engine.asked
    (offered,) = request.tools
    assert (offered.name, json.loads(offered.parameters)["type"]) == ("area", "object")
    assert request.tool_choice == ("auto" if options.get("may_decline", True) else "required")
    assert request.schema is None and [message.content for message in request.prompt.messages] == ["3 m wide?"]


async def test_the_native_chooser_tries_again_and_gives_up():
    silent = Scripted((), ())
    assert (await NativeChooser(silent, "m").choose(CASE)).kind == "broken"
    assert silent.asked[1].max_tokens > silent.asked[0].max_tokens
    talks = Scripted(("I will not.",), ("No.",))
    assert (await NativeChooser(talks, "m", may_decline=False).choose(CASE)).kind == "broken"
    bad = Failed("bad_tools", "No.")
    assert (await NativeChooser(Scripted(bad, bad), "m").choose(CASE)).kind == "broken"
    with pytest.raises(EngineError, match="worker_died"):
        await NativeChooser(Scripted(Failed("worker_died", "It died.")), "m").choose(CASE)
