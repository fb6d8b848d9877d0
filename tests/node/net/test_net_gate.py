"""The gate by itself."""

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


WHAT = st.sampled_from(["allow", "forbid", "open", "close", "admit", "leave"])


@given(st.lists(st.tuples(WHAT, st.sampled_from("abcdef"))))
def test_no_order_of_events_lets_a_stranger_do_more(events: list[tuple[str, str]]) -> None:
    gate, allowed, window = Gate(), set(), False
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
                assert gate.admit(peer) or peer not in allowed
            case "leave":
                gate.leave(peer)
        assert gate.allowed == allowed
        assert len(gate.strangers) <= 2
        assert not gate.strangers & allowed
        assert window or not gate.strangers
        for one in "abcdef":
            assert gate.may(one, INFER) == (one in allowed)
            assert not gate.may(one, PAIR) or one in allowed or (window and one in gate.strangers)
