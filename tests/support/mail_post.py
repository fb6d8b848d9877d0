"""Two databases and the post between them: real guard, both real drivers, a stream in memory that breaks when told."""

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import trio
from fixed import SeededEntropy
from guard_bench import GuardBench, MemoryStream, guard_bench, memory_streams
from memory_channel import ALICE, BOB

from node.errors import PeerUnreachable
from node.mail.deliver import Deliverer
from node.mail.outbox import Outbox
from node.mail.receive import Receiver
from node.privacy.ledger_rows import StoredLedgerRows
from node.privacy.policy import PeerView
from node.store import mail
from node.store.database import Database
from node.store.schema import KITH
from protocol.errors import ChannelLost
from protocol.frames.mail import Mail
from protocol.names import MAIL

__all__ = ["PEER", "Post", "message", "open_post", "restarted", "running"]


PEER = PeerView(BOB, "bob", "home")


class Post:
    """Alice's outbox, Bob's inbox, and the road between them."""

    def __init__(self, near: Database, far: Database, guard: GuardBench) -> None:
        self.near = near
        self.far = far
        self.guard = guard
        self.clock = guard.clock
        self.outbox = Outbox(near, guard.egress, guard.clock, SeededEntropy(7))
        self.stored: list[tuple[str, str]] = []
        self.receiver = Receiver(far, guard.clock, lambda peer, message: self.stored.append((peer, message)))
        self.road_open = True
        self.streams: list[MemoryStream] = []
        self.break_after: list[int] = []
        """For each coming stream: after how many written frames of the sender it breaks."""
        self.answer: Callable[[MemoryStream], Awaitable[None]] = self._receive
        self.peer: PeerView | None = PEER
        self.nursery: trio.Nursery | None = None
        self.deliverer = self.new_deliverer()

    def new_deliverer(self) -> Deliverer:
        return Deliverer(self.near, self.guard.egress, self._open, self._find, self.clock)

    async def _find(self, peer_id: str) -> PeerView | None:
        assert peer_id == BOB
        return self.peer

    async def _open(self, peer_id: str) -> object:
        await trio.lowlevel.checkpoint()
        if not self.road_open:
            raise PeerUnreachable("no road")
        near, far = memory_streams(MAIL, near_peer=BOB, far_peer=ALICE)
        self.streams.append(near)
        if self.break_after:
            breaks_after, write = self.break_after.pop(0), near.write

            async def write_until(data: bytes) -> None:
                if len(near.written) >= breaks_after:
                    await near.reset()
                    near.fail_write = ChannelLost("cut by the test")
                await write(data)

            near.write = write_until  # type: ignore[method-assign]
        assert self.nursery is not None
        self.nursery.start_soon(self.answer, far)
        return self.guard.egress.channel(near)

    async def _receive(self, far: MemoryStream) -> None:
        await self.receiver.serve(self.guard.egress.channel(far))

    async def put(self, *bodies: str) -> None:
        for body in bodies:
            await self.outbox.put(PEER, body, self.guard.owner)
        self.deliverer.queued(BOB)

    async def inbox(self) -> list[str]:
        rows = await self.far.read(mail.inbox)
        return [row.body for row in reversed(rows)]

    async def states(self) -> list[str]:
        return [row.state.value for row in reversed(await self.near.read(mail.outbox))]

    async def open_entries(self) -> int:
        report = await self.guard.ledger.verify()
        assert report.ok
        return report.open_entries

    async def settled(self) -> None:
        """Until every number is acknowledged."""
        with trio.fail_after(30):
            while True:
                marks = await self.near.read(mail.marks, BOB)
                if marks.acked == marks.allocated:
                    return
                await trio.sleep(0.01)


@asynccontextmanager
async def open_post(folder: Path) -> AsyncIterator[Post]:
    """Fresh databases in this folder, closed at the end."""
    near = await Database.open(folder / "near.db", b"n" * 32, KITH)
    far = await Database.open(folder / "far.db", b"f" * 32, KITH)
    try:
        yield Post(near, far, await guard_bench(rows=StoredLedgerRows(near)))
    finally:
        with trio.CancelScope(shield=True):
            await near.close()
            await far.close()


@asynccontextmanager
async def running(post: Post, deliverer: Deliverer | None = None) -> AsyncIterator[None]:
    async with trio.open_nursery() as nursery:
        post.nursery = nursery
        await nursery.start((deliverer or post.deliverer).run)
        yield
        nursery.cancel_scope.cancel()


async def restarted(guard: GuardBench, database: Database) -> GuardBench:
    """The guard of the next life: the same ledger, no clearances."""
    fresh = await guard_bench(rows=StoredLedgerRows(database))
    fresh.heads.stored = guard.heads.stored
    return fresh


def message(seq: int, body: str = "hi") -> Mail:
    return Mail(seq, seq.to_bytes(16, "big"), "chat.msg", body, 1)
