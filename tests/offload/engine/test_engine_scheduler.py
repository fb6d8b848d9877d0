"""Which decode does what, counted on a context without a model."""

from typing import Any, cast

import pytest
from fake_context import FakeContext, FakeVocabulary, ScriptedSampler

from offload.engine.answer import Answer
from offload.engine.context import Context
from offload.engine.scheduler import Events, Scheduler
from offload.errors import PromptTooLong
from offload.ports import Failed, Finished, GenerateRequest, Piece, Queued, Started, TextPrompt, Usage


class Clock:
    """Every look costs what the test says."""

    def __init__(self, step_s: float = 0.0) -> None:
        self.now = 0.0
        self.step_s = step_s

    def __call__(self) -> float:
        self.now += self.step_s
        return self.now


def scheduler(
    context: FakeContext, *, slots: int = 4, queue_limit: int = 8, step_s: float = 0.0, can_cut: bool = True,
    exact: bool = False,
) -> Scheduler:
    return Scheduler(
        cast("Context", context), slots=slots, queue_limit=queue_limit, now_s=Clock(step_s), model_digest="d",
        can_cut=can_cut, exact=exact)


def answer(
    name: str, prompt: list[int], writes: list[int], *, who: str = "owner", most: int = 50, **more: Any,
) -> Answer:
    request = GenerateRequest(
        request_id=name, principal=who, prompt=TextPrompt("x"), max_tokens=most, **{
            key: value for key, value in more.items() if key != "replayed"})
    return Answer(request, FakeVocabulary(), ScriptedSampler(writes), prompt=prompt,
                  replayed=more.get("replayed", ()), context_tokens=1000)


def run(machine: Scheduler, steps: int = 500) -> Events:
    events: Events = []
    for _ in range(steps):
        if not machine.has_work:
            return events
        events += machine.step()
    raise AssertionError("it never ends")


def text_of(events: Events, name: str) -> str:
    return "".join(event.text for who, event in events if who == name and isinstance(event, Piece))


def last(events: Events, name: str) -> Any:
    return [event for who, event in events if who == name][-1]


def test_one_answer_takes_one_decode_per_token_and_the_prompt() -> None:
    context = FakeContext()
    machine = scheduler(context)
    assert machine.submit(answer("a", [5, 6, 7], [2, 3, 4])) == [("a", Queued(0))]
    events = run(machine)
    assert events[0] == ("a", Started(3, 0, "d"))
    assert text_of(events, "a") == "bcd"
    assert last(events, "a") == Finished("stop", Usage(3, 0, 3))
    assert context.batches == [[(0, 3)], [(0, 1)], [(0, 1)], [(0, 1)]]
    assert context.memory[0] == [5, 6, 7, 2, 3, 4]


def test_answers_share_decodes_and_do_not_mix() -> None:
    context = FakeContext()
    machine = scheduler(context)
    for number in range(4):
        machine.submit(answer(f"r{number}", [10 + number] * 3, [2 + number] * 5))
    events = run(machine)
    for number in range(4):
        assert text_of(events, f"r{number}") == chr(98 + number) * 5
    assert context.decodes == 6
    assert all(len(batch) == 4 for batch in context.batches)


def test_a_fifth_waits_for_a_slot_and_the_queue_has_an_end() -> None:
    machine = scheduler(FakeContext(), slots=1, queue_limit=2)
    machine.submit(answer("a", [5], [2]))
    machine.step()
    assert machine.submit(answer("b", [5], [2])) == [("b", Queued(0))]
    assert machine.submit(answer("c", [5], [2])) == [("c", Queued(1))]
    refused = answer("d", [5], [2])
    assert isinstance(machine.submit(refused)[0][1], Failed)
    assert machine.submit(answer("e", [5], [2]))[0][1].code == "busy"  # type: ignore[union-attr]
    assert {who for who, event in run(machine) if isinstance(event, Finished)} == {"a", "b", "c"}


def test_the_owner_goes_before_waiting_peers_and_otherwise_it_is_first_come_first_served() -> None:
    machine = scheduler(FakeContext(), slots=1)
    for name, who in (("p1", "peer-1"), ("p2", "peer-2"), ("o1", "owner"), ("o2", "owner")):
        machine.submit(answer(name, [5], [2], who=who))
    started = [who for who, event in run(machine) if isinstance(event, Started)]
    assert started == ["o1", "o2", "p1", "p2"]


def test_peers_can_not_fill_the_owners_queue() -> None:
    machine = scheduler(FakeContext(), slots=1, queue_limit=2)
    for number in range(4):
        machine.submit(answer(f"p{number}", [5], [2], who=f"peer-{number}"))
    assert machine.submit(answer("o", [5], [2])) == [("o", Queued(0))]
    assert {who for who, event in run(machine) if isinstance(event, Finished)} == {"p0", "p1", "p2", "o"}


def test_the_owners_prompt_is_read_first() -> None:
    context = FakeContext(context_tokens=4000)
    machine = scheduler(context, step_s=10.0)
    machine.submit(answer("p", list(range(2, 902)), [2], who="peer-1"))
    machine.step()
    machine.submit(answer("o", list(range(2, 302)), [2]))
    events = run(machine)
    ends = [who for who, event in events if isinstance(event, Finished)]
    assert ends == ["o", "p"]


def test_cancelled_while_writing_nothing_more_is_decoded_for_it() -> None:
    context = FakeContext()
    machine = scheduler(context)
    machine.submit(answer("a", [5] * 3, [2] * 40))
    machine.submit(answer("b", [6] * 3, [3] * 10))
    for _ in range(4):
        machine.step()
    before = len(context.batches)
    assert machine.cancel("a") == [("a", Finished("cancelled", Usage(3, 0, 4)))]
    events = run(machine)
    assert all(sequence != 0 for batch in context.batches[before:] for sequence, _ in batch)
    assert text_of(events, "a") == ""
    assert last(events, "b").usage.output_tokens == 10


def test_cancelled_while_its_prompt_is_read_the_rest_is_not_read() -> None:
    context = FakeContext()
    machine = scheduler(context, step_s=10.0)       # slow: small chunks
    machine.submit(answer("a", list(range(2, 902)), [2]))
    machine.step()
    machine.step()
    read = len(context.memory[0])
    assert 0 < read < 900
    machine.cancel("a")
    assert not machine.has_work
    assert machine.step() == []
    assert len(context.memory[0]) == read


def test_cancelled_while_waiting_it_never_starts() -> None:
    context = FakeContext()
    machine = scheduler(context, slots=1)
    machine.submit(answer("a", [5], [2]))
    waiting = answer("b", [6], [2])
    machine.submit(waiting)
    assert isinstance(machine.cancel("b")[0][1], Finished)
    assert machine.cancel("b") == []
    assert "b" not in {who for who, _ in run(machine)}


def test_the_slot_of_a_cancelled_answer_is_free_at_once() -> None:
    machine = scheduler(FakeContext(), slots=1)
    for number in range(50):
        machine.submit(answer(f"r{number}", [5, number + 2], [2] * 100, most=100))
        machine.step()
        machine.step()
        assert machine.running == 1
        machine.cancel(f"r{number}")
        assert (machine.running, machine.queued) == (0, 0)
    machine.submit(answer("last", [5], [2, 3]))
    assert text_of(run(machine), "last") == "bc"


def test_max_tokens_and_the_end_of_the_context_give_length() -> None:
    machine = scheduler(FakeContext())
    machine.submit(answer("a", [5], [2] * 100, most=3))
    machine.submit(answer("b", [5] * 10, [2] * 100, most=90, context_limit=14))
    events = run(machine)
    assert last(events, "a") == Finished("length", Usage(1, 0, 3))
    assert last(events, "b").finish_reason == "length"
    assert last(events, "b").usage.output_tokens == 4


def test_a_prompt_that_fills_the_context_is_refused() -> None:
    with pytest.raises(PromptTooLong):
        answer("a", [5] * 1000, [2])
    with pytest.raises(PromptTooLong):
        answer("a", [5] * 10, [2], context_limit=10)
    answer("a", [5] * 9, [2], context_limit=10)


def test_a_control_token_ends_the_answer_unseen() -> None:
    machine = scheduler(FakeContext())
    machine.submit(answer("a", [5], [2, 1, 3]))
    events = run(machine)
    assert text_of(events, "a") == "b"
    assert last(events, "a").finish_reason == "stop"


def test_an_answer_that_goes_in_circles_is_ended() -> None:
    machine = scheduler(FakeContext())
    machine.submit(answer("a", [5], [2, 3] * 300, most=600))
    events = run(machine)
    assert last(events, "a").finish_reason == "loop"
    assert last(events, "a").usage.output_tokens == 64


def test_the_next_prompt_of_the_same_principal_reads_only_what_is_new() -> None:
    context = FakeContext()
    machine = scheduler(context)
    machine.submit(answer("a", [5, 6, 7], [2, 3]))
    run(machine)
    machine.submit(answer("b", [5, 6, 7, 2, 3, 8, 9], [4]))
    events = run(machine)
    assert events[0] == ("b", Started(7, 5, "d"))
    assert context.memory[0] == [5, 6, 7, 2, 3, 8, 9, 4]


def test_the_same_prompt_again_still_reads_its_last_token() -> None:
    machine = scheduler(FakeContext())
    machine.submit(answer("a", [5, 6, 7], [2]))
    run(machine)
    machine.submit(answer("b", [5, 6, 7], [3]))
    events = run(machine)
    assert events[0] == ("b", Started(3, 2, "d"))
    assert text_of(events, "b") == "c"


def test_nothing_is_shared_between_principals() -> None:
    """A shared memory would tell one principal, by timing, what another one asked."""
    context = FakeContext()
    machine = scheduler(context)
    machine.submit(answer("a", [5, 6, 7, 8], [2], who="owner"))
    run(machine)
    machine.submit(answer("b", [5, 6, 7, 8], [2], who="peer-1"))
    assert run(machine)[0] == ("b", Started(4, 0, "d"))
    assert context.shared == []


def test_a_long_memory_is_not_thrown_away_for_a_short_likeness() -> None:
    context = FakeContext()
    machine = scheduler(context)
    machine.submit(answer("a", [5, 6, *range(10, 60)], [2]))
    run(machine)
    machine.submit(answer("b", [5, 6, *range(70, 90)], [3]))
    assert run(machine)[0] == ("b", Started(22, 2, "d"))
    assert context.shared == [(0, 1, 2)]
    machine.submit(answer("c", [5, 6, *range(10, 60), 2, 9], [3]))
    assert run(machine)[0] == ("c", Started(54, 53, "d"))


def test_a_busy_answers_prompt_is_shared_too() -> None:
    context = FakeContext()
    machine = scheduler(context)
    prompt = list(range(2, 40))
    machine.submit(answer("a", prompt, [2] * 20))
    machine.step()
    machine.submit(answer("b", [*prompt, 99], [3] * 5))
    events = run(machine)
    assert ("b", Started(39, 38, "d")) in events
    assert text_of(events, "b") == "c" * 5


def test_a_memory_that_can_not_be_cut_is_used_whole_or_not_at_all() -> None:
    context = FakeContext(can_cut=False)
    machine = scheduler(context, can_cut=False)
    machine.submit(answer("a", [5, 6, 7], [2, 3]))
    run(machine)
    machine.submit(answer("b", [5, 6, 7, 2, 3, 9], [4]))
    assert run(machine)[0] == ("b", Started(6, 5, "d"))
    machine.submit(answer("c", [5, 6, 8, 9], [4]))
    assert run(machine)[0] == ("c", Started(4, 0, "d"))
    assert context.shared == []


def test_idle_memory_makes_room_and_what_does_not_fit_waits() -> None:
    context = FakeContext(context_tokens=1000)
    machine = scheduler(context)
    machine.submit(answer("a", [5] * 600, [2], most=10))
    run(machine)
    machine.submit(answer("b", [6] * 500, [2] * 5, most=10))
    machine.submit(answer("c", [7] * 500, [3] * 5, most=10))
    machine.step()
    assert (machine.running, machine.queued) == (1, 1)
    assert context.memory[0] == []      # a's memory went
    events = run(machine)
    assert text_of(events, "c") == "c" * 5


def test_without_room_idle_memory_goes_and_the_decode_is_tried_again() -> None:
    context = FakeContext()
    machine = scheduler(context)
    machine.submit(answer("a", [5, 6], [2]))
    run(machine)
    machine.submit(answer("b", [7, 8], [3], who="peer-1"))
    context.results = [1]
    assert text_of(run(machine), "b") == "c"
    assert context.memory[0] == []


def test_a_failed_decode_fails_its_answers_and_the_engine_goes_on() -> None:
    context = FakeContext()
    machine = scheduler(context)
    machine.submit(answer("a", [5, 6], [2] * 9))
    machine.step()
    context.results = [-3]
    events = machine.step()
    assert [(who, event.code) for who, event in events if isinstance(event, Failed)] == [("a", "engine")]
    assert not machine.has_work
    machine.submit(answer("b", [5, 6], [3]))
    events = run(machine)
    assert events[0] == ("b", Started(2, 0, "d"))
    assert text_of(events, "b") == "c"


def test_a_long_prompt_does_not_stop_those_who_are_being_answered() -> None:
    context = FakeContext()
    machine = scheduler(context, step_s=1.0)        # each step takes a second: far above the target
    machine.submit(answer("a", [5], [2] * 30, most=30))
    machine.step()
    machine.submit(answer("b", list(range(2, 802)), [3]))
    events = run(machine)
    chunks = [tokens for batch in context.batches for sequence, tokens in batch if sequence == 1 and tokens > 1]
    assert len(chunks) > 10
    assert min(chunks[2:-1]) == 63       # with the token of the other one 64
    position = {who: at for at, (who, event) in enumerate(events) if isinstance(event, Finished)}
    assert position["a"] < len(events)
    assert all(any(sequence == 0 for sequence, _ in batch) for batch in context.batches[:25])


def test_text_of_ids_so_far_is_not_shown_twice_and_what_was_held_back_comes_first() -> None:
    machine = scheduler(FakeContext())
    so_far = [2, 3, 4]      # "bcd", of which the reader has "b"
    machine.submit(answer("a", [5, *so_far], [6, 7], text_so_far="b", token_ids_so_far=tuple(so_far), replayed=so_far))
    events = run(machine)
    assert text_of(events, "a") == "cdfg"
    assert last(events, "a").usage.output_tokens == 2


def test_a_stop_text_is_found_across_the_seam_of_a_continuation() -> None:
    machine = scheduler(FakeContext())
    machine.submit(answer("a", [5, 2, 3], [4, 6], text_so_far="b", stop=("cd",), replayed=[2, 3],
                          token_ids_so_far=(2, 3)))
    events = run(machine)
    assert text_of(events, "a") == ""
    assert last(events, "a").finish_reason == "stop"


def test_the_exact_lane_reads_fixed_chunks_then_the_ids_so_far_one_by_one() -> None:
    context = FakeContext()
    machine = scheduler(context, slots=1, exact=True)
    so_far = [3, 4, 5]
    prompt = [5, *range(6, 145)]
    for name in ("a", "b"):
        machine.submit(answer(
            name, [*prompt, *so_far], [6, 7], lane="exact", replayed=so_far, token_ids_so_far=tuple(so_far),
            text_so_far="cde"))
    events = run(machine)
    assert context.batches == [[(0, count)] for count in [64, 64, 12, 1, 1, 1, 1, 1] * 2]
    for name in ("a", "b"):
        assert text_of(events, name) == "fg"
        assert (name, Started(143, 0, "d")) in events      # nothing is remembered
    assert context.shared == []
