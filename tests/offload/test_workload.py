"""What the engine is at and how fast it is, from the events of its answers, worked by hand."""

from collections.abc import AsyncIterator

import pytest

from offload.ports import ChatPrompt, Event, Finished, GenerateRequest, Message, Piece, Queued, Started, Usage
from offload.prediction import Speed
from offload.workload import Ahead, Workload

DIGEST = "ab" * 32


class Clock:
    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


class Answer:
    """An answer whose events a test lets pass one by one."""

    def __init__(self, load: Workload, clock: Clock, *, chars: int = 300, max_tokens: int = 64) -> None:
        self._load, self._clock = load, clock
        self._answer = load.begin(GenerateRequest(
            request_id="r", prompt=ChatPrompt((Message("user", "x" * chars),)), max_tokens=max_tokens, model=DIGEST))

    def at(self, now: float, event: Event) -> None:
        self._clock.now = now
        self._load.note(self._answer, event)

    def leave(self) -> None:
        self._load.end(self._answer)


def piece(count: int = 1) -> Piece:
    return Piece("x", tuple(range(count)))


@pytest.fixture
def clock() -> Clock:
    return Clock()


def play(load: Workload, clock: Clock, *, prompt: int = 500, cached: int = 0, begun: float = 100.0) -> None:
    """One answer alone: 2 s to load, 1 s to read, then 50 tokens/s."""
    clock.now = begun
    answer = Answer(load, clock)
    answer.at(begun + 2, Started(prompt, cached, DIGEST))
    answer.at(begun + 3, piece())
    answer.at(begun + 5, piece(100))
    answer.at(begun + 5, Finished("stop", Usage(prompt, cached, 101)))
    answer.leave()


def test_speeds_of_an_answer_that_was_alone(clock: Clock) -> None:
    load = Workload(clock)
    assert load.speed_of(DIGEST) == Speed()
    first = Answer(load, clock)
    first.at(102.0, Started(500, 100, DIGEST))
    first.at(103.0, piece())
    first.at(105.0, piece(100))
    first.at(105.0, Finished("stop", Usage(500, 100, 101)))
    first.leave()
    found = load.speed_of(DIGEST)
    assert (found.prompt_token_s, found.output_token_s, found.load_s) == pytest.approx((1 / 400, 2 / 100, 2.0))
    assert load.ahead() == Ahead(0, 0, 0.0)


def test_a_queue_is_no_loading_and_neither_is_a_quick_start(clock: Clock) -> None:
    load = Workload(clock)
    waiting = Answer(load, clock)
    waiting.at(100.0, Queued(1))
    waiting.at(150.0, Started(10, 0, DIGEST))
    waiting.leave()
    quick = Answer(load, clock)
    quick.at(150.2, Started(10, 0, DIGEST))
    quick.leave()
    assert load.speed_of(DIGEST) == Speed()


async def test_events_pass_unchanged_and_an_answer_that_is_left_counts_no_more(clock: Clock) -> None:
    load = Workload(clock)
    events = [Started(10, 0, DIGEST), piece()]

    async def source() -> AsyncIterator[Event]:
        for event in events:
            yield event

    request = GenerateRequest(request_id="r", prompt=ChatPrompt(()), model=DIGEST)
    with load.watch(request, source()) as watched:
        assert load.ahead().queued == 1
        assert [event async for event in watched] == events
        assert load.ahead().running == 1
    assert load.ahead() == Ahead(0, 0, 0.0)


def test_new_measurements_move_old_ones_a_little(clock: Clock) -> None:
    load = Workload(clock, {DIGEST: Speed(0.01, 0.1, 4.0)})
    play(load, clock)
    found = load.speed_of(DIGEST)
    assert found.prompt_token_s == pytest.approx(0.6 * 0.002 + 0.4 * 0.01)
    assert found.output_token_s == pytest.approx(0.6 * 0.02 + 0.4 * 0.1)
    assert found.load_s == pytest.approx(0.6 * 2.0 + 0.4 * 4.0)
    slow = Workload(clock, {DIGEST: Speed(0.001, 0.01, 1.0)})
    play(slow, clock)
    assert slow.speed_of(DIGEST).prompt_token_s == pytest.approx(0.2 * 0.002 + 0.8 * 0.001)
    load.recall({DIGEST: Speed(9, 9, 9), "other": Speed(1, 1, 1)})
    assert load.speed_of(DIGEST) == found and load.speed_of("other") == Speed(1, 1, 1)


def test_answers_that_share_the_engine_measure_nothing(clock: Clock) -> None:
    load = Workload(clock)
    one, other = Answer(load, clock), Answer(load, clock)
    one.at(100.0, Started(500, 0, DIGEST))
    other.at(100.0, Started(500, 0, DIGEST))
    for answer in (one, other):
        answer.at(110.0, piece())
        answer.at(120.0, piece(100))
        answer.at(120.0, Finished("stop", Usage(500, 0, 101)))
    assert load.speed_of(DIGEST) == Speed()


def test_the_work_ahead_is_what_is_left_to_read_and_to_write(clock: Clock) -> None:
    load = Workload(clock, {DIGEST: Speed(0.01, 0.1, 1.0)})
    told: list[Ahead] = []
    load.changed = lambda: told.append(load.ahead())

    def ahead() -> tuple[int, int, float]:
        now = load.ahead()
        return now.running, now.queued, now.ahead_s

    one = Answer(load, clock, max_tokens=1000)
    one.at(100.0, Queued(0))
    assert ahead() == (0, 1, pytest.approx(100 * 0.01 + 256 * 0.1))  # 300 characters, about 100 tokens
    one.at(100.0, Started(150, 50, DIGEST))
    assert ahead() == (1, 0, pytest.approx(100 * 0.01 + 25.6))
    one.at(101.0, piece(56))
    assert ahead() == (1, 0, pytest.approx(200 * 0.1))
    other = Answer(load, clock, max_tokens=10)
    other.at(101.0, Started(100, 0, DIGEST))
    assert ahead() == (2, 0, pytest.approx(20.0 + 1.0 + 1.0))
    one.at(102.0, piece(900))  # longer than expected: a little is always left, and never more than may come
    assert ahead() == (2, 0, pytest.approx(1.6 + 2.0))
    one.leave()
    other.leave()
    assert load.ahead() == Ahead(0, 0, 0.0) == told[-1]
