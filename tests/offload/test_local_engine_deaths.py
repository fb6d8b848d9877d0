"""The worker process may die at any time: answers go on or end with a reason, and the engine serves again."""

import os
import signal
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import trio
from embedded_model import models_folder
from engine_asks import asked, collect, running_engine, text_of

from offload import model_host, pulse
from offload.child.policy import RestartPolicy
from offload.child.process import Death, start_child
from offload.kernels import KernelVerdict
from offload.local_engine import LocalEngine
from offload.model_host import HostLimits
from offload.ports import Event, Failed, Finished, Piece, Queued, Resumed, Started

SMALL = HostLimits(context_tokens=1024, slots=4)
QUICK = RestartPolicy(first_delay_s=0.01, longest_delay_s=0.02, crash_limit=4, quarantine_s=1000.0)
FAKE = Path(__file__).resolve().parents[1] / "support" / "fake_worker.py"


def killer(engine: LocalEngine, number: int, at_piece: int) -> Callable[[Event], None]:
    """Kills the worker at the n-th piece, once."""
    pieces = 0

    def look(event: Event) -> None:
        nonlocal pieces
        if isinstance(event, Piece):
            pieces += 1
            if pieces == at_piece:
                os.kill(engine.worker_pids[0], number)

    return look


@pytest.mark.model
@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGILL, signal.SIGSEGV])
async def test_killed_in_mid_answer_the_same_answer_goes_on(number: signal.Signals) -> None:
    async with running_engine([models_folder()], limits=SMALL) as engine:
        events = await collect(engine, asked("Tell a story about rain.", max_tokens=24), killer(engine, number, 10))
        finished = events[-1]
        assert isinstance(finished, Finished)
        assert finished.usage.output_tokens == 24
        (resumed,) = (event for event in events if isinstance(event, Resumed))
        assert number.name in resumed.reason
        assert sum(isinstance(event, Started | Queued) for event in events) == 2
        # Neither a token lost nor one shown twice: what the reader saw is exactly what the ids say.
        at = events.index(resumed)
        before = [event for event in events[:at] if isinstance(event, Piece)]
        after = [event for event in events[at:] if isinstance(event, Piece)]
        assert len(before) >= 10
        assert sum(len(piece.token_ids) for piece in before + after) == 24
        health = await engine.health()
        assert (health.state, health.restarts) == ("ready", 1)


@pytest.mark.model
async def test_killed_in_the_exact_lane_the_answer_is_the_undisturbed_one() -> None:
    async with running_engine([models_folder()], limits=SMALL) as engine:
        request = asked("Tell a story about rain.", max_tokens=40, lane="exact")
        undisturbed = text_of(await collect(engine, request))
        events = await collect(engine, request, killer(engine, signal.SIGKILL, 15))
        assert any(isinstance(event, Resumed) for event in events)
        assert text_of(events) == undisturbed


@pytest.mark.model
async def test_all_answers_under_way_go_on() -> None:
    async with running_engine([models_folder()], limits=SMALL) as engine:
        results: dict[int, list[Event]] = {}

        async def ask(number: int) -> None:
            grammar = f'root ::= ("{chr(97 + number)}" [0-9]){{15}}'
            look = killer(engine, signal.SIGKILL, 5) if number == 0 else (lambda _event: None)
            results[number] = await collect(engine, asked("Go.", grammar=grammar, max_tokens=80), look)

        await engine.warm()
        async with trio.open_nursery() as nursery:
            for number in range(4):
                nursery.start_soon(ask, number)
        for number in range(4):
            text = text_of(results[number])
            assert len(text) == 30, text
            assert set(text[::2]) == {chr(97 + number)}
        assert any(isinstance(event, Resumed) for event in results[0])


@pytest.mark.model
async def test_killed_twice_in_one_answer_it_ends_with_a_reason_and_the_next_one_works() -> None:
    async with running_engine([models_folder()], limits=SMALL) as engine:
        first, second = killer(engine, signal.SIGKILL, 4), killer(engine, signal.SIGSEGV, 8)

        def both(event: Event) -> None:
            first(event)
            second(event)

        events = await collect(engine, asked("Tell a story about rain.", max_tokens=30), both)
        assert isinstance(events[-1], Failed)
        assert events[-1].code == "worker_died"
        assert "SIGSEGV" in events[-1].message
        events = await collect(engine, asked("Hi", max_tokens=2))
        assert isinstance(events[-1], Finished)


@pytest.fixture
def fake(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """A folder with a model file whose worker is the fake one."""
    command = (sys.executable, "-P", str(FAKE))
    monkeypatch.setattr(model_host, "start_child", partial(start_child, command=command))
    (tmp_path / "fake.Q4_0.gguf").write_bytes(b"no model")
    return tmp_path


async def test_a_request_that_always_kills_does_not_take_the_others_along(fake: Path) -> None:
    async with running_engine([fake], policy=RestartPolicy(first_delay_s=0.01, crash_limit=50)) as engine:
        results: list[Any] = []

        async def ask(script: str) -> None:
            results.append((await collect(engine, asked(script)))[-1])

        async with trio.open_nursery() as nursery:
            nursery.start_soon(ask, "die")
            nursery.start_soon(ask, "die")
        assert [end.code for end in results] == ["worker_died", "worker_died"]
        assert text_of(await collect(engine, asked("say:still here"))) == "still here"


async def test_after_too_many_deaths_it_is_left_alone_and_says_so(fake: Path) -> None:
    async with running_engine([fake], policy=QUICK) as engine:
        codes = [(await collect(engine, asked("die")))[-1].code for _ in range(3)]  # type: ignore[union-attr]
        assert codes[0] == "worker_died"
        assert codes[-1] == "worker_quarantined"
        health = await engine.health()
        assert health.state == "quarantined"
        assert health.detail
        (event,) = await collect(engine, asked("say:hello"))
        assert isinstance(event, Failed)
        assert event.code == "worker_quarantined"
        assert engine.worker_pids == ()
        engine.release()
        assert text_of(await collect(engine, asked("say:hello"))) == "hello"


@pytest.mark.parametrize("script", ["flood", "swell"])
async def test_a_worker_that_sends_more_than_was_asked_for_is_ended(fake: Path, script: str) -> None:
    async with running_engine([fake], policy=QUICK) as engine:
        async with engine.stream(asked(script, max_tokens=4)) as answer:
            events = [event async for event in answer]
        assert isinstance(events[-1], Failed)
        assert len(events) <= 4 + 64 + 2
        assert events[-1].code == "worker_died"
        while not (await engine.health()).restarts:
            await trio.sleep(0.01)


async def test_a_workers_words_can_not_move_a_terminals_cursor(fake: Path) -> None:
    async with running_engine([fake], policy=QUICK) as engine:
        (*_, failed) = await collect(engine, asked("insult"))
        assert isinstance(failed, Failed)
        assert "\x1b" not in failed.code + failed.message + failed.hint
        assert len(failed.message) == 200 - 1


@pytest.mark.parametrize("script", ["silent", "idle"])
async def test_a_worker_that_does_not_move_is_ended(
    fake: Path, script: str, monkeypatch: pytest.MonkeyPatch,
) -> None:
    """One shows no life at all, the other one answers pings and decodes nothing."""
    monkeypatch.setattr(model_host, "_PING_EVERY_S", 0.05)
    monkeypatch.setattr(pulse, "_PONG_DEADLINE_S", 1.0)     # more than a busy machine is late
    monkeypatch.setattr(pulse, "_STALL_S", 1.0)
    async with running_engine([fake], policy=RestartPolicy(first_delay_s=0.01, crash_limit=50)) as engine:
        events = await collect(engine, asked(script))
        assert isinstance(events[-1], Failed)
        assert events[-1].code == "worker_died"
        assert text_of(await collect(engine, asked("say:again"))) == "again"


async def test_fast_kernels_that_kill_are_left_out_from_then_on(fake: Path) -> None:
    (fake / "fake.Q4_0.gguf").rename(fake / "deadly.gguf")
    cache = fake / "cache"
    async with running_engine([fake], cache_dir=cache, policy=QUICK) as engine:
        assert text_of(await collect(engine, asked("say:hello"))) == "hello"
        health = await engine.health()
        assert (health.backend, health.restarts) == ("plain", 1)
    async with running_engine([fake], cache_dir=cache, policy=QUICK) as engine:
        assert text_of(await collect(engine, asked("say:hello"))) == "hello"
        assert (await engine.health()).restarts == 0        # remembered


async def test_leaving_before_the_worker_is_ready_is_harmless(fake: Path) -> None:
    async with running_engine([fake]) as engine:
        async with engine.stream(asked("say:hello")) as answer:
            with trio.move_on_after(0.001):
                await anext(answer)
        async with engine.stream(asked("say:hello")):
            pass
        assert text_of(await collect(engine, asked("say:hello"))) == "hello"


async def test_an_idle_worker_is_stopped_and_comes_back(fake: Path) -> None:
    async with running_engine([fake], limits=HostLimits(idle_stop_s=0.05)) as engine:
        await collect(engine, asked("say:hello"))
        while engine.worker_pids:
            await trio.sleep(0.01)
        assert (await engine.health()).state == "idle"
        assert text_of(await collect(engine, asked("say:again"))) == "again"
        assert (await engine.health()).restarts == 0


def test_only_a_fault_of_the_cpu_is_blamed_on_the_kernels(tmp_path: Path) -> None:
    path = tmp_path / "cache" / "kernels.json"
    verdict = KernelVerdict(path)
    assert verdict.fast
    assert not verdict.blame(Death(-signal.SIGKILL, wanted=False))
    assert not verdict.blame(Death(1, wanted=False))
    assert verdict.fast
    assert not path.exists()
    assert verdict.blame(Death(-signal.SIGILL, wanted=False))
    assert not verdict.fast
    assert not KernelVerdict(path).fast
    path.write_text("{broken")
    assert KernelVerdict(path).fast


def test_a_verdict_that_cannot_be_written_down_holds_all_the_same(tmp_path: Path) -> None:
    """Its supervisor asks for it at a death: an error there would end the node."""
    in_the_way = tmp_path / "cache"
    in_the_way.write_text("a file where the folder should be")
    verdict = KernelVerdict(in_the_way / "kernels.json")
    assert verdict.blame(Death(-signal.SIGILL, wanted=False))
    assert not verdict.fast


async def test_a_decode_that_does_not_end_is_seen_in_health(fake: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It answers pings and has an answer at work, so only the count of decodes tells."""
    monkeypatch.setattr(model_host, "_PING_EVERY_S", 0.05)
    monkeypatch.setattr(pulse, "_NOTABLE_STANDSTILL_S", 0.3)
    async with running_engine([fake]) as engine:
        assert text_of(await collect(engine, asked("say:hello"))) == "hello"
        assert (await engine.health()).detail == ""
        async with engine.stream(asked("idle")) as answer:
            async for event in answer:
                if isinstance(event, Started):
                    break
            with trio.fail_after(60):
                while "No decode has finished" not in (await engine.health()).detail:
                    await trio.sleep(0.02)
            assert (await engine.health()).state == "ready"
        assert (await engine.health()).detail == ""     # nobody waits for it any more


async def test_a_load_longer_than_the_idle_time_is_waited_for_and_the_model_goes_when_it_is_idle(fake: Path) -> None:
    (fake / "fake.Q4_0.gguf").rename(fake / "slow.gguf")
    async with running_engine([fake], limits=HostLimits(idle_stop_s=0.3)) as engine:
        assert text_of(await collect(engine, asked("say:hello", principal="peer-1"))) == "hello"
        while engine.worker_pids:
            await trio.sleep(0.01)
        health = await engine.health()
        assert (health.state, health.restarts) == ("idle", 0)
        # Loading for nobody's answer, as a warm-up does, is not idle either.
        await engine.warm()
        assert engine.worker_pids


async def test_a_load_that_never_ends_is_given_up_by_its_size(fake: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(model_host, "_START_DEADLINE_S", 0.2)
    (fake / "fake.Q4_0.gguf").rename(fake / "slow.gguf")
    async with running_engine([fake], policy=QUICK) as engine:
        (event,) = await collect(engine, asked("say:hello"))
        assert isinstance(event, Failed)
    monkeypatch.setattr(model_host, "_SLOWEST_LOAD_BYTES_PER_S", (fake / "slow.gguf").stat().st_size / 5)
    async with running_engine([fake], policy=QUICK) as engine:
        assert text_of(await collect(engine, asked("say:hello"))) == "hello"
