"""What is said by multicast DNS: nothing that names anyone, readable by other implementations, and any bytes survived.

The packets are read by the zeroconf package as well, an implementation of its own. No socket is opened here; sending
and hearing is tried between real nodes in namespaces (test_e2e_rough_networks).
"""

import dataclasses

import pytest
from hypothesis import given
from hypothesis import strategies as st
from zeroconf import DNSIncoming, DNSOutgoing, DNSQuestion, const

from node.net.mdns_messages import (
    Announcement,
    BadPacket,
    encode_announcement,
    encode_query,
    is_query,
    read_announcements,
    tag_of,
)

PEER, OTHER = "12D3KooW" + "A" * 44, "12D3KooW" + "B" * 44
NONCE = bytes(range(16))
SAID = Announcement(NONCE, tag_of(NONCE, PEER), 4711, ("192.168.1.7", "fd00::7"), True)


def test_what_is_said_is_heard() -> None:
    assert read_announcements(encode_announcement(SAID)) == [SAID]
    quiet = dataclasses.replace(SAID, pairing=False)
    assert read_announcements(encode_announcement(quiet)) == [quiet]
    assert is_query(encode_query())
    assert not is_query(encode_announcement(SAID))
    assert read_announcements(encode_query()) == []


def test_another_implementation_reads_the_same() -> None:
    read = DNSIncoming(encode_announcement(SAID))
    assert read.valid
    assert not read.is_query()
    label = NONCE.hex()
    by_kind = {record.type: record for record in read.answers()}
    assert by_kind[const._TYPE_PTR].name == "_kith._tcp.local."
    assert by_kind[const._TYPE_PTR].alias == f"{label}._kith._tcp.local."
    assert (by_kind[const._TYPE_SRV].port, by_kind[const._TYPE_SRV].server) == (4711, f"{label}.local.")
    assert by_kind[const._TYPE_A].address == bytes((192, 168, 1, 7))
    assert by_kind[const._TYPE_AAAA].address == bytes.fromhex("fd00" + "00" * 13 + "07")
    asked = DNSIncoming(encode_query())
    assert asked.is_query()
    assert [(one.name, one.type) for one in asked.questions] == [("_kith._tcp.local.", const._TYPE_PTR)]


def test_another_implementations_question_is_understood() -> None:
    asking = DNSOutgoing(const._FLAGS_QR_QUERY)
    asking.add_question(DNSQuestion("_kith._tcp.local.", const._TYPE_PTR, const._CLASS_IN))
    (packet,) = asking.packets()
    assert is_query(packet)
    other = DNSOutgoing(const._FLAGS_QR_QUERY)
    other.add_question(DNSQuestion("_ipp._tcp.local.", const._TYPE_PTR, const._CLASS_IN))
    assert not is_query(other.packets()[0])


def test_nothing_said_names_the_node_and_no_two_numbers_are_linked() -> None:
    packets = [
        encode_announcement(dataclasses.replace(SAID, nonce=nonce, tag=tag_of(nonce, PEER)))
        for nonce in (NONCE, bytes(16))
    ]
    for packet in packets:
        assert PEER.encode() not in packet
        assert PEER[-8:].encode() not in packet
    assert tag_of(NONCE, PEER).hex().encode() in packets[0]
    assert tag_of(NONCE, PEER).hex().encode() not in packets[1]


def test_who_knows_the_id_recognises_the_node_and_nobody_else_does() -> None:
    (said,) = read_announcements(encode_announcement(SAID))
    assert tag_of(said.nonce, PEER) == said.tag
    assert tag_of(said.nonce, OTHER) != said.tag


def test_many_hosts_are_cut_and_no_host_is_no_announcement() -> None:
    many = dataclasses.replace(SAID, hosts=tuple(f"10.0.0.{number}" for number in range(30)))
    assert len(read_announcements(encode_announcement(many))[0].hosts) == 8
    assert read_announcements(encode_announcement(dataclasses.replace(SAID, hosts=()))) == []


@pytest.mark.parametrize("packet", [
    b"", b"x" * 11, b"\x00" * 2000,
    encode_announcement(SAID)[:-3],                                        # cut short
    b"\x00\x00\x84\x00\x00\x00\x00\x01\x00\x00\x00\x00" + b"\xc0\x0c",    # a name that points to itself
    b"\x00\x00\x84\x00\x00\x00\x00\x01\x00\x00\x00\x00" + b"\xc0\xff",    # and one that points forward
    b"\x00\x00\x84\x00\x00\x00\x00\x01\x00\x00\x00\x00" + b"\x3fshort",
])
def test_broken_packets_are_refused(packet: bytes) -> None:
    with pytest.raises(BadPacket):
        read_announcements(packet)


@given(st.binary(max_size=400) | st.tuples(
    st.integers(0, 250), st.binary(max_size=6)
).map(lambda parts: encode_announcement(SAID)[: parts[0]] + parts[1] + encode_announcement(SAID)[parts[0] + 2 :]))
def test_nothing_else_comes_out_of_any_bytes(packet: bytes) -> None:
    for read in (read_announcements, is_query):
        try:
            read(packet)
        except BadPacket:
            continue
