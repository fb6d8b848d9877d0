"""The guarded channel receives whole frames or says what is wrong, whatever comes."""

import pytest
import trio
from channel_frames import FRIEND, RID, bench, cleared, request, stream_for
from frame_samples import ID, OTHER_ID, PEER_A, PEER_B
from guard_bench import memory_streams

from node.privacy.egress import Part, Purpose
from node.privacy.labels import Confidentiality, Integrity, Labeled
from protocol import canonical, names
from protocol.errors import ChannelClosed, ChannelLost, DeadlinePassed, RemoteProtocolError
from protocol.frames import link, query
from protocol.framing import encode_frame

# -- receiving -----------------------------------------------------------------------------------------------------

async def test_frames_arrive_whole_however_they_are_cut() -> None:
    guard = await bench()
    near, far = memory_streams(names.LINK, near_peer=PEER_B, far_peer=PEER_A)
    channel = guard.egress.channel(near)
    assert (channel.peer_id, channel.protocol) == (PEER_B, names.LINK)
    data = b"".join(encode_frame(canonical.encode(link.Beat(n))) for n in range(3))
    for at in range(0, len(data), 2):
        await far.write(data[at : at + 2])
    await far.close_write()
    assert [await channel.receive(deadline_s=5) for _ in range(3)] == [link.Beat(n) for n in range(3)]
    with pytest.raises(ChannelClosed):
        await channel.receive(deadline_s=5)


async def test_an_end_in_the_middle_of_a_frame_is_a_loss() -> None:
    guard = await bench()
    near, far = memory_streams(names.LINK, near_peer=PEER_B, far_peer=PEER_A)
    await far.write(encode_frame(canonical.encode(link.Beat(1)))[:-1])
    await far.close_write()
    with pytest.raises(ChannelLost):
        await guard.egress.channel(near).receive(deadline_s=5)


async def test_silence_ends_at_the_deadline_even_when_bytes_trickle(autojump_clock) -> None:
    guard = await bench()
    near, far = memory_streams(names.LINK, near_peer=PEER_B, far_peer=PEER_A)
    channel = guard.egress.channel(near)

    async def trickle() -> None:
        for byte in encode_frame(b"x" * 60):
            await trio.sleep(1)
            await far.write(bytes([byte]))

    async with trio.open_nursery() as nursery:
        nursery.start_soon(trickle)
        start = trio.current_time()
        with pytest.raises(DeadlinePassed):
            await channel.receive(deadline_s=5)
        assert trio.current_time() - start == pytest.approx(5)
        nursery.cancel_scope.cancel()


@pytest.mark.parametrize("data", [
    b"\x7f\xff\xff\xff", b"\0\0\0\0", encode_frame(b"\xc1"), encode_frame(b"\x93\x09\x01\x02"),
    encode_frame(canonical.encode(link.Beat(1)) + b"\0"),
])
async def test_bytes_that_break_the_rules_reset_the_stream(data: bytes) -> None:
    guard = await bench()
    near, far = memory_streams(names.LINK, near_peer=PEER_B, far_peer=PEER_A)
    await far.write(data)
    with pytest.raises(RemoteProtocolError):
        await guard.egress.channel(near).receive(deadline_s=5)
    assert near.was_reset


async def test_a_write_that_fails_is_counted_as_perhaps_sent() -> None:
    guard = await bench()
    stream = stream_for(names.INFER)
    stream.fail_write = ChannelLost()
    clearance = await cleared(guard, "hello")
    with pytest.raises(ChannelLost):
        await guard.egress.channel(stream).send_cleared(request("hello"), clearance)
    assert clearance.sent_bytes > 0


async def test_a_labelled_answer_needs_a_share_to_be_cleared() -> None:
    class Shares:
        async def covers(self, source: str, peer_id: str) -> bool:
            return source == "share:notes"

    guard = await bench(shares=Shares())
    parts = [Part(role, Labeled(text, Confidentiality.PUBLIC, Integrity.LOCAL, "share:notes"))
             for role, text in (("title", "Soup"), ("passage", "Zdravka's soup"), ("folder", "notes"))]
    clearance = await guard.clear(*parts, purpose=Purpose.ANSWER, peer=FRIEND, request_id=RID)
    stream = stream_for(names.QUERY)
    frame = query.Answer(ID, (query.Passage(OTHER_ID, "Soup", "Zdravka's soup", "notes"),))
    await guard.egress.channel(stream).send_cleared(frame, clearance)
    assert len(stream.written) == 1
