"""LoRA adapters: answers with different ones never share a decode or a memory, and take turns."""

import itertools
from collections import Counter
from typing import Any, cast

import pytest
from fake_context import FakeContext, FakeVocabulary, ScriptedSampler
from hypothesis import given
from hypothesis import strategies as st

from offload.engine.answer import Answer
from offload.engine.context import Context
from offload.engine.fair import Turns
from offload.engine.scheduler import Scheduler
from offload.engine.writing import PlainWriter
from offload.ports import Finished, GenerateRequest, Started, TextPrompt


class Watching(FakeContext):
    """Notes which adapter each decode ran with, and what was in it."""

    def __init__(self, **more: Any) -> None:
        super().__init__(**more)
        self.adapter = ""
        self.ran: list[tuple[str, list[tuple[int, int]]]] = []

    def use(self, name: str) -> None:
        self.adapter = name

    def decode(self) -> int:
        result = super().decode()
        self.ran.append((self.adapter, self.batches[-1]))
        return result


def scheduler(context: Watching, **more: Any) -> Scheduler:
    return Scheduler(
        cast("Context", context), slots=6, queue_limit=20, now_s=lambda: 0.0, kept=6, use_adapter=context.use, **more)


def answer(name: str, adapter: str, *, who: str = "owner", writes: int = 12, prompt: int = 5) -> Answer:
    request = GenerateRequest(
        request_id=name, principal=who, prompt=TextPrompt("x"), max_tokens=60, adapter=adapter or None)
    return Answer(
        request, FakeVocabulary(), PlainWriter(ScriptedSampler([2 + n * n % 97 for n in range(writes)])),
        prompt=[7 + n for n in range(prompt)], replayed=(), context_tokens=1000)


def finish(machine: Scheduler) -> list[Any]:
    events: list[Any] = []
    for _ in range(500):
        if not machine.has_work:
            return events
        events += machine.step()
    raise AssertionError("it never ends")


ASKED = st.tuples(st.sampled_from(["", "a", "b"]), st.sampled_from(["owner", "p", "q"]))


@given(st.lists(ASKED, min_size=1, max_size=6))
def test_no_decode_mixes_adapters_and_every_answer_is_whole(asked: list[tuple[str, str]]) -> None:
    context = Watching()
    machine = scheduler(context)
    of_slot: dict[int, str] = {}
    for number, (adapter, who) in enumerate(asked):
        machine.submit(answer(f"r{number}", adapter, who=who))
    events: list[Any] = []
    for _ in range(300):
        if not machine.has_work:
            break
        ran = len(context.ran)
        events += machine.step()
        of_slot |= {slot.sequence: one.adapter for slot, one in machine._busy()}
        for adapter, batch in context.ran[ran:]:
            assert {of_slot.get(sequence, adapter) for sequence, _ in batch} == {adapter}
    ends = {name: event for name, event in events if isinstance(event, Finished)}
    assert {name: event.usage.output_tokens for name, event in ends.items()} == {
        f"r{number}": 12 for number in range(len(asked))}


def test_what_was_read_with_one_adapter_is_never_used_with_another() -> None:
    context = Watching()
    machine = scheduler(context)
    cached = []
    for adapter in ("", "a", "b", "a", ""):
        machine.submit(answer("r", adapter, prompt=40))
        (started,) = (event for _, event in finish(machine) if isinstance(event, Started))
        cached.append(started.cached_tokens)
    assert cached == [0, 0, 0, 39, 39]


def test_without_adapters_everything_shares_each_decode() -> None:
    """Negative control for the cost: the same answers without adapters need a third of the decodes."""
    decodes = []
    for adapters in (("", "", ""), ("", "a", "b")):
        context = Watching()
        machine = scheduler(context)
        for number, adapter in enumerate(adapters):
            machine.submit(answer(f"r{number}", adapter))
        finish(machine)
        decodes.append(context.decodes)
    assert decodes == [13, 39]


def test_the_owner_gets_more_turns_and_guests_are_not_starved() -> None:
    turns = Turns()
    taken = Counter(turns.next({"": {"owner"}, "a": {"p"}}) for _ in range(40))
    assert taken == {"": 30, "a": 10}
    assert {turns.next({"a": {"p"}, "b": {"q", "r"}}) for _ in range(3)} == {"a", "b"}
    assert turns.next({"b": {"q"}}) == "b"
    assert turns.next({}) is None


@pytest.mark.parametrize("exact", [False, True])
def test_the_adapter_is_switched_off_again(exact: bool) -> None:
    context = Watching()
    machine = scheduler(context, exact=exact)
    for adapter in ("a", "", "a", ""):
        machine.submit(answer("r", adapter, writes=2))
        finish(machine)
    names = [adapter for adapter, _ in context.ran]
    assert names[0] == "a"
    assert names[-1] == ""
    assert sum(one != two for one, two in itertools.pairwise(names)) == 3
