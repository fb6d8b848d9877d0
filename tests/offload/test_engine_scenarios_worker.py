"""What users of other systems met, at the engine port with the real worker: each test names its scenario.

Statements are about counts and texts, never about time.
"""

from functools import partial
from itertools import product
from typing import Any

import pytest
import trio
from embedded_model import models_folder
from engine_asks import asked, collect, running_engine, text_of
from worker_pongs import Pongs

from node.clock import SystemClock
from node.daemon.readiness import Readiness
from offload.local_engine import LocalEngine
from offload.model_host import HostLimits
from offload.ports import ChatPrompt, Event, Failed, Finished, GenerateRequest, Message, Piece, Started, TextPrompt

pytestmark = pytest.mark.model

SMALL = HostLimits(context_tokens=1024, slots=4, queue_limit=16)
MANY_SCRIPTS = "naïve — Привет, 世界！ 👩‍👩‍👧 🇸🇮 कखग ﷽ end"


def literal(text: str) -> str:
    """A grammar that allows this text only."""
    return f'root ::= "{text}"'


def usage_of(events: list[Event]) -> Finished:
    end = events[-1]
    assert isinstance(end, Finished), end
    return end


def started(events: list[Event]) -> Started:
    (found,) = [event for event in events if isinstance(event, Started)]
    return found


async def leave_after(engine: LocalEngine, request: GenerateRequest, pieces: int) -> str:
    """What a reader saw who left after so many pieces."""
    text, seen = "", 0
    async with engine.stream(request) as answer:
        async for event in answer:
            assert not isinstance(event, Failed), event
            if isinstance(event, Piece):
                text, seen = text + event.text, seen + 1
                if seen == pieces:
                    break
    return text


async def test_readers_who_leave_do_not_wedge_the_generator_while_health_says_ok() -> None:
    """S7: readiness is a token that was produced, and after twenty disconnects the next one still is."""
    async with running_engine([models_folder()], limits=SMALL) as engine:
        ids = iter(range(100))
        readiness = Readiness(engine, SystemClock(), lambda: f"probe-{next(ids)}")
        assert not (await readiness.look(probe=False)).ready       # alive, but nothing was written yet
        async with trio.open_nursery() as nursery:
            for number in range(20):
                request = asked(f"Tell a long story about {number} foxes.", max_tokens=200, principal=f"p{number % 3}")
                nursery.start_soon(partial(leave_after, engine, request, 1 + number % 4))
        events = await collect(engine, asked("Name a colour.", max_tokens=6))
        assert usage_of(events).usage.output_tokens > 0
        view = await readiness.look(probe=False)
        assert view.ready and view.running == 0 and view.queued == 0
        last = await Pongs(engine).ask()
        assert (last.running, last.queued) == (0, 0)


async def test_cancelled_and_at_once_asked_again_no_text_of_the_one_is_in_the_other() -> None:
    """S9: fifty times with one slot, each answer in letters of its own."""
    async with running_engine([models_folder()], limits=HostLimits(context_tokens=512, slots=1)) as engine:
        for number in range(50):
            mine, other = chr(97 + number % 13), chr(110 + number % 13)
            seen = await leave_after(
                engine, asked("Go.", grammar=f'root ::= ("{mine}" [0-9]){{60}}', max_tokens=120, temperature=1.0), 2)
            assert set(seen[::2]) == {mine}
            events = await collect(engine, asked("Go.", grammar=f'root ::= ("{other}" [0-9]){{2}}', max_tokens=12))
            assert len(text_of(events)) == 4 and set(text_of(events)[::2]) == {other}
        assert (await engine.health()).restarts == 0


async def test_eight_streams_on_one_model_each_get_their_last_piece_and_the_engine_takes_more() -> None:
    """S10: one thread owns the context whatever is asked at once; embeddings and counts come between."""
    async with running_engine([models_folder()], limits=SMALL) as engine:
        ends: list[Finished] = []

        async def ask(number: int) -> None:
            letter = chr(97 + number)
            grammar = f'root ::= ("{letter}" [0-9]){{10}} "."'
            lane: Any = "exact" if number == 7 else "normal"
            events = await collect(engine, asked("Go.", grammar=grammar, max_tokens=60, lane=lane))
            assert text_of(events)[-1] == "." and set(text_of(events)[:-1:2]) == {letter}
            ends.append(usage_of(events))

        async with trio.open_nursery() as nursery:
            for number in range(8):
                nursery.start_soon(ask, number)
            for _ in range(4):
                assert len(await engine.embed(["some text", "more of it"])) == 2
                assert await engine.count_tokens(TextPrompt("one two three")) == 3
        assert [end.finish_reason for end in ends] == ["stop"] * 8
        assert usage_of(await collect(engine, asked("Hi", max_tokens=3)))
        assert (await engine.health()).restarts == 0


@pytest.mark.parametrize("shortcuts", [False, True])
async def test_any_script_arrives_whole_however_its_characters_are_split_over_tokens(shortcuts: bool) -> None:
    """S13: token by token, and continued from every token on."""
    async with running_engine([models_folder()], limits=SMALL) as engine:
        request = asked("Go.", grammar=literal(MANY_SCRIPTS), max_tokens=200, shortcuts=shortcuts)
        events = await collect(engine, request)
        pieces = [event for event in events if isinstance(event, Piece)]
        assert text_of(events) == MANY_SCRIPTS
        assert all("\ufffd" not in piece.text for piece in pieces)
        if shortcuts:
            return
        ids = [token for piece in pieces for token in piece.token_ids]
        assert len(ids) > len(MANY_SCRIPTS.split())     # characters really are split: more tokens than words
        for cut in range(1, len(ids), 9):
            shown = ""
            count = 0
            for piece in pieces:
                count += len(piece.token_ids)
                if count > cut:
                    break
                shown += piece.text
            rest = await collect(engine, asked(
                "Go.", grammar=literal(MANY_SCRIPTS), max_tokens=200, shortcuts=False, text_so_far=shown,
                token_ids_so_far=tuple(ids[:cut])))
            assert shown + text_of(rest) == MANY_SCRIPTS, cut


STOPS = [
    ("red, green STOPPING blue", "STOPPING", "red, green "),        # over several tokens
    ("red, green STOPPER blue", "STOPPING", "red, green STOPPER blue"),     # looks like it at first
    ("red, green STOP", "STOPPING", "red, green STOP"),     # held back, and flushed at the end
    ("red。。。green", "。。。", "red"),        # of several bytes
    ("aaab", "aab", "a"),       # its beginning overlaps itself
]


async def test_a_stop_text_over_several_tokens_eats_nothing_else() -> None:
    """S14: no beginning of it leaks, and what was held back comes at the end of the answer."""
    async with running_engine([models_folder()], limits=SMALL) as engine:
        for (text, stop, shown), shortcuts in product(STOPS, (False, True)):
            events = await collect(
                engine, asked("Go.", grammar=literal(text), stop=(stop,), max_tokens=60, shortcuts=shortcuts))
            assert text_of(events) == shown
            assert usage_of(events).finish_reason == "stop"


async def test_a_prompt_that_does_not_fit_is_refused_and_never_cut() -> None:
    """S15: whichever turn is too long, the answer is an error that says so; the engine goes on."""
    async with running_engine([models_folder()], limits=HostLimits(context_tokens=256, slots=2)) as engine:
        long = "x y z " * 200
        for messages in (
            [Message("system", long), Message("user", "Hi")],
            [Message("user", "Hi"), Message("assistant", long), Message("user", "And?")],
            [Message("system", "Be brief."), Message("user", long)],
        ):
            (failed,) = await collect(engine, asked("", prompt=ChatPrompt(tuple(messages))))
            assert isinstance(failed, Failed)
            assert failed.code == "prompt_too_long" and failed.hint
        events = await collect(engine, asked("Hi", max_tokens=4))
        assert started(events).prompt_tokens == usage_of(events).usage.prompt_tokens


async def test_an_answer_that_reaches_the_end_of_the_context_says_length_and_its_memory_is_used_again() -> None:
    """S16: the next turn of the same conversation reads only what is new."""
    async with running_engine([models_folder()], limits=HostLimits(context_tokens=256, slots=1)) as engine:
        prompt = "one two three four " * 30
        grammar = 'root ::= ("a" [0-9] " "){300}'
        request = asked("", prompt=TextPrompt(prompt), max_tokens=1000, grammar=grammar, temperature=1.0)
        end = usage_of(await collect(engine, request))
        assert end.finish_reason == "length"
        assert 255 <= end.usage.prompt_tokens + end.usage.output_tokens <= 256
        again = await collect(engine, asked("", prompt=TextPrompt(prompt + "five"), max_tokens=4))
        assert started(again).cached_tokens >= end.usage.prompt_tokens - 2     # the rest made room
        assert usage_of(again).usage.output_tokens > 0


async def test_the_same_system_prompt_and_conversation_of_two_peers_share_nothing() -> None:
    """S28: neither what one said nor that it was said can be told from the other one's answer or its counts."""
    system = Message("system", "You are the helper of this house. " * 12)
    secret = Message("user", "Remember: the PIN of Ana is 7391.")
    question = ChatPrompt((system, Message("user", "What is the PIN of Ana?")))
    told = ChatPrompt((system, secret, Message("assistant", "I will."), Message("user", "What is the PIN of Ana?")))
    async with running_engine([models_folder()], limits=SMALL) as engine:
        alone = text_of(await collect(engine, asked("", prompt=question, principal="peer-b", max_tokens=24)))
    async with running_engine([models_folder()], limits=SMALL) as engine:
        await collect(engine, asked("", prompt=told, principal="peer-a", max_tokens=24))
        events = await collect(engine, asked("", prompt=question, principal="peer-b", max_tokens=24))
        assert started(events).cached_tokens == 0
        assert text_of(events) == alone and "7391" not in alone
        own = await collect(engine, asked("", prompt=told, principal="peer-a", max_tokens=24))
        assert started(own).cached_tokens > 100     # the memory was there all the time


async def test_a_model_that_a_peer_had_loaded_goes_when_it_is_idle_and_comes_back() -> None:
    """S29: the first load, which takes longer than the idle time, is not cut short by it."""
    limits = HostLimits(context_tokens=512, slots=2, idle_stop_s=0.2)
    async with running_engine([models_folder()], limits=limits) as engine:
        assert usage_of(await collect(engine, asked("Hi", max_tokens=3, principal="peer-1")))
        with trio.fail_after(60):
            while engine.worker_pids:
                await trio.sleep(0.02)
        assert (await engine.health()).state == "idle"
        assert usage_of(await collect(engine, asked("Hi", max_tokens=3)))
        assert (await engine.health()).restarts == 0
