"""Where orders wait for the thread that decodes, left there by the thread that prepares them.

Must not know what orders are.
"""

import threading
from collections import deque
from typing import Generic, TypeVar

__all__ = ["Desk"]

_COMPLETE_BURST_S = 0.005

Order = TypeVar("Order")


class Desk(Generic[Order]):
    """Orders in the order they came."""

    def __init__(self) -> None:
        self._arrived = threading.Condition()
        self._orders: deque[Order] = deque()
        self._in_hand = False

    def put(self, order: Order) -> None:
        """Leave an order."""
        with self._arrived:
            self._orders.append(order)
            self._arrived.notify()

    def say_in_hand(self, in_hand: bool) -> None:
        """Whether something is being prepared that may become an order."""
        with self._arrived:
            self._in_hand = in_hand
            self._arrived.notify()

    def take(self, *, wait_s: float | None) -> list[Order]:
        """Everything that waits; when there is nothing, what comes within wait_s, None for ever.

        Who had to wait also gets what is in hand just then: a decode that begins with one of several prompts that were
        sent together costs all of them more than the moment until they are ready.
        """
        if wait_s == 0 and not self._orders:
            return []       # between two decodes, while the other cores have nothing to do: without the lock's cost
        with self._arrived:
            if not self._orders and self._arrived.wait_for(lambda: self._orders, wait_s):
                self._arrived.wait_for(lambda: not self._in_hand, _COMPLETE_BURST_S)
            orders = list(self._orders)
            self._orders.clear()
            return orders
