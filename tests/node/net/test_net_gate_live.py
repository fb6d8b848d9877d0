"""Strangers: refused before a stream, at once; in a pairing window one protocol, few of them, and gone when it
closes."""

import pytest
import roguepeer
import trio
from netpair import ECHO, HANG_S, LOOPBACK, Node, echoes, know_each_other, make, read_all, say, serving, until

from node.errors import NotPaired
from node.net.errors import DialFailed, ProtocolNotServed, RefusedByPeer
from node.net.events import Connected, Disconnected, Refused
from node.net.limits import NetLimits
from node.net.streams import PeerStream
from protocol.errors import ChannelLost
from protocol.names import PAIR


async def test_a_fresh_key_is_refused_before_a_stream_and_at_once() -> None:
    served: list[str] = []

    async def handler(stream: PeerStream) -> None:
        served.append(stream.protocol)

    home, stranger, friend = make("home", handler=handler), make("stranger"), make("friend")
    know_each_other(home, friend)
    stranger.gate.allow(home.peer_id)
    async with serving(home, friend), serving(stranger):
        await friend.network.connect(home.peer_id, home.addresses, timeout_s=5)
        with trio.fail_after(HANG_S):   # told, which is not the same as finding out at a deadline
            for _ in range(5):
                with pytest.raises(RefusedByPeer):
                    await stranger.network.connect(home.peer_id, home.addresses, timeout_s=5)
        assert [event.peer_id for event in home.seen(Refused)] == [stranger.peer_id] * 5
        assert [event.peer_id for event in home.seen(Connected)] == [friend.peer_id]
        assert stranger.network.connected() == set()
        assert served == []
        assert home.network.connected() == {friend.peer_id}


async def test_control_the_same_key_on_the_list_is_served() -> None:
    home, stranger = make("home"), make("stranger")
    know_each_other(home, stranger)
    async with serving(home, stranger):
        await stranger.network.connect(home.peer_id, home.addresses, timeout_s=5)
        assert await echoes(stranger, home.peer_id)


async def test_a_peer_that_is_not_on_our_list_is_not_dialled() -> None:
    home, stranger = make("home"), make("stranger")
    home.gate.allow(stranger.peer_id)
    async with serving(home, stranger):
        with pytest.raises(NotPaired):
            await stranger.network.connect(home.peer_id, home.addresses, timeout_s=5)
        assert home.seen(Connected) == []


async def test_another_key_at_the_address_is_no_connection() -> None:
    home, other, friend = make("home"), make("other"), make("friend")
    know_each_other(home, other, friend)
    async with serving(home, other, friend):
        with pytest.raises(DialFailed) as failure:
            await friend.network.connect(home.peer_id, other.addresses, timeout_s=5)
        assert "PeerIDMismatch" in next(iter(failure.value.reasons.values()))
        assert friend.network.connected() == set()


async def test_forbidding_a_peer_cuts_its_live_streams() -> None:
    home, friend = make("home"), make("friend")
    know_each_other(home, friend)
    async with serving(home, friend):
        await friend.network.connect(home.peer_id, home.addresses, timeout_s=5)
        stream = await friend.network.open(home.peer_id, ECHO, timeout_s=5)
        assert await say(stream, b"before") == b"before"
        home.gate.forbid(friend.peer_id)
        assert home.network.connected() == set()
        assert await read_all(stream) == (0, ChannelLost)
        with pytest.raises(RefusedByPeer):
            await friend.network.connect(home.peer_id, home.addresses, timeout_s=5)


def strangers(count: int) -> list[Node]:
    return [make(f"stranger{number}") for number in range(count)]


async def test_strangers_in_the_window_speak_the_pairing_protocol_only() -> None:
    home, friend, (guest,) = make("home"), make("friend"), strangers(1)
    know_each_other(home, friend)
    guest.gate.allow(home.peer_id)
    async with serving(home, friend, guest):
        await friend.network.connect(home.peer_id, home.addresses, timeout_s=5)
        home.gate.open_pairing()
        await guest.network.connect(home.peer_id, home.addresses, timeout_s=5)
        assert home.seen(Connected)[-1] == Connected(guest.peer_id, home.seen(Connected)[-1].address, False, True)
        for protocol in (ECHO, "/ipfs/id/1.0.0", "/ipfs/ping/1.0.0", "/kith/link/1"):
            with pytest.raises(ProtocolNotServed):
                await guest.network.open(home.peer_id, protocol, timeout_s=5)
        assert await echoes(guest, home.peer_id, protocol=PAIR)
        assert await echoes(friend, home.peer_id)
        # nor may this node open anything else to the stranger
        with pytest.raises(ProtocolNotServed):
            await home.network.open(guest.peer_id, ECHO, timeout_s=5)


async def test_the_window_holds_few_strangers_and_a_leaver_makes_room() -> None:
    home, guests = make("home"), strangers(4)
    for guest in guests:
        guest.gate.allow(home.peer_id)
    async with serving(home, *guests):
        home.gate.open_pairing(max_strangers=3)
        for guest in guests[:3]:
            await guest.network.connect(home.peer_id, home.addresses, timeout_s=5)
        with pytest.raises(RefusedByPeer):
            await guests[3].network.connect(home.peer_id, home.addresses, timeout_s=5)
        await guests[0].network.disconnect(home.peer_id)
        await until(lambda: len(home.gate.strangers) == 2)
        await guests[3].network.connect(home.peer_id, home.addresses, timeout_s=5)
        assert len(home.network.connected()) == 3


async def test_closing_the_window_drops_strangers_and_keeps_friends() -> None:
    home, friend, (guest,) = make("home"), make("friend"), strangers(1)
    know_each_other(home, friend)
    guest.gate.allow(home.peer_id)
    async with serving(home, friend, guest):
        await friend.network.connect(home.peer_id, home.addresses, timeout_s=5)
        kept = await friend.network.open(home.peer_id, ECHO, timeout_s=5)
        home.gate.open_pairing()
        await guest.network.connect(home.peer_id, home.addresses, timeout_s=5)
        pairing = await guest.network.open(home.peer_id, PAIR, timeout_s=5)
        home.gate.close_pairing()
        assert await read_all(pairing) == (0, ChannelLost)
        with pytest.raises(RefusedByPeer):
            await guest.network.connect(home.peer_id, home.addresses, timeout_s=5)
        assert await say(kept, b"untouched") == b"untouched"


async def test_a_stranger_that_is_paired_keeps_its_connection() -> None:
    home, (guest,) = make("home"), strangers(1)
    guest.gate.allow(home.peer_id)
    async with serving(home, guest):
        home.gate.open_pairing()
        await guest.network.connect(home.peer_id, home.addresses, timeout_s=5)
        home.gate.allow(guest.peer_id)
        home.gate.close_pairing()
        assert await echoes(guest, home.peer_id)
        assert home.seen(Disconnected) == []


async def test_a_silent_stranger_makes_room_by_itself() -> None:
    home, guests = make("home", NetLimits(stranger_idle_s=2.0)), strangers(2)
    for guest in guests:
        guest.gate.allow(home.peer_id)
    async with serving(home, *guests):
        home.gate.open_pairing()
        await guests[0].network.connect(home.peer_id, home.addresses, timeout_s=5)
        assert await echoes(guests[0], home.peer_id, protocol=PAIR)
        await guests[1].network.connect(home.peer_id, home.addresses, timeout_s=5)
        await until(lambda: home.network.connected() == {guests[0].peer_id})


async def test_one_stranger_holds_one_connection() -> None:
    home = make("home")
    async with serving(home):
        home.gate.open_pairing()
        async with roguepeer.muxed(home.addresses[0], "rogue"), roguepeer.muxed(home.addresses[0], "rogue"):
            session = home.network._session
            assert session is not None
            await until(lambda: len(session.table.of(roguepeer.peer_id_of("rogue"))) == 1)


async def test_meeting_an_unknown_node_by_address_needs_a_meeting_here_and_a_window_there() -> None:
    home, phone = make("home"), make("phone")
    async with serving(home, phone, listen=[LOOPBACK]):
        phone.gate.open_pairing()
        with pytest.raises(NotPaired):
            await phone.network.meet(home.addresses, timeout_s=5)
        phone.gate.close_pairing()
        with phone.gate.meeting():
            with pytest.raises(RefusedByPeer):
                await phone.network.meet(home.addresses, timeout_s=5)
            assert phone.gate.strangers == frozenset()
            home.gate.open_pairing()
            met = await phone.network.meet(home.addresses, timeout_s=5)
            assert met.peer_id == home.peer_id
            assert await echoes(phone, home.peer_id, protocol=PAIR)
            with pytest.raises(ProtocolNotServed):
                await phone.network.open(home.peer_id, ECHO, timeout_s=5)
        assert phone.network.connected() == set()


async def test_a_node_that_meets_another_lets_no_caller_in() -> None:
    home, phone, (guest,) = make("home"), make("phone"), strangers(1)
    guest.gate.allow(phone.peer_id)
    home.gate.open_pairing()
    async with serving(home, phone, guest):
        with phone.gate.meeting():
            with pytest.raises(RefusedByPeer):
                await guest.network.connect(phone.peer_id, phone.addresses, timeout_s=5)
            met = await phone.network.meet(home.addresses, timeout_s=5)
            phone.gate.open_pairing()
            await guest.network.connect(phone.peer_id, phone.addresses, timeout_s=5)
        await until(lambda: phone.network.connected() == {guest.peer_id})
        assert met.peer_id == home.peer_id
        assert await echoes(guest, phone.peer_id, protocol=PAIR)
