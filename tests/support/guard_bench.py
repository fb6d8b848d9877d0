"""A whole egress guard over memory: ledger rows, heads, streams with a tap, an owner who answers, a blind inspector.

The blind inspector is the negative control of every privacy test: composed in place of the real one, the test's own
check has to fail. It exists here only; the product has no switch for it.
"""

from collections import deque
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import trio
from fixed import FixedClock

from node.privacy.consent import Choice, ConsentAnswer, ConsentQuestion
from node.privacy.egress import Egress, EgressClearance, Part, PeerView, Purpose
from node.privacy.inspector import Inspected, Inspector
from node.privacy.labels import Labeled
from node.privacy.ledger import Ledger
from node.privacy.ledger_head import SeedSigner
from node.privacy.nets import SecretsNet, VaultNet
from node.privacy.policy import Level
from node.privacy.vault import Vault
from node.store.ledger import Head, LedgerRow, NewEntry, ReceiptRow
from protocol.errors import ChannelClosed, ChannelLost, DeadlinePassed
from protocol.frames.receipt import Receipt

__all__ = [
    "FRIEND", "HOME", "STRANGER", "BlindInspector", "Chosen", "GuardBench", "MemoryHeads", "MemoryLedgerRows",
    "MemoryStream", "Owner", "guard_bench", "memory_streams",
]

HOME = PeerView("12D3KooWHome", "home-pc", "home")
FRIEND = PeerView("12D3KooWFriend", "dana", "friend")
STRANGER = PeerView("12D3KooWStranger", "who", "none")


class MemoryLedgerRows:
    """LedgerRows in a list. `before_append` may raise or wait, like a disk that is full or slow."""

    def __init__(self) -> None:
        self.rows: list[LedgerRow] = []
        self.signed: list[ReceiptRow] = []
        self.transactions: list[object] = []
        self.before_append: Callable[[], Any] | None = None

    async def append(self, make: Callable[[Head], NewEntry], also: Callable[[Any], None] | None) -> NewEntry:
        if self.before_append is not None:
            waiting = self.before_append()
            if waiting is not None:
                await waiting
        await trio.lowlevel.checkpoint()
        head = Head(self.rows[-1].seq, self.rows[-1].digest) if self.rows else Head(0, b"")
        new = make(head)
        if also is not None:
            also(self.transactions)
        self.rows.append(LedgerRow(
            new.seq, new.digest, new.request_id, new.peer_id, new.purpose, new.at_ms, new.entry, new.outgoing,
            closed=None, closed_ms=None, conversation=new.conversation,
        ))
        return new

    async def close(self, seq: int, closed: bytes, now_ms: int, frames: bytes | None) -> None:
        await trio.lowlevel.checkpoint()
        self.close_in(None, seq, closed, now_ms, frames)

    def close_in(self, tx: Any, seq: int, closed: bytes, now_ms: int, frames: bytes | None) -> None:
        row = self.rows[seq - 1]
        self.rows[seq - 1] = replace(row, closed=closed, closed_ms=now_ms, frames=frames)

    async def receipts(self, first_seq: int, last_seq: int) -> Sequence[ReceiptRow]:
        return [one for one in self.signed if first_seq <= one.seq <= last_seq]

    async def add_receipt(self, peer_id: str, receipt: Receipt, now_ms: int) -> bool:
        wanted = (peer_id, receipt.purpose, receipt.request_id.hex())
        fits = [row for row in self.rows if (row.peer_id, row.purpose, row.request_id) == wanted]
        if not fits:
            return False
        self.signed.append(
            ReceiptRow(fits[-1].seq, receipt.digest, receipt.size_bytes, receipt.signature, now_ms))
        return True

    async def kept_before(self, before_ms: int, limit: int) -> Sequence[LedgerRow]:
        old = [row for row in self.rows if row.at_ms < before_ms and row.closed is not None]
        return [row for row in old if row.dropped is None][:limit]

    async def kept_of(self, conversation: str) -> Sequence[LedgerRow]:
        return [row for row in self.rows if row.conversation == conversation and row.dropped is None]

    async def drop_kept(self, notes: Sequence[tuple[int, bytes]]) -> int:
        for seq, note in notes:
            self.rows[seq - 1] = replace(self.rows[seq - 1], outgoing=None, frames=None, dropped=note)
        return len(notes)

    async def prunable(self, before_ms: int) -> Head | None:
        return None

    async def prune(self, upto: Head, record: bytes) -> int:
        return 0

    async def checkpoint(self) -> bytes | None:
        return None

    async def open_row(self, peer_id: str, request_id: str) -> LedgerRow | None:
        fits = [row for row in self.rows if (row.peer_id, row.request_id, row.closed) == (peer_id, request_id, None)]
        return fits[-1] if fits else None

    async def open_rows(self) -> Sequence[LedgerRow]:
        return [row for row in self.rows if row.closed is None]

    async def get(self, seq: int) -> LedgerRow | None:
        return self.rows[seq - 1] if 0 < seq <= len(self.rows) else None

    async def page(self, after_seq: int, limit: int) -> Sequence[LedgerRow]:
        return [row for row in self.rows if row.seq > after_seq][:limit]

    async def newest(self, limit: int, peer_id: str | None, since_ms: int | None) -> Sequence[LedgerRow]:
        fits = [row for row in reversed(self.rows) if peer_id in (None, row.peer_id) and row.at_ms >= (since_ms or 0)]
        return fits[:limit]


class MemoryHeads:
    """HeadKeeper in memory."""

    def __init__(self) -> None:
        self.stored: bytes | None = None

    async def load(self) -> bytes | None:
        return self.stored

    async def store(self, head: bytes) -> None:
        self.stored = head


class Owner:
    """A ConsentAsker who always answers the same, and keeps every question."""

    def __init__(self, *, allows: bool = True, silent: bool = False, choices: Sequence[Choice] = ()) -> None:
        """choices: what is chosen in the first questions; once, afterwards."""
        self.allows = allows
        self.silent = silent
        self.choices = list(choices)
        self.questions: list[ConsentQuestion] = []

    async def ask(self, question: ConsentQuestion) -> ConsentAnswer:
        self.questions.append(question)
        if self.silent:
            await trio.sleep_forever()
        choice = self.choices.pop(0) if self.choices else Choice.ONCE
        return ConsentAnswer(self.allows, question.digest, choice=choice)


class Chosen:
    """Decisions of an owner who chose one level for everything."""

    def __init__(self, level: Level | None = None, *, for_conversation: bool = False) -> None:
        self.level = level
        self.for_conversation = for_conversation
        self.refused: set[tuple[str, Purpose]] = set()

    def chosen(self, peer_id: str, purpose: Purpose, conversation: str) -> tuple[Level | None, bool]:
        return self.level, self.for_conversation

    def denied(self, peer_id: str, purpose: Purpose) -> bool:
        return (peer_id, purpose) in self.refused

    async def deny_always(self, peer_id: str, purpose: Purpose) -> None:
        self.refused.add((peer_id, purpose))


class BlindInspector(Inspector):
    """Finds nothing and says that all nets ran: the guard switched off."""

    def __init__(self) -> None:
        super().__init__(vault=None, secrets=None, detectors=None)

    @property
    def missing(self) -> tuple[str, ...]:
        return ()

    async def inspect(self, parts: Sequence[Labeled], returned: Vault, *, guess: bool = True) -> Inspected:
        return Inspected(tuple(() for _ in parts), ())

    async def find_secrets(self, texts: Sequence[str], returned: Vault) -> tuple[str, ...]:
        return ()

    async def find_personal(self, texts: Iterable[str], returned: Vault) -> tuple[str, ...]:
        return ()


class MemoryStream:
    """One end of a byte stream, as node.net gives it; `written` is the tap before the transport."""

    def __init__(self, peer_id: str, protocol: str) -> None:
        self.peer_id = peer_id
        self.protocol = protocol
        self.written: list[bytes] = []
        self.fail_write: Exception | None = None
        self.was_reset = False
        self._waiting: deque[bytes] = deque()
        self._ended = False
        self._arrived = trio.Event()
        self.other: MemoryStream | None = None

    async def write(self, data: bytes) -> None:
        await trio.lowlevel.checkpoint()
        if self.fail_write is not None:
            raise self.fail_write
        self.written.append(bytes(data))
        if self.other is not None:
            self.other.push(bytes(data))

    def push(self, data: bytes) -> None:
        """Bytes from the other side."""
        self._waiting.append(data)
        self._arrived.set()

    def push_end(self) -> None:
        """The other side's clean end."""
        self._ended = True
        self._arrived.set()

    async def read(self, max_bytes: int, *, deadline_s: float) -> bytes:
        with trio.move_on_after(deadline_s):
            while True:
                if self.was_reset:
                    raise ChannelLost
                if self._waiting:
                    data = self._waiting.popleft()
                    if len(data) > max_bytes:
                        self._waiting.appendleft(data[max_bytes:])
                    return data[:max_bytes]
                if self._ended:
                    raise ChannelClosed
                self._arrived = trio.Event()
                await self._arrived.wait()
        raise DeadlinePassed

    async def close_write(self) -> None:
        if self.other is not None:
            self.other.push_end()

    async def reset(self) -> None:
        for end in (self, self.other):
            if end is not None:
                end.was_reset = True
                end._arrived.set()


def memory_streams(protocol: str, *, near_peer: str, far_peer: str) -> tuple[MemoryStream, MemoryStream]:
    """(our end, whose peer is near_peer; the peer's end, whose peer is far_peer)."""
    near, far = MemoryStream(near_peer, protocol), MemoryStream(far_peer, protocol)
    near.other, far.other = far, near
    return near, far


@dataclass
class GuardBench:
    """The guard and everything around it."""

    egress: Egress
    ledger: Ledger
    rows: MemoryLedgerRows
    heads: MemoryHeads
    vault: VaultNet
    owner: Owner
    clock: FixedClock
    tapped: list[tuple[str, str, bytes]] = field(default_factory=list)

    async def clear(
        self, *parts: Part, peer: PeerView = HOME, purpose: Purpose = Purpose.INFER, conversation: str = "c1",
        request_id: str = "00" * 16, **more: Any,
    ) -> EgressClearance:
        """egress.clear with this bench's owner."""
        return await self.egress.clear(
            peer=peer, purpose=purpose, conversation=conversation, request_id=request_id, parts=parts,
            ask=more.pop("ask", self.owner), **more,
        )


async def guard_bench(
    values: Iterable[tuple[str, str]] = (), *, inspector: Inspector | None = None, shares: Any = None,
    owner: Owner | None = None, rows: Any = None, decisions: Any = None, never_sign: frozenset[str] = frozenset(),
) -> GuardBench:
    """A guard whose vault holds the values. inspector replaces the real nets. never_sign: as the ledger takes it."""
    vault = VaultNet()
    await vault.load(values)
    clock = FixedClock()
    rows = rows if rows is not None else MemoryLedgerRows()
    heads = MemoryHeads()
    ledger = Ledger(
        rows, heads, SeedSigner(b"s" * 32), chain_key=b"c" * 32, seal_key=b"b" * 32, clock=clock,
        never_sign=never_sign,
    )
    tapped: list[tuple[str, str, bytes]] = []
    numbers = iter(range(1_000_000))
    egress = Egress(
        inspector=inspector or Inspector(vault=vault, secrets=SecretsNet(), detectors=None), ledger=ledger,
        shares=shares, new_id=lambda: f"q{next(numbers)}",
        observer=lambda peer, protocol, data: tapped.append((peer, protocol, data)), decisions=decisions,
    )
    return GuardBench(egress, ledger, rows, heads, vault, owner or Owner(), clock, tapped)
