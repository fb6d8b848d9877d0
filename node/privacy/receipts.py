"""Two-sided accounting: signs for what came from peers, and keeps what peers sign for what left this device.

Nobody waits for a receipt: what came is noted without waiting, written down in groups, and handed in on a stream of its
own a moment later, again after each reconnection until it went out. Bounded everywhere: a node that is asked for too
much forgets to sign, which the other side sees as "unreceipted". Must not know how anything is sent or shown.
"""

import logging
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

import trio

from node.clock import Clock, to_ms
from node.errors import KithError
from node.privacy.arrivals import Arrived
from node.privacy.errors import EgressDenied
from node.privacy.ledger import Ledger
from node.privacy.ledger_records import Standing
from node.store import owed_receipts
from node.store.database import Database
from node.store.owed_receipts import OwedReceipt
from protocol import limits
from protocol.channel import FrameChannel
from protocol.errors import ChannelClosed, ChannelError, LocalProtocolError, RemoteProtocolError
from protocol.frames.receipt import Receipt, ReceiptsEnd, ReceiptsWanted
from protocol.receipts import Received, countersign

__all__ = ["Asked", "ReceiptDesk"]

log = logging.getLogger(__name__)

WAITING_LIMIT = 1_024
GROUP_LIMIT = 256
PAUSE_S = 0.5               # an answer's first words go before its receipt
STREAM_DEADLINE_S = 10.0
RETRY_S = 60.0
KEEP_MS = 90 * 86_400_000
_ASK_LIMIT = 4              # streams of one question to a peer
_FAILURES = (ChannelError, RemoteProtocolError, LocalProtocolError, KithError, EgressDenied, trio.TooSlowError, OSError)


@dataclass(frozen=True, slots=True)
class Asked:
    """The outcome of asking a peer: entries it was asked for, receipts that came and were new."""

    asked: int
    new: int


class ReceiptDesk:
    """One per node."""

    def __init__(
        self, *, database: Database, ledger: Ledger, own_id: str, sign: Callable[[bytes], bytes], clock: Clock,
        open_channel: Callable[[str], Awaitable[FrameChannel]], removal: Clock | None = None,
    ) -> None:
        """sign: the device key. open_channel: a guarded channel for /kith/receipt/1; may raise KithError. removal: the
        time by which old ones are forgotten; None: the clock's."""
        self._database = database
        self._ledger = ledger
        self._own_id = own_id
        self._sign = sign
        self._clock = clock
        self._removal = removal or clock
        self._open_channel = open_channel
        self._post, self._arrived = trio.open_memory_channel[Arrived](WAITING_LIMIT)
        self._due: set[str] = set()
        self._serving: set[str] = set()
        self._wake = trio.Event()
        self.overlooked = 0
        """Pieces that came while too many were waiting to be noted."""

    def note(self, arrived: Arrived) -> None:
        """Something came; never waits, never raises."""
        try:
            self._post.send_nowait(arrived)
        except (trio.WouldBlock, trio.BrokenResourceError, trio.ClosedResourceError):
            self.overlooked += 1

    def peer_up(self, peer_id: str) -> None:
        """The peer is here: hand in what is owed to it."""
        self._due.add(peer_id)
        self._wake.set()

    async def run(self, *, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        """Until cancelled."""
        async with trio.open_nursery() as nursery:
            nursery.start_soon(self._keep_noting)
            nursery.start_soon(self._keep_handing_in)
            nursery.start_soon(self._keep_tidy)
            task_status.started()

    # -- handing in ---------------------------------------------------------------------------------------------------

    async def _keep_noting(self) -> None:
        while True:
            group = [await self._arrived.receive()]
            await trio.sleep(PAUSE_S)
            while len(group) < GROUP_LIMIT:
                try:
                    group.append(self._arrived.receive_nowait())
                except trio.WouldBlock:
                    break
            now_ms = to_ms(self._clock.now())
            rows = [
                OwedReceipt(0, one.peer_id, one.purpose, one.request_id, one.size_bytes, one.digest, now_ms)
                for one in group
            ]
            try:
                await self._database.write(owed_receipts.owe, rows)
            except KithError as error:
                log.warning("receipts were not noted: %s", error.code)
                continue
            self._due.update(one.peer_id for one in group)
            self._wake.set()

    async def _keep_handing_in(self) -> None:
        while True:
            await self._wake.wait()
            self._wake = trio.Event()
            while self._due:
                due, self._due = self._due, set()
                async with trio.open_nursery() as nursery:
                    for peer_id in due:
                        nursery.start_soon(self._hand_in, peer_id)

    async def _hand_in(self, peer_id: str) -> None:
        """All that is owed to one peer, as far as it can be reached now."""
        try:
            while rows := await self._database.read(owed_receipts.waiting, peer_id, limit=limits.MAX_RECEIPTS):
                with trio.fail_after(STREAM_DEADLINE_S):
                    channel = await self._open_channel(peer_id)
                    try:
                        for row in rows:
                            await channel.send(self._receipt(row))
                        await channel.finish()
                    except BaseException:
                        with trio.CancelScope(shield=True):
                            await channel.reset()
                        raise
                now_ms = to_ms(self._clock.now())
                await self._database.write(owed_receipts.mark_sent, [row.number for row in rows], now_ms)
        except _FAILURES as error:
            log.debug("receipts for %s wait: %s", peer_id, type(error).__name__)

    async def _keep_tidy(self) -> None:
        """Try those again whose stream broke while the peer stayed, and forget old ones."""
        while True:
            try:
                await self._database.write(owed_receipts.forget_before, to_ms(self._removal.now()) - KEEP_MS)
                self._due.update(await self._database.read(owed_receipts.peers_waiting))
                self._wake.set()
            except KithError as error:
                log.warning("receipts were not looked after: %s", error.code)
            await trio.sleep(RETRY_S)

    def _receipt(self, row: OwedReceipt) -> Receipt:
        return countersign(
            Received(
                sender=row.peer_id, receiver=self._own_id, request_id=row.request_id,
                purpose=row.purpose, size_bytes=row.size_bytes, digest=row.digest,  # type: ignore[arg-type]
            ),
            self._sign,
        )

    # -- the other direction ------------------------------------------------------------------------------------------

    async def serve(self, channel: FrameChannel) -> None:
        """A peer hands receipts in, or asks for some. One stream of a peer at a time; never raises for what it does."""
        peer_id = channel.peer_id
        if peer_id in self._serving:
            return await channel.reset()
        self._serving.add(peer_id)
        try:
            with trio.fail_after(STREAM_DEADLINE_S):
                await self._serve(channel)
        except _FAILURES as error:
            log.info("receipts of %s ended: %s", peer_id, type(error).__name__)
            await channel.reset()
        finally:
            self._serving.discard(peer_id)

    async def _serve(self, channel: FrameChannel) -> None:
        for _ in range(limits.MAX_RECEIPTS):
            try:
                frame = await channel.receive(deadline_s=STREAM_DEADLINE_S)
            except ChannelClosed:
                break
            match frame:
                case Receipt():
                    await self._ledger.take_receipt(channel.peer_id, frame)
                case ReceiptsWanted(request_ids):
                    await self._answer(channel, request_ids)
                    break
                case _:
                    return await channel.reset()
        await channel.finish()

    async def _answer(self, channel: FrameChannel, request_ids: tuple[bytes, ...]) -> None:
        rows = await self._database.read(
            owed_receipts.named, channel.peer_id, request_ids, limit=limits.MAX_RECEIPTS)
        for row in rows:
            await channel.send(self._receipt(row))
        await channel.send(ReceiptsEnd(len(rows)))

    async def ask(self, peer_id: str) -> Asked:
        """Ask the peer for the receipts that the newest entries to it lack. Raises KithError when it is not here."""
        lacking = [
            bytes.fromhex(view.entry.request_id)
            for view in await self._ledger.newest(limit=_ASK_LIMIT * limits.MAX_RECEIPTS, peer_id=peer_id)
            if view.standing in (Standing.UNRECEIPTED, Standing.UNCOUNTED) and len(view.entry.request_id) == 32
        ]
        new = 0
        for start in range(0, len(lacking), limits.MAX_RECEIPTS):
            with trio.fail_after(STREAM_DEADLINE_S):
                new += await self._ask(peer_id, tuple(lacking[start : start + limits.MAX_RECEIPTS]))
        return Asked(len(lacking), new)

    async def _ask(self, peer_id: str, request_ids: tuple[bytes, ...]) -> int:
        channel = await self._open_channel(peer_id)
        new = count = 0
        try:
            await channel.send(ReceiptsWanted(request_ids))
            while count <= limits.MAX_RECEIPTS:
                match await channel.receive(deadline_s=STREAM_DEADLINE_S):
                    case Receipt() as receipt if receipt.request_id in request_ids:
                        count += 1
                        new += await self._ledger.take_receipt(peer_id, receipt)
                    case ReceiptsEnd():
                        await channel.finish()
                        return new
                    case _:
                        break
            await channel.reset()
            return new
        except BaseException:
            with trio.CancelScope(shield=True):
                await channel.reset()
            raise
