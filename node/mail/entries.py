"""Closes ledger entries of messages whose end this process learns without having sent them itself.

A crash lies between the sending and the acknowledgement, or between two writes; or the message's time ran out. Must not
know streams.
"""

from node.privacy.ledger import Ledger
from node.privacy.policy import Purpose
from node.store import mail
from node.store.database import Database
from node.store.ledger import Head
from node.store.mail import OutboxRow, OutboxState

__all__ = ["close_entry", "close_left_open"]


async def close_entry(ledger: Ledger, row: OutboxRow, outcome: str) -> None:
    """Close the open entry of this message, if there is one. Its byte count is unknown here, for which 0 stands."""
    view = await ledger.find_open(row.peer_id, row.message_id)
    if view is not None:
        await ledger.close(Head(view.entry.seq, view.digest), sent_bytes=0, digest=b"", outcome=outcome)


async def close_left_open(ledger: Ledger, database: Database) -> int:
    """Close the entries of all messages that are over, at start; how many. Those that wait keep theirs."""
    count = 0
    for place, message_id in await ledger.open_requests(Purpose.MAIL):
        row = await database.read(mail.find, message_id)
        if row is None or row.state in (OutboxState.DELIVERED, OutboxState.EXPIRED):
            await ledger.close(place, sent_bytes=0, digest=b"", outcome=_outcome(row))
            count += 1
    return count


def _outcome(row: OutboxRow | None) -> str:
    if row is None:     # so old that its row was removed
        return "crashed"
    if row.state is OutboxState.DELIVERED:
        return "delivered"
    return "refused" if row.reason and row.reason != mail.FORGOTTEN else "expired"
