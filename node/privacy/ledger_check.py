"""The walk over the ledger that finds a flipped bit, a swapped, missing or cut-off entry, and a peer's other word.

Pure over rows: the caller reads them. Must not know SQL, nor change anything.
"""

import hmac
from collections import Counter
from collections.abc import Callable, Sequence

import msgspec

from node.privacy.errors import LedgerBroken
from node.privacy.ledger_head import SignedHead
from node.privacy.ledger_records import Entry, EntryView, ReceiptView, Report, Standing, body_digest, texts_digest
from node.privacy.ledger_seal import LedgerSeal
from node.store.ledger import Head, LedgerRow, ReceiptRow

__all__ = ["ChainCheck", "Genuine"]

Genuine = Callable[[Entry, ReceiptView], bool]
"""Whether this receipt is really the peer's signature for this entry."""


class ChainCheck:
    """One walk. Feed it the rows in order, then take the report."""

    def __init__(self, seal: LedgerSeal, head: SignedHead | None, start: Head, genuine: Genuine) -> None:
        """start: the entry before the first row, as the signed checkpoint says; Head(0, b"") without one."""
        self._seal = seal
        self._head = head
        self._start = start
        self._last = start
        self._genuine = genuine
        self._problems: list[str] = []
        self._disputes: list[str] = []
        self._open = 0
        self._standings: Counter[Standing] = Counter()

    @property
    def seq(self) -> int:
        """The number of the last entry seen."""
        return self._last.seq

    def add(self, row: LedgerRow, receipts: Sequence[ReceiptRow] = ()) -> None:
        """The next row."""
        self._problems += self._look(row, tuple(receipts))
        head = self._head
        if head is not None and row.seq == head.seq and not hmac.compare_digest(row.digest, head.digest):
            self._problems.append(f"entry {row.seq}: not the entry that the signed head names")
        self._open += row.closed is None
        self._last = Head(row.seq, row.digest)

    def note(self, problem: str) -> None:
        """Something that is wrong beside the rows."""
        self._problems.append(problem)

    def report(self) -> Report:
        """What was found."""
        problems = list(self._problems)
        if self._head is not None and self._head.seq > self._last.seq:
            problems.append(f"entries {self._last.seq + 1} to {self._head.seq} are missing: the end was cut off")
        return Report(
            self._last.seq, self._open, self._last.digest, tuple(problems), tuple(self._disputes), self._start.seq + 1,
            dict(self._standings),
        )

    def _look(self, row: LedgerRow, receipts: tuple[ReceiptRow, ...]) -> list[str]:
        where, before = f"entry {row.seq}", self._last
        if row.seq != before.seq + 1:
            return [f"{where}: entry {before.seq + 1} is missing before it"]
        try:
            entry = msgspec.msgpack.decode(row.entry, type=Entry)
        except msgspec.MsgspecError:
            return [f"{where}: its bytes are damaged"]
        found = []
        if not self._seal.follows(row):
            found.append(f"{where}: it was changed")
        if entry.prev != before.digest or entry.seq != row.seq:
            found.append(f"{where}: it does not follow entry {before.seq}")
        columns = (row.request_id, row.peer_id, row.purpose, row.at_ms, row.conversation)
        if columns != (entry.request_id, entry.peer_id, entry.purpose, entry.at_ms, entry.conversation):
            found.append(f"{where}: its columns differ from what the chain says")
        try:
            view = self._seal.view(row, receipts)
        except LedgerBroken as error:
            return [*found, f"{where}: {error.text}"]
        self._standings[view.standing] += 1
        return [*found, *_kept(where, view), *self._compare(where, view)]

    def _compare(self, where: str, view: EntryView) -> list[str]:
        """Our count against the peer's signature."""
        forged = [f"{where}: a receipt is not the peer's" for one in view.receipts
                  if not self._genuine(view.entry, one)]
        if not forged and view.standing is Standing.MISMATCH:
            self._disputes.append(f"{where}: the peer signed for other bytes than those that left")
        return forged


def _kept(where: str, view: EntryView) -> list[str]:
    """Whether kept texts and bytes are what left, and what is not there was dropped by the rules."""
    found = []
    if view.texts is None and view.dropped is None:
        found.append(f"{where}: its kept texts were taken out")
    if view.texts is not None and texts_digest(view.texts) != view.entry.texts_sha256:
        found.append(f"{where}: the kept texts are not those that left")
    close = view.close
    if close is None:
        return found
    if view.bodies is None and close.bodies_kept and view.dropped is None:
        found.append(f"{where}: its kept bytes were taken out")
    if view.bodies is not None:
        kept = tuple((len(body), body_digest(body)) for body in view.bodies)
        if kept != close.stretches[: close.bodies_kept]:
            found.append(f"{where}: the kept bytes are not those that left")
    return found
