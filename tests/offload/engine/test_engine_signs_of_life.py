"""What a reader at a distance sees of a prompt that is being read: it moves at least once in three seconds, always.

A guest's chunk of prompt takes a second at most, from its first on, however slow the machine; how much is read is told.
"""

import itertools
from typing import Any

import pytest
from timed_scheduler import TimedContext, answer, finish, scheduler, tokens, varied

from offload.engine.fair import Pace
from offload.engine.scheduler import Scheduler
from offload.ports import Finished, Piece, Queued, Reading, Started

STALL_S = 3.0


class SlowContext(TimedContext):
    """About 65 prompt tokens a second: the least chunk of 64 is a second."""

    token_s = 0.015


def timed_events(machine: Scheduler, context: TimedContext, name: str) -> list[tuple[float, Any]]:
    found: list[tuple[float, Any]] = []
    while machine.has_work:
        found += [(context.now_s, event) for who, event in machine.step() if who == name]
    return found


@pytest.mark.parametrize("make", [TimedContext, SlowContext])
def test_a_guests_long_prompt_moves_all_the_time(make: type[TimedContext]) -> None:
    context = make(context_tokens=20_000)
    machine = scheduler(context)
    machine.submit(answer("long", tokens(9, 3000), varied(5), who="peer-1"))
    told = timed_events(machine, context, "long")
    times = [0.0, *(at_s for at_s, event in told if isinstance(event, Started | Reading | Piece | Finished))]
    assert max(later - earlier for earlier, later in itertools.pairwise(times)) < 1.5
    done = [event.prompt_done for _, event in told if isinstance(event, Reading)]
    assert done == sorted(set(done))
    assert len(done) > 3
    assert {event.prompt_total for _, event in told if isinstance(event, Reading)} == {3000}


def test_a_first_chunk_that_is_guessed_too_large_would_be_a_stall(monkeypatch: pytest.MonkeyPatch) -> None:
    """The negative control: 512 tokens at once on the slow machine."""
    monkeypatch.setattr(Pace, "tokens", lambda self, company, beside: 512)
    context = SlowContext(context_tokens=20_000)
    machine = scheduler(context)
    machine.submit(answer("long", tokens(9, 3000), varied(5), who="peer-1"))
    machine.step()
    assert context.now_s > STALL_S


def test_the_exact_lane_tells_how_much_it_has_read_again() -> None:
    context = SlowContext(context_tokens=20_000)
    machine = scheduler(context, slots=1, exact=True, kept=0)
    machine.submit(answer("exact", tokens(3, 400), varied(5), who="peer-1"))
    told = timed_events(machine, context, "exact")
    assert len([event for _, event in told if isinstance(event, Reading)]) >= 3


def test_a_short_prompt_is_not_talked_about() -> None:
    context = TimedContext(context_tokens=20_000)
    machine = scheduler(context)
    machine.submit(answer("short", tokens(9, 40), varied(5)))
    assert [type(event) for _, event in timed_events(machine, context, "short")][:2] == [Started, Piece]


def test_a_guest_that_had_to_leave_is_told_that_it_waits() -> None:
    context = TimedContext(context_tokens=20_000)
    machine = scheduler(context, slots=1)
    machine.submit(answer("guest", tokens(5, 50), varied(60), who="peer-1"))
    for _ in range(10):
        machine.step()
    machine.submit(answer("own", tokens(1, 50), varied(5)))
    events = machine.step()
    assert ("guest", Queued(0, None)) in [(who, event) for who, event in events]
    ends = [who for who, event in [*events, *finish(machine)] if isinstance(event, Finished)]
    assert ends == ["own", "guest"]
