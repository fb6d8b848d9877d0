"""The stream of events: who gets what, what a slow reader misses, signs of life, and an end to how many may follow."""

from collections.abc import Mapping
from typing import Any

import pytest
import trio
from trio.testing import MockClock

from node.api.events import ALIVE_S, MAX_FOLLOWERS, WAITING_EVENTS, Events, TooManyFollowers


class Reader:
    def __init__(self) -> None:
        self.got: list[Mapping[str, Any]] = []
        self.gate = trio.Event()
        self.gate.set()

    async def emit(self, event: Mapping[str, Any]) -> None:
        await self.gate.wait()
        self.got.append(event)

    def kinds(self) -> list[str]:
        return [event["event"] for event in self.got]


async def test_each_gets_the_kinds_it_asked_for(nursery: trio.Nursery) -> None:
    events, some, every = Events(), Reader(), Reader()
    nursery.start_soon(events.follow, ["mode"], some.emit)
    nursery.start_soon(events.follow, [], every.emit)
    await trio.testing.wait_all_tasks_blocked()
    events.publish({"event": "mode", "n": 1})
    events.publish({"event": "peer", "n": 2})
    await trio.testing.wait_all_tasks_blocked()
    assert some.kinds() == ["following", "mode"]
    assert every.kinds() == ["following", "mode", "peer"]


async def test_a_slow_reader_loses_the_oldest_and_is_told_and_holds_nobody_up(nursery: trio.Nursery) -> None:
    events, slow, quick = Events(), Reader(), Reader()
    nursery.start_soon(events.follow, [], slow.emit)
    nursery.start_soon(events.follow, [], quick.emit)
    await trio.testing.wait_all_tasks_blocked()
    slow.gate = trio.Event()
    events.publish({"event": "n", "n": 0})
    await trio.testing.wait_all_tasks_blocked()     # slow hangs on this one
    for number in range(1, WAITING_EVENTS + 11):
        events.publish({"event": "n", "n": number})
        await trio.testing.wait_all_tasks_blocked()
    assert len(quick.got) == WAITING_EVENTS + 12
    gate, slow.gate = slow.gate, trio.Event()
    slow.gate.set()
    gate.set()
    await trio.testing.wait_all_tasks_blocked()
    assert slow.got[2] == {"event": "missed", "count": 10}
    assert [event["n"] for event in slow.got[3:]] == list(range(11, WAITING_EVENTS + 11))


async def test_signs_of_life_and_nothing_left_behind(autojump_clock: MockClock) -> None:
    events, reader = Events(), Reader()
    with trio.move_on_after(10 * ALIVE_S + 1):
        await events.follow([], reader.emit)
    assert reader.kinds() == ["following", *["alive"] * 10]
    assert events._followers == []


async def test_there_is_an_end_to_how_many_follow(nursery: trio.Nursery) -> None:
    events, reader = Events(), Reader()
    for _ in range(MAX_FOLLOWERS):
        nursery.start_soon(events.follow, [], reader.emit)
    await trio.testing.wait_all_tasks_blocked()
    with pytest.raises(TooManyFollowers):
        await events.follow([], reader.emit)
