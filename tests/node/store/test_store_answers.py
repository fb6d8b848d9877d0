"""Rows of answers that are being written: whole, in order, and gone with the conversation or once settled."""

from store_rows import memory_rows

from node.store import answers, conversations
from node.store.answers import KeptAnswer, KeptPiece
from node.store.connection import Connection

PIECES = (
    KeptPiece("Dear ", "", 1, (5,)), KeptPiece("", "hm", 2, (6, 70_000)), KeptPiece("[PERSON_1]", "", 1, (), b"call"),
)


def rows(*ids: str) -> Connection:
    tx = memory_rows()
    for one in ids:
        conversations.create(tx, f"c-{one}", 1, confidentiality=0, integrity=2)
        answers.begin(tx, KeptAnswer(one, f"c-{one}", b"job", None, b"", 7))
    return tx


def test_pieces_come_back_in_order() -> None:
    tx = rows("a", "b")
    answers.extend(tx, "a", 0, PIECES[:2])
    answers.extend(tx, "a", 2, PIECES[2:])
    first, second = answers.every(tx)
    assert first == KeptAnswer("a", "c-a", b"job", None, b"", 7, 0, PIECES)
    assert second.pieces == ()


def test_a_leg_and_an_attempt_are_noted() -> None:
    tx = rows("a")
    answers.note_leg(tx, "a", carried=b"map", legs=b"legs")
    assert [answers.note_attempt(tx, "a"), answers.note_attempt(tx, "a"), answers.note_attempt(tx, "zz")] == [1, 2, 0]
    (found,) = answers.every(tx)
    assert (found.carried, found.legs, found.attempts) == (b"map", b"legs", 2)


def test_what_is_settled_leaves_no_piece() -> None:
    tx = rows("a", "b")
    for one in ("a", "b"):
        answers.extend(tx, one, 0, PIECES)
    assert answers.settle(tx, "a")
    assert not answers.settle(tx, "a")
    answers.extend(tx, "a", 3, PIECES)      # a piece that comes late is not kept
    conversations.delete(tx, "c-b")
    assert answers.every(tx) == []
    assert tx.execute("SELECT count(*) FROM answer_pieces").fetchone() == (0,)


def test_a_request_that_begins_anew_begins_empty() -> None:
    tx = rows("a")
    answers.extend(tx, "a", 0, PIECES)
    answers.begin(tx, KeptAnswer("a", "c-a", b"other", b"map", b"", 9))
    assert answers.every(tx) == [KeptAnswer("a", "c-a", b"other", b"map", b"", 9)]
