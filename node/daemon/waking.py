"""Wakes a paired machine that sleeps: remembers its hardware address while it is here, sends the packet when asked.

Implements node.api.ports.Waking. Must not know how a packet is made, nor who asks.
"""

import logging
from collections.abc import Callable, Sequence

import trio

from node.api.machine_views import WakeView
from node.clock import Clock
from node.daemon.lan import broadcast_addresses, read_neighbour
from node.daemon.peers import Roster
from node.errors import PeerUnreachable
from node.net.addresses import parse
from node.net.errors import BadAddress
from node.net.magic_packet import hardware_address, magic_packet, send_magic_packet
from node.privacy.traffic import CONTROL_KIND, Traffic
from node.store import settings
from node.store.database import Database

__all__ = ["Waking"]

log = logging.getLogger(__name__)

KEY = "wake."
REPEAT_S = 5.0
"""A packet is lost without a word, so it is sent again until the peer is here."""


class Waking:
    """Hardware addresses of paired peers, and the waking of one."""

    def __init__(
        self, database: Database, roster: Roster, traffic: Traffic, clock: Clock, mode: Callable[[], str], *,
        neighbour: Callable[[str], str | None] = read_neighbour,
        broadcasts: Callable[[], Sequence[str]] = broadcast_addresses,
        send: Callable[[bytes, Sequence[str]], int] = send_magic_packet,
    ) -> None:
        self._database = database
        self._roster = roster
        self._traffic = traffic
        self._clock = clock
        self._mode = mode
        self._neighbour = neighbour
        self._broadcasts = broadcasts
        self._send = send

    async def note(self, peer_id: str) -> None:
        """A peer is here: keep its hardware address, when it is a machine on the same network."""
        address = self._roster.address_of(peer_id)
        try:
            host = parse(address).host if address else ""
        except BadAddress:
            return
        found = await trio.to_thread.run_sync(self._neighbour, host) if host else None
        if found is not None:
            await self._keep(peer_id, found)

    async def _keep(self, peer_id: str, hardware: str) -> None:
        if await self._database.read(settings.get, KEY + peer_id) != hardware:
            await self._database.write(settings.put, KEY + peer_id, hardware)

    async def forget(self, peer_id: str) -> None:
        """The peer is not paired any more."""
        await self._database.write(settings.delete, KEY + peer_id)

    async def wake(self, name: str, *, hardware: str | None, wait_s: float) -> WakeView:
        """Send the packet, and wait up to wait_s until the peer is here. hardware: keep and use this address.

        Raises UnknownPeer, AmbiguousPeer, BadAddress, PeerUnreachable (offline; no address known; not sent).
        """
        peer_id = self._roster.find(name)
        called = self._roster.name_of(peer_id)
        if self._mode() == "offline":
            raise PeerUnreachable("This node is offline.", hint="Switch on with: kith mode lan")
        if hardware is not None:
            hardware_address(hardware)
            await self._keep(peer_id, hardware)
        known = await self._database.read(settings.get, KEY + peer_id)
        if known is None:
            raise PeerUnreachable(
                f"The hardware address of {called} is not known: it was never seen on the same network.",
                hint=f"Name it once: kith wake {called} --mac aa:bb:cc:dd:ee:ff",
            )
        started_s = self._clock.monotonic_s()
        awake = self._roster.is_present(peer_id)
        packets = 0
        if not awake:
            with trio.move_on_after(wait_s):
                while not awake:
                    packets += self._send_once(peer_id, hardware_address(known))
                    awake = await self._comes(peer_id)
        return WakeView(
            peer=called, peer_id=peer_id, hardware=known, packets=packets,
            awake=awake or self._roster.is_present(peer_id), waited_s=round(self._clock.monotonic_s() - started_s, 1),
        )

    def _send_once(self, peer_id: str, address: bytes) -> int:
        try:
            sent = self._send(address, self._broadcasts())  # datagrams to numeric addresses: nothing waits
        except OSError as error:
            raise PeerUnreachable(f"The packet was not sent: {error}.", hint="See: ip -brief address") from error
        for _ in range(sent):
            self._traffic.add(peer_id, CONTROL_KIND, len(magic_packet(address)))
        return sent

    async def _comes(self, peer_id: str) -> bool:
        """Whether the peer is here within REPEAT_S. Its link is called all the time meanwhile."""
        if self._roster.networking is not None:
            self._roster.networking.wake(peer_id)
        with trio.move_on_after(REPEAT_S):
            await self._roster.wait_for(peer_id)
        return self._roster.is_present(peer_id)
