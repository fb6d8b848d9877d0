"""Wake-on-LAN: the packet that starts a sleeping machine, and its way onto the local network.

The packet holds a hardware address and nothing else. Must not know peers, and who decides that one is woken.
"""

import re
import socket
from collections.abc import Iterable

from node.net.errors import BadAddress

__all__ = ["PORT", "hardware_address", "magic_packet", "send_magic_packet"]

PORT = 9
"""Discard: what nobody listens on; a network card reads the packet before any program could."""
REPEATS = 16
_HINT = "See it on that machine: ip link"
_GROUPS = re.compile(r"[0-9a-fA-F]{2}(?:([:-])[0-9a-fA-F]{2})(?:\1[0-9a-fA-F]{2}){4}")


def hardware_address(text: str) -> bytes:
    """The six bytes of "aa:bb:cc:dd:ee:ff" (or with dashes). Raises BadAddress, also for one that is no single card's:
    all zero, or a group address."""
    text = text.strip()
    if not _GROUPS.fullmatch(text):
        raise BadAddress(
            f"{text!r} is no hardware address: six pairs of hex digits, as in aa:bb:cc:dd:ee:ff.", hint=_HINT)
    found = bytes.fromhex(text.replace(":", "").replace("-", ""))
    if not any(found) or found[0] & 1:
        raise BadAddress(f"{text!r} is not the address of one network card.", hint=_HINT)
    return found


def magic_packet(address: bytes) -> bytes:
    """The 102 bytes: six of 0xff, then the hardware address 16 times (AMD publication 20213)."""
    assert len(address) == 6
    return b"\xff" * 6 + address * REPEATS


def send_magic_packet(address: bytes, broadcasts: Iterable[str], *, port: int = PORT) -> int:
    """Send it to every broadcast address given; how many took it comes back. Raises OSError when none did."""
    packet, sent = magic_packet(address), 0
    problem = OSError("no network to send it on")
    for host in broadcasts:
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as udp:
            udp.setsockopt(socket.SOL_SOCKET, socket.SO_BROADCAST, 1)
            udp.settimeout(1)
            try:
                udp.sendto(packet, (host, port))
                sent += 1
            except OSError as error:
                problem = error
    if not sent:
        raise problem
    return sent
