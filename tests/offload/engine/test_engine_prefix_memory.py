"""What is remembered for whom, and what it costs, on a context without a model."""

from typing import Any, cast

import pytest
from fake_context import FakeContext, FakeVocabulary, ScriptedSampler

from offload.engine.answer import Answer
from offload.engine.context import Context
from offload.engine.memory import Memory
from offload.engine.scheduler import Events, Scheduler
from offload.engine.slot import Slot
from offload.ports import Finished, GenerateRequest, Started, TextPrompt

SYSTEM = list(range(100, 140))


def scheduler(context: FakeContext, **more: Any) -> Scheduler:
    return Scheduler(cast("Context", context), **({
        "slots": 4, "queue_limit": 16, "now_s": lambda: 0.0, "kept": 8} | more))


def answer(name: str, prompt: list[int], writes: list[int], *, who: str = "owner", most: int = 20) -> Answer:
    request = GenerateRequest(request_id=name, principal=who, prompt=TextPrompt("x"), max_tokens=most)
    return Answer(request, FakeVocabulary(), ScriptedSampler(writes), prompt=prompt, replayed=(), context_tokens=1000)


def ask(machine: Scheduler, *answers: Answer) -> Events:
    events: Events = []
    for one in answers:
        events += machine.submit(one)
    for _ in range(500):
        if not machine.has_work:
            break
        events += machine.step()
    return events


def cached(events: Events) -> dict[str, int]:
    return {who: event.cached_tokens for who, event in events if isinstance(event, Started)}


def test_more_is_remembered_than_there_are_answers_at_once() -> None:
    context = FakeContext()
    machine = scheduler(context, slots=1)
    for number in range(6):
        ask(machine, answer(f"r{number}", [200 + number] * 30, [2]))
    found = [cached(ask(machine, answer("again", [200 + number] * 31, [2])))["again"] for number in range(6)]
    assert found == [30] * 6


def test_a_shared_system_prompt_is_read_once_and_costs_its_cells_once() -> None:
    context = FakeContext(context_tokens=200)
    machine = scheduler(context)
    ask(machine, answer("first", [*SYSTEM, 2], [2]))
    # Four at once: 4 x (41 + 20) cells would not fit into 200, shared they do.
    events = ask(machine, *(answer(f"r{number}", [*SYSTEM, 3 + number], [4]) for number in range(4)))
    assert cached(events) == {f"r{number}": 40 for number in range(4)}
    assert max(len(batch) for batch in context.batches) == 4
    assert machine._memory.used_cells() == 40 + 4 * 2     # the first one went on in the place of "first"


def test_another_principals_count_is_zero_whatever_was_read_before() -> None:
    """The same prompt, alone and at the same time, before and after: only its own principal's counts."""
    context = FakeContext()
    machine = scheduler(context)
    ask(machine, answer("o1", [*SYSTEM, 2], [2]))
    assert cached(ask(machine, answer("p1", [*SYSTEM, 2], [2], who="peer-1"))) == {"p1": 0}
    events = ask(machine, *(answer(who, [*SYSTEM, 2], [2], who=who) for who in ("peer-2", "peer-1", "owner", "peer-3")))
    assert cached(events) == {"peer-2": 0, "peer-1": 40, "owner": 40, "peer-3": 0}


def test_without_the_principal_in_the_key_the_other_ones_count_would_tell() -> None:
    """The negative control: everyone in one space."""
    class Loose(Answer):
        @property
        def space(self) -> tuple[str, str]:
            return "everyone", ""

    machine = scheduler(FakeContext())
    for name in ("owner", "peer-1"):
        request = GenerateRequest(request_id=name, principal=name, prompt=TextPrompt("x"), max_tokens=5)
        events = ask(machine, Loose(request, FakeVocabulary(), ScriptedSampler([2]), prompt=[*SYSTEM, 2], replayed=(),
                                    context_tokens=1000))
    assert cached(events) == {"peer-1": 40}


def test_the_longest_unused_goes_first_and_guests_before_the_owner() -> None:
    context = FakeContext(context_tokens=300)
    machine = scheduler(context)
    for name, who in (("o", "owner"), ("p1", "peer-1"), ("p2", "peer-2")):
        ask(machine, answer(name, [ord(name[-1])] * 80, [2], who=who))
    ask(machine, answer("p1", [ord("1")] * 81, [2], who="peer-1"))
    ask(machine, answer("new", [7] * 80, [2], who="peer-3"))
    left = {slot.space[0] for slot in machine._memory.slots if slot.tokens}
    assert left == {"owner", "peer-1", "peer-3"}


def test_a_full_context_is_cut_back_to_what_the_next_prompt_begins_with() -> None:
    """S16: there is no room for a copy beside it, and most of it has to go; what fits still needs no reading."""
    context = FakeContext(context_tokens=100)
    machine = scheduler(context)
    ask(machine, answer("long", [50] * 30, [2 + number % 20 for number in range(69)], most=69))
    assert cached(ask(machine, answer("next", [*[50] * 30, 60], [2]))) == {"next": 30}


def test_after_a_length_stop_the_last_token_is_read_again() -> None:
    """It was shown and never decoded, so it is not in the memory."""
    context = FakeContext()
    machine = scheduler(context)
    events = ask(machine, answer("a", [50, 51], [2, 3, 4, 5], most=3))
    assert [event.finish_reason for _, event in events if isinstance(event, Finished)] == ["length"]
    assert cached(ask(machine, answer("b", [50, 51, 2, 3, 4, 60], [2]))) == {"b": 4}
    assert context.memory[0][:6] == [50, 51, 2, 3, 4, 60]


def test_a_cut_that_is_refused_starts_cold() -> None:
    context = FakeContext()
    machine = scheduler(context)
    ask(machine, answer("a", [*SYSTEM, 2, 3], [2]))
    context.can_cut = False
    assert cached(ask(machine, answer("b", [*SYSTEM, 2, 4], [2]))) == {"b": 0}
    assert context.memory[0] == [*SYSTEM, 2, 4, 2]


def test_a_forgotten_principal_is_gone_at_once_and_after_its_running_answer() -> None:
    context = FakeContext()
    machine = scheduler(context)
    ask(machine, answer("a", [*SYSTEM, 2], [2]), answer("b", [*SYSTEM, 3], [2], who="peer-1"))
    machine.submit(answer("c", [*SYSTEM, 4], [2] * 5))
    machine.step()
    machine.forget("owner")
    assert [slot.space[0] for slot in machine._memory.slots if slot.tokens and slot.answer is None] == ["peer-1"]
    ask(machine)
    assert [slot.space[0] for slot in machine._memory.slots if slot.tokens] == ["peer-1"]
    assert cached(ask(machine, answer("d", [*SYSTEM, 2], [2]))) == {"d": 0}


@pytest.mark.parametrize("lengths", [(30, 30), (30, 0), (10, 25)])
def test_shared_cells_are_counted_once(lengths: tuple[int, int]) -> None:
    context = FakeContext(memory={0: list(range(30))})
    memory = Memory(cast("Context", context), sequences=3, can_cut=True)
    first, second, third = memory.slots
    first.tokens = list(range(30))
    memory._begin_with(second, first, 20)
    second.tokens += [7] * 10
    memory._begin_with(third, second, 25)
    lengths_of: dict[Slot, int] = dict(zip((first, second), lengths, strict=True))
    # By hand: first has 30 of its own; second 20 of first's and 10; third 20 of first's and 5 of second's.
    expected = {(30, 30): 40, (30, 0): 35, (10, 25): 25}
    assert memory.used_cells(lengths_of) == expected[lengths]
