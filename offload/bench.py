"""How fast a model answers on this machine, measured at the engine port: what an owner asks before choosing a model.

Prompts are made of plain words, each different from its first word on, so that no cached prompt helps. Medians of
several rounds. Must not know which engine it measures, processes or the node.
"""

import statistics
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field

import msgspec
import trio

from offload.errors import BadRequest, EngineError, ModelUnknown, NoModel
from offload.ports import Engine, Failed, Finished, GenerateRequest, ModelInfo, Piece, TextPrompt, Usage

__all__ = ["BenchPlan", "BenchReport", "BenchRow", "BenchRun", "run_bench"]

# Common English words of one token in most vocabularies; which ones is of no importance.
_WORDS = (
    "time", "year", "people", "way", "day", "man", "thing", "woman", "life", "child", "world", "school", "state",
    "family", "student", "group", "country", "problem", "hand", "part", "place", "case", "week", "company", "system",
    "program", "question", "work", "number", "night", "point", "home", "water", "room", "mother", "area", "money",
    "story", "fact", "month", "lot", "right", "study", "book", "eye", "job", "word", "business", "issue", "side",
    "kind", "head", "house", "service", "friend", "father", "power",
)
_ROOM_TOKENS = 8
_STREAMS_LIMIT = 32
_DEADLINE_S = 900.0


class BenchPlan(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What to measure. long: also one prompt that fills the model's context."""

    model: str | None = None
    streams: tuple[int, ...] = (1, 4, 8)
    prompt_tokens: int = 128
    output_tokens: int = 32
    rounds: int = 3
    long: bool = False


class BenchRow(msgspec.Struct, frozen=True, kw_only=True):
    """One number of answers at once; medians over the rounds.

    prompt_tokens_per_s: all prompts, until the last of them is read. output_tokens_per_s: all tokens after each
    answer's first, from the earliest first token to the last end. first_token_s: from asking to the first token, median
    and longest over the answers. prompt_tokens and output_tokens: of one answer, as counted by the engine.
    """

    streams: int
    prompt_tokens: int
    output_tokens: int
    prompt_tokens_per_s: float
    output_tokens_per_s: float
    first_token_s: float
    slowest_first_token_s: float
    cached_tokens: int = 0


class BenchReport(msgspec.Struct, frozen=True, kw_only=True):
    """The whole result. load_s: None when the model was loaded before; memory_bytes: None when nobody can say."""

    model: str
    digest: str
    quantisation: str
    size_bytes: int
    context_tokens: int
    threads: int
    backend: str
    load_s: float | None
    memory_bytes: int | None
    rows: list[BenchRow]
    long_row: BenchRow | None = None


Tell = Callable[[BenchRow], Awaitable[None]]


@dataclass(slots=True)
class BenchRun:
    """One answer's marks on the clock, in seconds."""

    asked_s: float
    first_s: float = 0.0
    end_s: float = 0.0
    usage: Usage = field(default_factory=lambda: Usage(0, 0, 0))


async def run_bench(
    engine: Engine, plan: BenchPlan, *, tell: Tell, memory_bytes: Callable[[], int | None] = lambda: None,
) -> BenchReport:
    """Measure one model; tell() hears each row. memory_bytes: of the processes that hold models, now.

    Raises EngineError when the model can't answer, BadRequest for a plan outside its limits.
    """
    check_plan(plan)
    info = await _info(engine, plan.model)
    load_s = await _load(engine, info)
    info = await _info(engine, info.digest)     # a loaded model knows its context
    words = await _words_for(engine, info, plan.prompt_tokens)
    rows = []
    for streams in plan.streams:
        firsts = [f"{streams} {number}" for number in range(plan.rounds)]
        rounds = [await _round(engine, info, plan, streams, words, first=first) for first in firsts]
        rows.append(row_of(rounds))
        await tell(rows[-1])
    held_bytes = memory_bytes()
    long_row = await _long(engine, info, plan) if plan.long else None
    health = await engine.health()
    return BenchReport(
        model=info.name, digest=info.digest, quantisation=info.quantisation, size_bytes=info.size_bytes,
        context_tokens=info.context_tokens, threads=health.threads, backend=health.backend, load_s=load_s,
        memory_bytes=held_bytes, rows=rows, long_row=long_row)


def check_plan(plan: BenchPlan) -> None:
    """Raises BadRequest, naming the first value outside its limits."""
    for wrong, what in (
        (not 1 <= len(plan.streams) <= 8, "how many rows"),
        (any(not 1 <= one <= _STREAMS_LIMIT for one in plan.streams), f"streams is not within 1 to {_STREAMS_LIMIT}"),
        (not 16 <= plan.prompt_tokens <= 32_768, "prompt tokens is not within 16 to 32768"),
        (not 2 <= plan.output_tokens <= 4096, "output tokens is not within 2 to 4096"),
        (not 1 <= plan.rounds <= 20, "rounds is not within 1 to 20"),
    ):
        if wrong:
            raise BadRequest(f"This can't be measured: {what}.")


def row_of(rounds: Sequence[Sequence[BenchRun]]) -> BenchRow:
    """The medians over rounds of answers that ran at once."""
    every = [run for runs in rounds for run in runs]
    first_s = [run.first_s - run.asked_s for run in every]
    return BenchRow(
        streams=len(rounds[0]),
        prompt_tokens=round(statistics.median(run.usage.prompt_tokens for run in every)),
        output_tokens=round(statistics.median(run.usage.output_tokens for run in every)),
        cached_tokens=max(run.usage.cached_tokens for run in every),
        prompt_tokens_per_s=statistics.median(map(_prompt_rate, rounds)),
        output_tokens_per_s=statistics.median(map(_output_rate, rounds)),
        first_token_s=statistics.median(first_s), slowest_first_token_s=max(first_s))


def _prompt_rate(runs: Sequence[BenchRun]) -> float:
    read = sum(run.usage.prompt_tokens - run.usage.cached_tokens for run in runs)
    return _rate(read, max(run.first_s for run in runs) - min(run.asked_s for run in runs))


def _output_rate(runs: Sequence[BenchRun]) -> float:
    written = sum(max(0, run.usage.output_tokens - 1) for run in runs)
    return _rate(written, max(run.end_s for run in runs) - min(run.first_s for run in runs))


def _rate(count: int, span_s: float) -> float:
    return count / span_s if span_s > 0 else 0.0


async def _info(engine: Engine, wanted: str | None) -> ModelInfo:
    for info in await engine.models():
        if wanted is None or wanted in (info.name, info.digest):
            return info
    raise ModelUnknown(f"There is no model called {wanted} on this device.") if wanted else NoModel()


async def _load(engine: Engine, info: ModelInfo) -> float | None:
    """Seconds that loading took: the first short answer less a second one. None when it was loaded before."""
    first = await _answer(engine, info, "1 load", 1)
    if info.loaded:
        return None
    second = await _answer(engine, info, "2 load", 1)
    return max(0.0, (first.end_s - first.asked_s) - (second.end_s - second.asked_s))


async def _words_for(engine: Engine, info: ModelInfo, tokens: int) -> int:
    """How many words make a prompt of about so many tokens; one word each where nobody can count."""
    try:
        counted = await engine.count_tokens(TextPrompt(_text("0", 200)), model=info.digest)
    except EngineError:
        return tokens
    return max(1, round(tokens * 200 / max(1, counted)))


async def _round(
    engine: Engine, info: ModelInfo, plan: BenchPlan, streams: int, words: int, *, first: str,
) -> list[BenchRun]:
    runs: list[BenchRun] = []
    failures: list[EngineError] = []

    async def one(number: int) -> None:
        try:
            runs.append(await _answer(engine, info, _text(f"{first} {number}", words), plan.output_tokens))
        except EngineError as error:
            failures.append(error)

    async with trio.open_nursery() as nursery:
        for number in range(streams):
            nursery.start_soon(one, number)
    if failures:
        raise failures[0]
    return runs


async def _long(engine: Engine, info: ModelInfo, plan: BenchPlan) -> BenchRow:
    """One prompt as long as the context lets it be."""
    room = info.context_tokens - plan.output_tokens - _ROOM_TOKENS
    words = await _words_for(engine, info, max(16, round(room * 0.95)))
    return row_of([[await _answer(engine, info, _text("long", words), plan.output_tokens)]])


async def _answer(engine: Engine, info: ModelInfo, text: str, most_tokens: int) -> BenchRun:
    """Raises EngineError when it fails."""
    request = GenerateRequest(
        request_id=f"bench {text[:20]}", prompt=TextPrompt(text), model=info.digest, max_tokens=most_tokens)
    run = BenchRun(trio.current_time())
    with trio.move_on_after(_DEADLINE_S):
        async with engine.stream(request) as events:
            async for event in events:
                match event:
                    case Piece() if not run.first_s:
                        run.first_s = trio.current_time()
                    case Finished(usage=usage):
                        run.end_s = trio.current_time()
                        run.first_s = run.first_s or run.end_s
                        run.usage = usage
                        return run
                    case Failed(code=code, message=message):
                        raise EngineError(f"{message} ({code})")
    raise EngineError(f"The model did not answer within {_DEADLINE_S:g} seconds.")


def _text(first: str, words: int) -> str:
    """Words that differ from their beginning on for each `first`."""
    start = sum(first.encode())
    return f"{first}: " + " ".join(_WORDS[(start + number * 7) % len(_WORDS)] for number in range(words))
