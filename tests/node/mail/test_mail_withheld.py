"""Messages that may or can no longer go: expired, withheld, refused, no longer trusted; and who else waits for them."""

from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import msgspec
import pytest
import trio
from fixed import SeededEntropy
from guard_bench import MemoryStream, guard_bench
from mail_post import PEER, Post, open_post, restarted, running
from memory_channel import ALICE, BOB
from patience import HANG_S, until

from node.clock import to_ms
from node.errors import StorageError
from node.mail.errors import MessageTooLong, NothingToSend
from node.mail.outbox import KEEP, Outbox
from node.privacy.egress import Purpose
from node.privacy.errors import EgressDenied, LedgerFailed
from node.privacy.inspector import Inspector
from node.privacy.ledger_rows import StoredLedgerRows
from node.privacy.nets import SecretsNet, VaultNet
from node.privacy.policy import PeerView
from node.privacy.vault import Hit, Vault
from node.store import mail, mail_archive
from node.store.connection import Connection
from node.store.mail import OutboxState
from protocol import limits
from protocol.framing import encode_frame


@pytest.fixture
async def post(tmp_path: Path) -> AsyncIterator[Post]:
    async with open_post(tmp_path) as opened:
        yield opened


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
        with trio.fail_after(HANG_S):
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
        await until(lambda: bool(post.streams))
        await trio.sleep(0.5)
        assert await post.states() == ["queued"]
        assert len(post.streams) <= 4     # it backs off
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
