"""What was read where: the common beginning counts, for a while, per conversation and model."""

from offload.prefix_book import CONVERSATIONS, REMEMBERED_S, PrefixBook

HERE, BOB = (None, "d1"), ("bob", "d1")


class Clock:
    now = 0.0

    def __call__(self):
        return self.now


def test_the_common_beginning_counts():
    book = PrefixBook(Clock())
    book.note("c", BOB, ("system", "hello", "hi"), (50, 10, 5))
    book.note("c", HERE, ("system", "bye"), (50, 10))
    grown = ("system", "hello", "hi", "and then?")
    assert book.held("c", grown) == {BOB: 65, HERE: 50}
    assert book.held("c", ("other", "hello")) == {}
    assert book.held("another", grown) == {}
    assert book.last("c") is None  # here, and lately
    book.note("c", BOB, grown, (50, 10, 5, 8))
    assert (book.last("c"), book.held("c", grown)) == ("bob", {HERE: 50, BOB: 73})
    book.forget("c")
    assert (book.last("c"), book.held("c", grown)) == ("", {})


def test_it_ends_with_time_and_number():
    clock = Clock()
    book = PrefixBook(clock)
    book.note("c", BOB, ("system",), (50,))
    clock.now = REMEMBERED_S
    assert book.held("c", ("system",)) == {BOB: 50}
    clock.now += 1
    assert (book.held("c", ("system",)), book.last("c")) == ({}, "")
    for n in range(CONVERSATIONS + 1):
        book.note(f"c{n}", BOB, ("system",), (50,))
    assert (book.held("c0", ("system",)), book.held("c1", ("system",))) == ({}, {BOB: 50})
