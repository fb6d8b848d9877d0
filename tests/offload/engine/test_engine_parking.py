"""What nobody goes on with is kept out of the way of the decodes, for whom it is kept, and how it comes back."""

from typing import Any, cast

from fake_context import FakeContext, FakeVocabulary, ScriptedSampler
from hypothesis import given
from hypothesis import strategies as st

from offload.engine.answer import Answer
from offload.engine.context import Context
from offload.engine.kvfiles import Contents
from offload.engine.parking import Parked, Parking
from offload.engine.scheduler import Events, Scheduler
from offload.ports import GenerateRequest, Started, TextPrompt

TALK = [50 + number % 7 for number in range(60)]
LONG = [2 + number % 20 for number in range(40)]


def scheduler(context: FakeContext, **more: Any) -> Scheduler:
    return Scheduler(cast("Context", context), **({
        "slots": 2, "queue_limit": 16, "now_s": lambda: 0.0, "kept": 6, "parking_bytes": 10_000} | more))


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


def cells(context: FakeContext) -> int:
    return sum(len(tokens) for tokens in context.memory.values())


def test_what_is_in_the_way_of_a_long_answer_leaves_the_context_and_comes_back_whole() -> None:
    context = FakeContext()
    machine = scheduler(context)
    ask(machine, answer("talk", TALK, [2, 3]))
    held = len(TALK) + 2
    assert cells(context) == held
    ask(machine, answer("other", [90] * 5, LONG, most=40, who="peer-1"))
    assert cells(context) == 5 + len(LONG) - 1
    assert cached(ask(machine, answer("next", [*TALK, 2, 3, 99], [4]))) == {"next": held}
    assert cells(context) >= held


def test_beside_others_at_work_only_what_was_not_needed_for_a_while_leaves() -> None:
    context = FakeContext()
    machine = scheduler(context, slots=3)
    ask(machine, answer("talk", TALK, [2, 3]))
    machine.submit(answer("short", [90] * 5, LONG, most=30, who="peer-1"))
    for _ in range(3):
        machine.step()
    machine.submit(answer("second", [91] * 5, LONG, most=40, who="peer-2"))
    machine.step()
    assert cells(context) > len(TALK)
    for _ in range(24):
        machine.step()
    machine.submit(answer("third", [92] * 5, LONG, most=40, who="peer-3"))
    machine.step()
    assert cells(context) < 30 + 30 + 10
    assert cached(ask(machine, answer("next", [*TALK, 2, 3, 99], [4]))) == {"next": len(TALK) + 2}


class CountingContext(FakeContext):
    """Counts the copies that are made of sequences."""

    saves = 0

    def save(self, sequence: int) -> bytes:
        self.saves += 1
        return super().save(sequence)


def test_what_was_copied_while_there_was_time_leaves_without_a_copy_and_comes_back_whole() -> None:
    context = CountingContext()
    machine = scheduler(context)
    ask(machine, answer("talk", TALK, [2, 3]), answer("second", [70] * 9, [4]))
    assert [machine.copy_ahead() for _ in range(3)] == [True, True, False]
    assert context.saves == 2
    ask(machine, answer("other", [90] * 5, LONG, most=40, who="peer-1"))
    assert cells(context) == 5 + len(LONG) - 1
    assert context.saves == 2
    assert cached(ask(machine, answer("next", [*TALK, 2, 3, 99], [4]))) == {"next": len(TALK) + 2}


def test_what_was_said_after_the_copy_is_copied_anew() -> None:
    context = CountingContext()
    machine = scheduler(context)
    ask(machine, answer("talk", TALK, [2, 3]))
    assert machine.copy_ahead()
    ask(machine, answer("next", [*TALK, 2, 3, 99], [4, 5, 6]))
    ask(machine, answer("other", [90] * 5, LONG, most=40, who="peer-1"))
    assert context.saves == 2
    whole = [*TALK, 2, 3, 99, 4, 5, 6]
    assert cached(ask(machine, answer("third", [*whole, 98], [4]))) == {"third": len(whole)}


def test_a_copy_ahead_drives_nobody_out_and_ends_with_its_principal() -> None:
    context = CountingContext()
    one = len(str([*TALK, 2]).encode())
    machine = scheduler(context, parking_bytes=one + 10)
    ask(machine, answer("talk", TALK, [2], who="peer-1"), answer("more", [60, *TALK[1:]], [2], who="peer-2"))
    assert [machine.copy_ahead() for _ in range(2)] == [True, False]
    for who in ("peer-1", "peer-2"):
        machine.forget(who)
    assert cached(ask(machine, answer("a", [*TALK, 2, 9], [2], who="peer-1"))) == {"a": 0}
    assert not list(machine._memory._parking)


def test_a_turn_that_comes_soon_finds_it_where_it_was() -> None:
    context = FakeContext()
    machine = scheduler(context)
    ask(machine, answer("talk", TALK, [2, 3]))
    ask(machine, answer("other", [90] * 5, LONG[:10], who="peer-1"))
    assert cells(context) > len(TALK)
    assert cached(ask(machine, answer("next", [*TALK, 2, 3, 99], [4]))) == {"next": len(TALK) + 2}


def test_what_was_parked_for_one_is_never_found_by_another() -> None:
    context = FakeContext()
    machine = scheduler(context)
    ask(machine, answer("talk", TALK, [2], who="peer-1"))
    ask(machine, answer("other", [90] * 5, LONG, most=40))
    assert cached(ask(machine, answer("b", [*TALK, 2, 99], [4], who="peer-2"))) == {"b": 0}
    assert cached(ask(machine, answer("a", [*TALK, 2, 99], [4], who="peer-1"))) == {"a": len(TALK) + 1}


def test_forgetting_a_principal_forgets_what_is_parked() -> None:
    context = FakeContext()
    machine = scheduler(context)
    ask(machine, answer("talk", TALK, [2], who="peer-1"))
    ask(machine, answer("other", [90] * 5, LONG, most=40))
    machine.forget("peer-1")
    assert cached(ask(machine, answer("a", [*TALK, 2, 99], [4], who="peer-1"))) == {"a": 0}


def test_cells_that_a_working_answer_shares_are_not_parked_for_nothing() -> None:
    """An idle sequence with hardly a cell of its own is in nobody's way."""
    context = FakeContext()
    machine = scheduler(context)
    machine.submit(answer("a", TALK, [2, 3, 4]))
    machine.step()
    ask(machine, answer("b", [*TALK, 99], [2]))
    ask(machine, answer("c", [*TALK, 98], LONG, most=40))
    assert sum(bool(slot.tokens) for slot in machine._memory.slots) >= 2


def test_sequences_that_share_most_of_their_cells_stay_together() -> None:
    """Parked, each would take the shared beginning with it."""
    context = FakeContext()
    machine = scheduler(context)
    machine.submit(answer("a", TALK, LONG[:12]))
    machine.step()
    ask(machine, answer("b", [*TALK, 99], LONG[:12]))
    ask(machine, answer("c", [90] * 5, LONG, most=40, who="peer-1"))
    assert sum(len(slot.tokens) > len(TALK) for slot in machine._memory.slots) == 2
    assert cached(ask(machine, answer("d", [*TALK, 98], [2]), answer("e", [*TALK, 97], [2]))) == {"d": 60, "e": 60}


def test_a_full_context_parks_instead_of_forgetting() -> None:
    context = FakeContext(context_tokens=120)
    machine = scheduler(context)
    ask(machine, answer("talk", TALK, [2], most=5))
    ask(machine, answer("other", [90] * 70, [2], most=20, who="peer-1"))
    assert cells(context) < len(TALK) + 70
    assert cached(ask(machine, answer("next", [*TALK, 2, 99], [4], most=5))) == {"next": len(TALK) + 1}


def test_without_parking_all_is_as_before() -> None:
    context = FakeContext()
    machine = scheduler(context, parking_bytes=0)
    ask(machine, answer("talk", TALK, [2, 3]))
    ask(machine, answer("other", [90] * 5, LONG, most=40, who="peer-1"))
    assert cells(context) >= len(TALK) + 5 + len(LONG) - 1


def test_a_guest_drives_out_guests_and_never_the_owner() -> None:
    parking = Parking(4)
    owners, first, second = (
        Parked((who, ""), [number], Contents(b"xx")) for number, who in enumerate(("owner", "peer-1", "peer-2")))
    assert parking.put(owners) == parking.put(first) == []
    assert parking.put(second) == [first]
    large = Parked(("peer-1", ""), [7, 8], Contents(b"xxx"))
    assert parking.put(large) == [large]
    assert list(parking) == [owners, second]
    more = Parked(("owner", ""), [9], Contents(b"xx"))
    assert parking.put(more) == [second]
    assert parking.put(Parked(("owner", ""), [5], Contents(b"xx"))) == [owners]


def test_nothing_is_copied_ahead_that_has_no_room() -> None:
    context = CountingContext()
    machine = scheduler(context, parking_bytes=len(str([*TALK, 2]).encode()) + 10)
    ask(machine, answer("talk", TALK, [2], who="peer-1"), answer("more", [60, *TALK[1:]], [2], who="peer-2"))
    assert machine.copy_ahead()
    assert not any(machine.copy_ahead() for _ in range(5))
    assert context.saves == 1


def test_a_longer_one_takes_the_place_of_its_beginnings() -> None:
    parking = Parking(1000)
    short, other, whole = (Parked(("a", ""), tokens, Contents(b"x")) for tokens in ([1, 2], [1, 3], [1, 2, 4]))
    for one in (short, other, whole):
        assert parking.put(one) == []
    assert list(parking) == [other, whole]


def parked(name: str, size: int, number: int) -> Parked:
    return Parked((name, ""), [number, number + 1], Contents(bytes(size)))


@given(st.lists(st.tuples(st.sampled_from("ab"), st.integers(0, 60)), max_size=12))
def test_it_never_takes_more_than_it_may_and_tells_who_left(sizes: list[tuple[str, int]]) -> None:
    parking, came, left = Parking(100), [], []
    for number, (name, size) in enumerate(sizes):
        one = parked(name, size, number)
        came.append(one)
        left += parking.put(one)
        assert sum(other.size_bytes for other in parking) <= 100
    assert sorted(map(id, [*left, *parking])) == sorted(map(id, came))
    assert left == came[:len(left)]     # the longest parked first
    parking.forget("a")
    assert all(other.space[0] == "b" for other in parking)
    for other in came:
        found = next(parking.matches(other.space, other.tokens), None)
        assert (found is not None and found[0] is other) == (other in list(parking))
