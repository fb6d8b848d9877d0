"""How long a test waits for what must come: until it is there. Only a hang takes as long as the limit."""

from collections.abc import Callable

import trio

__all__ = ["HANG_S", "until"]

HANG_S = 30.0
"""A busy machine may take a good part of it."""


async def until(condition: Callable[[], bool], timeout_s: float = HANG_S) -> None:
    """Return as soon as condition holds; fail after timeout_s."""
    with trio.fail_after(timeout_s):
        while not condition():
            await trio.sleep(0.005)
