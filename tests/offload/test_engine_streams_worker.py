"""Text as it streams out of a real worker: whole characters, stop texts, the ends of an answer and their names."""

from pathlib import Path
from typing import Any

import pytest
from engine_asks import asked, collect, running_engine, text_of
from scripted_model import END, write_scripts
from tool_asks import CLOCK_CALL, QWEN, answers, calls_of, end_of, ids_of, thought_of, tool_request

from offload.model_host import HostLimits
from offload.ports import GenerateRequest, Piece

pytestmark = pytest.mark.model

VARIED = "".join(f"{number * 7919 % 9973} " for number in range(80))
WORDS = "Grüße, 漢字 🙂👩‍👧 Пример é."


async def test_characters_come_whole_though_each_byte_is_a_token(tmp_path: Path) -> None:
    thinking = asked("?", max_tokens=200, thinking_tokens=100)
    plain, thought, cut = await answers(
        tmp_path, (asked("?", max_tokens=100), WORDS + END), (thinking, f"{WORDS}\n</think>\n\n{WORDS}{END}"),
        (asked("?", max_tokens=2), WORDS))
    assert text_of(plain) == WORDS
    assert (thought_of(thought), text_of(thought)) == (WORDS, WORDS)
    assert len(ids_of(plain)) == len(WORDS.encode())
    for event in (*plain, *thought):
        if isinstance(event, Piece):
            assert "\ufffd" not in event.text + event.thought
    # an answer that ends in the middle of a character says so, once
    assert text_of(cut) == "Gr"
    (half,) = await answers(tmp_path, (asked("?", max_tokens=3), WORDS))
    assert (text_of(half), end_of(half).finish_reason) == ("Gr\ufffd", "length")


async def test_a_stop_text_over_many_tokens_is_never_shown_in_part(tmp_path: Path) -> None:
    def ask(*stop: str) -> GenerateRequest:
        return asked("?", max_tokens=100, stop=stop)

    found = await answers(
        tmp_path,
        (ask("<<STOP>>"), f"one <<STO two <<STOP>> three{END}"),
        (ask("ünd"), f"eins ünd zwei{END}"),
        (ask("abcd", "bc"), f"xabcdx{END}"),
        (ask("never"), f"it ends in nev{END}"),
        (asked("?", max_tokens=100, stop=("stop",), thinking_tokens=50), f"stop it\n</think>\n\nnow stop it{END}"),
        (tool_request(stop=("<function",)), f"Well.\n\n{CLOCK_CALL}"))
    assert [text_of(events) for events in found] == [
        "one <<STO two ", "eins ", "xa", "it ends in nev", "now ", "Well."]
    assert [end_of(events).finish_reason for events in found] == ["stop"] * 5 + ["tool_calls"]
    assert thought_of(found[4]) == "stop it"        # a stop text is one of the answer
    assert [call.name for call in calls_of(found[5])] == ["clock_now"]
    # what was held back for a stop text that never came is shown, and nothing of one was shown before
    shown = [event.text for event in found[0] if isinstance(event, Piece) and event.text]
    assert not any("<<STOP" in "".join(shown[:count]) for count in range(len(shown)))


async def test_each_end_has_its_name_and_its_counts(tmp_path: Path) -> None:
    def ask(**more: Any) -> GenerateRequest:
        return asked("?", **({"max_tokens": 300} | more))

    stop, length, limit, loop, loud, thinking = await answers(
        tmp_path, (ask(), f"done{END}"), (ask(max_tokens=3), "done"), (ask(context_limit=120), VARIED),
        (ask(), "ha! " * 30), (ask(), "".join(f"line {number}\n" for number in range(20)) + END),
        (ask(thinking_tokens=200), "hm. " * 30))
    prompt = end_of(stop).usage.prompt_tokens
    assert (end_of(stop).finish_reason, end_of(stop).usage.output_tokens) == ("stop", 4)
    assert (end_of(length).finish_reason, end_of(length).usage.output_tokens) == ("length", 3)
    assert end_of(limit).finish_reason == "length"
    assert end_of(limit).usage.prompt_tokens + end_of(limit).usage.output_tokens == 120
    assert end_of(loop).finish_reason == "loop"
    assert 64 <= end_of(loop).usage.output_tokens <= 72     # noticed after 64 tokens of the same
    assert text_of(loop).startswith("ha! ha! ")
    assert end_of(loud).finish_reason == "stop"             # counting is no loop
    assert (end_of(thinking).finish_reason, text_of(thinking)) == ("loop", "")
    assert prompt > 0
    for events in (stop, length, limit, loop, loud, thinking):
        assert end_of(events).usage.output_tokens == len(ids_of(events))


async def test_the_end_of_the_context_is_an_end_and_the_next_answer_begins(tmp_path: Path) -> None:
    script = VARIED
    requests = write_scripts(tmp_path / "m.gguf", [(asked("?", max_tokens=400), script)], template=QWEN)
    async with running_engine([tmp_path], limits=HostLimits(context_tokens=256, slots=1)) as engine:
        for _ in range(3):
            full = await collect(engine, requests[0])
            usage = end_of(full).usage
            assert end_of(full).finish_reason == "length"
            assert usage.prompt_tokens + usage.output_tokens == 256
            assert text_of(full) == script[:usage.output_tokens]
        short = await collect(engine, asked("?", max_tokens=4))
        assert text_of(short) == script[:4]
