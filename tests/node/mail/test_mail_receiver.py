"""The receiving side alone, disks that are full or fail, and how much of one peer may wait."""

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
import trio
from fixed import FixedClock
from mail_post import Post, message, open_post, running
from memory_channel import ALICE, BOB, MemoryChannel, memory_channels
from patience import HANG_S

from node.errors import StorageError
from node.mail.receive import Receiver
from node.store import mail
from node.store.database import Database
from node.store.mail import InboxRoom
from protocol.frames.mail import Ack, Gap, MailRefused
from protocol.names import MAIL


@pytest.fixture
async def post(tmp_path: Path) -> AsyncIterator[Post]:
    async with open_post(tmp_path) as opened:
        yield opened


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
        with trio.fail_after(HANG_S):
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
        with trio.fail_after(HANG_S):
            while (await post.states())[:2] != ["delivered"] * 2:
                await trio.sleep(0.01)
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
