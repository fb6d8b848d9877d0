"""Reservations: what was sent counts at once, and no longer than it lasts or until the peer's own word shows it."""

import contextlib

import pytest

from node.daemon.reservations import Reservations
from offload.prediction import Speed
from offload.router import Choice, JobNeeds, LocalView, Offer, PeerCandidate, choose

OFFER = Offer("m", "ab" * 32, 131_072, speed=Speed(0.003, 0.02, 3.0))


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


def dispatch(book: Reservations, stack: contextlib.ExitStack, prompt_tokens: int, held: str = "work_s") -> Choice:
    """One job of a burst to the better of two equal machines, kept until the end."""
    peers = tuple(
        PeerCandidate(
            peer_id, peer_id, "home", True, True, (OFFER,), in_flight=book.count(peer_id),
            wait_s=book.wait_s(peer_id, 0.0, 0.0))
        for peer_id in "ab")
    choice = choose(JobNeeds("auto", prompt_tokens, 10), LocalView("asker", None), peers, mode="lan")
    assert choice.peer_id is not None
    seconds = choice.work_s if held == "work_s" else choice.work_s + book.wait_s(choice.peer_id, 0.0, 0.0)
    stack.enter_context(book.hold(choice.peer_id, seconds))
    return choice


@pytest.mark.parametrize(("held", "spread"), [("work_s", ["a"] + ["b"] * 9), ("queue too", None)])
def test_a_burst_is_spread_by_its_tokens_not_by_its_count(held, spread):
    """A prompt of 10,000 tokens is as much to read as ten of 970: those all go to the other machine. Negative control:
    counting the queue of each job again with the job, as an expected end would, sends them back and forth."""
    book = Reservations(Clock())
    with contextlib.ExitStack() as stack:
        places = [dispatch(book, stack, tokens, held).peer_id for tokens in [10_000, *[970] * 9]]
        if spread is None:
            assert places.count("a") > 2
        else:
            assert places == spread
            assert abs(book.wait_s("a", 0.0, 0.0) - book.wait_s("b", 0.0, 0.0)) < 3.0
