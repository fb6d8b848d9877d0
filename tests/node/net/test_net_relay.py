"""Circuits through a paired relay: end-to-end encryption, the gate on all three, limits, and the change to a direct
connection. Three real networks on loopback; the two ends know no address of each other."""

import dataclasses

import pytest
import trio
from netpair import ECHO, HELD, SINK, echoes, read_all, say, until
from netrelay import Trio, around_a_relay, make_relaying

from node.errors import PeerUnreachable
from node.net import delimited
from node.net.errors import DialFailed, NotConnected, ProtocolNotServed
from node.net.events import Connected, Refused, Rerouted
from node.net.limits import NetLimits, RelayLimits
from node.net.relay_messages import (
    HOP,
    STOP,
    HopRequest,
    Status,
    StopRequest,
    decode_hop_reply,
    decode_stop_reply,
    encode_hop,
    encode_stop,
)
from protocol.errors import ChannelClosed, ChannelLost

CANARY = b"the-password-of-the-garden-shed"


def limits(**changes: object) -> NetLimits:
    return NetLimits(retire_s=0.05, relay=dataclasses.replace(RelayLimits(), after_direct_s=0.0, **changes))


async def test_two_peers_talk_through_a_relay_and_it_sees_ciphertext_only() -> None:
    async with around_a_relay() as three:
        near, far = three.near, three.far
        info = await near.network.connect(far.peer_id, [], timeout_s=5)
        assert (info.peer_id, info.via) == (far.peer_id, three.relay.peer_id)
        assert info.address == f"/p2p/{three.relay.peer_id}/p2p-circuit"
        await until(lambda: near.peer_id in far.network.connected())
        assert await echoes(near, far.peer_id, CANARY * 100)
        assert await echoes(far, near.peer_id, CANARY)
        (account,) = three.policy.accounts
        assert (account.caller, account.called) == (near.peer_id, far.peer_id)
        assert len(account.data) > len(CANARY) * 200
        assert CANARY not in account.data
        # what is in the open is the choice of the handshake, and nothing after it
        assert account.data.count(b"/noise\n") == 2
        assert ECHO.encode() not in account.data
        assert b"yamux" not in account.data


async def test_control_the_tap_would_find_the_words_of_a_circuit_without_a_handshake() -> None:
    async with around_a_relay() as three:
        stream = await three.near.network.guest.call(three.relay.peer_id, three.far.peer_id)
        await stream.write(CANARY)
        await until(lambda: bool(three.policy.accounts and CANARY in three.policy.accounts[0].data))


async def test_the_end_of_a_circuit_is_accounted_and_frees_its_place() -> None:
    async with around_a_relay() as three:
        await three.near.network.connect(three.far.peer_id, [], timeout_s=5)
        assert three.relay.network.relay is not None
        assert three.relay.network.relay.circuits == 1
        await three.near.network.disconnect(three.far.peer_id)
        await until(lambda: three.policy.accounts[0].outcome is not None)
        assert three.policy.accounts[0].outcome == "end"
        await until(lambda: three.relay.network.relay is not None and three.relay.network.relay.circuits == 0)
        await until(lambda: three.near.peer_id not in three.far.network.connected())
        await three.near.network.connect(three.far.peer_id, [], timeout_s=5)
        assert await echoes(three.near, three.far.peer_id)


async def test_a_lost_relay_breaks_the_streams_through_it_and_they_never_end_cleanly() -> None:
    async with around_a_relay() as three:
        await three.near.network.connect(three.far.peer_id, [], timeout_s=5)
        stream = await three.near.network.open(three.far.peer_id, ECHO, timeout_s=5)
        await say(stream, b"half a sentence")
        three.relay.gate.forbid(three.near.peer_id)  # the owner of the relay forgets this peer
        assert await read_all(stream) == (0, ChannelLost)
        await until(lambda: three.far.peer_id not in three.near.network.connected())


async def test_a_peer_without_a_place_is_not_called() -> None:
    async with around_a_relay(reserved=False) as three:
        with pytest.raises(DialFailed) as failure:
            await three.near.network.connect(three.far.peer_id, [], timeout_s=5)
        assert list(failure.value.reasons.values()) == ["A relay was asked, and the peer holds no place there."]
        assert three.policy.accounts == []


async def test_only_those_that_were_granted_it_may_use_a_relay() -> None:
    async with around_a_relay() as three:
        three.policy.carries.discard(three.near.peer_id)
        with pytest.raises(PeerUnreachable, match="does not carry for this node"):
            await three.near.network.guest.call(three.relay.peer_id, three.far.peer_id)
        # nor be called through one, whatever place it still holds
        three.policy.carries.add(three.near.peer_id)
        three.policy.carries.discard(three.far.peer_id)
        with pytest.raises(PeerUnreachable, match="holds no place"):
            await three.near.network.guest.call(three.relay.peer_id, three.far.peer_id)
        assert three.policy.accounts == []


async def test_the_called_peer_lets_in_only_whom_it_knows() -> None:
    async with around_a_relay() as three:
        three.far.gate.forbid(three.near.peer_id)
        with pytest.raises(DialFailed):
            await three.near.network.connect(three.far.peer_id, [], timeout_s=5)
        assert three.near.peer_id not in three.far.network.connected()
        assert three.far.seen(Connected)[0].peer_id == three.relay.peer_id
        assert len(three.far.seen(Connected)) == 1


async def test_a_relay_that_lies_about_the_caller_opens_no_door() -> None:
    """The relay says that a friend calls, and somebody else's key is in the circuit: the handshake's gate decides."""
    async with around_a_relay() as three:
        stranger, _ = make_relaying("stranger")
        stream = await three.relay.network.open(three.far.peer_id, STOP, timeout_s=5)
        await delimited.send(stream, encode_stop(StopRequest(three.near.peer_id)))
        assert decode_stop_reply(await delimited.receive(stream, deadline_s=5)) is Status.OK
        async with trio.open_nursery() as nursery:
            await nursery.start(stranger.network.serve, ())
            stranger.gate.allow(three.far.peer_id)
            session = stranger.network._session
            assert session is not None
            with pytest.raises(Exception, match=r".*"):
                await session.reach_through(stream, three.far.peer_id)
            await until(lambda: bool(three.far.seen(Refused)))
            nursery.cancel_scope.cancel()
        assert three.far.seen(Refused) == [
            Refused(stranger.peer_id, f"/p2p/{three.relay.peer_id}/p2p-circuit")
        ]
        assert stranger.peer_id not in three.far.network.connected()


async def test_a_call_is_taken_only_from_a_relay_that_keeps_a_place() -> None:
    async with around_a_relay(reserved=False) as three:
        stream = await three.relay.network.open(three.far.peer_id, STOP, timeout_s=5)
        await delimited.send(stream, encode_stop(StopRequest(three.near.peer_id)))
        assert decode_stop_reply(await delimited.receive(stream, deadline_s=5)) is Status.PERMISSION_DENIED


async def test_strangers_get_no_relay_protocol_not_even_in_a_pairing_window() -> None:
    relay, policy = make_relaying("relay")
    stranger, _ = make_relaying("stranger")
    stranger.gate.allow(relay.peer_id)
    policy.carries.add(stranger.peer_id)
    async with trio.open_nursery() as nursery:
        addresses = await nursery.start(relay.network.serve, ("/ip4/127.0.0.1/tcp/0",))
        await nursery.start(stranger.network.serve, ())
        relay.gate.open_pairing()
        await stranger.network.connect(relay.peer_id, addresses, timeout_s=5)
        for protocol in (HOP, STOP):
            with pytest.raises(ProtocolNotServed):
                await stranger.network.open(relay.peer_id, protocol, timeout_s=5)
        assert relay.network.relay is not None
        assert not relay.network.relay.reservations
        # control: the same call by a paired peer is served
        relay.gate.allow(stranger.peer_id)
        stream = await stranger.network.open(relay.peer_id, HOP, timeout_s=5)
        await delimited.send(stream, encode_hop(HopRequest("reserve")))
        assert decode_hop_reply(await delimited.receive(stream, deadline_s=5)).status is Status.OK
        nursery.cancel_scope.cancel()


async def test_a_node_that_relays_nothing_speaks_no_relay_protocol() -> None:
    from netpair import linked_pair

    async with linked_pair() as (a, b):
        with pytest.raises(ProtocolNotServed):
            await b.network.open(a.peer_id, HOP, timeout_s=5)


JUNK = [b"", b"\x00", b"\xff\xff\xff", b"\x05hello", b"\x02\x08\x63", b"\xff\x7f" + b"x" * 99]


@pytest.mark.parametrize("junk", JUNK)
async def test_junk_for_a_relay_costs_one_stream_and_nothing_else(junk: bytes) -> None:
    async with around_a_relay(limits(message_s=0.3)) as three:
        for protocol in (HOP, STOP):
            stream = await three.near.network.open(three.relay.peer_id, protocol, timeout_s=5)
            if junk:
                await stream.write(junk)
            await stream.close_write()
            _, end = await read_all(stream)
            assert end in (ChannelClosed, ChannelLost)
        assert await echoes(three.near, three.relay.peer_id)
        await three.near.network.connect(three.far.peer_id, [], timeout_s=5)


async def test_places_and_circuits_are_limited() -> None:
    tight = limits(max_reservations=1, max_circuits_per_peer=1)
    async with around_a_relay(tight) as three:
        await until(lambda: bool(three.near.network.guest.problems))
        assert "no place left" in three.near.network.guest.problems[three.relay.peer_id]
        first = await three.near.network.guest.call(three.relay.peer_id, three.far.peer_id)
        with pytest.raises(PeerUnreachable, match="carries all that it may"):
            await three.near.network.guest.call(three.relay.peer_id, three.far.peer_id)
        await first.reset()
        await until(lambda: three.relay.network.relay is not None and not three.relay.network.relay.circuits)
        await three.near.network.connect(three.far.peer_id, [], timeout_s=5)


async def test_a_circuit_is_cut_at_its_byte_limit() -> None:
    async with around_a_relay(limits(circuit_bytes=300_000)) as three:
        await three.near.network.connect(three.far.peer_id, [], timeout_s=5)
        stream = await three.near.network.open(three.far.peer_id, SINK, timeout_s=5)
        with pytest.raises(ChannelLost):
            await stream.write(b"x" * 1_000_000)
        await until(lambda: three.policy.accounts[0].outcome is not None)
        assert three.policy.accounts[0].outcome == "limit"
        assert len(three.policy.accounts[0].data) <= 300_000


@pytest.mark.parametrize("end", ["near", "far"])
async def test_a_grant_that_is_taken_back_cuts_a_running_circuit_also_an_idle_one(end: str) -> None:
    async with around_a_relay(limits()) as three:
        await three.near.network.connect(three.far.peer_id, [], timeout_s=5)
        stream = await three.near.network.open(three.far.peer_id, ECHO, timeout_s=5)
        await say(stream, b"half a sentence")
        three.policy.carries.discard(getattr(three, end).peer_id)
        await until(lambda: three.policy.accounts[0].outcome is not None)
        assert three.policy.accounts[0].outcome == "revoked"
        assert await read_all(stream) == (0, ChannelLost)
        assert three.relay.peer_id in three.near.network.connected()  # what is not relayed goes on


async def test_not_a_byte_is_carried_after_a_grant_was_taken_back() -> None:
    async with around_a_relay(limits(review_s=60.0)) as three:
        await three.near.network.connect(three.far.peer_id, [], timeout_s=5)
        stream = await three.near.network.open(three.far.peer_id, SINK, timeout_s=5)
        await stream.write(b"x" * 1000)
        await until(lambda: len(three.policy.accounts[0].data) > 1000)
        three.policy.carries.clear()
        carried = len(three.policy.accounts[0].data)
        await stream.write(b"x" * 1000)
        await until(lambda: three.policy.accounts[0].outcome == "revoked")
        assert len(three.policy.accounts[0].data) == carried


async def test_a_circuit_is_cut_at_its_time_limit() -> None:
    async with around_a_relay(limits(circuit_s=1)) as three:
        await three.near.network.connect(three.far.peer_id, [], timeout_s=5)
        await until(lambda: three.policy.accounts[0].outcome == "limit")
        await until(lambda: three.far.peer_id not in three.near.network.connected())


async def test_a_place_ends_with_the_connection_that_it_was_kept_on() -> None:
    async with around_a_relay() as three:
        await three.far.network.disconnect(three.relay.peer_id)
        assert three.relay.network.relay is not None
        service = three.relay.network.relay
        await until(lambda: three.far.peer_id not in service.reservations)


async def upgraded(three: Trio) -> None:
    """far is called directly, on the address that near could not know before."""
    session = three.near.network._session
    assert session is not None
    from node.net.addresses import parse

    await session.reach(parse(three.far.addresses[0]), three.far.peer_id)


async def test_a_direct_connection_replaces_the_relayed_one_and_streams_in_flight_go_on() -> None:
    async with around_a_relay(limits()) as three:
        near, far = three.near, three.far
        await near.network.connect(far.peer_id, [], timeout_s=5)
        running = await near.network.open(far.peer_id, ECHO, timeout_s=5)
        assert await say(running, b"one") == b"one"
        await upgraded(three)
        assert [event.peer_id for event in near.seen(Rerouted)] == [far.peer_id]
        await until(lambda: bool(far.seen(Rerouted)))
        for node, other in ((near, far), (far, near)):
            info = node.network.connection(other.peer_id)
            assert info is not None
            assert info.via is None
        carried = len(three.policy.accounts[0].data)
        fresh = await near.network.open(far.peer_id, ECHO, timeout_s=5)
        assert await say(fresh, b"x" * 50_000) == b"x" * 50_000
        assert len(three.policy.accounts[0].data) - carried < 1_000  # new streams take the direct connection
        assert await say(running, b"two") == b"two"  # and the old one still runs through the relay
        assert len(three.policy.accounts[0].data) > carried
        await running.close_write()
        assert await read_all(running) == (0, ChannelClosed)
        await until(lambda: three.policy.accounts[0].outcome is not None)  # closed once its last stream is over
        assert await say(fresh, b"three") == b"three"


async def test_control_the_relayed_connection_stays_while_there_is_nothing_better() -> None:
    async with around_a_relay(limits()) as three:
        await three.near.network.connect(three.far.peer_id, [], timeout_s=5)
        await trio.sleep(0.3)
        assert three.policy.accounts[0].outcome is None
        assert await echoes(three.near, three.far.peer_id)


async def test_no_relay_is_used_through_another_relay() -> None:
    async with around_a_relay(limits()) as three:
        await three.near.network.connect(three.far.peer_id, [], timeout_s=5)
        three.near.network.guest.use([three.far.peer_id])
        with pytest.raises(NotConnected):
            await three.near.network.guest.call(three.far.peer_id, three.relay.peer_id)


async def test_held_streams_keep_a_replaced_connection_alive() -> None:
    async with around_a_relay(limits()) as three:
        await three.near.network.connect(three.far.peer_id, [], timeout_s=5)
        held = await three.near.network.open(three.far.peer_id, HELD, timeout_s=5)
        await upgraded(three)
        await trio.sleep(0.3)
        assert three.policy.accounts[0].outcome is None
        await held.reset()
        await until(lambda: three.policy.accounts[0].outcome is not None)
