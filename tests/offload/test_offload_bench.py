"""The measurement: rates of hand-worked timings, whole runs over an engine whose times are known, and refusals."""

from contextlib import aclosing, asynccontextmanager

import pytest
import trio

from offload.bench import BenchPlan, BenchRun, check_plan, row_of, run_bench
from offload.errors import BadPrompt, BadRequest, EngineError, ModelUnknown
from offload.ports import EngineHealth, Failed, Finished, ModelInfo, Piece, Started, Usage

READ_S, WRITE_S, LOAD_S = 0.01, 0.05, 3.0


class Timed:
    """Reads 100 tokens and writes 20 a second for each answer, whatever else runs; loads for 3 s; a word is a token."""

    def __init__(self, *, fail_at=None, counts=True):
        self.loaded, self.asked, self.fail_at, self.counts = False, [], fail_at, counts

    async def models(self):
        return [ModelInfo(name="m", digest="d", size_bytes=7, context_tokens=300, loaded=self.loaded)]

    @asynccontextmanager
    async def stream(self, request):
        async with aclosing(self._events(request)) as events:
            yield events

    async def _events(self, request):
        self.asked.append(request)
        number = len(self.asked)
        words = len(request.prompt.text.split())
        if not self.loaded:
            await trio.sleep(LOAD_S)
            self.loaded = True
        await trio.sleep(words * READ_S)
        if self.fail_at == number:
            yield Failed("worker_died", "It died.")
            return
        yield Started(words, 0, "d")
        for at in range(request.max_tokens):
            if at:
                await trio.sleep(WRITE_S)
            yield Piece("x", (1,))
        yield Finished("length", Usage(words, 0, request.max_tokens), "d")

    async def count_tokens(self, prompt, *, model=None):
        if not self.counts:
            raise BadPrompt
        return len(prompt.text.split())

    async def health(self):
        return EngineHealth(state="ready", threads=2, backend="AVX2")


async def measure(engine, **plan):
    rows = []

    async def tell(row):
        rows.append(row)

    report = await run_bench(engine, BenchPlan(**plan), tell=tell, memory_bytes=lambda: 42)
    assert rows == report.rows
    return report


def test_the_rates_of_answers_timed_by_hand():
    """Two answers: asked at 10 and 10, first tokens at 12 and 14, ends at 18 and 16; 30 tokens read and 9 written each.

    Read: 60 tokens in 4 s. Written after the first: 8 + 8 tokens from 12 to 18.
    """
    runs = [BenchRun(10, 12, 18, Usage(30, 0, 9)), BenchRun(10, 14, 16, Usage(30, 0, 9))]
    row = row_of([runs])
    assert (row.streams, row.prompt_tokens, row.output_tokens) == (2, 30, 9)
    assert row.prompt_tokens_per_s == pytest.approx(15.0)
    assert row.output_tokens_per_s == pytest.approx(16 / 6)
    assert (row.first_token_s, row.slowest_first_token_s) == (3, 4)


def test_cached_tokens_were_not_read():
    assert row_of([[BenchRun(0, 2, 4, Usage(30, 20, 5))]]).prompt_tokens_per_s == pytest.approx(5.0)


def test_the_median_of_rounds_counts():
    rounds = [[BenchRun(0, 1, 2, Usage(10 * number, 0, 2))] for number in (1, 9, 2)]
    assert row_of(rounds).prompt_tokens_per_s == 20


async def test_a_whole_run_finds_the_speeds_of_its_engine(autojump_clock):
    engine = Timed()
    report = await measure(engine, streams=(1, 4), prompt_tokens=100, output_tokens=21, rounds=2)
    assert report.load_s == pytest.approx(LOAD_S) and report.memory_bytes == 42
    assert (report.model, report.context_tokens, report.threads, report.backend) == ("m", 300, 2, "AVX2")
    one, four = report.rows
    assert one.prompt_tokens_per_s == pytest.approx(100, rel=0.01)
    assert one.output_tokens_per_s == pytest.approx(20, rel=0.01)
    assert one.first_token_s == pytest.approx(1.0, rel=0.06)
    assert four.prompt_tokens_per_s == pytest.approx(400, rel=0.01)
    assert four.output_tokens_per_s == pytest.approx(80, rel=0.01)
    assert len(engine.asked) == 2 + 2 * (1 + 4) and report.long_row is None


async def test_no_two_prompts_begin_alike(autojump_clock):
    engine = Timed()
    await measure(engine, streams=(1, 4, 8), prompt_tokens=32, output_tokens=2, rounds=3)
    starts = [request.prompt.text.split(":")[0] for request in engine.asked]
    assert len(set(starts)) == len(starts) == 2 + 3 * 13


async def test_a_loaded_model_has_no_load_time(autojump_clock):
    engine = Timed(counts=False)
    engine.loaded = True
    assert (await measure(engine, streams=(1,), rounds=1)).load_s is None


async def test_the_whole_context_is_filled_once(autojump_clock):
    report = await measure(Timed(), streams=(1,), output_tokens=20, rounds=1, long=True)
    assert 250 <= report.long_row.prompt_tokens <= 300 - 20


async def test_an_engine_that_fails_ends_the_measurement(autojump_clock):
    with pytest.raises(EngineError, match="worker_died"):
        await measure(Timed(fail_at=4), streams=(4,), rounds=1)
    with pytest.raises(ModelUnknown, match="no model called x") as unknown:
        await measure(Timed(), model="x")
    assert "kith models" in unknown.value.hint


@pytest.mark.parametrize("plan", [
    {"streams": ()}, {"streams": (0,)}, {"streams": (33,)}, {"prompt_tokens": 1}, {"output_tokens": 1},
    {"output_tokens": 10**6}, {"rounds": 0}, {"rounds": 21}, {"streams": (1,) * 9},
])
def test_plans_have_limits(plan):
    with pytest.raises(BadRequest):
        check_plan(BenchPlan(**plan))
    check_plan(BenchPlan())
