"""Messages from one database to another: in order, once, over every kind of break, and every ledger entry closed.

Real databases, real guard and both real drivers; only the stream between them is in memory, and it breaks when told to.
"""

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path

import msgspec
import pytest
import trio
from fixed import FixedClock, SeededEntropy
from guard_bench import GuardBench, MemoryStream, guard_bench, memory_streams
from memory_channel import ALICE, BOB, MemoryChannel, memory_channels

from node.clock import to_ms
from node.errors import PeerUnreachable, StorageError
from node.mail.deliver import Deliverer
from node.mail.errors import MessageTooLong, NothingToSend
from node.mail.outbox import KEEP, Outbox
from node.mail.receive import Receiver
from node.privacy.egress import Purpose
from node.privacy.errors import EgressDenied, LedgerFailed
from node.privacy.inspector import Inspector
from node.privacy.ledger_rows import StoredLedgerRows
from node.privacy.nets import SecretsNet, VaultNet
from node.privacy.policy import PeerView
from node.privacy.vault import Hit, Vault
from node.store import mail, mail_archive
from node.store.connection import Connection
from node.store.database import Database
from node.store.mail import InboxRoom, OutboxState
from node.store.schema import KITH
from protocol import limits
from protocol.errors import ChannelLost
from protocol.frames.mail import Ack, Gap, Mail, MailRefused
from protocol.framing import encode_frame
from protocol.names import MAIL

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


@pytest.fixture
async def post(tmp_path: Path) -> AsyncIterator[Post]:
    near = await Database.open(tmp_path / "near.db", b"n" * 32, KITH)
    far = await Database.open(tmp_path / "far.db", b"f" * 32, KITH)
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


async def test_messages_arrive_in_order_and_their_entries_are_closed(post: Post) -> None:
    await post.put("one", "two")
    async with running(post):
        post.deliverer.peer_up(BOB)
        await post.put("three")
        await post.settled()
        assert await post.inbox() == ["one", "two", "three"]
        assert await post.states() == ["delivered"] * 3
        assert await post.open_entries() == 0
        assert len(post.streams) == 1
        assert [peer for peer, _ in post.stored] == [ALICE] * 3
        entries = await post.guard.ledger.newest(limit=10)
        assert [entry.close.sent_bytes for entry in reversed(entries) if entry.close] == [
            len(frame) for frame in post.streams[0].written
        ]


async def test_what_waits_is_delivered_when_the_peer_comes(post: Post) -> None:
    post.road_open = False
    async with running(post):
        await post.put("wait for me")
        post.deliverer.peer_up(BOB)
        await trio.sleep(0.3)
        assert await post.states() == ["queued"]
        post.deliverer.peer_down(BOB)
        post.road_open = True
        post.deliverer.peer_up(BOB)
        await post.settled()
        assert await post.inbox() == ["wait for me"]


@pytest.mark.parametrize("frames", range(6))
async def test_a_stream_that_breaks_after_any_frame_loses_and_doubles_nothing(post: Post, frames: int) -> None:
    """A break in the middle of sending must end that stream only, never the task that serves the lane."""
    post.break_after = [frames, 1, 0]
    await post.put(*"abcde")
    async with running(post):
        post.deliverer.peer_up(BOB)
        await post.settled()
        assert await post.inbox() == list("abcde")
        assert len(post.stored) == 5
        assert await post.open_entries() == 0
        entries = await post.guard.ledger.newest(limit=10)
        sent = sum(len(frame) for stream in post.streams for frame in stream.written)
        counted = sum(entry.close.sent_bytes for entry in entries if entry.close)
        assert sent <= counted <= sent + 3 * limits.MAIL_FRAME_BYTES    # a frame too much, never one too few


async def test_an_acknowledgement_lost_in_a_crash_is_made_good(post: Post) -> None:
    """Stored at the peer, unknown here: the next life learns it from the peer's first word, and closes the entry."""
    await post.put("only once")
    row = (await post.near.read(mail.outbox))[0]
    await post.near.write(mail.mark_sent, BOB, row.seq)
    incoming = mail.Incoming(row.seq, row.message_id, row.kind, row.body, row.created_ms)
    await post.far.write(mail.receive, ALICE, incoming, 0)
    post.guard = await restarted(post.guard, post.near)
    deliverer = post.new_deliverer()
    async with running(post, deliverer):
        deliverer.peer_up(BOB)
        await post.settled()
        assert await post.inbox() == ["only once"]
        assert await post.states() == ["delivered"]
        assert post.streams[0].written == []
        with trio.fail_after(5):
            while await post.open_entries():
                await trio.sleep(0.01)


@pytest.mark.parametrize("fresh", [1, 3, 8])
async def test_an_outbox_put_back_from_a_copy_loses_nothing_to_its_old_numbers(post: Post, fresh: int) -> None:
    """The peer has five messages of a time that this outbox knows nothing of, one of which still waits here."""
    await post.put("in both times")
    known = (await post.near.read(mail.outbox))[0]
    for seq in range(1, 6):
        message_id = known.message_id if seq == 3 else f"{seq:032x}"
        body = known.body if seq == 3 else f"old {seq}"
        await post.far.write(mail.receive, ALICE, mail.Incoming(seq, message_id, known.kind, body, 0), 0)
    new = [f"new {number}" for number in range(fresh)]
    await post.put(*new)
    async with running(post):
        post.deliverer.peer_up(BOB)
        await post.settled()
    assert await post.inbox() == ["old 1", "old 2", "in both times", "old 4", "old 5", *new]
    assert await post.states() == ["delivered"] * (1 + fresh)
    assert await post.open_entries() == 0


async def test_a_peer_that_claims_a_number_nobody_reaches_moves_nothing(post: Post) -> None:
    async def boast(far: MemoryStream) -> None:
        channel = post.guard.egress.channel(far)
        await channel.send(Ack(limits.MAX_SEQ))

    post.answer = boast
    await post.put("one")
    async with running(post):
        post.deliverer.peer_up(BOB)
        with trio.fail_after(10):
            while len(post.streams) < 2:
                await trio.sleep(0.01)
    assert [row.seq for row in await post.near.read(mail.pending, BOB)] == [1]


async def test_a_peer_that_falls_silent_after_an_idle_time_is_given_up(
    post: Post, monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Its link still beats; only the mail stream is dead. The next message goes over a new one, minutes later at most.
    """
    monkeypatch.setattr("node.mail.deliver.ACK_TIMEOUT_S", 0.1)

    async def greet_and_freeze(far: MemoryStream) -> None:
        channel = post.guard.egress.channel(far)
        await channel.send(Ack(0))
        frame = await channel.receive(deadline_s=5)
        assert isinstance(frame, Mail)
        await post.far.write(
            mail.receive, ALICE,
            mail.Incoming(frame.seq, frame.message_id.hex(), frame.kind, frame.body, frame.sent_at_ms), 0)
        await channel.send(Ack(frame.seq))
        post.answer = post._receive
        await trio.sleep_forever()

    post.answer = greet_and_freeze
    await post.put("one")
    async with running(post):
        post.deliverer.peer_up(BOB)
        await post.settled()
        await trio.sleep(0.3)  # nothing is owed for a while
        assert len(post.streams) == 1
        await post.put("two")
        await post.settled()
    assert await post.inbox() == ["one", "two"]
    assert len(post.streams) == 2


async def restarted(guard: GuardBench, database: Database) -> GuardBench:
    """The guard of the next life: the same ledger, no clearances."""
    fresh = await guard_bench(rows=StoredLedgerRows(database))
    fresh.heads.stored = guard.heads.stored
    return fresh


async def test_an_expired_message_is_stepped_over_and_its_entry_closed(post: Post) -> None:
    await post.put("too late")
    post.clock.advance(KEEP / timedelta(seconds=1) + 1)
    assert [row.state for row in await post.outbox.expire()] == [OutboxState.EXPIRED]
    await post.put("in time")
    async with running(post):
        post.deliverer.peer_up(BOB)
        await post.settled()
        assert await post.inbox() == ["in time"]
        assert await post.states() == ["expired", "delivered"]
        assert await post.open_entries() == 0
        outcomes = [entry.close.outcome for entry in await post.guard.ledger.newest(limit=5) if entry.close]
        assert sorted(outcomes) == ["delivered", "expired"]


@pytest.mark.parametrize(("end", "outcome"), [
    ("delivered", "delivered"), ("expired", "expired"), ("withheld", "refused"), ("given up", "expired"),
    ("long gone", "crashed"), ("queued", None), ("sent", None),
])
async def test_a_kill_between_a_messages_end_and_its_entry_is_made_good_at_the_next_start(
    post: Post, end: str, outcome: str | None,
) -> None:
    await post.put("the one", "another that waits")
    far_ms = to_ms(post.clock.now() + 2 * KEEP)

    def first_write_only(tx: Connection) -> None:
        """What is durable when the process is killed before the second."""
        match end:
            case "delivered":
                mail.acknowledge(tx, BOB, 1, 5)
            case "expired":
                tx.execute("UPDATE outbox SET expires_ms = 1 WHERE seq = 1")
                mail.expire(tx, 2)
            case "withheld":
                mail.withhold(tx, BOB, 1, 5, "holds_secret")
            case "given up":
                tx.execute("UPDATE outbox SET state = 'delivered' WHERE seq = 2")
                mail.give_up(tx, BOB, 5)
                tx.execute("UPDATE outbox SET state = 'queued' WHERE seq = 2")
            case "long gone":
                mail.acknowledge(tx, BOB, 1, 5)
                assert mail_archive.drop_settled(tx, far_ms, limit=9) == 1
            case "sent":
                mail.mark_sent(tx, BOB, 1)

    await post.near.write(first_write_only)
    assert await post.open_entries() == 2
    post.guard = await restarted(post.guard, post.near)
    outbox = Outbox(post.near, post.guard.egress, post.clock, SeededEntropy(9))
    for _ in range(2):      # at every start
        await outbox.close_left_open()
        assert await post.open_entries() == (1 if outcome else 2)
        first, _ = reversed(await post.guard.ledger.newest(limit=5))
        assert (first.close and first.close.outcome) == outcome
    if outcome is None:     # what waits goes on with its entry
        deliverer = post.new_deliverer()
        async with running(post, deliverer):
            deliverer.peer_up(BOB)
            await post.settled()
            assert await post.inbox() == ["the one", "another that waits"]
            assert await post.open_entries() == 0


async def test_a_late_acknowledgement_of_a_peer_that_lost_its_trust_closes_the_entry(post: Post) -> None:
    await post.put("got it")
    row = (await post.near.read(mail.outbox))[0]
    await post.near.write(mail.mark_sent, BOB, row.seq)
    incoming = mail.Incoming(row.seq, row.message_id, row.kind, row.body, row.created_ms)
    await post.far.write(mail.receive, ALICE, incoming, 0)
    post.guard = await restarted(post.guard, post.near)
    post.peer = PeerView(BOB, "bob", "none")
    deliverer = post.new_deliverer()
    async with running(post, deliverer):
        deliverer.peer_up(BOB)
        await post.settled()
        with trio.fail_after(5):
            while await post.open_entries():
                await trio.sleep(0.01)
    assert [view.close.outcome for view in await post.guard.ledger.newest(limit=5) if view.close] == ["delivered"]


async def test_a_disk_that_is_full_at_start_keeps_no_node_from_starting(
    post: Post, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture,
) -> None:
    await post.put("one")
    await post.near.write(mail.acknowledge, BOB, 1, 5)

    async def full(*_: object, **__: object) -> None:
        raise StorageError("no room")

    with monkeypatch.context() as patch:
        patch.setattr(post.near, "write", full)
        await post.outbox.close_left_open()
    assert "stay open" in caplog.text
    await post.outbox.close_left_open()
    assert await post.open_entries() == 0


async def test_a_message_that_may_not_leave_any_more_holds_up_no_other(post: Post) -> None:
    stored: list[str] = []

    class StoredSecrets(SecretsNet):
        async def scan(self, text: str, returned: Vault) -> list[Hit]:
            return [Hit(0, 1, "secret") for value in stored if value in text]

    vault = VaultNet()
    await vault.load([])
    inspector = Inspector(vault=vault, secrets=StoredSecrets(), detectors=None)
    post = Post(post.near, post.far, await guard_bench(rows=StoredLedgerRows(post.near), inspector=inspector))
    await post.put("one", "swordfish-77 opens it", "three")
    stored.append("swordfish-77")       # while the message waited
    async with running(post):
        post.deliverer.peer_up(BOB)
        await post.settled()
        assert await post.inbox() == ["one", "three"]
        assert await post.states() == ["delivered", "expired", "delivered"]
        assert await post.open_entries() == 0
        outcomes = [entry.close.outcome for entry in await post.guard.ledger.newest(limit=5) if entry.close]
        assert sorted(outcomes) == ["delivered", "delivered", "refused"]
        rows = await post.near.read(mail.outbox)
        assert all("swordfish" not in row.body for row in rows)
        assert [row.reason for row in reversed(rows)] == ["", "holds_secret", ""]


async def test_a_peer_that_refuses_keeps_nothing_and_is_asked_again_later(post: Post) -> None:
    async def refuse(far: MemoryStream) -> None:
        await post.receiver.refuse(post.guard.egress.channel(far), "not_granted")

    post.answer = refuse
    await post.put("not now")
    async with running(post):
        post.deliverer.peer_up(BOB)
        await trio.sleep(0.5)
        assert await post.states() == ["queued"]
        assert 1 <= len(post.streams) <= 4     # it backs off
        post.answer = post._receive
        post.deliverer.queued(BOB)
        await post.settled()
        assert await post.inbox() == ["not now"]


HOSTILE = {
    "an acknowledgement of what was never sent": encode_frame(msgspec.msgpack.encode({"type": 2, "upto_seq": 99})),
    "no msgpack": encode_frame(b"\xc1\xc1"),
    "a frame of 4 GiB": b"\xff\xff\xff\xff",
    "half a frame": b"\x00\x00\x00\x10abc",
}


@pytest.mark.parametrize("kind", HOSTILE)
async def test_a_hostile_peer_ends_its_stream_and_nothing_else(post: Post, kind: str) -> None:
    async def hostile(far: MemoryStream) -> None:
        await far.write(HOSTILE[kind])
        await far.close_write()

    post.answer = hostile
    await post.put("still here")
    async with running(post):
        post.deliverer.peer_up(BOB)
        await trio.sleep(0.5)
        assert await post.states() == ["queued"]
        post.answer = post._receive
        post.deliverer.queued(BOB)
        await post.settled()
        assert await post.inbox() == ["still here"]


async def test_a_peer_that_is_no_longer_paired_gets_nothing(post: Post) -> None:
    post.peer = None
    await post.put("for nobody")
    async with running(post):
        post.deliverer.peer_up(BOB)
        await trio.sleep(0.3)
        assert post.streams == []
        assert await post.states() == ["queued"]


async def test_what_is_no_message_is_refused_before_anything_is_written(post: Post) -> None:
    for body, error in (("  \n", NothingToSend), ("x" * (limits.MAX_MAIL_CHARS + 1), MessageTooLong)):
        with pytest.raises(error):
            await post.put(body)
    with pytest.raises(EgressDenied):
        await post.put("my key:\n-----BEGIN PRIVATE KEY-----\nMIIB\n-----END PRIVATE KEY-----")
    assert await post.near.read(mail.outbox) == []
    assert await post.guard.ledger.newest(limit=5) == []


async def test_row_and_ledger_entry_are_one_step(post: Post) -> None:
    await post.put("together")
    (row,) = await post.near.read(mail.outbox)
    (entry,) = await post.guard.ledger.newest(limit=5)
    assert (entry.entry.request_id, entry.entry.purpose) == (row.message_id, Purpose.MAIL)
    assert entry.texts == ("together",)
    assert entry.close is None
    assert datetime.fromtimestamp(row.expires_ms / 1000, UTC) == post.clock.now() + KEEP
    short = Outbox(post.near, post.guard.egress, post.clock, SeededEntropy(8), keep=timedelta(days=2))
    row = await short.put(PEER, "as the owner's settings say", post.guard.owner)
    assert datetime.fromtimestamp(row.expires_ms / 1000, UTC) == post.clock.now() + timedelta(days=2)


async def test_a_head_that_cannot_be_kept_does_not_deny_a_message_that_is_queued(
    post: Post, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def full(head: bytes) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr(post.guard.heads, "store", full)
        row = await post.outbox.put(PEER, "dinner at eight?", post.guard.owner)
    assert row.state is OutboxState.QUEUED
    async with running(post):
        post.deliverer.peer_up(BOB)
        await post.put("or nine")       # the next entry moves the head
        await post.settled()
        assert await post.inbox() == ["dinner at eight?", "or nine"]
        assert await post.open_entries() == 0


async def test_a_message_whose_entry_is_not_durable_is_not_queued(
    post: Post, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def full(*_: object) -> None:
        raise StorageError

    monkeypatch.setattr(post.guard.rows, "append", full)
    with pytest.raises(LedgerFailed):
        await post.outbox.put(PEER, "dinner at eight?", post.guard.owner)
    assert await post.near.read(mail.outbox) == []


# -- the receiver alone --

def message(seq: int, body: str = "hi") -> Mail:
    return Mail(seq, seq.to_bytes(16, "big"), "chat.msg", body, 1)


class Cleared:
    """A clearance for whatever is asked."""

    def __init__(self, *texts: str) -> None:
        self.texts = texts


@asynccontextmanager
async def receiving(database: Database) -> AsyncIterator[tuple[MemoryChannel, Receiver]]:
    receiver = Receiver(database, FixedClock(), lambda peer, message_id: None)
    near, far = memory_channels(MAIL)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(receiver.serve, far)
        yield near, receiver
        nursery.cancel_scope.cancel()


async def test_the_receiver_speaks_first_and_acknowledges_only_what_is_stored(post: Post) -> None:
    async with receiving(post.far) as (near, _):
        assert await near.receive(deadline_s=5) == Ack(0)
        await near.send_cleared(message(1), Cleared("hi"))
        assert await near.receive(deadline_s=5) == Ack(1)
        assert await post.inbox() == ["hi"]
        await near.send_cleared(message(1), Cleared("hi"))      # again
        assert await near.receive(deadline_s=5) == Ack(1)
        await near.send(Gap(4))
        assert await near.receive(deadline_s=5) == Ack(4)
        await near.send_cleared(message(5, "after the gap"), Cleared("after the gap"))
        assert await near.receive(deadline_s=5) == Ack(5)
    assert await post.inbox() == ["hi", "after the gap"]


async def test_refusing_says_why_and_stores_nothing(post: Post) -> None:
    receiver = Receiver(post.far, FixedClock(), lambda peer, message_id: None)
    near, far = memory_channels(MAIL)
    await receiver.refuse(far, "not_granted")
    assert await near.receive(deadline_s=5) == MailRefused("not_granted")
    assert await post.inbox() == []


async def test_a_refusal_to_a_peer_that_left_raises_nothing(post: Post) -> None:
    receiver = Receiver(post.far, FixedClock(), lambda peer, message_id: None)
    near, far = memory_channels(MAIL)
    await near.reset()
    await receiver.refuse(far, "not_granted")


# -- a disk that is full or fails --

class FailingTimes:
    """A database's read or write that fails as often as it is told to."""

    def __init__(self, original: Callable[..., Awaitable[object]], times: int, error: Exception | None = None) -> None:
        self.original = original
        self.times = times
        self.error = error or StorageError("The disk is full.")
        self.failed = 0

    async def __call__(self, *args: object, **kwargs: object) -> object:
        await trio.lowlevel.checkpoint()
        if self.times > 0:
            self.times -= 1
            self.failed += 1
            raise self.error
        return await self.original(*args, **kwargs)


async def test_a_message_that_cannot_be_stored_is_not_acknowledged_and_comes_again(
    post: Post, monkeypatch: pytest.MonkeyPatch
) -> None:
    write = FailingTimes(post.far.write, times=1)
    monkeypatch.setattr(post.far, "write", write)
    await post.put("one", "two")
    async with running(post):
        post.deliverer.peer_up(BOB)
        await post.settled()
        assert await post.inbox() == ["one", "two"]
    assert (write.failed, len(post.streams)) == (1, 2)


async def test_a_receiver_that_cannot_read_its_marks_says_busy(post: Post, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(post.far, "read", FailingTimes(post.far.read, times=1))
    async with receiving(post.far) as (near, _):
        assert await near.receive(deadline_s=5) == MailRefused("busy")


@pytest.mark.parametrize("skipped", range(4))
async def test_a_sender_whose_disk_fails_for_a_while_sends_later(
    post: Post, monkeypatch: pytest.MonkeyPatch, skipped: int
) -> None:
    """Wherever in a stream's life the reading fails: the lane goes on."""
    await post.put("still here")
    read = post.near.read
    calls = 0

    async def fail_once_after_some(*args: object, **kwargs: object) -> object:
        nonlocal calls
        calls += 1
        if calls == skipped + 1:
            raise StorageError("The disk fails.")
        return await read(*args, **kwargs)      # type: ignore[arg-type]

    monkeypatch.setattr(post.near, "read", fail_once_after_some)
    async with running(post):
        post.deliverer.peer_up(BOB)
        with trio.fail_after(30):
            while (await read(mail.marks, BOB)).acked < 1:
                await trio.sleep(0.01)
        assert await post.inbox() == ["still here"]
    assert calls > skipped


async def test_negative_control_an_error_that_is_none_of_ours_ends_the_lane(
    post: Post, monkeypatch: pytest.MonkeyPatch
) -> None:
    await post.put("x")
    monkeypatch.setattr(post.near, "read", FailingTimes(post.near.read, 1, ValueError("a bug")))
    post.deliverer.peer_up(BOB)
    with pytest.raises(ExceptionGroup) as stopped:
        await post.deliverer.run()
    assert stopped.group_contains(ValueError, match="a bug")


# -- how much of one peer may wait --

async def test_a_full_inbox_refuses_keeps_nothing_and_takes_the_rest_once_it_is_read(post: Post) -> None:
    post.receiver = Receiver(post.far, post.clock, lambda peer, message: None, InboxRoom(messages=2, size_bytes=2**20))
    await post.put("one", "two", "three", "four")
    async with running(post):
        post.deliverer.peer_up(BOB)
        await trio.sleep(1)
        assert await post.inbox() == ["one", "two"]
        assert (await post.states())[:2] == ["delivered"] * 2
        assert "delivered" not in (await post.states())[2:]     # the sender has them still
        newest = (await post.far.read(mail.inbox))[0]
        await post.far.write(mail.mark_read, newest.arrival, 1)
        post.deliverer.queued(BOB)
        await post.settled()
        assert await post.inbox() == ["one", "two", "three", "four"]


async def test_the_peer_of_a_full_inbox_is_told_so_before_it_sends(post: Post) -> None:
    room = InboxRoom(messages=1, size_bytes=2**20)
    incoming = mail.Incoming(1, "aa" * 16, "chat.msg", "hi", 1)
    await post.far.write(mail.receive, ALICE, incoming, 0, room)
    for allowed, expected in ((room, MailRefused("full")), (InboxRoom(2, 2**20), Ack(1))):      # the second: control
        receiver = Receiver(post.far, FixedClock(), lambda peer, message_id: None, allowed)
        near, far = memory_channels(MAIL)
        async with trio.open_nursery() as nursery:
            nursery.start_soon(receiver.serve, far)
            assert await near.receive(deadline_s=5) == expected
            nursery.cancel_scope.cancel()
