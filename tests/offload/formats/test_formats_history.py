"""Histories with calls become messages that the model's own template takes, whatever went wrong in them."""

import json
from typing import Any

import pytest
from chat_templates import chat_template
from hypothesis import given, settings
from hypothesis import strategies as st
from template_sandbox import render
from tool_samples import TOOLS, by_name, calls_of, parse

from offload.engine.formats.detection import FORMATS, format_of
from offload.engine.formats.history import PastCall, Turn, prepare_messages
from offload.engine.formats.parser import AnswerParser

CALL = PastCall("calendar_list", {"when": "today"}, "1")
TALK = (
    Turn("system", "Be brief."), Turn("user", "What is on?"), Turn("assistant", "", "I look.", (CALL,)),
    Turn("tool", "Lunch at 12", call_id="1", tool="calendar_list"), Turn("assistant", "Lunch."),
    Turn("user", "And now?"),
)
# A template short enough to write down, with what matters of each family.
PLAIN = "{% for m in messages %}{{ m.role }}: {{ m.content }}\n{% endfor %}"
TEMPLATES = {
    "qwen-xml": PLAIN + "<tool_call><function=<parameter= reasoning_content tool_calls",
    "hermes-json": PLAIN + "<tool_call> reasoning_content tool_calls",
    "lfm2": PLAIN + "List of tools: [", "minicpm5": PLAIN + 'Tool usage guidelines:<function name="<param name="',
    "llama-3": PLAIN + "<|start_header_id|><|python_tag|>", "gemma": PLAIN + "<start_of_turn>", "generic": PLAIN,
}
PUBLISHED = [
    "Qwen3.5-4B", "Qwen3-Coder", "Qwen-Qwen3-0.6B", "Qwen-Qwen2.5-7B-Instruct", "LFM2-8B-A1B", "LFM2.5-8B-A1B",
    "LFM2.5-Instruct", "openbmb-MiniCPM5-1B", "meta-llama-Llama-3.1-8B-Instruct", "meta-llama-Llama-3.2-3B-Instruct",
    "google-gemma-2-2b-it", "microsoft-Phi-3.5-mini-instruct",
]
BROKEN = (
    PastCall("calendar_list", '{"when": "to', "a"), PastCall("calendar_list", "[1]", "b"), PastCall("", {}, "c"),
    PastCall("x" * 99, {}, "d"), PastCall("a b", None, "e"), PastCall("calendar_list", {"when": float("nan")}, "f"),
)


def prepared(name: str, *turns: Turn, **more: Any) -> tuple[dict[str, Any], ...]:
    source = by_name(name)
    rendering = prepare_messages(turns, source, TEMPLATES[name], TOOLS, **more)
    return tuple(dict(message) for message in rendering.messages)


def test_a_sound_call_is_a_mapping_with_its_thought_and_result() -> None:
    messages = prepared("qwen-xml", *TALK)
    assert [message["role"] for message in messages] == ["system", "user", "assistant", "tool", "assistant", "user"]
    call = messages[2]["tool_calls"][0]["function"]
    assert call == {"name": "calendar_list", "arguments": {"when": "today"}}
    assert messages[2]["reasoning_content"] == "I look."
    assert messages[3]["content"] == "Lunch at 12"


def test_arguments_kept_as_text_become_a_mapping_and_slips_in_them_are_mended() -> None:
    for kept in ('{"when": "today"}', "{'when': 'today',}", {"when": "today"}):
        messages = prepared("hermes-json", Turn("user", "?"), Turn("assistant", "", "", (PastCall("f", kept, "1"),)))
        assert messages[1]["tool_calls"][0]["function"]["arguments"] == {"when": "today"}
    messages = prepared("hermes-json", Turn("user", "?"), Turn("assistant", None, "", (PastCall("f", None),)))
    assert messages[1]["tool_calls"][0]["function"]["arguments"] == {}


@pytest.mark.parametrize("source", FORMATS, ids=lambda one: one.name)
def test_bad_calls_become_text_and_later_turns_go_on(source: Any) -> None:
    turns = (
        Turn("user", "?"), Turn("assistant", "Sure.", "", (*BROKEN, CALL)), Turn("tool", "r", call_id="a"),
        Turn("tool", "Lunch", call_id="1"), Turn("tool", "orphan", call_id="nowhere"), Turn("user", "Go on"),
    )
    rendering = prepare_messages(turns, source, TEMPLATES[source.name], TOOLS)
    text = json.dumps(list(rendering.messages), ensure_ascii=False, allow_nan=False)
    assert text.count("Lunch") == 1
    assert text.count("orphan") == 1
    assert "Sure." in text
    assert rendering.messages[-1]["role"] == "user"
    kept = [call for message in rendering.messages for call in message.get("tool_calls", ())]
    assert [call["function"]["name"] for call in kept] in ([], ["calendar_list"])


@pytest.mark.parametrize("source", FORMATS, ids=lambda one: one.name)
def test_no_content_can_forge_a_call_a_result_or_a_turn(source: Any) -> None:
    control = ("<|im_start|>", "<|im_end|>")
    evil = "".join((*control, *source.reserved))
    turns = (
        Turn("system", evil), Turn("user", evil),
        Turn("assistant", evil, evil, (PastCall("f", {"a": evil, evil: 1}, "1"),)),
        Turn("tool", evil, call_id="1"), Turn("user", evil),
    )
    rendering = prepare_messages(turns, source, TEMPLATES[source.name], TOOLS, control_texts=control)
    for message in rendering.messages:
        assert evil not in json.dumps(message, ensure_ascii=False)
        for text in control:
            assert text not in json.dumps(message, ensure_ascii=False)
        if message["role"] in {"tool", "system"} or source.message_shape(TEMPLATES[source.name]).calls_by_template:
            described = 0 if message["role"] != "system" else 9     # the format's own words about its calls
            for text in source.reserved:
                assert json.dumps(dict(message), ensure_ascii=False).count(json.dumps(text)[1:-1]) <= described


def test_several_calls_in_a_turn_come_one_by_one_where_the_template_takes_one() -> None:
    second = PastCall("clock_now", {}, "2")
    messages = prepared(
        "llama-3", Turn("user", "?"), Turn("assistant", "Both.", "", (CALL, second)), Turn("tool", "noon", call_id="2"),
        Turn("tool", "Lunch", call_id="1"), Turn("user", "ok"))
    assert [message["role"] for message in messages] == ["user", "assistant", "tool", "assistant", "tool", "user"]
    assert [message["content"] for message in messages[2::2]] == ["Lunch", "noon"]


def test_system_turns_become_one_in_front_or_the_users_words() -> None:
    turns = (Turn("system", "A"), Turn("user", "x"), Turn("developer", "B"), Turn("user", "y"))
    assert [(one["role"], one["content"]) for one in prepared("qwen-xml", *turns)] == [
        ("system", "A\n\nB"), ("user", "x"), ("user", "y")]
    gemma = prepared("gemma", *turns)
    assert [one["role"] for one in gemma] == ["user"]
    assert "A\n\nB\n\nx\n\ny" in gemma[0]["content"]


def test_turns_alternate_and_begin_with_the_user_where_that_is_needed() -> None:
    source = by_name("gemma")
    rendering = prepare_messages(
        (Turn("assistant", "Hi"), Turn("assistant", "there"), Turn("user", "a"), Turn("user", "b")), source,
        TEMPLATES["gemma"])
    assert [(one["role"], one["content"]) for one in rendering.messages] == [
        ("user", "(...)"), ("assistant", "Hi\n\nthere"), ("user", "a\n\nb")]


def test_without_tools_in_the_template_they_and_the_calls_are_text() -> None:
    messages = prepared("generic", *TALK)
    assert "calendar_list" in messages[0]["content"]
    assert messages[0]["content"].endswith("Be brief.")
    assert "tool_calls" not in messages[2]
    source = by_name("generic")
    assert [call.arguments for call in calls_of(parse(AnswerParser(source, TOOLS), messages[2]["content"]))] == [
        {"when": "today"}]
    assert messages[3] == {"role": "user", "content": "Result of calendar_list:\nLunch at 12"}


@given(st.lists(st.builds(
    Turn, st.sampled_from(["system", "user", "assistant", "tool", "developer", "odd"]), st.none() | st.text(max_size=9),
    st.text(max_size=5), st.lists(st.builds(
        PastCall, st.text(max_size=6), st.none() | st.text(max_size=9) | st.dictionaries(
            st.text(max_size=3), st.floats() | st.text(max_size=3), max_size=2), st.sampled_from(["", "1", "2"])),
        max_size=3).map(tuple), st.sampled_from(["", "1", "2"])), max_size=6))
@settings(max_examples=100, deadline=None)
def test_no_history_raises(turns: list[Turn]) -> None:
    for source in FORMATS:
        rendering = prepare_messages(turns, source, TEMPLATES[source.name], TOOLS)
        json.dumps([list(rendering.messages), rendering.tools], allow_nan=False)


@pytest.mark.parametrize("name", PUBLISHED)
def test_published_templates_take_the_messages_and_print_calls_that_are_read_back(name: str) -> None:
    template = chat_template(name)
    source = format_of(template)
    rendering = prepare_messages(TALK, source, template, TOOLS)
    prompt = render(template, rendering)
    assert prompt.count("Lunch at 12") == 1
    assert "note_write" in prompt
    assert "Write a note" in prompt
    before, _, _ = prompt.partition("Lunch at 12")
    turn = before[before.index("What is on?") + len("What is on?"):]
    if source.trigger.only_first:
        turn = turn[turn.index("{"):]
    deltas = parse(AnswerParser(source, TOOLS), turn)
    assert [(call.name, call.arguments, call.repairs) for call in calls_of(deltas)] == [
        ("calendar_list", {"when": "today"}, ())], turn


@pytest.mark.parametrize("name", PUBLISHED)
def test_published_templates_take_a_history_full_of_faults(name: str) -> None:
    template = chat_template(name)
    turns = (
        Turn("user", "?"), Turn("assistant", None, "", (*BROKEN, CALL)), Turn("tool", "r", call_id="a"),
        Turn("tool", "", call_id="1"), Turn("system", "late"), Turn("assistant", "<think>half"), Turn("user", "Go on"))
    assert "Go on" in render(template, prepare_messages(turns, format_of(template), template, TOOLS))


def test_published_thinking_templates_begin_where_the_parser_thinks() -> None:
    template = chat_template("Qwen3.5-4B")
    source = format_of(template)
    for thinking in (False, True):
        rendering = prepare_messages(TALK, source, template, TOOLS, thinking=thinking)
        prompt = render(template, rendering)
        assert prompt.endswith("<think>\n" if thinking else "<think>\n\n</think>\n\n")
