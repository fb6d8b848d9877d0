"""Messages of relays and hole punching: bytes worked out by hand from the specifications, and everything that is none.

Sources of the bytes: protobuf encoding of the definitions in relay/circuit-v2.md and relay/DCUtR.md, binary addresses
of the multiaddr table (ip4 = 04, ip6 = 29, tcp = 06).
"""

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st
from netpair import seed_of

from node.net import relay_messages as messages
from node.net.addresses import Address
from node.net.relay_messages import BadRelayMessage, HopReply, HopRequest, Punch, Status, StopRequest
from protocol.ids import peer_id_from_public_key

PEER = peer_id_from_public_key(seed_of("someone"))
RAW_PEER = bytes.fromhex("0024080112 20".replace(" ", "")) + seed_of("someone")


def test_requests_have_the_specified_bytes() -> None:
    assert messages.encode_hop(HopRequest("reserve")) == b"\x08\x00"
    peer = b"\x0a\x26" + RAW_PEER  # field 1, 38 bytes
    assert messages.encode_hop(HopRequest("connect", PEER)) == b"\x08\x01\x12\x28" + peer
    # field 3: Limit{duration 1: 7200 = a0 38, data 2: 2^32 = 80 80 80 80 10}
    assert messages.encode_stop(StopRequest(PEER, 7200, 1 << 32)) == (
        b"\x08\x00\x12\x28" + peer + b"\x1a\x09\x08\xa0\x38\x10\x80\x80\x80\x80\x10"
    )


def test_replies_have_the_specified_bytes() -> None:
    assert messages.encode_hop_reply(HopReply(Status.PERMISSION_DENIED)) == b"\x08\x02\x28\xca\x01"  # 202 = ca 01
    assert messages.encode_hop_reply(HopReply(Status.OK, expire_s=1)) == b"\x08\x02\x1a\x02\x08\x01\x28\x64"
    assert messages.encode_stop_reply(Status.OK) == b"\x08\x01\x20\x64"


def test_punch_messages_have_the_specified_bytes() -> None:
    where = (Address("ip4", "203.0.113.2", 4001), Address("ip6", "2001:db8::1", 443))
    raw = (
        b"\x08\x64"
        b"\x12\x08\x04\xcb\x00\x71\x02\x06\x0f\xa1"
        b"\x12\x14\x29\x20\x01\x0d\xb8" + bytes(11) + b"\x01\x06\x01\xbb"
    )
    assert messages.encode_punch(Punch("connect", where)) == raw
    assert messages.decode_punch(raw) == Punch("connect", where)
    assert messages.encode_punch(Punch("sync")) == b"\x08\xac\x02"  # 300 = ac 02


@pytest.mark.parametrize(("encode", "decode", "value"), [
    (messages.encode_hop, messages.decode_hop, HopRequest("connect", PEER)),
    (messages.encode_hop, messages.decode_hop, HopRequest("reserve")),
    (messages.encode_hop_reply, messages.decode_hop_reply, HopReply(Status.OK, 1_800_000_000, 7200, 1 << 32)),
    (messages.encode_hop_reply, messages.decode_hop_reply, HopReply(Status.NO_RESERVATION)),
    (messages.encode_stop, messages.decode_stop, StopRequest(PEER, 60, 1)),
    (messages.encode_stop_reply, messages.decode_stop_reply, Status.CONNECTION_FAILED),
])
def test_what_is_written_is_read(
    encode: Callable[[object], bytes], decode: Callable[[bytes], object], value: object
) -> None:
    assert decode(encode(value)) == value


@pytest.mark.parametrize(("decode", "raw"), [
    (messages.decode_hop, b""),                                           # no kind
    (messages.decode_hop, b"\x08\x01"),                                   # a circuit to nobody
    (messages.decode_hop, b"\x08\x02\x28\x64"),                           # an answer
    (messages.decode_hop, b"\x08\x01\x12\x04\x0a\x02hi"),                 # no id of a peer
    (messages.decode_hop, b"\x08\x01\x12\xff"),                           # cut short
    (messages.decode_hop, b"\x08\x00" + b"\x32" + b"\xff\x7f" + bytes(16383)),  # too long
    (messages.decode_hop_reply, b"\x08\x00"),
    (messages.decode_hop_reply, b"\x08\x02"),                             # no status
    (messages.decode_hop_reply, b"\x08\x02\x28\x07"),                     # a status that is none
    (messages.decode_stop, b"\x08\x00"),
    (messages.decode_stop, b"\x08\x01\x20\x64"),
    (messages.decode_stop_reply, b"\x08\x00"),
    (messages.decode_punch, b"\x12\x01\x04"),
    (messages.decode_punch, b"not a message"),
])
def test_what_breaks_the_rules_is_refused(decode: Callable[[bytes], object], raw: bytes) -> None:
    with pytest.raises(BadRelayMessage):
        decode(raw)


def test_addresses_that_are_no_ip_with_a_port_are_left_out_and_few_are_read() -> None:
    names = b"\x12\x0c\x35\x07example\x06\x01\xbb"          # dns
    short = b"\x12\x03\x04\x01\x02"
    good = b"\x12\x08\x04\x01\x02\x03\x04\x06\x00\x09"
    assert messages.decode_punch(b"\x08\x64" + names + short + good).addresses == (Address("ip4", "1.2.3.4", 9),)
    assert len(messages.decode_punch(b"\x08\x64" + good * 100).addresses) == 8
    assert len(messages.decode_punch(messages.encode_punch(
        Punch("connect", tuple(Address("ip4", "1.2.3.4", port) for port in range(20)))
    )).addresses) == 8


DECODERS = (
    messages.decode_hop, messages.decode_hop_reply, messages.decode_stop, messages.decode_stop_reply,
    messages.decode_punch,
)
SAMPLES = (
    messages.encode_hop(HopRequest("connect", PEER)), messages.encode_stop(StopRequest(PEER, 60, 1)),
    messages.encode_hop_reply(HopReply(Status.OK, 5, 6, 7)), messages.encode_stop_reply(Status.OK),
    messages.encode_punch(Punch("connect", (Address("ip6", "::1", 1),))),
)


@given(st.binary(max_size=300) | st.tuples(
    st.sampled_from(SAMPLES), st.integers(0, 80), st.binary(max_size=4)
).map(lambda parts: parts[0][: parts[1]] + parts[2] + parts[0][parts[1] + 1 :]))
def test_nothing_else_comes_out_of_any_bytes(raw: bytes) -> None:
    for decode in DECODERS:
        try:
            decode(raw)
        except BadRelayMessage:
            continue
