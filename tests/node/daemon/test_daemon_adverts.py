"""What peers are told of this node's speed and load: when it changes, at a bounded rate, kept over restarts."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import trio
from hypothesis import given
from hypothesis import strategies as st
from patience import until

from node.daemon.adverts import KEEP_EVERY_S, SPEEDS_KEY, Adverts, advert_of, load_of
from node.store import settings
from node.store.database import Database
from node.store.schema import KITH
from offload.ports import ChatPrompt, Finished, GenerateRequest, ModelInfo, Piece, Started, Usage
from offload.prediction import Speed
from offload.router import LocalView
from offload.workload import Workload
from protocol import canonical
from protocol.frames.link import Load, ModelAdvert

DIGEST = "ab" * 32
REQUEST = GenerateRequest(request_id="r", prompt=ChatPrompt(()), model=DIGEST, max_tokens=100)


class Bench:
    def __init__(self, database: Database) -> None:
        self.database = database
        self.workload = Workload(trio.current_time)
        self.adverts = Adverts(self.workload, database)
        self.told: list[tuple[float, Load]] = []
        self.adverts.tell = self._tell

    async def _tell(self, load: Load) -> None:
        self.told.append((trio.current_time(), load))

    def answer(self, *, prompt: int = 400, pieces: int = 20) -> None:
        """One whole answer at this moment, without any time passing."""
        one = self.workload.begin(REQUEST)
        self.workload.note(one, Started(prompt, 0, DIGEST))
        self.workload.note(one, Piece("x", tuple(range(pieces))))
        self.workload.note(one, Finished("stop", Usage(prompt, 0, pieces)))
        self.workload.end(one)


@pytest.fixture
async def bench(tmp_path: Path) -> AsyncIterator[Bench]:
    database = await Database.open(tmp_path / "kith.db", bytes(32), KITH)
    yield Bench(database)
    await database.close()


async def test_a_burst_of_changes_is_told_at_most_twice_a_second_and_its_end_at_last(bench: Bench) -> None:
    async with trio.open_nursery() as nursery:
        await nursery.start(bench.adverts.run)
        begun = trio.current_time()
        while trio.current_time() < begun + 1.6:
            held = [bench.workload.begin(REQUEST) for _ in range(3)]
            await trio.sleep(0.01)
            for one in held:
                bench.workload.end(one)
        await until(lambda: bool(bench.told) and bench.told[-1][1] == Load())
        nursery.cancel_scope.cancel()
    assert 2 <= len(bench.told) <= 6
    gaps = [later - earlier for (earlier, _), (later, _) in zip(bench.told, bench.told[1:], strict=False)]
    assert all(gap >= 0.49 for gap in gaps)
    assert bench.told[-1][1] == Load()


async def test_what_does_not_change_is_not_told_again(bench: Bench) -> None:
    async with trio.open_nursery() as nursery:
        await nursery.start(bench.adverts.run)
        one = bench.workload.begin(REQUEST)
        await until(lambda: len(bench.told) == 1)
        bench.workload.changed()
        await trio.sleep(0.6)
        assert [load.queued for _, load in bench.told] == [1]
        bench.workload.note(one, Started(5, 0, DIGEST))
        await until(lambda: len(bench.told) > 1)
        assert [(load.running, load.queued) for _, load in bench.told] == [(0, 1), (1, 0)]
        nursery.cancel_scope.cancel()


async def test_speeds_outlive_a_restart(bench: Bench) -> None:
    await bench.adverts.keep({DIGEST: Speed(0.001, 0.02, 3.0)})
    again = Bench(bench.database)
    await again.adverts.recall()
    assert again.adverts.speed_of(DIGEST) == Speed(0.001, 0.02, 3.0)
    view = again.adverts.measure(LocalView("n", "m", DIGEST, 2048))
    assert (view.speed, view.wait_s, view.battery) == (Speed(0.001, 0.02, 3.0), 0.0, None)
    again.adverts.battery = lambda: 0.4
    assert again.adverts.measure(view).battery == 0.4
    assert load_of(again.workload, saving=True).saving


@pytest.mark.parametrize("junk", ["", "[]", "{", '{"a": 1}', '{"a": ["x", 1, 2]}', '{"a": [1]}'])
async def test_speeds_that_cannot_be_read_are_measured_anew(bench: Bench, junk: str) -> None:
    await bench.database.write(settings.put, SPEEDS_KEY, junk)
    await bench.adverts.recall()
    assert bench.adverts.speed_of("a") in (Speed(), Speed(1.0))


async def test_keeping_happens_seldom(bench: Bench) -> None:
    kept = []

    async def keep(speeds: dict[str, Speed]) -> None:
        kept.append(trio.current_time())

    bench.adverts.keep = keep  # type: ignore[method-assign]
    async with trio.open_nursery() as nursery:
        await nursery.start(bench.adverts.run)
        bench.workload.recall({DIGEST: Speed(1, 1, 1)})
        for _ in range(3):
            bench.workload.changed()
            await trio.sleep(0.55)
        nursery.cancel_scope.cancel()
    assert kept == [] and KEEP_EVERY_S > 1


@given(
    st.floats(0, 1e9), st.floats(0, 1e6), st.floats(0, 1e9),
    st.text(max_size=40) | st.sampled_from(["Q4_0", "Q4_K_M", "unknown", "IQ2_XXS"]), st.integers(0, 2**20),
    st.booleans(),
)
def test_every_advert_fits_the_wire(reading: float, writing: float, loading: float, quantisation: str, room: int,
                                    loaded: bool) -> None:
    info = ModelInfo(
        name="m", digest=DIGEST, size_bytes=1, context_tokens=room, quantisation=quantisation, loaded=loaded)
    advert = advert_of(info, Speed(reading, writing, loading))
    assert canonical.decode(canonical.encode(advert), ModelAdvert) == advert


def test_the_advert_by_hand() -> None:
    info = ModelInfo(
        name="m", digest=DIGEST, size_bytes=1, context_tokens=2048, quantisation="Q4_0", loaded=True)
    assert advert_of(info, Speed(0.0012345, 0.0256, 3.456)) == ModelAdvert(
        "m", DIGEST, 2048, True, "Q4_0", 1200, 26000, 3500)
