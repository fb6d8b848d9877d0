"""The bookkeeping of connections: which one is used, which must go, and who may wait."""

from dataclasses import dataclass, field

from hypothesis import given
from hypothesis import strategies as st

from node.net.admission import Admission
from node.net.connections import Connection, ConnectionTable


@dataclass
class FakeMuxer:
    is_closed: bool = False


def connection(peer: str, *, dialled: bool, born_s: float) -> Connection:
    return Connection(peer, "/ip4/127.0.0.1/tcp/1", dialled, born_s, FakeMuxer(), None)


@given(st.booleans(), st.booleans())
def test_both_sides_keep_the_same_one_of_a_race(first_is_a_to_b_at_a: bool, first_is_a_to_b_at_b: bool) -> None:
    kept = []
    for own, peer, first_is_a_to_b in (("a", "b", first_is_a_to_b_at_a), ("b", "a", first_is_a_to_b_at_b)):
        table = ConnectionTable(own, race_s=5)
        a_to_b = connection(peer, dialled=own == "a", born_s=1)
        b_to_a = connection(peer, dialled=own == "b", born_s=1)
        order = [a_to_b, b_to_a] if first_is_a_to_b else [b_to_a, a_to_b]
        losers = [loser for one in order for loser in table.add(one, max_per_peer=4)]
        assert losers == [b_to_a]
        kept.append(table.best(peer) is a_to_b)
    assert kept == [True, True]


def test_a_later_one_is_a_reconnect_and_is_used() -> None:
    table = ConnectionTable("a", race_s=5)
    old, new = connection("b", dialled=True, born_s=0), connection("b", dialled=False, born_s=6)
    assert table.add(old, max_per_peer=4) == []
    assert table.add(new, max_per_peer=4) == []
    assert table.best("b") is new
    new.muxer.is_closed = True
    assert table.best("b") is old


def test_the_oldest_goes_when_there_is_one_too_many() -> None:
    table = ConnectionTable("a", race_s=5)
    ones = [connection("b", dialled=False, born_s=number) for number in range(6)]
    assert [table.add(one, max_per_peer=4) for one in ones] == [[], [], [], [], [ones[0]], [ones[0], ones[1]]]
    assert table.best("b") is ones[5]


def test_removing_tells_the_last() -> None:
    table = ConnectionTable("a", race_s=5)
    one, two = connection("b", dialled=True, born_s=0), connection("b", dialled=True, born_s=1)
    table.add(one, max_per_peer=4)
    table.add(two, max_per_peer=4)
    assert table.peers() == {"b"}
    assert table.remove(one) is False
    assert table.remove(one) is False
    assert table.remove(two) is True
    assert table.remove(two) is False
    assert table.all() == table.of("b") == []


@dataclass(eq=False)
class Arrival:
    ip: str
    aborted: bool = field(default=False)

    def abort(self) -> None:
        self.aborted = True


def test_the_oldest_of_the_same_address_makes_room() -> None:
    admission = Admission(total=10, per_ip=3)
    ones = [Arrival("1.1.1.1") for _ in range(5)]
    other = Arrival("2.2.2.2")
    admission.enter(other)
    for one in ones:
        admission.enter(one)
    assert [one.aborted for one in ones] == [True, True, False, False, False]
    assert not other.aborted
    assert len(admission) == 4
    assert admission.dropped == 2


def test_at_the_total_the_busiest_address_makes_room() -> None:
    admission = Admission(total=4, per_ip=3)
    busy = [Arrival("1.1.1.1") for _ in range(3)]
    for one in busy:
        admission.enter(one)
    admission.enter(Arrival("2.2.2.2"))
    late = Arrival("3.3.3.3")
    admission.enter(late)
    assert [one.aborted for one in busy] == [True, False, False]
    assert not late.aborted


@given(st.lists(st.tuples(st.booleans(), st.integers(0, 3))), st.integers(1, 6), st.integers(1, 4))
def test_the_count_is_always_right_and_within_limits(events: list[tuple[bool, int]], total: int, per_ip: int) -> None:
    admission, inside = Admission(total=total, per_ip=per_ip), []
    for enters, ip in events:
        if enters:
            inside.append(Arrival(str(ip)))
            admission.enter(inside[-1])
        elif inside:
            admission.leave(inside.pop(0))
        inside = [one for one in inside if not one.aborted]
        assert len(admission) == len(inside) <= total
        assert all(sum(one.ip == ip_text for one in inside) <= per_ip for ip_text in "0123")


def through(relay: str, *, born_s: float, dialled: bool = True) -> Connection:
    return Connection("b", f"/p2p/{relay}/p2p-circuit", dialled, born_s, FakeMuxer(), None, relay)


def test_a_direct_one_is_used_before_a_newer_relayed_one() -> None:
    table = ConnectionTable("a", race_s=5)
    direct, relayed = connection("b", dialled=True, born_s=0), through("r", born_s=60)
    assert table.add(direct, max_per_peer=4) + table.add(relayed, max_per_peer=4) == []
    assert table.best("b") is direct
    direct.muxer.is_closed = True
    assert table.best("b") is relayed


@given(st.booleans(), st.booleans())
def test_a_relayed_and_a_direct_one_are_no_race_and_both_stay(dialled: bool, relayed_first: bool) -> None:
    table = ConnectionTable("a", race_s=5)
    ones = [through("r", born_s=1, dialled=not dialled), connection("b", dialled=dialled, born_s=1)]
    for one in ones if relayed_first else ones[::-1]:
        assert table.add(one, max_per_peer=4) == []
    assert table.best("b") is ones[1]


def test_two_relayed_ones_of_both_sides_are_a_race_like_any_other() -> None:
    table = ConnectionTable("a", race_s=5)
    theirs, ours = through("r", born_s=1, dialled=False), through("s", born_s=1)
    table.add(theirs, max_per_peer=4)
    assert table.add(ours, max_per_peer=4) == [theirs]
