"""The shared in-memory channel keeps the promises of protocol.channel that drivers rely on."""

import pytest
import trio
import trio.testing
from memory_channel import ALICE, BOB, TestClearance, memory_channels

from protocol import names
from protocol.errors import BadEncoding, ChannelClosed, ChannelLost, DeadlinePassed, LocalProtocolError
from protocol.frames.link import Beat, Echo
from protocol.frames.mail import Mail


async def test_frames_arrive_in_order_and_each_end_names_the_other():
    near, far = memory_channels(names.LINK)
    assert (near.peer_id, far.peer_id) == (BOB, ALICE)
    await near.send(Beat(1))
    await near.send(Beat(2))
    await far.send(Echo(1))
    assert [await far.receive(deadline_s=1), await far.receive(deadline_s=1)] == [Beat(1), Beat(2)]
    assert await near.receive(deadline_s=1) == Echo(1)


async def test_a_finished_side_is_closed_not_lost_and_frames_before_it_arrive():
    near, far = memory_channels(names.LINK)
    await near.send(Beat(1))
    await near.finish()
    assert await far.receive(deadline_s=1) == Beat(1)
    with pytest.raises(ChannelClosed):
        await far.receive(deadline_s=1)
    await far.send(Echo(1))
    assert await near.receive(deadline_s=1) == Echo(1)


async def test_reset_is_lost_at_both_ends_also_for_a_waiting_reader():
    near, far = memory_channels(names.LINK)
    with pytest.RaisesGroup(ChannelLost):
        async with trio.open_nursery() as nursery:
            nursery.start_soon(lambda: far.receive(deadline_s=10))
            await trio.testing.wait_all_tasks_blocked()
            await near.reset()
    with pytest.raises(ChannelLost):
        await near.send(Beat(1))


async def test_silence_ends_at_the_deadline(autojump_clock):
    near, _far = memory_channels(names.LINK)
    with pytest.raises(DeadlinePassed):
        await near.receive(deadline_s=3)
    assert trio.current_time() == pytest.approx(3)


async def test_content_needs_a_clearance_that_covers_it():
    near, far = memory_channels(names.MAIL)
    mail = Mail(1, bytes(16), "chat.msg", "hello", 0)
    with pytest.raises(LocalProtocolError):
        await near.send(mail)
    with pytest.raises(LocalProtocolError):
        await near.send_cleared(mail, TestClearance(("other",)))
    await near.send_cleared(mail, TestClearance(("hello",)))
    assert await far.receive(deadline_s=1) == mail


async def test_a_cut_in_mid_frame_is_lost_and_garbage_is_refused():
    near, far = memory_channels(names.LINK)
    await near.send_raw(b"\x00\x00\x00\x05ab")
    await near.finish()
    with pytest.raises(ChannelLost):
        await far.receive(deadline_s=1)
    near, far = memory_channels(names.LINK)
    await near.send_raw(b"\x00\x00\x00\x01\xc1")
    with pytest.raises(BadEncoding):
        await far.receive(deadline_s=1)
