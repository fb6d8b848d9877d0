"""Closes ledger entries of messages whose end this process learns without having sent them itself.

A crash lies between the sending and the acknowledgement, or the message's time ran out. Must not know streams.
"""

from node.privacy.ledger import Ledger
from node.store.ledger import Head
from node.store.mail import OutboxRow

__all__ = ["close_entry"]


async def close_entry(ledger: Ledger, row: OutboxRow, outcome: str) -> None:
    """Close the open entry of this message, if there is one. Its byte count is unknown here, for which 0 stands."""
    view = await ledger.find_open(row.peer_id, row.message_id)
    if view is not None:
        await ledger.close(Head(view.entry.seq, view.digest), sent_bytes=0, digest=b"", outcome=outcome)
