"""Who waits at the desk gets what was sent together, and nobody waits for an order that does not come."""

import threading

from offload.engine.desk import Desk


def taking(desk: Desk[str], wait_s: float | None) -> tuple[threading.Thread, list[str]]:
    """A thread that takes once, already waiting."""
    taken: list[str] = []
    thread = threading.Thread(target=lambda: taken.extend(desk.take(wait_s=wait_s)))
    thread.start()
    return thread, taken


def test_orders_come_in_their_order_and_once() -> None:
    desk: Desk[str] = Desk()
    assert desk.take(wait_s=0) == []
    for order in ("a", "b"):
        desk.put(order)
    assert desk.take(wait_s=0) == ["a", "b"]
    assert desk.take(wait_s=0) == []
    desk.put("c")
    assert desk.take(wait_s=None) == ["c"]


def test_who_waits_gets_the_whole_burst() -> None:
    desk: Desk[str] = Desk()
    desk.say_in_hand(True)
    thread, taken = taking(desk, None)
    with desk._arrived:     # so that all of it happens before the thread can go on
        for order in ("a", "b", "c"):
            desk.put(order)
        desk.say_in_hand(False)
    thread.join(10)
    assert taken == ["a", "b", "c"]


def test_what_is_in_hand_for_ever_holds_nobody_up() -> None:
    desk: Desk[str] = Desk()
    desk.say_in_hand(True)
    thread, taken = taking(desk, None)
    desk.put("a")
    thread.join(10)
    assert not thread.is_alive()
    assert taken == ["a"]


def test_between_decodes_nothing_is_waited_for() -> None:
    desk: Desk[str] = Desk()
    desk.say_in_hand(True)
    desk.put("a")
    with desk._arrived:
        pass
    assert desk.take(wait_s=0) == ["a"]
    with desk._arrived:     # not even for the lock
        thread, taken = taking(desk, 0)
        thread.join(10)
        assert not thread.is_alive()
    assert taken == []
