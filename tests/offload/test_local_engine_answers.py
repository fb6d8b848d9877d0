"""The local engine with its real worker and the embedded model: what a reader gets."""

import json
from pathlib import Path
from typing import Any

import pytest
import trio
from embedded_model import MODEL_NAME, model_path, models_folder
from engine_asks import asked, collect, running_engine, text_of

from offload.catalogue import Record, write_record
from offload.child.box import HELD
from offload.errors import BadPrompt
from offload.local_engine import LocalEngine
from offload.model_host import HostLimits, ModelHost
from offload.ports import (
    ChatPrompt,
    Event,
    Failed,
    Finished,
    GenerateRequest,
    Message,
    Piece,
    Queued,
    Started,
    TextPrompt,
    TokenPrompt,
)
from offload.worker_frames import Ping, Pong, Step, decode_report, encode

pytestmark = pytest.mark.model

SMALL = HostLimits(context_tokens=1024, slots=4, queue_limit=16)
OBJECT = r'''root ::= "{\"city\": \"" [^"\\\x00-\x1f]{1,20} "\", \"days\": " [1-9] "}"'''


def only_host(engine: LocalEngine) -> ModelHost:
    ((host, _),) = engine._hosts.values()
    return host


async def test_an_answer_streams_and_its_pieces_are_its_ids() -> None:
    async with running_engine([models_folder()], limits=SMALL) as engine:
        events = await collect(engine, asked("Name three colours.", max_tokens=40))
        assert isinstance(events[0], Queued)
        assert isinstance(events[1], Started)
        pieces = [event for event in events if isinstance(event, Piece)]
        finished = events[-1]
        assert isinstance(finished, Finished)
        ids = tuple(token for piece in pieces for token in piece.token_ids)
        assert len(pieces) > 5
        assert len(ids) == finished.usage.output_tokens
        assert finished.usage.prompt_tokens == events[1].prompt_tokens
        info = (await engine.models())[0]
        assert (info.name, info.loaded, info.digest) == (MODEL_NAME, True, finished.model_digest)
        assert info.context_tokens == 1024
        # The same text in one go: what these ids say, counted and continued from.
        whole = await collect(engine, asked("Name three colours.", max_tokens=40, token_ids_so_far=ids[:-1]))
        assert text_of(whole).startswith("".join(piece.text for piece in pieces[:-1]))
        assert await engine.count_tokens(TokenPrompt(ids)) == len(ids)


async def test_text_so_far_is_continued_by_ids_and_by_text() -> None:
    async with running_engine([models_folder()], limits=SMALL) as engine:
        first = await collect(engine, asked("Count from one to twenty in words.", max_tokens=12))
        ids = tuple(token for event in first if isinstance(event, Piece) for token in event.token_ids)
        text = text_of(first)
        assert isinstance(first[1], Started)
        by_ids = await collect(
            engine, asked("Count from one to twenty in words.", text_so_far=text, token_ids_so_far=ids, max_tokens=4))
        by_text = await collect(engine, asked("Count from one to twenty in words.", text_so_far=text, max_tokens=4))
        foreign = await collect(engine, asked("Count from one to twenty in words.", text_so_far="Zwei, drei",
                                              token_ids_so_far=ids, max_tokens=4))
        for events in (by_ids, by_text, foreign):
            assert text_of(events)
            assert not text_of(events).startswith(text)
        assert isinstance(by_ids[1], Started)
        assert by_ids[1].prompt_tokens == first[1].prompt_tokens + 12
        assert by_ids[1].cached_tokens >= first[1].prompt_tokens


async def test_the_exact_lane_goes_on_as_the_undisturbed_answer_would_have() -> None:
    """Cut anywhere, with other answers at work or not, in another process or not: the same ids to the last one."""
    def ids_of(events: list[Event]) -> list[int]:
        return [token for event in events if isinstance(event, Piece) for token in event.token_ids]

    question = "Tell me a story about rain and a fox."
    async with running_engine([models_folder()], limits=SMALL) as engine:
        whole = ids_of(await collect(engine, asked(question, lane="exact", max_tokens=50)))
        assert len(whole) == 50

    others = 0

    async def keep_asking(engine: LocalEngine, number: int) -> None:
        nonlocal others
        while True:
            await collect(engine, asked(f"Explain how bread is made, part {number}.", max_tokens=6))
            others += 1

    async with running_engine([models_folder()], limits=SMALL, threads=1) as engine, trio.open_nursery() as nursery:
        for number in range(2):
            nursery.start_soon(keep_asking, engine, number)
        for cut in (9, 40):
            rest = await collect(engine, asked(
                question, lane="exact", max_tokens=50 - cut, token_ids_so_far=tuple(whole[:cut])))
            assert whole[:cut] + ids_of(rest) == whole
        assert others > 1       # they were at work all the time
        nursery.cancel_scope.cancel()


async def test_a_stop_text_ends_the_answer_and_is_not_shown() -> None:
    async with running_engine([models_folder()], limits=SMALL) as engine:
        plain = text_of(await collect(engine, asked("Name three colours.", max_tokens=30)))
        middle = plain[len(plain) // 2:len(plain) // 2 + 4]
        events = await collect(engine, asked("Name three colours.", max_tokens=30, stop=(middle,)))
        assert text_of(events) == plain[:plain.index(middle)]
        assert isinstance(events[-1], Finished)
        assert events[-1].finish_reason == "stop"


async def test_under_a_grammar_the_answer_is_valid_also_when_drawn() -> None:
    async with running_engine([models_folder()], limits=SMALL) as engine:
        for temperature in (0.0, 1.0):
            events = await collect(
                engine, asked("A trip to Rome for 3 days.", grammar=OBJECT, temperature=temperature, max_tokens=60))
            assert set(json.loads(text_of(events))) == {"city", "days"}
            assert isinstance(events[-1], Finished)
            assert events[-1].finish_reason == "stop"


async def test_eight_answers_at_once_do_not_mix() -> None:
    async with running_engine([models_folder()], limits=SMALL) as engine:
        texts: dict[int, str] = {}

        async def ask(number: int) -> None:
            grammar = f'root ::= ("{chr(97 + number)}" [0-9]){{12}}'
            texts[number] = text_of(await collect(engine, asked(f"Say {number}.", grammar=grammar, max_tokens=60)))

        async with trio.open_nursery() as nursery:
            for number in range(8):
                nursery.start_soon(ask, number)
        for number in range(8):
            assert len(texts[number]) == 24
            assert set(texts[number][::2]) == {chr(97 + number)}


async def test_after_a_cancel_nothing_more_is_decoded(monkeypatch: pytest.MonkeyPatch) -> None:
    async with running_engine([models_folder()], limits=SMALL) as engine:
        await engine.warm()
        host = only_host(engine)
        seen: list[Any] = []
        received = host.received

        def note(payload: bytes) -> None:
            seen.append(decode_report(payload))
            received(payload)

        monkeypatch.setattr(host, "received", note)

        async def pong() -> Pong:
            child = host.supervisor.child
            assert child is not None
            count = sum(isinstance(report, Pong) for report in seen)
            await child.send(encode(Ping()))
            while True:
                pongs = [report for report in seen if isinstance(report, Pong)]
                if len(pongs) > count:
                    return pongs[-1]
                await trio.sleep(0.005)

        async with engine.stream(asked("Write a long story.", max_tokens=500)) as answer:
            async for event in answer:
                if isinstance(event, Piece):
                    break
        for _ in range(100):     # the cancel overtakes at most the step that was under way
            before = await pong()
            if before.running == 0:
                break
        at_cancel = len([report for report in seen if isinstance(report, Step)])
        await trio.sleep(0.3)
        after = await pong()
        assert (after.running, after.queued, after.decodes) == (0, 0, before.decodes)
        assert len([report for report in seen if isinstance(report, Step)]) == at_cancel
        assert after.decodes < 30
        assert not host.busy


async def test_a_full_queue_says_busy_and_the_others_are_served() -> None:
    one = HostLimits(context_tokens=512, slots=1, queue_limit=1)
    async with running_engine([models_folder()], limits=one) as engine:
        await engine.warm()
        ends: list[Any] = []

        async def ask(number: int) -> None:
            ends.append((await collect(engine, asked(f"Story {number}", max_tokens=30)))[-1])

        async with trio.open_nursery() as nursery:
            for number in range(6):
                nursery.start_soon(ask, number)
        codes = [end.code for end in ends if isinstance(end, Failed)]
        assert set(codes) == {"busy"}
        assert len(codes) >= 3
        assert sum(isinstance(end, Finished) for end in ends) >= 2


async def test_the_end_of_the_context_gives_length_and_too_long_a_prompt_is_refused() -> None:
    async with running_engine([models_folder()], limits=HostLimits(context_tokens=256, slots=1)) as engine:
        events = await collect(engine, GenerateRequest(
            request_id="r", prompt=TextPrompt("one two three four " * 55), max_tokens=1000, grammar='root ::= [a-z ]+'))
        finished = events[-1]
        assert isinstance(finished, Finished)
        # Either the context ended, or the model went in circles first; never an error.
        assert finished.finish_reason in {"length", "loop"}
        # a language that may end anywhere is written to the last place
        used = finished.usage.prompt_tokens + finished.usage.output_tokens
        assert used == 256 if finished.finish_reason == "length" else used <= 256
        events = await collect(engine, asked("x " * 400))
        assert isinstance(events[-1], Failed)
        assert events[-1].code == "prompt_too_long"
        events = await collect(engine, asked("Write about rain.", max_tokens=100, context_limit=50))
        assert isinstance(events[-1], Finished)
        assert events[-1].finish_reason == "length"
        assert events[-1].usage.prompt_tokens + events[-1].usage.output_tokens == 50


async def test_what_can_not_be_served_ends_in_a_code() -> None:
    wrong: list[tuple[dict[str, Any], str]] = [
        ({"lane": "exact", "temperature": 0.5}, "lane_unsupported"),
        ({"lane": "exact", "text_so_far": "text without ids"}, "lane_unsupported"),
        ({"grammar": "no grammar"}, "bad_grammar"),
        ({"grammar": OBJECT, "text_so_far": "no object"}, "bad_grammar"),
        ({"prompt": TokenPrompt((10**6,))}, "bad_prompt"),
        ({"prompt": ChatPrompt(())}, "bad_prompt"),
        ({"max_tokens": 0}, "bad_request"),
        ({"temperature": float("nan")}, "bad_request"),
        ({"stop": ("",)}, "bad_request"),
        ({"model": "unheard-of"}, "model_unknown"),
    ]
    async with running_engine([models_folder()], limits=SMALL) as engine:
        for change, code in wrong:
            failed = (await collect(engine, asked("Hi", **change)))[-1]
            assert isinstance(failed, Failed)
            assert failed.code == code
            assert failed.message
            assert failed.hint
        assert (await engine.health()).restarts == 0


async def test_the_loop_goes_on_while_a_long_prompt_is_read() -> None:
    async with running_engine([models_folder()], limits=SMALL) as engine:
        await engine.warm()
        ticks = 0
        done = trio.Event()

        async def tick() -> None:
            nonlocal ticks
            while not done.is_set():
                await trio.sleep(0.002)
                ticks += 1

        async with trio.open_nursery() as nursery:
            nursery.start_soon(tick)
            await collect(engine, asked("word " * 600, max_tokens=2))
            done.set()
        assert ticks > 50


async def test_health_tells_of_box_and_threads() -> None:
    async with running_engine([models_folder()], limits=SMALL, threads=1) as engine:
        assert (await engine.health()).state == "idle"
        await collect(engine, asked("Hi", max_tokens=2))
        health = await engine.health()
        assert health.state == "ready"
        assert health.threads == 1
        assert health.backend
        assert health.last_token_age_s is not None
        assert {"landlock", "seccomp", "network_namespace", "memory_limit"} <= set(health.box)
        if health.box["seccomp"] == HELD and health.box["landlock"] == HELD:
            assert "possible" not in health.probe.values()


async def test_without_a_model_the_answer_says_so(tmp_path: Path) -> None:
    async with running_engine([tmp_path, tmp_path / "absent"]) as engine:
        (event,) = await collect(engine, asked("Hi"))
        assert isinstance(event, Failed)
        assert event.code == "no_model"
        assert "kith models add" in event.hint
        assert (await engine.health()).state == "no_model"
        assert await engine.models() == []
        (event,) = await collect(engine, asked("Hi", model="anything"))
        assert isinstance(event, Failed)
        assert event.code == "no_model"


async def test_a_file_that_is_no_model_fails_with_its_reason(tmp_path: Path) -> None:
    (tmp_path / "broken.gguf").write_bytes(b"GGUF" + b"\1" * 4000)
    async with running_engine([tmp_path]) as engine:
        (event,) = await collect(engine, asked("Hi"))
        assert isinstance(event, Failed)
        assert event.code == "model_unusable"


async def test_a_file_that_was_exchanged_is_not_loaded(tmp_path: Path) -> None:
    path = tmp_path / "mine.gguf"
    path.write_bytes(b"another file")
    write_record(path, Record(name="mine", digest="0" * 64))
    async with running_engine([tmp_path]) as engine:
        (event,) = await collect(engine, asked("Hi", model="mine"))
        assert isinstance(event, Failed)
        assert event.code == "model_changed"
        assert engine.worker_pids == ()


async def test_open_answers_end_when_the_engine_stops() -> None:
    engine = LocalEngine([models_folder()], limits=SMALL)
    async with trio.open_nursery() as nursery:
        await nursery.start(engine.run)
        async with engine.stream(asked("A long story.", max_tokens=400)) as answer:
            async for event in answer:
                if isinstance(event, Piece):
                    nursery.cancel_scope.cancel()
                    break
    (event,) = await collect(engine, asked("Hi"))
    assert isinstance(event, Failed)
    assert event.code == "engine_stopped"
    assert engine.worker_pids == ()


async def test_another_model_takes_the_place_of_an_idle_one_but_not_of_a_busy_one(tmp_path: Path) -> None:
    twin = tmp_path / "twin.gguf"
    twin.write_bytes(model_path().read_bytes() + b"\0")     # another digest, the same weights
    async with running_engine([models_folder(), tmp_path], limits=SMALL) as engine:
        assert [model.name for model in await engine.models()] == [MODEL_NAME, "twin"]
        await collect(engine, asked("Hi", max_tokens=2))
        (first_pid,) = engine.worker_pids
        async with engine.stream(asked("A long story.", max_tokens=400)) as answer:
            async for event in answer:
                if isinstance(event, Piece):
                    (other,) = await collect(engine, asked("Hi", model="twin"))
                    assert isinstance(other, Failed)
                    assert other.code == "busy"
                    break
        events = await collect(engine, asked("Hi", model="twin", max_tokens=2))
        assert isinstance(events[-1], Finished)
        assert len(engine.worker_pids) == 1
        assert engine.worker_pids != (first_pid,)


async def test_tokens_are_counted_and_an_empty_prompt_is_refused() -> None:
    async with running_engine([models_folder()], limits=SMALL) as engine:
        plain = await engine.count_tokens(TextPrompt("hello world"))
        chat = await engine.count_tokens(ChatPrompt((Message("user", "hello world"),)))
        assert plain == 2
        assert chat > plain
        with pytest.raises(BadPrompt):
            await engine.count_tokens(TextPrompt(""))
