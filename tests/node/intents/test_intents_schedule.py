"""When waiting requests are tried: playbooks, bounds over days under a made-up clock, and a walk at random."""

from hypothesis import given
from hypothesis import strategies as st
from playbook import Playbook

from node.intents.schedule import (
    LOOK_AGAIN_S,
    MOST_RUNNING,
    PAUSE_FIRST_S,
    PAUSE_MOST_S,
    Added,
    Changed,
    Ended,
    Found,
    Gone,
    Look,
    Released,
    Schedule,
    Start,
    Tick,
)


def test_looked_at_at_once_then_when_something_changes_then_each_minute() -> None:
    play = Playbook(Schedule()) >> Added("a") << Look("a") >> Found("a", able=False) << None
    play.after(1) >> Tick() << None >> Changed() << Look("a") >> Found("a", able=False) << None
    assert play.machine.due_s == play.now_s + LOOK_AGAIN_S
    play.after(LOOK_AGAIN_S) >> Tick() << Look("a") >> Found("a", able=True) << Start("a") << None
    play >> Ended("a", again=False) << None
    assert play.machine.due_s is None


def test_held_until_its_draft_is_stored() -> None:
    play = Playbook(Schedule()) >> Added("a", held=True) << None >> Changed() << None
    assert play.machine.due_s is None
    play >> Released("a") << Look("a") << None


def test_as_many_as_may_run_and_the_next_when_one_is_over() -> None:
    play = Playbook(Schedule())
    for name in ("a", "b"):
        play >> Added(name) << Look(name)
    play >> Added("c") << None
    play >> Found("a", able=True) << Start("a") >> Found("b", able=False) << Look("c")
    play >> Found("c", able=True) << Start("c") << None
    assert play.machine.running == {"a", "c"}
    play >> Changed() << None >> Ended("a", again=False) << Look("b") << None


def test_no_tick_is_due_while_all_places_are_looked_at() -> None:
    """A driver that were told "now" would go round without a pause, a write of the disk each time."""
    play = Playbook(Schedule())
    for name in ("a", "b"):
        play >> Added(name) << Look(name)
    play >> Added("c") << None
    assert play.machine.due_s is None
    play >> Found("a", able=False) << Look("c") << None
    assert play.machine.due_s is None
    play >> Found("c", able=False) << None
    assert play.machine.due_s == play.now_s + LOOK_AGAIN_S


def test_news_that_comes_while_it_is_looked_at_is_not_lost() -> None:
    play = Playbook(Schedule()) >> Added("a") << Look("a") >> Changed() << None
    play >> Found("a", able=False) << Look("a") << None >> Found("a", able=False) << None
    assert play.machine.due_s == play.now_s + LOOK_AGAIN_S


def test_pauses_double_and_end_somewhere() -> None:
    play, pauses = Playbook(Schedule()), []
    play >> Added("a") << Look("a") >> Found("a", able=True) << Start("a")
    for _ in range(14):
        play >> Ended("a", again=True, chance=0.5) << None
        pauses.append(play.machine.due_s - play.now_s)
        play.after(pauses[-1]) >> Tick() << Look("a") >> Found("a", able=True) << Start("a")
    assert pauses[:3] == [PAUSE_FIRST_S, 2 * PAUSE_FIRST_S, 4 * PAUSE_FIRST_S]
    assert pauses[-1] == PAUSE_MOST_S == max(pauses)


def test_a_peer_that_comes_and_goes_each_second_is_not_tried_each_second() -> None:
    schedule, starts, now_s = Schedule(), 0, 0.0
    todo = list(schedule.handle(Added("a"), now_s))
    while now_s < 3600:
        while todo:
            match todo.pop(0):
                case Look(name):
                    todo += schedule.handle(Found(name, able=True), now_s)
                case Start(name):
                    starts += 1
                    todo += schedule.handle(Ended(name, again=True), now_s)
        now_s += 1
        todo += schedule.handle(Changed(), now_s)
    assert starts < 100     # pauses of 2, 4, 6 ... seconds: about 60 in an hour


def test_a_day_without_anybody_is_a_look_a_minute_for_each() -> None:
    schedule, looks, now_s = Schedule(), 0, 0.0
    todo = list(schedule.handle(Added("a"), now_s))
    while now_s < 86_400:
        while todo:
            (command,) = todo
            assert isinstance(command, Look)
            looks += 1
            todo = list(schedule.handle(Found(command.intent_id, able=False), now_s))
        assert schedule.due_s is not None
        now_s = max(now_s + 0.001, schedule.due_s)
        todo = list(schedule.handle(Tick(), now_s))
    assert looks <= 86_400 / LOOK_AGAIN_S + 1


def test_allowed_before_its_run_is_known_to_be_over_it_runs_again() -> None:
    play = Playbook(Schedule()) >> Added("a") << Look("a") >> Found("a", able=True) << Start("a")
    play >> Released("a") << None >> Ended("a", again=False) << Look("a") << None


def test_taken_back_while_it_is_looked_at() -> None:
    play = Playbook(Schedule()) >> Added("a") << Look("a") >> Gone("a") << None >> Found("a", able=True) << None
    assert play.machine.due_s is None


NAMES = st.sampled_from("abcde")
EVENTS = st.one_of(
    st.builds(Added, NAMES, st.booleans()), st.builds(Released, NAMES), st.builds(Gone, NAMES), st.just(Changed()),
    st.just(Tick()), st.builds(Found, NAMES, st.booleans()),
    st.builds(Ended, NAMES, st.booleans(), st.floats(0, 0.999)),
)


@given(st.lists(st.tuples(EVENTS, st.floats(0, 700)), max_size=80))
def test_never_more_than_may_run_and_none_twice(steps: list[tuple[object, float]]) -> None:
    schedule, now_s, running, looking = Schedule(), 0.0, set(), set()
    for event, pause_s in steps:
        now_s += pause_s
        if isinstance(event, Ended) and event.intent_id not in running:
            continue
        if isinstance(event, Found) and event.intent_id not in looking:
            continue
        if isinstance(event, Ended | Gone):
            running.discard(event.intent_id)
        if isinstance(event, Found):
            looking.discard(event.intent_id)
        for command in schedule.handle(event, now_s):
            match command:
                case Look(name):
                    looking.add(name)
                case Start(name):
                    assert name not in running
                    running.add(name)
        assert schedule.running <= running
        assert len(running) <= MOST_RUNNING
        due_s = schedule.due_s
        assert due_s is None or now_s < due_s <= now_s + 1.2 * PAUSE_MOST_S
