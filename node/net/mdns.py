"""Multicast DNS on the local network: announces this node while it may, hears of others. Must not know who they are.

Only on addresses it is given, IPv4 only, never by itself: it lives while run() does. What is heard is a hint and no
more: whoever is called there must prove its key. Counts and rates are bounded: a flood costs little.
"""

import ipaddress
import logging
import socket
from collections.abc import Callable, Collection

import trio

from node.net.mdns_messages import (
    GROUP,
    MAX_PACKET_BYTES,
    PORT,
    Announcement,
    BadPacket,
    encode_announcement,
    encode_query,
    is_query,
    read_announcements,
)

__all__ = ["Multicast"]

_log = logging.getLogger(__name__)
_ANNOUNCE_S = (0.0, 1.0, 3.0)  # RFC 6762 section 8.3: at least twice at first
_REPEAT_S = 60.0
_ANSWER_PAUSE_S = 1.0          # RFC 6762 section 6: no record more than once a second
_PACKETS_PER_S = 50
_LOOK_S = 1.0


class Multicast:
    """One life of discovery."""

    def __init__(
        self, here: Callable[[], Collection[str]], says: Callable[[], Announcement | None],
        hears: Callable[[Announcement], None],
    ) -> None:
        """here: this machine's addresses now. says: what to announce now, None for nothing; asked each time. hears
        must not block or raise; it is called for own announcements too."""
        self._here = here
        self._says = says
        self._hears = hears
        self._joined: set[str] = set()
        self._answered_s = float("-inf")
        self._window_s = float("-inf")
        self._window_packets = 0
        self._asked = trio.Event()

    def ask(self) -> None:
        """Ask who is there now, and announce."""
        self._asked.set()

    async def run(self) -> None:
        """Listen and announce until cancelled. Raises OSError when the port cannot be had."""
        with trio.socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)  # the system's own responder listens as well
            sock.setsockopt(socket.IPPROTO_IP, socket.IP_MULTICAST_TTL, 255)
            await sock.bind((GROUP, PORT))
            async with trio.open_nursery() as nursery:
                nursery.start_soon(self._listen, sock)
                await self._speak(sock)

    async def _speak(self, sock: trio.socket.SocketType) -> None:
        planned = list(_ANNOUNCE_S)
        while True:
            changed = self._join(sock)
            if changed or self._asked.is_set():
                planned = list(_ANNOUNCE_S)
                await self._send(sock, encode_query())
            self._asked = trio.Event()
            await self._announce(sock)
            pause_s = planned.pop(0) + _LOOK_S if planned else _REPEAT_S
            until_s = trio.current_time() + pause_s
            while trio.current_time() < until_s and not self._asked.is_set() and not self._moved():
                with trio.move_on_after(_LOOK_S):
                    await self._asked.wait()

    def _local(self) -> set[str]:
        found = (ipaddress.ip_address(one) for one in self._here())
        return {str(ip) for ip in found if ip.version == 4 and ip.is_private and not ip.is_loopback}

    def _moved(self) -> bool:
        return self._local() != self._joined

    def _join(self, sock: trio.socket.SocketType) -> bool:
        """Be in the group on every local address there is; whether that changed."""
        now = self._local()
        changed = now != self._joined
        for one, option in (
            *((gone, socket.IP_DROP_MEMBERSHIP) for gone in self._joined - now),
            *((new, socket.IP_ADD_MEMBERSHIP) for new in now - self._joined),
        ):
            try:
                sock.setsockopt(socket.IPPROTO_IP, option, socket.inet_aton(GROUP) + socket.inet_aton(one))
            except OSError as error:
                _log.debug("multicast on %s: %s", one, error.strerror)
        self._joined = now
        return changed

    async def _announce(self, sock: trio.socket.SocketType) -> None:
        said = self._says()
        if said is not None and said.hosts:
            await self._send(sock, encode_announcement(said))

    async def _send(self, sock: trio.socket.SocketType, packet: bytes) -> None:
        for one in self._joined:
            try:
                sock.setsockopt(socket.IPPROTO_IP, socket.IP_MULTICAST_IF, socket.inet_aton(one))
                with trio.move_on_after(_LOOK_S):
                    await sock.sendto(packet, (GROUP, PORT))
            except OSError as error:  # multicast is blocked there; addresses still work
                _log.debug("no multicast on %s: %s", one, error.strerror)

    async def _listen(self, sock: trio.socket.SocketType) -> None:
        while True:
            packet, (host, *_) = await sock.recvfrom(MAX_PACKET_BYTES + 1)
            now_s = trio.current_time()
            if now_s >= self._window_s + 1.0:
                self._window_s, self._window_packets = now_s, 0
            self._window_packets += 1
            if self._window_packets > _PACKETS_PER_S or not ipaddress.ip_address(host).is_private:
                continue
            try:
                if is_query(packet) and now_s >= self._answered_s + _ANSWER_PAUSE_S:
                    self._answered_s = now_s
                    await self._announce(sock)
                for said in read_announcements(packet):
                    self._hears(said)
            except BadPacket:
                continue  # the port is everybody's
