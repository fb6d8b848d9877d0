"""Rows of answers that are being written: the request, the form it left in, and every piece, until the answer is whole.

They are what an answer goes on from after the node was killed. Encoded parts are node.daemon's; this module must not
read them, nor know peers, models or how an answer is shown.
"""

import struct
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from node.store.connection import Connection

__all__ = ["KeptAnswer", "KeptPiece", "begin", "every", "extend", "note_attempt", "note_leg", "settle"]

_ID = struct.Struct("<I")


@dataclass(frozen=True, slots=True)
class KeptPiece:
    """Something that was written, as it came. tokens: how many it stands for; token_ids: which, where that is known.

    calls: proposals of tool calls, encoded.
    """

    text: str
    thought: str = ""
    tokens: int = 0
    token_ids: tuple[int, ...] = ()
    calls: bytes = b""


@dataclass(frozen=True, slots=True)
class KeptAnswer:
    """One answer under way. job, carried, legs: encoded; carried None: it was read here in clear.

    attempts: how many times it was taken up again.
    """

    request_id: str
    conversation_id: str
    job: bytes
    carried: bytes | None
    legs: bytes
    begun_ms: int
    attempts: int = 0
    pieces: tuple[KeptPiece, ...] = field(default=())


def begin(tx: Connection, answer: KeptAnswer) -> None:
    """Keep a new answer, without pieces. One that is there under this id is replaced."""
    tx.execute("DELETE FROM answers WHERE request_id = ?", (answer.request_id,))
    tx.execute(
        "INSERT INTO answers (request_id, conversation_id, job, carried, legs, begun_ms, attempts) "
        "VALUES (?, ?, ?, ?, ?, ?, 0)",
        (answer.request_id, answer.conversation_id, answer.job, answer.carried, answer.legs, answer.begun_ms),
    )


def note_leg(tx: Connection, request_id: str, *, carried: bytes | None, legs: bytes) -> None:
    """Keep who writes now, and the form in which the request went there."""
    tx.execute("UPDATE answers SET carried = ?, legs = ? WHERE request_id = ?", (carried, legs, request_id))


def extend(tx: Connection, request_id: str, first: int, pieces: Sequence[KeptPiece]) -> None:
    """Keep pieces; first: the number of the first of them. Nothing happens to an answer that is not there."""
    if tx.execute("SELECT 1 FROM answers WHERE request_id = ?", (request_id,)).fetchone() is None:
        return
    tx.executemany(
        "INSERT INTO answer_pieces (request_id, number, text, thought, tokens, token_ids, calls) "
        "VALUES (?, ?, ?, ?, ?, ?, ?)",
        [
            (request_id, number, piece.text, piece.thought, piece.tokens, _packed(piece.token_ids), piece.calls)
            for number, piece in enumerate(pieces, first)
        ],
    )


def note_attempt(tx: Connection, request_id: str) -> int:
    """How many times this answer was taken up again, this time included."""
    tx.execute("UPDATE answers SET attempts = attempts + 1 WHERE request_id = ?", (request_id,))
    row = tx.execute("SELECT attempts FROM answers WHERE request_id = ?", (request_id,)).fetchone()
    return 0 if row is None else int(row[0])


def settle(tx: Connection, request_id: str) -> bool:
    """Whether the answer was there to be erased: it is whole, or no longer wanted."""
    return tx.execute("DELETE FROM answers WHERE request_id = ?", (request_id,)).rowcount > 0


def every(tx: Connection) -> list[KeptAnswer]:
    """All answers that are not settled, oldest first, with their pieces in order."""
    rows = tx.execute(
        "SELECT request_id, conversation_id, job, carried, legs, begun_ms, attempts FROM answers "
        "ORDER BY begun_ms, request_id"
    ).fetchall()
    return [replace(KeptAnswer(*row), pieces=_pieces(tx, row[0])) for row in rows]


def _pieces(tx: Connection, request_id: str) -> tuple[KeptPiece, ...]:
    rows = tx.execute(
        "SELECT text, thought, tokens, token_ids, calls FROM answer_pieces WHERE request_id = ? ORDER BY number",
        (request_id,),
    )
    return tuple(
        KeptPiece(text, thought, tokens, _unpacked(ids), calls) for text, thought, tokens, ids, calls in rows)


def _packed(token_ids: Sequence[int]) -> bytes:
    return b"".join(map(_ID.pack, token_ids))


def _unpacked(data: bytes) -> tuple[int, ...]:
    return tuple(number for (number,) in _ID.iter_unpack(data))
