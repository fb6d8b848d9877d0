"""What was read of a prompt outlives the worker and the daemon, with the real worker in its box."""

import os
import signal
from pathlib import Path
from typing import Any

import pytest
import trio
from embedded_model import model_path, models_folder
from engine_asks import asked, collect, running_engine, text_of
from tiny_hybrid import make_hybrid

from offload.child.box import HELD
from offload.child.policy import RestartPolicy
from offload.kv_vault import KvVault
from offload.model_host import HostLimits
from offload.ports import ChatPrompt, Event, Finished, Message, Started

pytestmark = pytest.mark.model

SMALL = HostLimits(context_tokens=1024, slots=2, queue_limit=8)
SYSTEM = Message("system", "You answer shortly and in plain words. " * 12)
QUICK = RestartPolicy(first_delay_s=0.01)


def vault(folder: Path) -> KvVault:
    return KvVault(folder, bytes(32), os.urandom)


def first(**more: Any) -> Any:
    return asked("", prompt=ChatPrompt((SYSTEM, Message("user", "Name a colour."))), max_tokens=6, **more)


def second(answer: str, **more: Any) -> Any:
    return asked("", prompt=ChatPrompt((
        SYSTEM, Message("user", "Name a colour."), Message("assistant", answer), Message("user", "And another one?"))),
        max_tokens=6, **more)


def counts(events: list[Event]) -> tuple[int, int]:
    (started,) = [event for event in events if isinstance(event, Started)]
    return started.prompt_tokens, started.cached_tokens


def kv_files(folder: Path) -> list[Path]:
    return list(folder.glob("*/*.kv"))


async def written(folder: Path, count: int = 1) -> None:
    """Until the idle worker has written that many files."""
    with trio.fail_after(20):
        while len(kv_files(folder)) < count:
            await trio.sleep(0.02)


async def test_the_next_turn_after_a_restart_of_all_reads_only_what_is_new(tmp_path: Path) -> None:
    async with running_engine([models_folder()], limits=SMALL, vault=vault(tmp_path)) as engine:
        events = await collect(engine, first())
        text = text_of(events)
        prompt, cached = counts(events)
        assert (cached, prompt > 100) == (0, True)
    # It was stopped within the second in which an idle worker waits: written while it was ended.
    assert len(kv_files(tmp_path)) == 1
    async with running_engine([models_folder()], limits=SMALL, vault=vault(tmp_path)) as engine:
        events = await collect(engine, second(text))
        assert counts(events)[1] >= prompt
        warm = text_of(events)
    async with running_engine([models_folder()], limits=SMALL) as engine:
        events = await collect(engine, second(text))
        assert counts(events)[1] == 0
        assert text_of(events)[:3] == warm[:3]


async def test_a_killed_worker_finds_its_files_again(tmp_path: Path) -> None:
    async with running_engine([models_folder()], limits=SMALL, vault=vault(tmp_path), policy=QUICK) as engine:
        text = text_of(await collect(engine, first()))
        await written(tmp_path)
        (pid,) = engine.worker_pids
        os.kill(pid, signal.SIGKILL)
        while pid in engine.worker_pids:
            await trio.sleep(0.01)
        prompt, cached = counts(await collect(engine, second(text)))
        assert prompt - cached < 40


async def test_nobody_elses_prompt_is_found_in_memory_or_on_disk(tmp_path: Path) -> None:
    """The same words, the same system prompt: what one has read is never counted for another one."""
    async with running_engine([models_folder()], limits=SMALL, vault=vault(tmp_path)) as engine:
        for who in ("owner", "peer-1", "peer-2"):
            assert counts(await collect(engine, first(principal=who)))[1] == 0
        assert counts(await collect(engine, first(principal="owner")))[1] > 100
    async with running_engine([models_folder()], limits=SMALL, vault=vault(tmp_path)) as engine:
        assert counts(await collect(engine, first(principal="peer-3")))[1] == 0
        for who in ("peer-2", "owner"):
            assert counts(await collect(engine, first(principal=who)))[1] > 100


async def test_what_was_forgotten_is_read_anew_and_its_files_are_gone(tmp_path: Path) -> None:
    async with running_engine([models_folder()], limits=SMALL, vault=vault(tmp_path)) as engine:
        for who in ("owner", "peer-1"):
            await collect(engine, first(principal=who))
        await written(tmp_path, 2)
        await engine.forget("peer-1")
        assert len(kv_files(tmp_path)) == 1
        assert counts(await collect(engine, first(principal="peer-1")))[1] == 0
        assert counts(await collect(engine, first(principal="owner")))[1] > 100


async def test_the_box_holds_with_its_one_writable_folder(tmp_path: Path) -> None:
    async with running_engine([models_folder()], limits=SMALL, vault=vault(tmp_path)) as engine:
        await collect(engine, first())
        await written(tmp_path)
        health = await engine.health()
        if health.box["seccomp"] == HELD and health.box["landlock"] == HELD:
            assert "possible" not in health.probe.values()
        assert os.listdir(tmp_path / "secrets")


async def test_a_damaged_file_is_dropped_and_the_answer_comes(tmp_path: Path) -> None:
    async with running_engine([models_folder()], limits=SMALL, vault=vault(tmp_path)) as engine:
        text = text_of(await collect(engine, first()))
    (path,) = kv_files(tmp_path)
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(data)
    async with running_engine([models_folder()], limits=SMALL, vault=vault(tmp_path)) as engine:
        events = await collect(engine, second(text))
        assert counts(events)[1] == 0
        assert isinstance(events[-1], Finished)
        assert not path.exists()


async def test_a_hybrid_models_turns_outlive_a_restart_too(tmp_path: Path) -> None:
    models = tmp_path / "models"
    models.mkdir()
    make_hybrid(model_path(), models / "tiny.gguf")
    kv = tmp_path / "kv"
    async with running_engine([models], limits=SMALL, vault=vault(kv)) as engine:
        events = await collect(engine, first())
        prompt, _ = counts(events)
        text = text_of(events)
    async with running_engine([models], limits=SMALL, vault=vault(kv)) as engine:
        _, cached = counts(await collect(engine, second(text)))
        # Back to where the answer began, before the template's empty thought.
        assert prompt - 16 <= cached < prompt
