"""The clock that jumps, as all tests get it: not while a thread is at work."""

import time

import trio
import trio.testing


async def one_thread_and_a_long_sleep() -> float:
    """How much time has passed for a task that waits for a thread, beside one that sleeps."""
    async def sleeping() -> None:
        await trio.sleep(100)

    async with trio.open_nursery() as nursery:
        nursery.start_soon(sleeping)
        began_s = trio.current_time()
        await trio.to_thread.run_sync(time.sleep, 0.2)
        waited_s = trio.current_time() - began_s
    assert trio.current_time() - began_s >= 100
    return waited_s


async def test_time_does_not_jump_while_a_thread_is_at_work(autojump_clock: trio.testing.MockClock) -> None:
    assert await one_thread_and_a_long_sleep() == 0
    assert autojump_clock.autojump_threshold == 0


def test_control_trios_own_jumps() -> None:
    clock = trio.testing.MockClock(autojump_threshold=0)
    assert trio.run(one_thread_and_a_long_sleep, clock=clock) >= 100
