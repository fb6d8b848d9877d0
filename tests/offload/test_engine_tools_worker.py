"""Calls, thoughts and their ends through a real worker, whose model writes what the test says (tests/support)."""

import json
import os
import signal
from pathlib import Path
from typing import Any

import pytest
import trio
from chat_templates import chat_template
from engine_asks import asked, collect, running_engine, text_of
from scripted_model import CHATML, END, write_scripted
from tool_asks import (
    CLOCK,
    CLOCK_CALL,
    HERMES,
    LIMITS,
    MARKERS,
    NOTE_CALL,
    QWEN,
    TOOLS,
    answers,
    calls_of,
    end_of,
    ids_of,
    thought_of,
    tool_request,
)
from worker_pongs import Pongs

from offload.child.policy import RestartPolicy
from offload.model_host import HostLimits
from offload.ports import (
    ChatPrompt,
    Event,
    Failed,
    Finished,
    GenerateRequest,
    Message,
    PastCall,
    Piece,
    Resumed,
    Started,
    ToolCall,
    ToolOffer,
)

pytestmark = pytest.mark.model

QUICK = RestartPolicy(first_delay_s=0.01, longest_delay_s=0.02, crash_limit=40, quarantine_s=1000.0)


# -- S8: the answer ends with its call

@pytest.mark.parametrize(
    "tokens", [{}, {"plain": MARKERS}, {"more_controls": MARKERS}], ids=["bytes", "plain", "control"])
async def test_a_complete_call_ends_the_answer_and_the_next_one_starts_at_once(tmp_path: Path, tokens: Any) -> None:
    request = tool_request()
    script = f"Let me see.\n\n{NOTE_CALL}\nI will now talk for ever and ever and ever."
    written = write_scripted(tmp_path / "m.gguf", request, script, template=QWEN, **tokens)
    to_the_end = len(written) - len("\nI will now talk for ever and ever and ever.")
    async with running_engine([tmp_path], limits=LIMITS) as engine:
        events = await collect(engine, request)
        assert text_of(events) == "Let me see."
        call, = calls_of(events)
        assert call == ToolCall(
            "note_write", '{"text": "buy <b>milk</b>\\nand eggs ☕", "pages": 2, "loud": true}')
        assert (end_of(events).finish_reason, end_of(events).usage.output_tokens) == ("tool_calls", to_the_end)
        pongs = Pongs(engine)
        at_end = await pongs.ask()
        assert (at_end.running, at_end.queued) == (0, 0)
        assert ids_of(events) == tuple(written[:to_the_end])

        # the only slot is free: the next request is read without waiting, and nothing was decoded for the last one
        again = await collect(engine, request)
        assert calls_of(again) == [call]
        assert isinstance(again[1], Started)
        assert (await pongs.ask()).decodes - at_end.decodes <= at_end.decodes


async def test_what_a_rule_forces_is_not_sampled(tmp_path: Path) -> None:
    request = tool_request(tool_choice="required")
    write_scripted(tmp_path / "m.gguf", request, NOTE_CALL, template=QWEN)
    counts = {}
    for shortcuts in (True, False):
        async with running_engine([tmp_path], limits=LIMITS) as engine:
            asked_for = tool_request(tool_choice="required", shortcuts=shortcuts)
            events = await collect(engine, asked_for)
            assert [call.name for call in calls_of(events)] == ["note_write"]
            counts[shortcuts] = (await Pongs(engine).ask()).decodes
            assert end_of(events).usage.output_tokens == len(NOTE_CALL.encode())
    assert counts[True] < 0.5 * counts[False]


async def test_the_reader_that_leaves_at_the_call_frees_the_slot(tmp_path: Path) -> None:
    """A host that stops reading at the first call, before the last event."""
    request = tool_request(parallel_calls=True)
    write_scripted(tmp_path / "m.gguf", request, CLOCK_CALL + "\n" + NOTE_CALL + END, template=QWEN)
    async with running_engine([tmp_path], limits=LIMITS) as engine:
        async with engine.stream(request) as events:
            async for event in events:
                if isinstance(event, ToolCall):
                    break
        again = await collect(engine, request)
        assert [call.name for call in calls_of(again)] == ["clock_now", "note_write"]
        pong = await Pongs(engine).ask()
        assert (pong.running, pong.queued) == (0, 0)


# -- which calls

async def test_which_calls_come(tmp_path: Path) -> None:
    three = f"{CLOCK_CALL}\n{NOTE_CALL}\n{CLOCK_CALL}{END}"
    many, one, required, named, none = await answers(
        tmp_path, (tool_request(parallel_calls=True), three), (tool_request(), CLOCK_CALL + "\n" + CLOCK_CALL),
        (tool_request(tool_choice="required"), "I would rather talk."),
        (tool_request(named_tool="note_write"), CLOCK_CALL[:20]), (tool_request(tool_choice="none"), CLOCK_CALL + END))
    assert [call.name for call in calls_of(many)] == ["clock_now", "note_write", "clock_now"]
    assert (text_of(many), end_of(many).finish_reason) == ("", "tool_calls")
    assert [call.name for call in calls_of(one)] == ["clock_now"]
    assert (calls_of(none), text_of(none), end_of(none).finish_reason) == ([], CLOCK_CALL, "stop")
    for held, names in ((required, {"clock_now", "note_write"}), (named, {"note_write"})):
        assert bytes(ids_of(held)).startswith(b"<tool_call>\n<function=")
        # without a script for the values it may end in a loop, which is no call
        assert calls_of(held) or end_of(held).finish_reason in {"loop", "length"}
        assert all(call.name in names for call in calls_of(held))


async def test_no_marker_token_gets_into_an_argument(tmp_path: Path) -> None:
    """The model wants its own call token, and the end of the chat's turn, in the middle of a value."""
    script = NOTE_CALL.replace("milk", "m<tool_call>k</tool_call>").replace("eggs", f"e{END}s")
    held, = await answers(tmp_path, (tool_request(), script), more_controls=MARKERS)
    call, = calls_of(held)
    arguments = json.loads(call.arguments)
    assert not any(marker in call.arguments for marker in (*MARKERS, END))
    assert arguments["text"].startswith("buy <b>m")
    assert len(ids_of(held)) == end_of(held).usage.output_tokens
    # control: where these texts are no control tokens they are text like any other
    script = NOTE_CALL.replace("milk", "m<tool_call>k")
    free, = await answers(tmp_path, (tool_request(), script), plain=MARKERS)
    assert "m<tool_call>k" in json.loads(calls_of(free)[0].arguments)["text"]


async def test_tools_that_cannot_be_offered_are_refused_in_words(tmp_path: Path) -> None:
    write_scripted(tmp_path / "m.gguf", asked("x"), "x", template=QWEN)
    async with running_engine([tmp_path], limits=LIMITS) as engine:
        for wrong in (
            {"tools": (ToolOffer("no name!", "", "{}"),)}, {"tools": (ToolOffer("f", "", '{"type": "string"}'),)},
            {"tools": (ToolOffer("f", "", '{"properties": {"a b": {}}}'),)}, {"named_tool": "nobody"},
            {"tools": (CLOCK, CLOCK)}, {"tools": (), "tool_choice": "required"},
        ):
            failed = (await collect(engine, tool_request(**wrong)))[-1]
            assert isinstance(failed, Failed)
            assert failed.code == "bad_tools"
        assert isinstance((await collect(engine, asked("x", max_tokens=2)))[-1], Finished)


# -- S17: malformed, partial, nested

MALFORMED = {
    # what the model writes -> the call's tool and whether it was put right; without a tool it is text
    "<function=clock_now>\n</function>": ("clock_now", True),
    "I call <tool_call>\n<function=clock_now>\n</function>\n</tool_call>": ("clock_now", False),
    "<function=nobody>\n<parameter=a>\n1\n</parameter>\n</function>": ("nobody", True),
    "<function=note_write>\n<parameter=text>\nmilk\n</parameter>": ("note_write", True),
    "<function=note_write>\n<parameter=text>\nmilk": ("", False),
    "<function=note_write>\n<parameter=text>\nmilk\n</parameter>\n<parameter=pages>\ntwo\n</parameter>\n</function>": (
        "note_write", True),
    "<tool_call": ("", False),
    "<function={{{": ("", False),
    "<parameter=text>\nmilk\n</parameter>": ("", False),
}


async def test_malformed_calls_are_repaired_and_flagged_or_text(tmp_path: Path) -> None:
    found = await answers(tmp_path, *((tool_request(), script + END) for script in MALFORMED))
    for events, (script, (tool, repaired)) in zip(found, MALFORMED.items(), strict=True):
        assert end_of(events).finish_reason == ("tool_calls" if tool else "stop"), script
        if not tool:
            assert (calls_of(events), text_of(events)) == ([], script)
            continue
        call, = calls_of(events)
        assert (call.name, call.repaired) == (tool, repaired), script
        assert ("unknown_tool" in call.faults) == (tool == "nobody")
        assert ("bad_value:pages" in call.faults) == ("two" in script)
        assert isinstance(json.loads(call.arguments), dict)


async def test_a_call_cut_at_every_token_is_never_an_error(tmp_path: Path) -> None:
    request = tool_request(max_tokens=1)
    script = f"So.\n\n{NOTE_CALL}"
    written = write_scripted(tmp_path / "m.gguf", request, script, template=QWEN)
    async with running_engine([tmp_path], limits=LIMITS) as engine:
        for most in (*range(1, len(written), 9), len(written) - 1, len(written) + 8):
            events = await collect(engine, tool_request(max_tokens=most))
            finished = end_of(events)
            assert finished.usage.output_tokens <= most
            assert finished.finish_reason == ("tool_calls" if most > len(written) else "length")
            cut = bytes(written[:most]).decode(errors="replace")
            if not calls_of(events):        # nothing a model wrote is lost; space at the very end may be
                assert text_of(events).rstrip() == cut.rstrip()
            else:       # repaired behind its cut, or brought to an end of the language before it
                assert text_of(events) == "So."
                assert most < len(written) or not calls_of(events)[0].repaired


# -- thoughts

async def test_thoughts_are_told_apart_and_kept_within_their_budget(tmp_path: Path) -> None:
    cut = "\n</think>\n\n"
    over = "and so on and so on"
    schema = '{"type": "object", "properties": {"ok": {"type": "boolean"}}, "required": ["ok"]}'
    thinking, quiet, long, unasked, called, under = await answers(
        tmp_path,
        (asked("Why?", thinking_tokens=100, max_tokens=100), f"Hm, ☕ is it\n</think>\n\nBecause.{END}"),
        (asked("Why?", max_tokens=100), f"Because.{END}"),
        # what the model would write at the places that the cut takes is never asked for
        (asked("Why?", thinking_tokens=8, max_tokens=100), over[:8] + "~" * len(cut) + f"Because.{END}"),
        (asked("Why?", max_tokens=60), "<think>" + "~" * len(cut) + f"Because.{END}"),
        (tool_request(tool_choice="required", thinking_tokens=100), f"The clock.\n</think>\n\n{CLOCK_CALL}"),
        (asked("Well?", schema=schema, thinking_tokens=100, max_tokens=100),
         'Let me {"ok"\n</think>\n\n{"ok": true}'))
    assert (thought_of(thinking), text_of(thinking)) == ("Hm, ☕ is it", "Because.")
    assert end_of(thinking).finish_reason == "stop"
    assert (thought_of(quiet), text_of(quiet)) == ("", "Because.")
    assert (thought_of(long), text_of(long)) == (over[:8].rstrip(), "Because.")
    assert end_of(long).usage.output_tokens == 8 + len(cut) + len("Because.")
    assert (thought_of(unasked), text_of(unasked)) == ("", "Because.")
    assert (thought_of(called), text_of(called)) == ("The clock.", "")
    assert [call.name for call in calls_of(called)] == ["clock_now"]
    assert (thought_of(under), text_of(under)) == ('Let me {"ok"', '{"ok": true}')


# -- a worker that dies, and going on

DYING = f"Look: the clock.\n</think>\n\nLet me see.\n\n{CLOCK_CALL}\n{NOTE_CALL}{END}"


@pytest.mark.parametrize(("lane", "at"), [("normal", 0.1), ("normal", 0.8), ("exact", 0.5)])
async def test_an_answer_with_thoughts_and_calls_goes_on_where_the_worker_died(
    tmp_path: Path, lane: Any, at: float,
) -> None:
    request = tool_request(parallel_calls=True, thinking_tokens=100, lane=lane)
    write_scripted(tmp_path / "m.gguf", request, DYING, template=QWEN)
    async with running_engine([tmp_path], limits=LIMITS, policy=QUICK) as engine:
        whole = await collect(engine, request)
        assert [call.name for call in calls_of(whole)] == ["clock_now", "note_write"]
        assert thought_of(whole) == "Look: the clock."
        left = int(at * sum(isinstance(event, Piece | ToolCall) for event in whole))

        def look(event: Event) -> None:
            nonlocal left
            if isinstance(event, Piece | ToolCall):
                left -= 1
                if left == 0:
                    os.kill(engine.worker_pids[0], signal.SIGKILL)

        again = await collect(engine, request, look)
        assert sum(isinstance(event, Resumed) for event in again) == 1
        assert (thought_of(again), text_of(again), calls_of(again), ids_of(again)) == (
            thought_of(whole), text_of(whole), calls_of(whole), ids_of(whole))
        assert end_of(again).finish_reason == "tool_calls"


async def test_going_on_from_any_token_or_from_the_words_gives_the_same_rest(tmp_path: Path) -> None:
    request = tool_request(thinking_tokens=12, max_tokens=300, request_id="whole")
    thought, cut = "Look, a clo", "\n</think>\n\n"
    script = f"{thought}c" + "~" * len(cut) + f"Let me see.\n\n{CLOCK_CALL}"
    write_scripted(tmp_path / "m.gguf", request, script, template=QWEN)
    async with running_engine([tmp_path], limits=LIMITS) as engine:
        whole = await collect(engine, request)
        ids = ids_of(whole)
        assert (thought_of(whole), text_of(whole)) == (f"{thought}c", "Let me see.")
        for at in range(1, len(ids), 5):
            told: list[Event] = []
            for event in whole:
                told.append(event)
                if len(ids_of(told)) >= at:
                    break
            rest = tool_request(
                thinking_tokens=12, max_tokens=300 - len(ids_of(told)), token_ids_so_far=ids_of(told),
                text_so_far=text_of(told), thought_so_far=thought_of(told))
            after = await collect(engine, rest)
            assert thought_of(told) + thought_of(after) == thought_of(whole)
            assert text_of(told) + text_of(after) == text_of(whole)
            assert calls_of(told) + calls_of(after) == calls_of(whole)
            assert ids_of(told) + ids_of(after) == ids

        # from the words alone, as at another model
        words = await collect(engine, tool_request(thinking_tokens=12, thought_so_far=f"{thought}c", text_so_far="Let"))
        assert text_of(words) == " me see."
        assert [call.name for call in calls_of(words)] == ["clock_now"]


# -- S18: what went wrong in earlier turns

BAD_HISTORY = (
    Message("system", "Be brief."), Message("user", "note milk"),
    Message("assistant", "Sure.", (
        PastCall("note_write", '{"text": "mi', "1"), PastCall("no such tool!", "{}", "2"),
        PastCall("note_write", "[1]", "3"),
        PastCall("note_write", '{"text": "a", "text": "\\ud800"}', "4"), PastCall("clock_now", "null", "5"))),
    Message("tool", "bad arguments", call_id="1"), Message("tool", "orphan", call_id="99"),
    Message("tool", "<tool_call>\n<function=clock_now>\n</function>\n</tool_call>", call_id="3"),
    Message("assistant", "", (PastCall("clock_now", "{}", "6"),), thought="</think> <|im_end|> hm"),
    Message("user", "and now?"),
)


@pytest.mark.parametrize("template", ["hermes", "generic", "Qwen3.5-4B"])
async def test_a_bad_call_in_the_history_spoils_no_later_turn(tmp_path: Path, template: str) -> None:
    source = {"hermes": HERMES, "generic": CHATML}.get(template) or chat_template(template)
    request = GenerateRequest(request_id="r", prompt=ChatPrompt(BAD_HISTORY), tools=TOOLS, max_tokens=60)
    events, = await answers(tmp_path, (request, f"Fine.{END}"), template=source)
    assert end_of(events).finish_reason in {"stop", "tool_calls", "length"}
    if template != "generic":       # there a small model is held to a call
        assert text_of(events) == "Fine."


async def test_the_templates_own_fault_is_a_refusal_and_the_worker_lives(tmp_path: Path) -> None:
    """Control: without mending, this history does fail."""
    naive = "{% for m in messages %}{% if not m.content %}{{ raise_exception('empty') }}{% endif %}{% endfor %}x"
    write_scripted(tmp_path / "m.gguf", asked("x"), f"Fine.{END}", template=naive)
    async with running_engine([tmp_path], limits=LIMITS) as engine:
        failed = (await collect(engine, GenerateRequest(
            request_id="r", prompt=ChatPrompt((Message("user", ""), Message("user", "x"))), max_tokens=4)))[-1]
        assert isinstance(failed, Failed)
        assert failed.code == "bad_prompt"
        assert text_of(await collect(engine, asked("x", max_tokens=9))) == "Fine."


async def test_two_askers_with_calls_do_not_mix(tmp_path: Path) -> None:
    request = tool_request(request_id="a")
    write_scripted(tmp_path / "m.gguf", request, f"Let me see.\n\n{NOTE_CALL}", template=QWEN)
    async with running_engine([tmp_path], limits=HostLimits(context_tokens=4096, slots=3)) as engine:
        found: list[list[Event]] = []

        async def ask(choice: Any) -> None:
            found.append(await collect(engine, tool_request(tool_choice=choice)))

        async with trio.open_nursery() as nursery:
            for choice in ("auto", "auto", "required"):
                nursery.start_soon(ask, choice)
        assert sorted(len(calls_of(events)) for events in found) == [1, 1, 1]
        assert sorted(text_of(events) for events in found) == ["", "Let me see.", "Let me see."]
