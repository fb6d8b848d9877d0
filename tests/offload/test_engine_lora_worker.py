"""LoRA adapters through a real worker and the embedded model, with adapters of random weights."""

from pathlib import Path
from typing import Any

import pytest
import trio
from embedded_model import MODEL_NAME, model_path, models_folder
from engine_asks import asked, collect, running_engine, text_of
from gguf_files import make_adapter

from offload.catalogue import Record, digest_of, read_record, write_record
from offload.errors import BadAdapter
from offload.local_engine import LocalEngine
from offload.model_host import HostLimits
from offload.ports import Event, Failed, Finished, GenerateRequest, Started

pytestmark = pytest.mark.model

LIMITS = HostLimits(context_tokens=2048, slots=3)
QUESTION = "Write one sentence about the sea."


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """Two adapters for the embedded model and one of the wrong shape, in a folder before that of the model."""
    base = read_record(model_path())
    assert base is not None
    folder = tmp_path_factory.mktemp("adapters")
    for name, seed, width in (("one", 1, 576), ("two", 2, 576), ("wide", 3, 640)):
        admit(make_adapter(folder / f"{name}.gguf", seed=seed, width=width), base.digest)
    return [folder, models_folder()]


def admit(adapter: Path, base: str) -> None:
    write_record(adapter, Record(name=adapter.stem, digest=digest_of(adapter), adapter="lora", base=base))


def question(**more: Any) -> GenerateRequest:
    return asked(QUESTION, **({"max_tokens": 8} | more))


def cached(events: list[Event]) -> int:
    (started,) = (event for event in events if isinstance(event, Started))
    return started.cached_tokens


async def failure(engine: LocalEngine, **more: Any) -> str:
    failed = (await collect(engine, question(**more)))[-1]
    assert isinstance(failed, Failed)
    return failed.code


async def test_an_adapter_changes_the_answer_and_leaves_no_trace(folders: list[Path]) -> None:
    async with running_engine(folders, limits=LIMITS) as engine:
        assert [info.name for info in await engine.models()] == [MODEL_NAME]
        adapters = await engine.adapters()
        assert [info.name for info in adapters] == ["one", "two", "wide"]

        before = await collect(engine, question())
        one = await collect(engine, question(adapter="one"))
        two = await collect(engine, question(adapter=adapters[1].digest, model=MODEL_NAME))
        after = await collect(engine, question())
        assert text_of(before) == text_of(after)
        assert len({text_of(before), text_of(one), text_of(two)}) == 3
        # the memory is kept apart: each first question was read whole, a second one is not
        assert [cached(events) for events in (before, one, two)] == [0, 0, 0]
        assert cached(after) > 0
        again = await collect(engine, question(adapter="one"))
        assert cached(again) > 0
        assert text_of(again) == text_of(one)

        # what does not fit or is not there is refused, and the worker goes on
        (pid,) = engine.worker_pids
        assert await failure(engine, adapter="wide") == "bad_adapter"
        assert await failure(engine, adapter="nobody") == BadAdapter.code
        assert text_of(await collect(engine, question())) == text_of(before)
        assert engine.worker_pids == (pid,)


async def test_askers_with_different_adapters_at_once_get_their_own_answers(folders: list[Path]) -> None:
    """In the exact lane, where an answer does not depend on who else is there."""
    async with running_engine(folders, limits=LIMITS) as engine:
        alone = {
            name: text_of(await collect(engine, question(adapter=name, lane="exact"))) for name in (None, "one", "two")}
        assert len(set(alone.values())) == 3
        found: dict[str | None, list[str]] = {}

        async def ask(name: str | None, lane: Any) -> None:
            events = await collect(engine, question(adapter=name, lane=lane, principal=f"p{name}"))
            assert isinstance(events[-1], Finished)
            if lane == "exact":
                found.setdefault(name, []).append(text_of(events))

        async with trio.open_nursery() as nursery:
            for name in (None, "one", "two"):
                for lane in ("exact", "normal", "exact"):
                    nursery.start_soon(ask, name, lane)
        assert found == {name: [text, text] for name, text in alone.items()}


@pytest.mark.soak
async def test_an_adapter_added_later_is_known_to_a_worker_that_was_there_before(folders: list[Path]) -> None:
    async with running_engine(folders, limits=LIMITS) as engine:
        before = text_of(await collect(engine, question()))
        (pid,) = engine.worker_pids
        (info, *_) = await engine.adapters()
        admit(make_adapter(folders[0] / "three.gguf", seed=9), info.base)
        engine.rescan()
        later = text_of(await collect(engine, question(adapter="three")))
        assert later != before
        assert engine.worker_pids != (pid,)
        assert text_of(await collect(engine, question())) == before


async def test_the_owners_default_adapter_is_for_the_owners_requests_only(folders: list[Path]) -> None:
    async with running_engine(folders, limits=LIMITS, default_model="one") as engine:
        base = (await engine.models())[0]
        assert base.name == MODEL_NAME
        assert [info.name for info in await engine.adapters() if info.default] == ["one"]
        mine = text_of(await collect(engine, question()))
        assert mine == text_of(await collect(engine, question(adapter="one", principal="p")))
        assert mine == text_of(await collect(engine, question(model=base.digest)))
        plain = text_of(await collect(engine, question(principal="p")))
        assert plain != mine
        engine.set_default(MODEL_NAME)
        assert text_of(await collect(engine, question())) == plain
