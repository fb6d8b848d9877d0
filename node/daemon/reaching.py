"""How this node is reached and reaches others: which relays it uses and for whom it is one, the addresses that it tells
its peers and hears from them.

Implements node.net.relay_hop.RelayPolicy. Addresses of a peer come from that peer alone, over its own link, signed;
none is ever handed on, so nobody's word keeps a dead peer alive. Must not know sockets or frames.
"""

import ipaddress
import logging
from collections.abc import Callable, Sequence
from functools import partial
from typing import Final

import msgspec
import trio

from node.clock import Clock, to_ms
from node.daemon.grants import Grants
from node.daemon.networking import Networking
from node.daemon.own_addresses import may_be_told, own_addresses, stated_addresses
from node.daemon.peers import Roster
from node.daemon.persevering import Persevering
from node.errors import KithError
from node.identity.keystore import Identity
from node.net.addresses import Address, parse
from node.net.errors import BadAddress
from node.net.events import AddressesTold, GrantReceived, LinkDown, LinkUp, NetEvent, Rerouted
from node.privacy.accounting import AnswerAccount, AnswerAccounts
from node.privacy.policy import Purpose
from node.privacy.traffic import Traffic
from node.settings import NetConfig
from node.store import peers
from node.store.database import Database
from protocol.errors import BadFrame
from protocol.grants import permits
from protocol.limits import MAX_CARD_ADDRESSES
from protocol.whereabouts import sign_whereabouts, verify_whereabouts

__all__ = ["RELAY", "Reaching"]

log = logging.getLogger(__name__)

RELAY: Final = "relay"
LOOK_EVERY_S = 1.0
_HEARD = 64
_OBSERVED = 4


def _has_wildcard(listening: Sequence[str]) -> bool:
    """Whether what is listened on depends on the addresses that this machine has."""
    return any(ipaddress.ip_address(parse(one).host).is_unspecified for one in listening)


class CircuitAccount:
    """One circuit in the ledger and in the counters of traffic."""

    def __init__(self, account: AnswerAccount, traffic: Traffic, called: str) -> None:
        self._account = account
        self._traffic = traffic
        self._called = called

    def add(self, data: bytes) -> None:
        """Sealed bytes were handed on."""
        self._account.count(data)
        self._traffic.add(self._called, RELAY, len(data))

    async def close(self, outcome: str) -> None:
        """The circuit is over; an entry that cannot be closed is closed at the next start."""
        try:
            await self._account.close(outcome)
        except KithError as error:
            log.error("the entry of a circuit stays open: %s", error.code)


class Reaching:
    """One per node. attach() before the network runs; run() keeps peers told."""

    def __init__(
        self, identity: Identity, settings: NetConfig, grants: Grants, roster: Roster, database: Database,
        accounts: AnswerAccounts, traffic: Traffic, clock: Clock, new_id: Callable[[], str],
        here: Callable[[], frozenset[str]],
    ) -> None:
        """here: this machine's addresses now, loopback not among them; may block for a moment."""
        self._identity = identity
        self._settings = settings
        self._grants = grants
        self._roster = roster
        self._database = database
        self._accounts = accounts
        self._traffic = traffic
        self._clock = clock
        self._new_id = new_id
        self._here = here
        self._networking: Networking | None = None
        self._told: tuple[str, ...] = ()
        self._signed = b""
        self._number_ms = 0
        self._newest: dict[str, int] = {}
        self._heard, self._arriving = trio.open_memory_channel[tuple[str, tuple[str, ...]]](_HEARD)
        self.observed: dict[str, Address] = {}
        """Peer -> where it saw a call of this node come from."""
        self.mapped: tuple[str, ...] = ()
        """Addresses of a router that lead here."""

    def attach(self, networking: Networking) -> None:
        """The network whose events this hears."""
        self._networking = networking
        networking.after_event = self.hear

    # -- for others: node.net.relay_hop.RelayPolicy --

    def carries_for(self, peer_id: str) -> bool:
        """Whether this peer may use this node as a relay now."""
        grant = self._grants.grant_for(peer_id)
        online = self._networking is not None and self._networking.mode == "online"
        return online and self._settings.relay and grant is not None and permits(grant, RELAY)

    def now_s(self) -> int:
        """UTC seconds."""
        return to_ms(self._clock.now()) // 1000

    async def account(self, caller: str, called: str) -> CircuitAccount:
        """A circuit between two peers, entered in the ledger as an opaque blob for the peer that is called."""
        opened = await self._accounts.open(called, self._new_id(), Purpose.RELAY)
        return CircuitAccount(opened, self._traffic, called)

    # -- events --

    def hear(self, event: NetEvent) -> None:
        """A fact of the network, after the roster took it."""
        match event:
            case LinkUp() | GrantReceived():
                self.use_relays()
            case LinkDown(peer_id):
                self._newest.pop(peer_id, None)  # after its clock was put right, a peer begins with a smaller number
                self.use_relays()
            case Rerouted(peer_id, address, dialled):
                self._roster.rerouted(event)
                if self._networking is not None:
                    self._networking.reroute(peer_id)
                if dialled:
                    self._keep_soon(peer_id, (address,))
            case AddressesTold():
                self._hear_addresses(event)

    def use_relays(self) -> None:
        """Present peers that carry for this node; in mode online only."""
        if self._networking is not None:
            self._networking.use_relays(sorted(self._roster.granting(RELAY)))

    def _hear_addresses(self, event: AddressesTold) -> None:
        try:
            told = verify_whereabouts(event.addresses, peer_id=event.peer_id)
        except BadFrame as error:
            log.warning("addresses of %s are not taken: %s", event.peer_id, error)
            return
        self._note_observed(event.peer_id, event.seen_at)
        if told.number_ms < self._newest.get(event.peer_id, 0):
            return
        self._newest[event.peer_id] = told.number_ms
        self._keep_soon(event.peer_id, tuple(one for one in told.addresses if may_be_told(one, event.peer_id)))

    def _keep_soon(self, peer_id: str, addresses: tuple[str, ...]) -> None:
        try:
            self._heard.send_nowait((peer_id, addresses))
        except trio.WouldBlock:
            log.info("addresses of %s were not noted: too many at once", peer_id)

    def _note_observed(self, peer_id: str, seen_at: str | None) -> None:
        if seen_at is None:
            return
        try:
            address = parse(seen_at)
        except BadAddress:
            return
        if address.is_name or not may_be_told(seen_at, peer_id):
            return
        self.observed.pop(peer_id, None)
        self.observed[peer_id] = address
        while len(self.observed) > _OBSERVED:
            del self.observed[next(iter(self.observed))]
        if self._networking is not None:
            self._networking.observe(tuple(dict.fromkeys(reversed(self.observed.values()))))

    def set_mapped(self, addresses: Sequence[str]) -> None:
        """These addresses of a router lead here now."""
        self.mapped = tuple(addresses)

    # -- own addresses --

    @property
    def told(self) -> tuple[str, ...]:
        """Where peers are told that this node can be reached."""
        return self._told

    def addresses_to_show(self) -> list[str]:
        """Where this node can be called now, for the other side of a pairing: what peers are told, then loopback."""
        networking = self._networking
        listening = networking.addresses() if networking is not None else []
        if not listening:
            return []
        stated = stated_addresses(self._settings.announce, listening)
        told = own_addresses(listening, self._here(), (*stated, *self.mapped))
        here_only = [one for one in map(parse, listening) if ipaddress.ip_address(one.host).is_loopback]
        return [*told, *map(str, here_only)][:MAX_CARD_ADDRESSES]

    async def run(self, *, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        """Keep peers told and note what they tell, until cancelled."""
        task_status.started()
        looking = Persevering("looking at the addresses of this node")
        async with trio.open_nursery() as nursery:
            nursery.start_soon(self._note)
            while True:
                await looking.attempt(self._look)
                await trio.sleep(LOOK_EVERY_S)

    async def _look(self) -> None:
        networking = self._networking
        if networking is None or networking.mode == "offline":
            return
        listening = networking.addresses()
        here = await trio.to_thread.run_sync(self._here) if _has_wildcard(listening) else frozenset()
        stated = stated_addresses(self._settings.announce, listening)
        now = own_addresses(listening, here, (*stated, *self.mapped))[:MAX_CARD_ADDRESSES]
        if now != self._told or not self._signed:
            self._told = now
            self._number_ms = max(self._number_ms + 1, to_ms(self._clock.now()))
            try:
                self._signed = sign_whereabouts(now, number_ms=self._number_ms, seed=self._identity.seed)
            except msgspec.ValidationError as error:
                log.error("the addresses of this node cannot be told: %s", error)
                return
            networking.relocate(self._signed)

    async def _note(self) -> None:
        noting = Persevering("noting the addresses of a peer")
        async for peer_id, addresses in self._arriving:
            await noting.attempt(partial(self._keep, peer_id, addresses))

    async def _keep(self, peer_id: str, addresses: Sequence[str]) -> None:
        row = await self._database.write(peers.located, peer_id, addresses)
        if row is not None:
            await self._roster.adopt(row)
        if self._networking is not None:
            self._networking.improve(peer_id)
