"""A guest of relays by itself: calls that come in are counted when they are taken, not a moment later."""

import pytest
import trio
import trio.testing
from memory_channel import ALICE, BOB

from node.net.limits import RelayLimits
from node.net.relay_messages import Status, StopRequest, decode_stop_reply, encode_stop
from node.net.relaying import RelayGuest
from protocol.errors import ChannelLost


class Call:
    """A stream on which a relay has just told of a call; `taken` lets the answer out."""

    peer_id = BOB

    def __init__(self, *, broken: bool = False) -> None:
        message = encode_stop(StopRequest(ALICE, 10, 10))
        self._waiting = bytes((len(message),)) + message
        self._broken = broken
        self.taken = trio.Event()
        self.written = b""

    async def read(self, most: int, *, deadline_s: float) -> bytes:
        await trio.lowlevel.checkpoint()
        piece, self._waiting = self._waiting[:most], self._waiting[most:]
        return piece

    async def write(self, data: bytes) -> None:
        await self.taken.wait()
        if self._broken:
            raise ChannelLost("cut")
        self.written += data

    @property
    def status(self) -> Status:
        return decode_stop_reply(self.written[1:])


def guest(most: int) -> RelayGuest:
    async def nothing(peer_id: str, protocol: str) -> None:
        raise AssertionError("nothing is opened")

    made = RelayGuest(nothing, RelayLimits(max_called=most), lambda peer_id: True, lambda peer_id: True)  # type: ignore[arg-type]
    made._places[BOB] = trio.current_time() + 60
    return made


async def test_calls_that_come_at_one_moment_count_each_other() -> None:
    made, calls = guest(2), [Call() for _ in range(6)]
    async with trio.open_nursery() as nursery:
        for call in calls:
            nursery.start_soon(made.answer, call)
        await trio.testing.wait_all_tasks_blocked()
        for call in calls:
            call.taken.set()
    said = [call.status for call in calls]
    assert sorted(said) == [Status.OK] * 2 + [Status.RESOURCE_LIMIT_EXCEEDED] * 4
    assert made.called == 2


async def test_a_call_whose_relay_is_gone_before_it_was_taken_counts_no_more() -> None:
    made, call = guest(2), Call(broken=True)
    call.taken.set()
    with pytest.raises(ChannelLost):
        await made.answer(call)  # type: ignore[arg-type]
    assert made.called == 0
