"""Messages from one database to another: in order, once, over every kind of break, and every ledger entry closed.

Real databases, real guard and both real drivers; only the stream between them is in memory, and it breaks when told to.
"""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import trio
from guard_bench import MemoryStream
from mail_post import Post, open_post, restarted, running
from memory_channel import ALICE, BOB
from patience import HANG_S

from node.store import mail
from protocol import limits
from protocol.frames.mail import Ack, Mail


@pytest.fixture
async def post(tmp_path: Path) -> AsyncIterator[Post]:
    async with open_post(tmp_path) as opened:
        yield opened


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
        with trio.fail_after(HANG_S):
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
        with trio.fail_after(HANG_S):
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
