"""The mode's machine: every pair of modes, what narrows and what is only told, a switch that fails; and a walk at
random that the rules hold at every step of."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from node.modes.facts import Facts, Mode, Policy
from node.modes.machine import (
    SETTLE_S,
    WORK,
    Announce,
    Applied,
    Apply,
    Chosen,
    Failed,
    Looked,
    ModeMachine,
    Reached,
    Refresh,
    Tick,
)

OFF, LAN, ON = Mode.OFFLINE, Mode.LAN, Mode.ONLINE
UNASKED = Policy()
HOME = Facts(addresses=frozenset({"192.168.1.7"}), default_route=True)
CAREFUL = Policy(metered=LAN, low_battery=OFF, low_battery_percent=15)
METERED = Facts(addresses=HOME.addresses, default_route=True, metered=True)
EMPTY = Facts(addresses=HOME.addresses, on_battery=True, battery_percent=9)


def machine(chosen: Mode, policy: Policy = UNASKED, facts: Facts = HOME) -> ModeMachine:
    made = ModeMachine(chosen, policy)
    made.handle(Looked(facts), 0.0)
    return made


@pytest.mark.parametrize(("before", "after"), [(a, b) for a in Mode for b in Mode if a is not b])
def test_the_owners_switch_is_carried_out_at_once(before: Mode, after: Mode) -> None:
    made = machine(before)
    assert made.handle(Chosen(after), 1.0) == (Apply(after, WORK[before, after]),)
    assert made.effective is before
    (told,) = made.handle(Applied(), 1.1)
    assert isinstance(told, Announce)
    assert (told.before, told.state.chosen, told.state.effective) == (before, after, after)
    assert told.state.why == "as you chose"


@pytest.mark.parametrize("mode", list(Mode))
def test_choosing_what_is_chosen_does_nothing(mode: Mode) -> None:
    made = machine(mode)
    assert made.handle(Chosen(mode), 1.0) == ()


def test_a_hint_narrows_only_when_it_has_held_and_only_if_the_owner_wants_that() -> None:
    made = machine(ON, CAREFUL)
    assert made.handle(Looked(METERED), 10.0) == ()
    assert made.due_s == 10.0 + SETTLE_S
    assert made.handle(Tick(), 10.0 + SETTLE_S - 0.1) == ()
    assert made.handle(Tick(), 10.0 + SETTLE_S) == (Apply(LAN, "narrow"),)
    (told,) = made.handle(Applied(), 14.0)
    assert isinstance(told, Announce)
    assert told.state.why == "the connection is metered"
    assert made.handle(Looked(HOME), 20.0) == (Apply(ON, "widen"),)     # wider at once

    unasked = machine(ON, Policy())
    assert unasked.handle(Looked(METERED), 10.0) == ()
    assert unasked.handle(Tick(), 100.0) == ()
    assert unasked.state.why == "as you chose; the connection is metered"


def test_a_hint_that_passes_changes_nothing() -> None:
    made = machine(ON, CAREFUL)
    made.handle(Looked(METERED), 10.0)
    assert made.handle(Looked(HOME), 11.0) == ()
    assert made.due_s is None
    assert made.handle(Tick(), 100.0) == ()


def test_a_low_battery_counts_only_on_battery() -> None:
    for facts, narrowed in ((EMPTY, True), (Facts(on_battery=False, battery_percent=9), False),
                            (Facts(on_battery=True, battery_percent=16), False), (Facts(on_battery=True), False)):
        made = machine(LAN, CAREFUL)
        made.handle(Looked(facts), 1.0)
        assert (made.handle(Tick(), 1.0 + SETTLE_S) == (Apply(OFF, "close"),)) is narrowed, facts


def test_a_missing_network_closes_nothing_and_is_told() -> None:
    made = machine(ON)
    assert made.handle(Looked(Facts(addresses=frozenset(), default_route=False)), 5.0) == (Refresh(),)
    assert made.handle(Tick(), 500.0) == ()
    assert made.effective is ON
    assert made.state.why == "as you chose; no network is up, only nodes on this machine can be reached"
    assert made.handle(Looked(Facts(addresses=frozenset({"10.0.0.9"}), default_route=False)), 600.0) == (Refresh(),)
    assert made.state.why == "as you chose; there is no way out of the local network"
    made.handle(Reached(0, 2), 600.0)
    assert made.state.why.endswith("; none of 2 paired peers answers")
    made.handle(Reached(1, 2), 600.0)
    assert "none of" not in made.state.why


def test_the_same_network_again_calls_nobody() -> None:
    made = machine(LAN)
    assert made.handle(Looked(HOME), 5.0) == ()
    assert made.handle(Looked(METERED), 6.0) == ()


def test_offline_neither_listens_nor_calls_whatever_the_network_does() -> None:
    made = machine(OFF)
    for facts in (Facts(addresses=frozenset()), HOME, METERED):
        assert made.handle(Looked(facts), 5.0) == ()
    assert made.state.why == "as you chose"


def test_a_switch_of_the_owner_that_fails_did_not_happen() -> None:
    made = machine(OFF)
    made.handle(Chosen(LAN), 1.0)
    assert made.handle(Failed("the port is taken"), 1.1) == ()
    assert (made.chosen, made.effective, made.failure) == (OFF, OFF, "")
    assert made.handle(Chosen(LAN), 2.0) == (Apply(LAN, "open"),)       # and may be tried again
    made.handle(Applied(), 2.1)
    assert made.effective is LAN


def test_sockets_that_a_fact_could_not_get_back_wait_for_another_network() -> None:
    made = machine(LAN, CAREFUL)
    made.handle(Looked(EMPTY), 1.0)
    made.handle(Tick(), 1.0 + SETTLE_S)
    made.handle(Applied(), 5.0)
    assert made.effective is OFF
    assert made.handle(Looked(HOME), 10.0) == (Apply(LAN, "open"),)
    assert made.handle(Failed("the port is taken"), 10.1) == ()
    assert (made.chosen, made.effective) == (LAN, OFF)
    assert made.state.why == "the port is taken"
    assert made.handle(Looked(HOME), 20.0) == ()                        # no busy retry
    moved = Facts(addresses=frozenset({"10.1.1.1"}))
    assert made.handle(Looked(moved), 30.0) == (Apply(LAN, "open"),)


FACTS = st.builds(
    Facts, addresses=st.sampled_from([frozenset(), frozenset({"10.0.0.1"}), frozenset({"10.0.0.2"})]),
    default_route=st.booleans(), metered=st.booleans(), on_battery=st.booleans(),
    battery_percent=st.sampled_from([None, 5, 90]),
)
POLICY = st.builds(Policy, metered=st.sampled_from([None, OFF, LAN]), low_battery=st.sampled_from([None, OFF, LAN]))
STEP = st.one_of(st.sampled_from(list(Mode)).map(Chosen), FACTS.map(Looked), st.just(Tick()))


@given(st.sampled_from(list(Mode)), POLICY, st.lists(st.tuples(STEP, st.booleans(), st.floats(0, 10)), max_size=40))
def test_never_wider_than_chosen_and_every_transition_is_in_the_table(
    chosen: Mode, policy: Policy, steps: list[tuple[Chosen | Looked | Tick, bool, float]]
) -> None:
    made, now_s, in_force = ModeMachine(chosen, policy), 0.0, chosen
    for event, works, pause_s in steps:
        now_s += pause_s
        commands = list(made.handle(event, now_s))
        while commands:
            command = commands.pop(0)
            match command:
                case Apply(mode, work):
                    assert WORK[in_force, mode] == work
                    works = works or mode is OFF        # sockets can always be closed
                    in_force = mode if works else OFF
                    commands += made.handle(Applied() if works else Failed("taken"), now_s)
                case Refresh():
                    assert in_force is not OFF
                case Announce(_, state):
                    assert state.effective is in_force
        assert made.effective is in_force
        assert made.effective.width <= made.chosen.width
        if isinstance(event, Chosen) and event.mode is OFF:
            assert in_force is OFF                      # offline is the owner's word, at once, always
