"""How cores are split between workers, by hand and by property; and that a running engine does split them."""

import sys
from pathlib import Path

import pytest
import trio
from embedded_model import model_path, models_folder
from engine_asks import asked, collect, running_engine
from hypothesis import given
from hypothesis import strategies as st

from offload import model_host
from offload.child.process import start_child
from offload.model_host import HostLimits
from offload.ports import Finished, Piece
from offload.thread_budget import Demand, split_threads

FAKE_WORKER = Path(__file__).resolve().parents[1] / "support" / "fake_worker.py"


@pytest.mark.parametrize(("total", "demands", "expected"), [
    (8, {"a": "owner"}, {"a": 8}),
    (8, {"a": "owner", "b": "idle"}, {"a": 8, "b": 8}),
    (8, {"a": "owner", "b": "guests"}, {"a": 7, "b": 1}),
    (8, {"a": "guests", "b": "guests"}, {"a": 4, "b": 4}),
    (7, {"a": "owner", "b": "owner"}, {"a": 4, "b": 3}),
    (2, {"a": "owner", "b": "guests", "c": "guests"}, {"a": 1, "b": 1, "c": 1}),
    (1, {"a": "owner", "b": "owner"}, {"a": 1, "b": 1}),
    (4, {}, {}),
])
def test_the_split_by_hand(total: int, demands: dict[str, Demand], expected: dict[str, int]) -> None:
    assert split_threads(total, demands) == expected


@given(
    st.integers(1, 64),
    st.dictionaries(st.sampled_from("abcdef"), st.sampled_from(["owner", "guests", "idle"]), max_size=6),
)
def test_nobody_gets_nothing_and_no_more_is_used_than_there_is(total: int, demands: dict[str, Demand]) -> None:
    shares = split_threads(total, demands)
    at_work = [shares[name] for name, demand in demands.items() if demand != "idle"]
    assert all(share >= 1 for share in shares.values())
    assert sum(at_work) <= max(total, len(at_work))
    owners = [shares[name] for name, demand in demands.items() if demand == "owner"]
    guests = [shares[name] for name, demand in demands.items() if demand == "guests"]
    assert not owners or not guests or min(owners) >= max(guests)


async def test_guests_give_their_cores_to_the_owners_model_and_get_them_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
) -> None:
    for name in ("one", "two"):
        (tmp_path / f"{name}.gguf").write_bytes(b"GGUF" + name.encode())
    command = (sys.executable, str(FAKE_WORKER))
    monkeypatch.setattr(model_host, "start_child", lambda _module: start_child("", command=command))
    async with running_engine([tmp_path], threads=8, most_loaded=2) as engine:
        for name in ("one", "two"):
            await engine.warm(name)
        hosts = {host.model.record.name: host for host, _ in engine._hosts.values()}

        async def share(expected: tuple[int, int]) -> None:
            with trio.fail_after(60):
                while (hosts["one"].threads, hosts["two"].threads) != expected:
                    await trio.sleep(0.01)

        async with engine.stream(asked("idle", model="one", principal="peer-1")) as guest:
            await anext(guest)
            await share((8, 8))
            async with engine.stream(asked("idle", model="two")) as owner:
                await anext(owner)
                await share((1, 7))
            await share((8, 7))     # nobody waits for the other one, so it has what it has


@pytest.mark.model
async def test_two_models_answer_at_once_each_in_a_worker_of_its_own(tmp_path: Path) -> None:
    (tmp_path / "twin.gguf").write_bytes(model_path().read_bytes() + b"\0")
    limits = HostLimits(context_tokens=512, slots=2)
    async with running_engine([models_folder(), tmp_path], limits=limits, threads=2, most_loaded=2) as engine:
        async with engine.stream(asked("A long story.", max_tokens=200)) as first:
            async for event in first:
                if isinstance(event, Piece):
                    events = await collect(engine, asked("Hi", model="twin", principal="peer-1", max_tokens=3))
                    assert isinstance(events[-1], Finished)
                    break
            assert len(engine.worker_pids) == 2
        assert (await engine.health()).restarts == 0
