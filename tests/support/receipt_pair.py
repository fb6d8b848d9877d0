"""Two nodes' guards, ledgers and receipt desks over databases in memory, joined by memory streams, not a network.

No threads, so that a test's clock may jump.
"""

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import msgspec
import trio
from fixed import FixedClock
from guard_bench import MemoryHeads, MemoryStream, Owner, memory_streams
from nacl.signing import SigningKey
from store_rows import memory_rows
from trio.testing import wait_all_tasks_blocked

from node.errors import PeerUnreachable
from node.privacy.channel import GuardedChannel
from node.privacy.egress import Egress, Part, PeerView, Purpose
from node.privacy.inspector import Inspector
from node.privacy.labels import owner_text
from node.privacy.ledger import Ledger
from node.privacy.ledger_head import SeedSigner
from node.privacy.ledger_rows import StoredLedgerRows
from node.privacy.nets import SecretsNet, VaultNet
from node.privacy.receipts import ReceiptDesk
from protocol import names
from protocol.frames.inference import Accepted, End, InferRequest, PromptParts, TokenFrame
from protocol.frames.inference import Part as WirePart
from protocol.ids import peer_id_from_public_key

__all__ = ["Pair", "Side", "receipt_pair"]

DIGEST = "ab" * 32


class InlineDatabase:
    """node.store.database.Database over one connection in memory, in the caller's own thread."""

    def __init__(self) -> None:
        self._tx = memory_rows()

    async def write(self, function: Any, /, *args: Any, **kwargs: Any) -> Any:
        await trio.lowlevel.checkpoint()
        return function(self._tx, *args, **kwargs)

    read = write


@dataclass
class Side:
    """One node."""

    peer_id: str
    database: "InlineDatabase"
    ledger: Ledger
    egress: Egress
    desk: ReceiptDesk
    opened: list[MemoryStream] = field(default_factory=list)
    online: bool = True


@dataclass
class Pair:
    """phone asks, home answers."""

    phone: Side
    home: Side
    nursery: trio.Nursery
    alter: Callable[[bytes], bytes] | None = None
    """What a faulty network makes of the phone's bytes."""

    def channels(self, protocol: str) -> tuple[GuardedChannel, GuardedChannel]:
        """(the phone's end, the home's end) of one stream."""
        near, far = memory_streams(protocol, near_peer=self.home.peer_id, far_peer=self.phone.peer_id)
        if self.alter is not None and protocol != names.RECEIPT:
            push, alter = far.push, self.alter
            far.push = lambda data: push(alter(data))  # type: ignore[method-assign]
        return self.phone.egress.channel(near), self.home.egress.channel(far)

    async def infer(self, request_id: bytes, text: str = "What is salt?", *, words: int = 3) -> None:
        """One request from the phone and its answer, both ledgers closed."""
        near, far = self.channels(names.INFER)
        clearance = await self.phone.egress.clear(
            peer=PeerView(self.home.peer_id, "home", "home"), purpose=Purpose.INFER, conversation="c1",
            request_id=request_id.hex(), parts=(Part("user", owner_text(text)),), ask=Owner(),
        )
        request = InferRequest(
            request_id=request_id, prompt=PromptParts((WirePart("user", clearance.texts[0]),)), max_tokens=9,
            deadline_s=9,
        )
        await near.send_cleared(request, clearance)
        await far.receive(deadline_s=5)
        frames: list[msgspec.Struct] = [
            Accepted(request_id, DIGEST, 0),
            *(TokenFrame(request_id, number, f"word{number} ", 1, (), bytes(16)) for number in range(words)),
            End(request_id, "stop", words, bytes(16), DIGEST),
        ]
        for frame in frames:
            await far.send(frame)
            await near.receive(deadline_s=5)
        await clearance.close("answered")

    async def settle(self) -> None:
        """Let both desks hand in what they owe."""
        await trio.sleep(3)
        await wait_all_tasks_blocked()


@asynccontextmanager
async def receipt_pair(*, deaf: bool = False) -> AsyncIterator[Pair]:
    """deaf: the home node never signs for anything."""
    async with trio.open_nursery() as nursery:
        pair = Pair(await _side(bytes([1]) * 32), await _side(bytes([2]) * 32), nursery)
        for own, other in ((pair.phone, pair.home), (pair.home, pair.phone)):
            own.desk._open_channel = _opener(own, other, nursery)
            if not (deaf and own is pair.home):
                own.egress.note_arrival = own.desk.note
            await nursery.start(own.desk.run)
        yield pair
        nursery.cancel_scope.cancel()


def _opener(own: Side, other: Side, nursery: trio.Nursery) -> Any:
    async def open_channel(peer_id: str) -> GuardedChannel:
        await trio.lowlevel.checkpoint()
        if not (own.online and other.online) or peer_id != other.peer_id:
            raise PeerUnreachable
        near, far = memory_streams(names.RECEIPT, near_peer=other.peer_id, far_peer=own.peer_id)
        own.opened.append(near)
        nursery.start_soon(other.desk.serve, other.egress.channel(far))
        return own.egress.channel(near)

    return open_channel


async def _side(seed: bytes) -> Side:
    key = SigningKey(seed)
    peer_id = peer_id_from_public_key(bytes(key.verify_key))
    database: Any = InlineDatabase()
    clock = FixedClock()
    ledger = Ledger(
        StoredLedgerRows(database), MemoryHeads(), SeedSigner(b"k" * 32), chain_key=b"c" * 32, seal_key=b"s" * 32,
        clock=clock, own_id=peer_id,
    )
    vault = VaultNet()
    await vault.load(())
    egress = Egress(
        inspector=Inspector(vault=vault, secrets=SecretsNet(), detectors=None), ledger=ledger, shares=None,
        new_id=lambda: "q1",
    )

    async def nowhere(peer: str) -> GuardedChannel:
        raise PeerUnreachable

    desk = ReceiptDesk(
        database=database, ledger=ledger, own_id=peer_id, sign=lambda data: key.sign(data).signature, clock=clock,
        open_channel=nowhere,
    )
    return Side(peer_id, database, ledger, egress, desk)
