"""Who is here, between two real nodes: gone within three seconds when killed or frozen, told at once when leaving in
order, never back before it really speaks; and a node that ends at once on Ctrl-C whatever hangs on it.
"""

import contextlib
import os
import signal
import threading
import time
from collections.abc import Iterator

import pytest
from events_of import Follower
from lateness import lateness_of
from running_nodes import Household, household, until

from node.cli.failure import CommandFailure

pytestmark = [pytest.mark.e2e]

GONE_S = 3.0
CTRL_C_S = 2.0


@pytest.fixture(scope="module")
def house() -> Iterator[Household]:
    with household() as running:
        yield running


@pytest.fixture(scope="module")
def seen(house: Household) -> Follower:
    return Follower(house.phone, "peer")


def log_of(house: Household) -> str:
    return (house.phone.home / "state" / "kith.log").read_text()


def test_a_killed_peer_is_gone_in_time_and_back_when_it_speaks(house: Household, seen: Follower) -> None:
    with lateness_of(house.phone.pid) as late:
        mark, began_s = len(seen.events), time.monotonic()
        house.kill(house.home_pc)
        gone_s = seen.wait(mark, here=False) - began_s
        print(f"killed: gone after {gone_s:.2f} s, {late.seconds:.2f} s of it the machine's")
        assert gone_s <= GONE_S + late.seconds
    until(lambda: house.phone.client().get("/v1/mode")["why"] == "as you chose; none of 1 paired peers answers",
          "the mode says so")
    time.sleep(2)
    assert [event["here"] for event in seen.of("peer")][-1] is False
    house.start(house.home_pc)
    seen.wait(mark + 1, here=True)


def test_a_frozen_peer_is_gone_in_time_and_is_not_taken_for_present_while_its_port_answers(
    house: Household, seen: Follower
) -> None:
    mark = len(seen.events)
    try:
        with lateness_of(house.phone.pid) as late:
            began_s = time.monotonic()
            os.kill(house.home_pc.pid, signal.SIGSTOP)
            gone_s = seen.wait(mark, here=False) - began_s
            print(f"frozen: gone after {gone_s:.2f} s, {late.seconds:.2f} s of it the machine's")
            assert gone_s <= GONE_S + late.seconds
        time.sleep(6)       # its kernel takes connections all the time
        assert len(seen.events) == mark + 1
    finally:
        os.kill(house.home_pc.pid, signal.SIGCONT)
    with lateness_of(house.phone.pid) as late, lateness_of(house.home_pc.pid) as late_there:
        woken_s = time.monotonic()
        back_s = seen.wait(mark + 1, here=True) - woken_s
        machine_s = late.seconds + late_there.seconds
        print(f"woken: back after {back_s:.2f} s, {machine_s:.2f} s of it the machine's")
        assert back_s <= GONE_S + 2 + machine_s
    house.wait_connected()


def test_leaving_in_order_is_told(house: Household, seen: Follower) -> None:
    mark, said = len(seen.events), log_of(house).count("is gone (bye:shutdown)")
    assert house.home_pc.stop() == 0
    seen.wait(mark, here=False)
    until(lambda: log_of(house).count("is gone (bye:shutdown)") == said + 1, "the log says why")
    house.start(house.home_pc)
    seen.wait(mark + 1, here=True)
    house.wait_connected()


def test_ctrl_c_ends_a_node_at_once_whatever_hangs_on_it(house: Household) -> None:
    """A pairing window that waits, a follower, and a ping to a frozen peer. On a machine that is busy with other things
    the same end without anything hanging is the measure."""
    took_s = []
    for _ in range(3):
        os.kill(house.home_pc.pid, signal.SIGSTOP)
        try:
            threading.Thread(target=_hang, args=(house, "/v1/pair/open"), daemon=True).start()
            threading.Thread(target=_ping, args=(house,), daemon=True).start()
            Follower(house.phone, "mode")
            time.sleep(0.5)
            took_s.append(_ended_s(house))
        finally:
            os.kill(house.home_pc.pid, signal.SIGCONT)
        house.start(house.phone)
        if took_s[-1] < CTRL_C_S:
            break
    house.wait_connected()
    bare_s = _ended_s(house)
    house.start(house.phone)
    print(f"Ctrl-C: ended after {min(took_s):.2f} s, with nothing hanging after {bare_s:.2f} s")
    assert min(took_s) < max(CTRL_C_S, bare_s + 1.0), (took_s, bare_s)


def _ended_s(house: Household) -> float:
    began_s = time.monotonic()
    assert house.phone.stop(signal.SIGINT) == 0
    return time.monotonic() - began_s


def _hang(house: Household, path: str) -> None:
    stream = house.phone.client().stream(path, {})
    with contextlib.suppress(CommandFailure, OSError), contextlib.closing(stream) as events:
        for _ in events:
            pass


def _ping(house: Household) -> None:
    with contextlib.suppress(CommandFailure, OSError):
        house.phone.client().post("/v1/peers/home-pc/ping", {"timeout_s": 60})
