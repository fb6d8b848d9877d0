"""A memory that can't be cut: what is kept and shared, by counts and, on a real hybrid model, by equal logits."""

from collections.abc import Callable, Iterator
from typing import Any, cast

import numpy as np
import pytest
from embedded_model import model_path
from fake_context import FakeContext, FakeVocabulary, ScriptedSampler
from tiny_hybrid import make_hybrid

from offload.engine.answer import Answer
from offload.engine.chat import PromptReader
from offload.engine.context import Context
from offload.engine.library import Model
from offload.engine.memory import Memory
from offload.engine.preparation import prepare_answer
from offload.engine.scheduler import Events, Scheduler
from offload.ports import ChatPrompt, Finished, GenerateRequest, Message, Started, TextPrompt

SYSTEM = list(range(100, 140))


def scheduler(context: FakeContext) -> Scheduler:
    return Scheduler(
        cast("Context", context), slots=4, queue_limit=16, now_s=lambda: 0.0, kept=4, can_cut=False)


def answer(name: str, prompt: list[int], writes: list[int], boundaries: tuple[int, ...] = ()) -> Answer:
    request = GenerateRequest(request_id=name, prompt=TextPrompt("x"), max_tokens=20)
    return Answer(
        request, FakeVocabulary(), ScriptedSampler(writes), prompt=prompt, replayed=(), context_tokens=1000,
        boundaries=boundaries)


def ask(machine: Any, *answers: Answer) -> Events:
    events: Events = []
    for one in answers:
        events += machine.submit(one)
    while machine.has_work:
        events += machine.step()
    return events


def cached(events: Events) -> dict[str, int]:
    return {who: event.cached_tokens for who, event in events if isinstance(event, Started)}


def test_the_next_turn_goes_back_to_the_boundary_before_the_answer() -> None:
    context = FakeContext(can_cut=False)
    machine = scheduler(context)
    ask(machine, answer("a", [*SYSTEM, 50, 51, 60, 61], [2, 3], boundaries=(40, 42)))
    assert context.batches[:3] == [[(0, 40)], [(0, 2)], [(0, 2)]]       # the prompt is read up to each boundary
    # The template shows the old answer in other tokens (61 is gone): all up to 42 is kept.
    events = ask(machine, answer("b", [*SYSTEM, 50, 51, 60, 2, 3, 52, 60, 61], [4], boundaries=(40, 45, 46)))
    assert cached(events) == {"b": 42}
    assert context.memory[0] == [*SYSTEM, 50, 51, 60, 2, 3, 52, 60, 61, 4]


def test_the_system_prompt_is_shared_from_its_boundary_with_idle_and_busy_ones() -> None:
    context = FakeContext(can_cut=False)
    machine = scheduler(context)
    ask(machine, answer("a", [*SYSTEM, *range(50, 95)], [2], boundaries=(40,)))
    machine.submit(answer("b", [*SYSTEM, *range(150, 190)], [2] * 9, boundaries=(40,)))
    machine.step()
    machine.submit(answer("c", [*SYSTEM, 70, 71], [2]))
    events = ask(machine)
    assert cached(events) == {"c": 40}
    assert [source for source, _, _ in context.shared] != []


def test_without_a_boundary_it_is_used_whole_or_not_at_all() -> None:
    context = FakeContext(can_cut=False)
    machine = scheduler(context)
    ask(machine, answer("a", [*SYSTEM, 50, 51], [2]))
    assert cached(ask(machine, answer("b", [*SYSTEM, 50, 52], [2]))) == {"b": 0}
    assert cached(ask(machine, answer("c", [*SYSTEM, 50, 51, 2, 7], [2]))) == {"c": 43}


def test_a_checkpoint_that_is_refused_starts_cold(monkeypatch: pytest.MonkeyPatch) -> None:
    context = FakeContext(can_cut=False)
    machine = scheduler(context)
    ask(machine, answer("a", [*SYSTEM, 50, 51], [2], boundaries=(40,)))
    monkeypatch.setattr(context, "restore", lambda _sequence, _state: False)
    assert cached(ask(machine, answer("b", [*SYSTEM, 52], [2]))) == {"b": 0}
    assert context.memory[0] == [*SYSTEM, 52, 2]


def test_checkpoints_have_a_budget(monkeypatch: pytest.MonkeyPatch) -> None:
    context = FakeContext(can_cut=False)
    machine = scheduler(context)
    one = len(context.save(0)) if context.memory.get(0) else 200
    monkeypatch.setattr("offload.engine.memory._CHECKPOINT_BUDGET_BYTES", 2 * one)
    for number in range(3):
        ask(machine, answer(f"r{number}", [*range(300 + 40 * number, 340 + 40 * number), 50], [2], boundaries=(40,)))
    assert [len(slot.checkpoints) for slot in machine._memory.slots if slot.tokens] in ([0, 0, 1], [0, 1, 1])
    prompt = list(range(600, 700))
    ask(machine, answer("many", prompt, [2], boundaries=(10, 20, 30, 40, 50, 60)))
    assert all(len(slot.checkpoints) <= 4 for slot in machine._memory.slots)


# -- on a real hybrid model


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Model]:
    path = make_hybrid(model_path(), tmp_path_factory.mktemp("hybrid") / "tiny.gguf")
    opened = Model(str(path), extra_buffers=True)
    yield opened
    opened.close()


@pytest.fixture
def fresh(model: Model) -> Iterator[Callable[[], Context]]:
    opened: list[Context] = []

    def make() -> Context:
        opened.append(Context(model, context_tokens=1024, sequences=8, threads=1))
        return opened[-1]

    yield make
    for context in opened:
        context.close()


def feed(context: Context, sequence: int, position: int, tokens: list[int]) -> Any:
    context.begin_batch()
    row = context.add(sequence, position, tokens, want_last=True)
    assert context.decode() == 0
    return context.logits(row).copy()


TOKENS = [(number * 37) % 40_000 + 50 for number in range(100)]


@pytest.mark.model
def test_a_partial_cut_is_refused_and_a_checkpoint_gives_identical_logits(
    model: Model, fresh: Callable[[], Context],
) -> None:
    context = fresh()
    assert model.keeps_state_per_sequence
    feed(context, 0, 0, TOKENS[:60])
    state = context.checkpoint(0)
    expected = feed(context, 0, 60, TOKENS[60:70])
    feed(context, 0, 70, TOKENS[70:])
    assert not context.cut(0, 60)
    context.copy(0, 1, 100)
    for sequence in (1, 0):     # on a copy of it, and on itself
        assert context.restore(sequence, state)
        assert context.cut(sequence, 60)
        assert np.array_equal(feed(context, sequence, 60, TOKENS[60:70]), expected)


@pytest.mark.model
def test_a_saved_state_gives_identical_logits_and_its_checkpoints_still_work(fresh: Callable[[], Context]) -> None:
    context = fresh()
    feed(context, 0, 0, TOKENS[:60])
    early = context.checkpoint(0)
    at_sixty = feed(context, 0, 60, TOKENS[60:70])
    saved = context.save(0)
    at_seventy = feed(context, 0, 70, TOKENS[70:75])
    other = fresh()
    assert other.load(3, saved)
    assert np.array_equal(feed(other, 3, 70, TOKENS[70:75]), at_seventy)
    assert other.restore(3, early)
    assert other.cut(3, 60)
    assert np.array_equal(feed(other, 3, 60, TOKENS[60:70]), at_sixty)


@pytest.mark.model
def test_a_damaged_state_is_refused_and_leaves_nothing(fresh: Callable[[], Context]) -> None:
    context = fresh()
    feed(context, 0, 0, TOKENS[:60])
    saved = context.save(0)
    assert not context.load(1, saved[: len(saved) // 2])
    assert not context.load(1, b"")
    assert not context.restore(0, b"")
    feed(context, 1, 0, TOKENS[:5])


@pytest.mark.model
def test_a_chat_of_three_turns_reads_only_what_is_new_and_says_the_same_as_without_memory(
    model: Model, fresh: Callable[[], Context],
) -> None:
    reader = PromptReader(model)
    turns = [Message("system", "You are brief and kind. " * 8)]

    def machine() -> Scheduler:
        return Scheduler(fresh(), slots=2, queue_limit=4, now_s=lambda: 0.0, kept=4, can_cut=False)

    def reply(to: Scheduler, name: str) -> tuple[list[int], int, int]:
        request = GenerateRequest(request_id=name, prompt=ChatPrompt(tuple(turns)), max_tokens=8)
        one = prepare_answer(request, model, reader, context_tokens=1024)
        events = ask(to, one)
        (finished,) = [event for _, event in events if isinstance(event, Finished)]
        ids = [token for _, event in events for token in getattr(event, "token_ids", ())]
        return ids, finished.usage.prompt_tokens, finished.usage.cached_tokens

    warm = machine()
    for number in range(3):
        turns.append(Message("user", f"Question {number}: what is the weather like where you are?"))
        ids, prompt, kept = reply(warm, "warm")
        assert (kept == 0) == (number == 0)
        if number:
            assert prompt - kept < 60
        cold, _, none = reply(machine(), "cold")
        assert none == 0
        assert ids == cold
        turns.append(Message("assistant", model.text_of(tuple(ids)).decode(errors="replace") or "Yes."))


@pytest.mark.model
def test_the_memory_is_used_through_checkpoints_on_the_real_model(fresh: Callable[[], Context]) -> None:
    context = fresh()
    memory = Memory(context, sequences=4, can_cut=False)
    slot = memory.slots[0]
    slot.space = ("owner", "")
    feed(context, 0, 0, TOKENS[:60])
    slot.tokens = TOKENS[:60]
    memory.checkpoint(slot)
    expected = feed(context, 0, 60, TOKENS[60:70])
    slot.tokens = TOKENS[:70]
    memory.release(slot)
    assert memory.best(("owner", ""), [*TOKENS[:65], 7]) == (slot, 60)
    assert memory.best(("peer", ""), [*TOKENS[:65], 7]) == (None, 0)
    memory._begin_with(memory.slots[1], slot, 60)
    assert memory.slots[1].tokens == TOKENS[:60]
    assert np.array_equal(feed(context, 1, 60, TOKENS[60:70]), expected)


@pytest.mark.model
def test_boundaries_of_a_chat_are_where_its_turns_begin(model: Model) -> None:
    reader = PromptReader(model)
    chat = ChatPrompt((
        Message("system", "s"), Message("user", "u1"), Message("assistant", "a1"), Message("user", "u2")))
    starts = [at for at, token in enumerate(reader.ids(chat)) if model.token_text(token) == "<|im_start|>"]
    assert len(starts) == 5
    made = prepare_answer(GenerateRequest(request_id="r", prompt=chat), model, reader, context_tokens=1024)
    assert made.boundaries == {starts[1], starts[3], starts[4]}
    made.close()
