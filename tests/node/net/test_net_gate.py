"""The gate by itself."""

import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from node.net.gate import MAX_STRANGERS, Gate
from protocol.names import INFER, PAIR, PROTOCOLS


def test_an_empty_list_is_nobody() -> None:
    gate = Gate()
    assert not gate.admit("a")
    assert not any(gate.may("a", protocol) for protocol in PROTOCOLS)
    assert gate.refused == 1


def test_ids_are_compared_exactly() -> None:
    gate = Gate(["12D3KooWabc"])
    assert gate.admit("12D3KooWabc")
    assert not gate.admit("12d3koowabc")


def test_cuts_come_once_per_forbidden_peer_and_stranger() -> None:
    gate, cut = Gate(["friend"]), []
    gate.on_cut(cut.append)
    gate.open_pairing(2)
    assert gate.admit("guest")
    gate.close_pairing()
    gate.close_pairing()
    gate.forbid("friend")
    assert cut == ["guest", "friend"]
    assert not gate.admit("guest")
    assert not gate.may("guest", PAIR)


@pytest.mark.parametrize("limit", [0, -1, MAX_STRANGERS + 1])
def test_the_window_cannot_be_wide(limit: int) -> None:
    with pytest.raises(ValueError, match="strangers"):
        Gate().open_pairing(limit)


def test_a_meeting_lets_in_nobody_who_calls() -> None:
    gate, cut = Gate(), []
    gate.on_cut(cut.append)
    with gate.meeting():
        assert not gate.admit("caller")
        assert not gate.pairing_open
        assert gate.admit("met", dialled=True)
        assert not gate.admit("another", dialled=True)
        assert (gate.may("met", PAIR), gate.may("met", INFER), gate.may("caller", PAIR)) == (True, False, False)
    assert cut == ["met"]
    assert not gate.may("met", PAIR)
    assert not gate.admit("met", dialled=True)


def test_a_meeting_with_one_peer_is_with_no_other() -> None:
    gate = Gate()
    with gate.meeting("wanted"):
        assert not gate.admit("another", dialled=True)
        assert gate.admit("wanted", dialled=True)
        gate.leave("wanted")
        assert gate.admit("wanted", dialled=True)


def test_a_window_dials_nobody() -> None:
    gate = Gate()
    gate.open_pairing()
    assert not gate.admit("stranger", dialled=True)


def test_window_and_meeting_do_not_end_each_other() -> None:
    gate, cut = Gate(), []
    gate.on_cut(cut.append)
    with gate.meeting():
        assert gate.admit("met", dialled=True)
        gate.open_pairing(1)
        assert gate.admit("guest")  # the one met takes no guest's place
    assert (gate.pairing_open, cut) == (True, ["met"])
    assert gate.may("guest", PAIR)
    with gate.meeting():
        assert gate.admit("met", dialled=True)
        gate.close_pairing()
        assert cut == ["met", "guest"]
        assert gate.may("met", PAIR)


def test_a_guest_that_is_met_too_stays_until_both_end() -> None:
    gate, cut = Gate(), []
    gate.on_cut(cut.append)
    gate.open_pairing()
    assert gate.admit("both")
    with gate.meeting():
        assert gate.admit("both", dialled=True)
    assert cut == []
    with gate.meeting():
        assert gate.admit("both", dialled=True)
        gate.close_pairing()
        assert cut == []
    assert cut == ["both"]


def test_one_that_was_paired_is_not_cut_when_the_meeting_ends() -> None:
    gate, cut = Gate(), []
    gate.on_cut(cut.append)
    with gate.meeting():
        assert gate.admit("met", dialled=True)
        gate.allow("met")
    assert cut == []
    assert gate.may("met", INFER)


def test_there_is_one_meeting_at_a_time() -> None:
    gate = Gate()
    with gate.meeting():
        with pytest.raises(RuntimeError), gate.meeting():
            pass
        assert gate.is_meeting
    assert not gate.is_meeting


WHAT = st.sampled_from(["allow", "forbid", "open", "close", "admit", "leave", "meet", "part", "dial"])


@given(st.lists(st.tuples(WHAT, st.sampled_from("abcdef"))))
def test_no_order_of_events_lets_a_stranger_do_more(events: list[tuple[str, str]]) -> None:
    gate, allowed, window, meeting = Gate(), set(), False, contextlib.ExitStack()
    called: set[str] = set()
    for what, peer in events:
        match what:
            case "allow":
                gate.allow(peer)
                allowed.add(peer)
            case "forbid":
                gate.forbid(peer)
                allowed.discard(peer)
            case "open":
                gate.open_pairing(2)
                window = True
            case "close":
                gate.close_pairing()
                window = False
            case "admit":
                before = gate.strangers
                assert gate.admit(peer) or peer not in allowed
                assert window or gate.strangers == before
            case "leave":
                gate.leave(peer)
            case "meet" if not gate.is_meeting:
                meeting.enter_context(gate.meeting())
            case "part":
                meeting.close()
                called.clear()
            case "dial":
                if gate.admit(peer, dialled=True) and gate.is_meeting:
                    called.add(peer)
        assert gate.allowed == allowed
        assert len(gate.strangers) <= 2 * window + gate.is_meeting
        assert not gate.strangers & allowed
        assert window or gate.strangers <= called
        for one in "abcdef":
            assert gate.may(one, INFER) == (one in allowed)
            assert not gate.may(one, PAIR) or one in allowed or one in gate.strangers
    meeting.close()
