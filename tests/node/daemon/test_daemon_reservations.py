"""Reservations: what was sent counts at once, and no longer than it lasts or until the peer's own word shows it."""

import contextlib

from node.daemon.reservations import Reservations


class Clock:
    now = 50.0

    def __call__(self):
        return self.now


def test_what_was_sent_counts_until_the_peer_says_so_itself():
    clock = Clock()
    book = Reservations(clock)
    with book.hold("a", 4.0):
        assert book.wait_s("a", 0.0, 0.0) == 4.0
        with book.hold("a", 3.0):
            assert (book.wait_s("a", 1.0, 49.0), book.count("a")) == (8.0, 2)
            assert (book.wait_s("b", 1.0, 49.0), book.count("b")) == (1.0, 0)
        clock.now = 51.5
        # it told 6 s at 51.5, long after the first was sent: that is in the 6 s already
        assert book.wait_s("a", 6.0, 51.5) == 6.0
        assert book.wait_s("a", 6.0, 50.5) == 10.0  # told too soon after
    assert (book.wait_s("a", 0.0, 0.0), book.count("a")) == (0.0, 0)


def test_an_error_gives_the_place_back():
    book = Reservations(Clock())
    with contextlib.suppress(ValueError), book.hold("a", 4.0):
        raise ValueError
    assert book.count("a") == 0
