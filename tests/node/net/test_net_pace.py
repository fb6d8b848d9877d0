"""How often a node lets itself be called: buckets on a clock that tests move, and floods at real processes."""

import contextlib
from collections import Counter

import pytest
import roguepeer
import trio
import trio.testing
from hypothesis import given
from hypothesis import strategies as st
from netpair import ANY_PACE, echoes, know_each_other, linked_pair, make, serving
from netprocess import child

from node.errors import KithError
from node.net.limits import NetLimits, PaceLimits, Rate
from node.net.pace import CallPace, Pace, source_of

PROOFS = PaceLimits().proofs


class Clock:
    now_s = 100.0

    def __call__(self) -> float:
        return self.now_s


def taken(pace: Pace, source: str, tries: int) -> int:
    return sum(pace.take(source) for _ in range(tries))


@pytest.mark.parametrize(("ip", "source"), [
    ("203.0.113.7", "203.0.113.7"),
    ("2a02:8010:1:2:3::9", "2a02:8010:1:2::/64"),
    ("2a02:8010:1:2:ffff::1", "2a02:8010:1:2::/64"),
    ("2a02:8010:1:3::1", "2a02:8010:1:3::/64"),
    ("::ffff:203.0.113.7", "203.0.113.7"),
    ("fe80::1%eth0", "fe80::1"),                # all devices of a local network share these
    ("fd12::5", "fd12::5"),
    ("::1", "::1"),
])
def test_who_counts_as_one_caller(ip: str, source: str) -> None:
    assert source_of(ip) == source


def test_a_burst_then_as_many_as_time_brings() -> None:
    clock = Clock()
    pace = Pace(Rate(5, 2.0), Rate(100, 100.0), clock)
    assert taken(pace, "a", 9) == 5
    assert (pace.refused, pace.refused_at_s) == (4, 100.0)
    clock.now_s += 1.5
    assert taken(pace, "a", 9) == 3
    assert taken(pace, "b", 9) == 5             # each has its own
    clock.now_s += 3600
    assert taken(pace, "a", 9) == 5             # never more than the burst


def test_all_together_are_limited_and_whoever_was_met_before_is_not_shut_out() -> None:
    clock = Clock()
    pace = Pace(Rate(5, 1.0), Rate(20, 1.0), clock)
    assert pace.take("home")
    pace.give_back("home")                      # a known peer proved itself from there
    assert sum(pace.take(f"flood {number}") for number in range(1000)) == 20
    assert not pace.take("a new place")
    assert taken(pace, "home", 9) == 5          # its own bucket, full again; the common one does not count
    clock.now_s += 1
    assert pace.take("a new place")


def test_control_without_having_been_met_a_flood_from_everywhere_shuts_it_out() -> None:
    pace = Pace(Rate(5, 1.0), Rate(20, 1.0), Clock())
    assert sum(pace.take(f"flood {number}") for number in range(1000)) == 20
    assert not pace.take("home")


def let_in(pace: CallPace, source: str, peer_id: str) -> bool:
    """Whether one call of a known peer gets through."""
    if not (pace.calls.take(source) and pace.proofs.take(source)):
        return False
    pace.proven(source, peer_id)
    return True


def test_a_known_peer_that_comes_back_twice_a_second_all_day_is_let_in_each_time() -> None:
    clock = Clock()
    pace = CallPace(PaceLimits(), clock)
    for _ in range(2000):
        clock.now_s += 0.5
        assert let_in(pace, "home", "peer")
    assert (pace.refused, pace.refused_at_s) == (0, None)


def test_a_known_peer_that_does_nothing_but_call_is_limited_like_a_stranger() -> None:
    """And so is nobody else who calls from elsewhere."""
    limits = PaceLimits()
    pace = CallPace(limits, Clock())
    assert sum(let_in(pace, "home", "peer") for _ in range(1000)) == limits.known.burst + limits.proofs.burst
    assert let_in(pace, "elsewhere", "another")


@given(st.lists(st.tuples(st.sampled_from("abcdefgh"), st.floats(0, 2), st.booleans()), max_size=200))
def test_no_source_gets_more_than_its_rate_and_the_table_is_bounded(calls: list[tuple[str, float, bool]]) -> None:
    clock = Clock()
    pace = Pace(Rate(3, 0.5), Rate(10**6, 1.0), clock, most_sources=4)
    run, begun_s = 0, clock.now_s               # of "a" alone since it was last forgotten or gave something back
    for source, later_s, known in calls:
        clock.now_s += later_s
        if source not in pace._buckets and source == "a":
            run, begun_s = 0, clock.now_s
        got = pace.take(source)
        run += got and source == "a"
        if got and known:
            pace.give_back(source)
            run -= source == "a"
        assert run <= 3 + 0.5 * (clock.now_s - begun_s) + 1e-6
        assert len(pace) <= 4
        assert len(pace._familiar) <= 4


# -- real connections --


@pytest.mark.parametrize("kind", ["kith", "hurried"])
async def test_a_flood_of_handshakes_from_one_address_costs_little_and_shuts_nobody_out(kind: str) -> None:
    """Strangers call from 127.0.0.2 until 400 were answered or refused; a paired peer at 127.0.0.1 comes and goes.
    Negative control: with the limit off the node makes every handshake that anybody asks for."""
    b = make("b")
    counts: Counter[str] = Counter()
    async with child(kind, "a", b.peer_id) as a, serving(b):
        b.gate.allow(a.peer_id)
        begun_s = trio.current_time()
        async with trio.open_nursery() as nursery:
            for _ in range(8):
                nursery.start_soon(
                    roguepeer.knock, a.addresses[0], "127.0.0.2", lambda: counts.total() >= 400, counts)
            for _ in range(5):
                with trio.fail_after(20):
                    await b.network.connect(a.peer_id, a.addresses, timeout_s=10)
                assert await echoes(b, a.peer_id)
                await b.network.disconnect(a.peer_id)
        seconds = trio.current_time() - begun_s
        assert a.alive
        most = PROOFS.burst + PROOFS.per_s * seconds + 8
        if kind == "kith":
            assert counts["proven"] <= most
        else:
            assert counts["proven"] >= 390 > most
        await b.network.connect(a.peer_id, a.addresses, timeout_s=10)
        assert await echoes(b, a.peer_id)


async def test_calls_that_say_nothing_use_up_no_handshakes_and_what_is_refused_is_counted() -> None:
    a, b = make("a", NetLimits(pace=PaceLimits(calls=Rate(20, 0.001)))), make("b")
    know_each_other(a, b)
    async with serving(a, b):
        for _ in range(50):
            with contextlib.suppress(OSError):      # reset before we looked
                async with roguepeer.raw(a.addresses[0], "127.0.0.2"):
                    pass
        with trio.fail_after(5):
            while a.network.pace.calls.refused < 30:
                await trio.sleep(0.01)
        told = a.network.turned_away()
        assert (told.calls, told.strangers, told.lately) == (30, 0, True)
        assert a.network.pace.proofs.refused == 0
        await b.network.connect(a.peer_id, a.addresses, timeout_s=5)
        assert await echoes(b, a.peer_id)


@pytest.mark.parametrize("limited", [True, False])
async def test_a_peer_that_opens_streams_too_fast_is_refused_some_and_others_are_served(limited: bool) -> None:
    """Whatever the service. Negative control: without the limit each of them is opened."""
    pace = PaceLimits(streams=Rate(10, 0.001)) if limited else ANY_PACE
    async with linked_pair(NetLimits(pace=pace)) as (a, b):
        opened = 0
        for _ in range(40):
            try:
                stream = await b.network.open(a.peer_id, "/test/echo/1", timeout_s=5)
            except KithError:
                continue
            opened += 1
            await stream.reset()
        assert opened == (10 if limited else 40)
        assert a.network.turned_away().streams == (30 if limited else 0)
        c = make("c")
        know_each_other(a, c)
        async with serving(c):
            await c.network.connect(a.peer_id, a.addresses, timeout_s=5)
            assert await echoes(c, a.peer_id)
            assert await echoes(a, b.peer_id)   # and the other way round
