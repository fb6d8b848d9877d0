"""NAT-PMP, the router's answer to "pass calls from outside to me": requests and answers as bytes. Pure.

Source: RFC 6886, sections 3.2 (external address) and 3.3 (mapping). Must not know sockets or routers.
"""

import ipaddress
import struct
from dataclasses import dataclass

__all__ = ["PORT", "External", "Mapped", "NatPmpRefused", "encode_external", "encode_map", "read_answer"]

PORT = 5351
_EXTERNAL, _MAP_TCP = 0, 2
_ANSWER = 128
_WORDS = {
    1: "it speaks another version", 2: "its owner does not allow it", 3: "it has no network itself",
    4: "it has no room for more", 5: "it does not know the request",
}


class NatPmpRefused(Exception):
    """The router answered, and said no; the text says why."""


@dataclass(frozen=True, slots=True)
class External:
    """The router's own address outside."""

    host: str


@dataclass(frozen=True, slots=True)
class Mapped:
    """The router passes calls to external_port on to internal_port, for lifetime_s."""

    internal_port: int
    external_port: int
    lifetime_s: int


def encode_external() -> bytes:
    """What is your address?"""
    return bytes((0, _EXTERNAL))


def encode_map(port: int, lifetime_s: int) -> bytes:
    """Pass TCP calls to this port on to me, under the same number if that is free. lifetime_s 0: no longer."""
    return struct.pack("!BBHHHI", 0, _MAP_TCP, 0, port, port if lifetime_s else 0, lifetime_s)


def read_answer(packet: bytes) -> External | Mapped | None:
    """What the router says; None for bytes that are no answer of this protocol. Raises NatPmpRefused."""
    if len(packet) < 8 or packet[0] != 0 or packet[1] not in (_ANSWER | _EXTERNAL, _ANSWER | _MAP_TCP):
        return None
    (result,) = struct.unpack_from("!H", packet, 2)
    if result:
        raise NatPmpRefused(_WORDS.get(result, f"it answered {result}"))
    if packet[1] == _ANSWER | _EXTERNAL:
        return External(str(ipaddress.IPv4Address(packet[8:12]))) if len(packet) == 12 else None
    return Mapped(*struct.unpack_from("!HHI", packet, 8)) if len(packet) == 16 else None
