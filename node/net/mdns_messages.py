"""What this node says and hears on the local network by multicast DNS: packets to bytes and back. Pure.

A node never announces its name or id. It announces where it listens, a fresh random number, and a tag: a hash of that
number and its id. Whoever is paired with it knows the id and recognises the tag; to all others each announcement is of
somebody unknown. Must not know sockets. Sources: RFC 1035 (messages), RFC 6762 (multicast DNS), RFC 6763 (services).
"""

import hashlib
import ipaddress
import struct
from collections.abc import Iterable
from dataclasses import dataclass

__all__ = ["GROUP", "PORT", "SERVICE", "Announcement", "BadPacket", "encode_announcement", "encode_query", "is_query",
           "read_announcements", "tag_of"]

GROUP, PORT = "224.0.0.251", 5353
SERVICE = ("_kith", "_tcp", "local")
MAX_PACKET_BYTES = 1500
NONCE_BYTES = 16
_MAX_RECORDS = 64
_MAX_JUMPS = 16
_TTL_S = 120
_A, _PTR, _TXT, _AAAA, _SRV, _ANY = 1, 12, 16, 28, 33, 255
_IN, _FLUSH = 1, 0x8000
_RESPONSE = 0x8400
_HEADER = struct.Struct("!HHHHHH")
_RECORD = struct.Struct("!HHIH")
_SIGNED_AS = b"kith mdns 1\x00"


class BadPacket(Exception):
    """Bytes that are no message this node reads."""


@dataclass(frozen=True, slots=True)
class Announcement:
    """One node. nonce and tag: see tag_of(). pairing: its owner has a pairing window open. hosts: IPs as text."""

    nonce: bytes
    tag: bytes
    port: int
    hosts: tuple[str, ...]
    pairing: bool


def tag_of(nonce: bytes, peer_id: str) -> bytes:
    """What the node with this id announces together with this nonce."""
    return hashlib.sha256(_SIGNED_AS + nonce + peer_id.encode()).digest()[:NONCE_BYTES]


def encode_query() -> bytes:
    """Who of us is there?"""
    return _HEADER.pack(0, 0, 1, 0, 0, 0) + _name(SERVICE) + struct.pack("!HH", _PTR, _IN)


def encode_announcement(said: Announcement) -> bytes:
    """An answer that nobody needs to have asked for. Its names are the nonce; at most 8 hosts are told."""
    label = said.nonce.hex()
    instance, host = (label, *SERVICE), (label, "local")
    text = b"".join(
        bytes((len(one),)) + one
        for one in (b"t=" + said.tag.hex().encode(), *((b"p=1",) if said.pairing else ()))
    )
    records = [
        _record(SERVICE, _PTR, _IN, _name(instance)),
        _record(instance, _SRV, _IN | _FLUSH, struct.pack("!HHH", 0, 0, said.port) + _name(host)),
        _record(instance, _TXT, _IN | _FLUSH, text),
    ]
    for one in said.hosts[:8]:
        ip = ipaddress.ip_address(one)
        records.append(_record(host, _A if ip.version == 4 else _AAAA, _IN | _FLUSH, ip.packed))
    return _HEADER.pack(0, _RESPONSE, 0, len(records), 0, 0) + b"".join(records)


def is_query(packet: bytes) -> bool:
    """Whether this asks for nodes of ours. Raises BadPacket."""
    _, flags, questions, _, _, _ = _header(packet)
    at, asked = _HEADER.size, False
    if flags & 0x8000:
        return False
    for _ in range(min(questions, _MAX_RECORDS)):
        name, at = _read_name(packet, at)
        kind, at = _number(packet, at), at + 4
        asked = asked or (name == SERVICE and kind in (_PTR, _ANY))
    return asked


def read_announcements(packet: bytes) -> list[Announcement]:
    """The nodes that a packet announces completely; empty for a question, or for others' services. Raises BadPacket."""
    _, flags, questions, answers, authority, more = _header(packet)
    if not flags & 0x8000:
        return []
    at = _HEADER.size
    for _ in range(min(questions, _MAX_RECORDS)):
        _, at = _read_name(packet, at)
        at += 4
    ports: dict[tuple[str, ...], tuple[int, tuple[str, ...]]] = {}
    texts: dict[tuple[str, ...], list[bytes]] = {}
    hosts: dict[tuple[str, ...], list[str]] = {}
    for _ in range(min(answers + authority + more, _MAX_RECORDS)):
        name, at = _read_name(packet, at)
        kind, size, at = _number(packet, at), _number(packet, at + 8), at + _RECORD.size
        data = packet[at : at + size]
        if len(data) != size:
            raise BadPacket("a record is cut short")
        if kind == _SRV and name[1:] == SERVICE and size > 6:
            ports[name] = (_number(data, 4), _read_name(packet, at + 6)[0])
        elif kind == _TXT and name[1:] == SERVICE:
            texts[name] = _strings(data)
        elif (kind, size) in ((_A, 4), (_AAAA, 16)):
            hosts.setdefault(name, []).append(str(ipaddress.ip_address(data)))
        at += size
    found = []
    for name, (port, host) in ports.items():
        said = _announcement(name[0], port, texts.get(name, []), hosts.get(host, [])[:8])
        if said is not None:
            found.append(said)
    return found


def _announcement(label: str, port: int, texts: Iterable[bytes], hosts: list[str]) -> Announcement | None:
    fields = dict(one.partition(b"=")[::2] for one in texts)
    try:
        nonce, tag = bytes.fromhex(label), bytes.fromhex(fields.get(b"t", b"").decode("ascii", "replace"))
    except ValueError:
        return None
    if len(nonce) != NONCE_BYTES or len(tag) != NONCE_BYTES or not port or not hosts:
        return None
    return Announcement(nonce, tag, port, tuple(hosts), fields.get(b"p") == b"1")


def _record(name: tuple[str, ...], kind: int, group: int, data: bytes) -> bytes:
    return _name(name) + _RECORD.pack(kind, group, _TTL_S, len(data)) + data


def _name(labels: tuple[str, ...]) -> bytes:
    return b"".join(bytes((len(one),)) + one.encode() for one in labels) + b"\x00"


def _header(packet: bytes) -> tuple[int, ...]:
    if not _HEADER.size <= len(packet) <= MAX_PACKET_BYTES:
        raise BadPacket("not the size of a message")
    return _HEADER.unpack_from(packet)


def _number(data: bytes, at: int) -> int:
    if at + 2 > len(data):
        raise BadPacket("cut short")
    return int.from_bytes(data[at : at + 2], "big")


def _read_name(packet: bytes, at: int) -> tuple[tuple[str, ...], int]:
    """Labels in lower case, and where the name ends; pointers lead backwards only, so none goes round."""
    labels: list[str] = []
    after = None
    for _ in range(_MAX_JUMPS + 16):
        if at >= len(packet):
            break
        size = packet[at]
        if size == 0:
            return tuple(labels), after if after is not None else at + 1
        if size >= 0xC0:
            target = _number(packet, at) & 0x3FFF
            if target >= at:
                break
            after = at + 2 if after is None else after
            at = target
            continue
        label = packet[at + 1 : at + 1 + size]
        if size > 63 or len(label) != size:
            break
        labels.append(label.decode("ascii", "replace").lower())
        at += 1 + size
    raise BadPacket("no name")


def _strings(data: bytes) -> list[bytes]:
    found: list[bytes] = []
    at = 0
    while at < len(data) and len(found) < 16:
        size = data[at]
        found.append(data[at + 1 : at + 1 + size])
        at += 1 + size
    return found
