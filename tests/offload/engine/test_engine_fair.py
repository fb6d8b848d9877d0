"""Who waits for whom, and for how long, counted in decodes: S11, S12 and what a fair engine owes its guests."""

from collections import Counter

from fake_context import FakeContext, FakeVocabulary
from hypothesis import given
from hypothesis import strategies as st
from timed_scheduler import TimedContext, answer, finish, scheduler, tokens, varied

from offload.engine.fair import Pace, Shares
from offload.engine.scheduler import Events
from offload.engine.waiting import Forecast
from offload.ports import Failed, Finished, Piece, Queued, Started


def text_of(events: Events, name: str) -> str:
    return "".join(event.text for who, event in events if who == name and isinstance(event, Piece))


def written(ids: list[int]) -> str:
    return "".join(FakeVocabulary().piece(token).decode() for token in ids)


# -- S11


def chats_and_a_long_prompt(fixed: int | None = None) -> tuple[list[float], int]:
    """Three chats of the owner stream, then 4,096 tokens arrive. The gaps until that is read, and decodes it took."""
    context = TimedContext(context_tokens=20_000)
    machine = scheduler(context)
    if fixed is not None:
        machine._pace._tokens = dict.fromkeys(("watched", "guests", "alone"), fixed)
        machine._pace.learn = lambda *_: None  # type: ignore[method-assign]
    for number in range(3):
        machine.submit(answer(f"chat-{number}", tokens(number, 20), varied(400, number), most=400))
    for _ in range(5):
        machine.step()
    machine.submit(answer("long", tokens(9, 4096), [5]))
    gaps: list[float] = []
    while True:
        before_s = context.now_s
        events = machine.step()
        told = {who for who, event in events if isinstance(event, Piece)}
        assert {f"chat-{number}" for number in range(3)} <= told        # every step moves every chat
        gaps.append(context.now_s - before_s)
        if "long" in told:
            return sorted(gaps), len(gaps)


def test_a_long_prompt_keeps_the_chats_within_the_step_target() -> None:
    gaps, _ = chats_and_a_long_prompt()
    assert gaps[int(len(gaps) * 0.95)] <= 2.5 * 0.25
    assert gaps[len(gaps) // 2] <= 0.3


def test_with_fixed_chunks_the_same_chats_would_freeze() -> None:
    """The negative control: 512 tokens per decode, whatever they cost."""
    gaps, decodes = chats_and_a_long_prompt(fixed=512)
    assert gaps[len(gaps) // 2] > 1.2
    assert decodes < 12


def in_one_decode(*waiting: int, written: int = 1, who: str = "owner") -> int:
    """How much of prompts of these lengths, arriving together, the next decode reads beside answers of the owner."""
    context = TimedContext(context_tokens=20_000)
    machine = scheduler(context, slots=8)
    machine.submit(answer("first", tokens(99, 128), [5]))     # 128 in 0.4 s: 0.6 s are worth some 190
    finish(machine)
    for number in range(written):
        machine.submit(answer(f"chat-{number}", tokens(number, 20), varied(400, number), most=400))
    machine.step()
    for number, length in enumerate(waiting):
        machine.submit(answer(f"new-{number}", tokens(50 + number, length), varied(50), who=who))
    machine.step()
    return sum(count for _, count in context.batches[-1]) - written


def test_a_burst_is_read_at_once_where_more_wait_than_are_written_to() -> None:
    assert in_one_decode(40, 40, 40) == 120
    assert in_one_decode(60, 60, written=1) == 120


def test_what_is_no_burst_keeps_to_the_step_target() -> None:
    """More than one decode's worth, not more who wait than who read along, or guests: 64 tokens, with those beside."""
    assert in_one_decode(80, 80, 80) < 64
    assert in_one_decode(120) < 64
    assert in_one_decode(60, 60, written=2) < 64
    assert in_one_decode(40, 40, 40, who="peer-1") < 64


def test_alone_a_prompt_is_read_in_large_pieces_and_for_guests_in_larger_ones_than_for_the_owner() -> None:
    def median_chunk(company: str | None) -> int:
        context = TimedContext(context_tokens=20_000)
        machine = scheduler(context)
        if company is not None:
            machine.submit(answer("chat", tokens(1, 20), varied(400), who=company, most=400))
            for _ in range(3):
                machine.step()
        machine.submit(answer("long", tokens(9, 4096), [5], who="peer-2"))
        finish(machine)
        chunks = [count for batch in context.batches for _, count in batch if count > 20]
        return sorted(chunks)[len(chunks) // 2]

    owner, guest, alone = (median_chunk(company) for company in ("owner", "peer-1", None))
    assert owner < 90
    assert 150 < guest <= alone
    context = FakeContext(context_tokens=20_000)        # a machine that is quick
    machine = scheduler(context)
    machine.submit(answer("long", tokens(9, 4096), [5]))
    finish(machine)
    assert [count for batch in context.batches for _, count in batch][:8] == [512] * 8


def test_short_prompts_that_were_quick_do_not_make_the_next_long_one_a_freeze() -> None:
    pace = Pace()
    for _ in range(20):
        pace.learn("watched", 10, 0.06)
    assert pace.tokens("watched") == 64
    for _ in range(3):      # 64, 83, 107, 139: a third more each time, in whole tiles
        pace.learn("watched", pace.tokens("watched"), 0.06)
    assert pace.tokens("watched") == 128
    pace.learn("watched", 128, 0.4)
    assert pace.tokens("watched") == 64
    pace.learn("watched", 64, 4.0)
    assert pace.tokens("watched") == 64
    assert pace.tokens("alone") == 512


def test_what_was_learned_alone_is_where_one_begins_in_company() -> None:
    pace = Pace()
    pace.learn("alone", 512, 1.6)       # 320 a second
    assert pace.tokens("watched") == 64
    assert pace.tokens("guests") == 320
    assert pace.tokens("alone") == 320


@given(st.integers(0, 200), st.lists(st.tuples(st.integers(1, 512), st.floats(0.001, 9.0)), max_size=8))
def test_with_what_is_beside_it_a_decode_comes_to_whole_tiles(beside: int, steps: list[tuple[int, float]]) -> None:
    pace = Pace()
    for read, elapsed_s in steps:
        pace.learn("watched", read, elapsed_s, beside)
    assert (pace.tokens("watched", beside) + beside) % 64 == 0
    assert 16 <= pace.tokens("watched", beside) <= 512


def test_a_machine_that_became_slow_gets_less_in_the_next_decode() -> None:
    pace = Pace()
    for _ in range(20):
        pace.learn("watched", pace.tokens("watched", 3), pace.tokens("watched", 3) / 2000, 3)
    assert pace.tokens("watched", 3) > 400
    for _ in range(3):
        pace.learn("watched", pace.tokens("watched", 3), pace.tokens("watched", 3) / 100, 3)
    assert pace.tokens("watched", 3) == 61


# -- S12


def test_more_requests_than_slots_each_gets_its_own_answer_once_and_in_order() -> None:
    context = FakeContext(context_tokens=20_000)
    machine = scheduler(context)
    events: Events = []
    for number in range(16):
        events += machine.submit(answer(f"r{number}", tokens(number, 30), varied(20 + number % 3, number)))
    assert [event.position for _, event in events if isinstance(event, Queued)] == list(range(16))
    events += finish(machine)
    ends = Counter(who for who, event in events if isinstance(event, Finished))
    assert ends == {f"r{number}": 1 for number in range(16)}
    assert [who for who, event in events if isinstance(event, Started)] == [f"r{number}" for number in range(16)]
    for number in range(16):
        assert text_of(events, f"r{number}") == written(varied(20 + number % 3, number))
        told = [event.position for who, event in events if who == f"r{number}" and isinstance(event, Queued)]
        assert told == sorted(told, reverse=True)
        assert len(told) == len(set(told))
        assert told[-1] <= 3
    assert machine.queued == machine.running == 0


def test_too_many_are_told_at_once_and_the_others_do_not_notice() -> None:
    machine = scheduler(FakeContext(), slots=1, queue_limit=3)
    told = [machine.submit(answer(f"r{number}", [5 + number], [2])) for number in range(9)]
    codes = [event.code for events in told for _, event in events if isinstance(event, Failed)]
    assert codes == ["busy"] * 5
    assert {who for who, event in finish(machine) if isinstance(event, Finished)} == {"r0", "r1", "r2", "r3"}


def test_when_it_may_start_is_told_once_it_is_known() -> None:
    context = TimedContext()
    machine = scheduler(context, slots=1)
    (first,) = machine.submit(answer("a", [5], varied(20)))
    assert first[1] == Queued(0, None)
    finish(machine)
    took_s = context.now_s
    machine.submit(answer("b", [6], varied(20)))
    machine.step()
    (third,) = machine.submit(answer("c", [7], [2]))
    (fourth,) = machine.submit(answer("d", [8], [2]))
    assert isinstance(third[1], Queued)
    assert isinstance(fourth[1], Queued)
    assert third[1].expected_s is not None
    assert fourth[1].expected_s is not None
    assert 0 < third[1].expected_s <= took_s + 0.05     # rounded to a tenth
    assert abs(fourth[1].expected_s - third[1].expected_s - took_s) < 0.15


def test_the_forecast_by_hand() -> None:
    forecast = Forecast()
    assert forecast.expected_s(0, [], 2) is None
    forecast.learn(10.0)
    assert forecast.expected_s(0, [], 2) == 0.0
    assert [forecast.expected_s(position, [4.0, 9.0], 2) for position in range(4)] == [1.0, 6.0, 11.0, 16.0]
    assert forecast.expected_s(0, [25.0, 1.0], 2) == 0.0
    forecast.learn(20.0)
    assert forecast.expected_s(0, [0.0], 1) == 13.0


# -- guests and the owner


def test_one_guest_with_many_prompts_does_not_keep_another_one_waiting() -> None:
    """Heavy has six prompts of 4,096 tokens, light comes last with 500."""
    context = TimedContext(context_tokens=60_000)
    machine = scheduler(context, slots=4)
    for number in range(6):
        machine.submit(answer(f"heavy-{number}", tokens(number, 4096), [5], who="heavy"))
    machine.step()
    machine.submit(answer("light", tokens(77, 500), [5], who="light"))
    ends = [who for who, event in finish(machine) if isinstance(event, Finished)]
    # All slots were taken, so it waits for one; then it has half of each decode.
    assert ends.index("light") <= 1


def test_the_line_takes_turns_between_guests() -> None:
    machine = scheduler(FakeContext(), slots=2)
    for number in range(5):
        machine.submit(answer(f"heavy-{number}", tokens(number, 9), varied(30), who="heavy"))
    machine.step()
    machine.submit(answer("light", tokens(77, 9), varied(30), who="light"))
    started = [who for who, event in finish(machine) if isinstance(event, Started)]
    assert "light" in started[:2]


@given(
    st.dictionaries(st.sampled_from(["owner", "a", "b", "c"]), st.integers(0, 3000), max_size=4), st.integers(0, 512),
)
def test_all_of_the_budget_is_used_and_nobody_gets_more_than_it_wants(wanted: dict[str, int], budget: int) -> None:
    given_out = Shares().split(wanted, budget)
    assert sum(given_out.values()) == min(budget, sum(wanted.values()))
    assert all(0 <= given_out[who] <= wanted[who] for who in wanted)
    assert given_out.get("owner", 0) == min(budget, wanted.get("owner", 0))


def test_over_time_guests_get_the_same_however_small_the_budget() -> None:
    for budget in (7, 32, 96, 200):
        shares = Shares()
        got: Counter[str] = Counter()
        for _ in range(600):
            got.update(shares.split({"a": 4096, "b": 4096, "c": 4096}, budget))
        assert max(got.values()) - min(got.values()) <= 64


def test_who_wants_nothing_keeps_no_credit() -> None:
    shares = Shares()
    shares.split({"a": 4096, "b": 4096}, 32)
    shares.split({"b": 4096}, 32)
    assert set(shares._credit) == {"b"}


def test_the_owner_takes_a_guests_slot_and_the_guest_goes_on_later_without_reading_again() -> None:
    context = FakeContext(context_tokens=4000)
    machine = scheduler(context, slots=2)
    for name in ("g1", "g2"):
        machine.submit(answer(name, tokens(ord(name[1]), 100), varied(40, ord(name[1])), who=name))
    for _ in range(10):
        machine.step()
    machine.submit(answer("own", tokens(1, 50), varied(5)))
    events = machine.step()
    assert ("own", Started(50, 0, "")) in events
    assert machine.running == 2
    events += finish(machine)
    ends = [who for who, event in events if isinstance(event, Finished)]
    assert ends == ["own", "g1", "g2"]      # the one that came last had to leave
    assert [who for who, event in events if isinstance(event, Started)] == ["own"]
    finished = {who: event for who, event in events if isinstance(event, Finished)}
    assert finished["g2"].usage.output_tokens == 40
    assert (finished["g2"].usage.prompt_tokens, finished["g2"].usage.cached_tokens) == (100, 0)
    read = Counter(count for batch in context.batches for _, count in batch if count > 1)
    assert sum(count * times for count, times in read.items()) == 250       # nothing was read twice


def test_a_guest_never_takes_the_owners_slot_and_owners_do_not_push_each_other() -> None:
    machine = scheduler(FakeContext(), slots=1)
    machine.submit(answer("o1", tokens(1, 9), varied(20)))
    machine.step()
    machine.submit(answer("o2", tokens(2, 9), varied(5)))
    machine.submit(answer("g", tokens(3, 9), varied(5), who="peer-1"))
    ends = [who for who, event in finish(machine) if isinstance(event, Finished)]
    assert ends == ["o1", "o2", "g"]


def test_a_guest_that_had_to_leave_while_its_prompt_was_read_keeps_what_was_read() -> None:
    context = TimedContext(context_tokens=8000)
    machine = scheduler(context, slots=1)
    machine.submit(answer("g", tokens(3, 2000), varied(9), who="peer-1"))
    machine.step()
    machine.submit(answer("o", tokens(1, 9), varied(9)))
    events = finish(machine)
    assert [who for who, event in events if isinstance(event, Finished)] == ["o", "g"]
    assert text_of(events, "g") == written(varied(9))
    assert sum(count for batch in context.batches for _, count in batch if count > 9) == 2000


# -- when the cells do not suffice


def test_without_room_the_least_important_answer_waits_and_all_texts_are_whole() -> None:
    context = FakeContext(context_tokens=4000)
    machine = scheduler(context)
    for name, who in (("o", "owner"), ("g1", "peer-1"), ("g2", "peer-2")):
        machine.submit(answer(name, tokens(ord(name[-1]), 30), varied(30, ord(name[-1])), who=who))
    events: Events = []
    for _ in range(10):
        events += machine.step()
    context.results = [1]       # and nothing idle to let go
    events += machine.step()
    assert machine.running == 2
    assert [one.request_id for one in machine._line.answers] == ["g2"]
    events += machine.step()
    assert machine.running == 2     # nobody comes in before one is over
    events += finish(machine)
    for name in ("o", "g1", "g2"):
        assert text_of(events, name) == written(varied(30, ord(name[-1])))
    assert Counter(who for who, event in events if isinstance(event, Started)) == {"o": 1, "g1": 1, "g2": 1}


def test_again_and_again_without_room_one_answer_is_left_and_then_fails_with_a_reason() -> None:
    context = FakeContext(context_tokens=4000)
    machine = scheduler(context)
    for number in range(3):
        machine.submit(answer(f"r{number}", tokens(number, 30), varied(30)))
    machine.step()
    context.results = [1, 1, 1]
    events: Events = []
    for _ in range(3):
        events += machine.step()
    assert [(who, event.code) for who, event in events if isinstance(event, Failed)] == [("r0", "engine")]
    events += finish(machine)
    assert {who for who, event in events if isinstance(event, Finished)} == {"r1", "r2"}


def test_in_the_exact_lane_a_guest_that_had_to_leave_goes_on_by_the_same_shapes() -> None:
    """What was written is read again one by one, as it was decoded, so the lane's promise holds."""
    context = FakeContext(context_tokens=4000)
    machine = scheduler(context, slots=1, kept=0, exact=True)
    machine.submit(answer("g", tokens(3, 100), varied(9), who="peer-1"))
    for _ in range(5):
        machine.step()
    machine.submit(answer("o", tokens(1, 70), varied(2)))
    events = finish(machine)
    shapes = [count for batch in context.batches for _, count in batch]
    guest, owner = [64, 36, 1, 1, 1], [64, 6, 1, 1]
    assert shapes == [*guest, *owner, *guest, *[1] * 6]
    assert text_of(events, "g").endswith(written(varied(9)[4:]))
    assert Counter(who for who, event in events if isinstance(event, Finished)) == {"o": 1, "g": 1}


# -- who is begun with


def test_that_it_begins_is_told_before_anything_is_decoded_for_it() -> None:
    context = TimedContext(context_tokens=20_000)
    machine = scheduler(context)
    machine.submit(answer("long", tokens(9, 4096), [5], who="peer-1"))
    (told,) = machine.admit()
    assert told[0] == "long" and isinstance(told[1], Started) and told[1].prompt_tokens == 4096
    assert context.batches == []
    assert machine.admit() == []
    assert not any(isinstance(event, Started) for _, event in machine.step())       # once
    assert len(context.batches) == 1
