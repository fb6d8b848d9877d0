"""Two models, one of them in trouble: the other one answers, and the engine's health tells of both."""

import sys
from functools import partial
from pathlib import Path

import pytest
import trio
from engine_asks import asked, collect, running_engine, text_of

from offload import model_host, pulse
from offload.child.policy import RestartPolicy
from offload.child.process import start_child
from offload.ports import Started

QUICK = RestartPolicy(first_delay_s=0.01, longest_delay_s=0.02, crash_limit=4, quarantine_s=1000.0)
FAKE = Path(__file__).resolve().parents[1] / "support" / "fake_worker.py"


@pytest.fixture
def folder(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """Two model files whose workers are fake ones."""
    command = (sys.executable, "-P", str(FAKE))
    monkeypatch.setattr(model_host, "start_child", partial(start_child, command=command))
    (tmp_path / "first.gguf").write_bytes(b"no model")
    (tmp_path / "second.gguf").write_bytes(b"no model either")
    return tmp_path


@pytest.mark.parametrize(("bad", "good"), [("second", "first"), ("first", "second")])
async def test_a_model_that_is_left_alone_is_told_and_the_other_one_answers(folder: Path, bad: str, good: str) -> None:
    async with running_engine([folder], policy=QUICK, most_loaded=2, default_model=good) as engine:
        async with engine.stream(asked("idle", model=good)) as answer:      # under way all the time
            async for event in answer:
                if isinstance(event, Started):
                    break
            for _ in range(3):
                await collect(engine, asked("die", model=bad))
            assert text_of(await collect(engine, asked("say:hello", model=good))) == "hello"
            assert len(engine.worker_pids) == 1
        health = await engine.health()
        assert (health.state, health.restarts) == ("ready", 0)
        (trouble,) = health.troubles
        assert trouble.startswith(f"{bad} quarantined; it ended")
        engine.release()
        assert text_of(await collect(engine, asked("say:again", model=bad))) == "again"
        assert (await engine.health()).troubles == ()


async def test_the_default_model_stands_for_the_engine_where_nobody_asks(folder: Path) -> None:
    for default in ("first", "second"):
        async with running_engine([folder], policy=QUICK, most_loaded=2, default_model=default) as engine:
            for name in ("first", "second"):
                await collect(engine, asked("say:hello", model=name))
            model = (await engine.health()).model
            assert model is not None
            assert model.name == default


async def test_a_decode_of_another_model_that_does_not_end_is_told(
    folder: Path, monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(model_host, "_PING_EVERY_S", 0.05)
    monkeypatch.setattr(pulse, "_NOTABLE_STANDSTILL_S", 0.3)
    async with running_engine([folder], policy=QUICK, most_loaded=2, default_model="first") as engine:
        await collect(engine, asked("say:hello"))
        assert (await engine.health()).troubles == ()
        async with (
            engine.stream(asked("idle")) as one, engine.stream(asked("idle")) as two,
            engine.stream(asked("idle", model="second")) as stuck,
        ):
            for answer in (one, two, stuck):
                async for event in answer:
                    if isinstance(event, Started):
                        break
            with trio.fail_after(60):
                while not (health := await engine.health()).troubles:
                    await trio.sleep(0.02)
            assert health.troubles[0].startswith("second ready; No decode has finished for ")
            assert (health.model and health.model.name, health.running) == ("first", 2)
