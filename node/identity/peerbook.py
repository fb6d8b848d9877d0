"""The paired peers: who they are, what each may do, and forgetting one in a way that takes effect at once.

The store holds the rows; this module keeps them consistent with the grants and tells the network when to cut. It must
not know connections: `cut` is a port.
"""

from collections.abc import Awaitable, Callable
from dataclasses import replace

from node.clock import Clock, to_ms
from node.errors import AmbiguousPeer, UnknownPeer, UsageError
from node.identity import granting
from node.identity.keystore import Identity
from node.identity.trust import DEFAULT_TERMS, Terms, Trust
from node.store import grants, mail, peers, shares
from node.store.connection import Connection
from node.store.database import Database
from node.store.peers import Peer
from protocol.grants import Grant

__all__ = ["PeerBook", "free_name", "pick"]

_ID_START = "12D3KooW"
_SHORTEST_ID_PART = 4
_NAME_LIMIT_CHARS = 32

Cut = Callable[[str], Awaitable[None]]


class PeerBook:
    """Paired peers and their grants, over the database."""

    def __init__(self, database: Database, identity: Identity, clock: Clock, cut: Cut) -> None:
        """cut(peer_id): close every stream and connection of this peer; awaited once the change is durable."""
        self._database = database
        self._identity = identity
        self._clock = clock
        self._cut = cut

    async def every(self) -> list[Peer]:
        """All paired peers, by name."""
        return await self._database.read(peers.every)

    async def get(self, peer_id: str) -> Peer | None:
        """The peer with exactly this id; None when it is not paired."""
        return await self._database.read(peers.get, peer_id)

    async def find(self, who: str) -> Peer:
        """The peer that the owner means by a name, or the start of a name or id. Raises UnknownPeer, AmbiguousPeer."""
        return pick(await self.every(), who)

    async def set_trust(self, who: str, trust: Trust, terms: Terms | None = None) -> Peer:
        """The peer with its new trust and a new grant: the level's default terms, or the given ones.

        What the old grant allowed ends at once; running streams of the peer are cut and it may connect again.
        """
        peer = await self.find(who)
        changed = await self._database.write(self._regrant, peer, trust, terms or DEFAULT_TERMS[trust])
        await self._cut(peer.peer_id)
        return changed

    async def rename(self, who: str, name: str) -> Peer:
        """The peer under its new name. Raises NameTaken, UsageError for a name that is none."""
        peer = await self.find(who)
        if not _is_name(name):
            raise UsageError(f"{name!r} is no name for a peer.", hint="Use a-z, 0-9 and inner dashes, up to 32.")
        await self._database.write(peers.rename, peer.peer_id, name)
        return replace(peer, name=name)

    async def forget(self, who: str) -> Peer:
        """The peer that was removed. Its grants, shares and waiting messages end with it; then its streams are cut."""
        peer = await self.find(who)
        await self._database.write(_forget, peer.peer_id, to_ms(self._clock.now()))
        await self._cut(peer.peer_id)
        return peer

    async def grant_for(self, peer_id: str) -> Grant | None:
        """What this peer may do here now; None means nothing. Checked for every request."""
        stored = await self._database.read(_issued_to_paired, peer_id)
        if stored is None:
            return None
        return granting.read(stored, issuer=self._identity.peer_id, holder=peer_id, now=self._clock.now())

    async def grant_from(self, peer_id: str) -> Grant | None:
        """What this peer said we may do there; None means nothing."""
        stored = await self._database.read(grants.current, peer_id, "received")
        if stored is None:
            return None
        return granting.read(stored.blob, issuer=peer_id, holder=self._identity.peer_id, now=self._clock.now())

    def _regrant(self, tx: Connection, peer: Peer, trust: Trust, terms: Terms) -> Peer:
        now = self._clock.now()
        peers.set_trust(tx, peer.peer_id, trust)
        if trust is Trust.NONE:
            grants.revoke(tx, peer.peer_id, to_ms(now), "issued")
        else:
            epoch = grants.reserve_epoch(tx)
            blob = granting.issue(self._identity, peer.peer_id, terms, epoch, now)
            grants.put(tx, peer.peer_id, "issued", epoch, blob, to_ms(now))
        return replace(peer, trust=trust)


def pick(paired: list[Peer], who: str) -> Peer:
    """The one peer meant by who: a whole name or id first, then the start of one (4 letters of an id at least)."""
    wanted = who.strip().lower()
    for exact in paired:
        if who.strip() == exact.peer_id or wanted == exact.name.lower():
            return exact
    found = [one for one in paired if _starts(one, who.strip(), wanted)]
    if not found:
        raise UnknownPeer(f"No paired peer is called {who!r}.")
    if len(found) > 1:
        raise AmbiguousPeer(f"{who!r} could be {' or '.join(one.name for one in found)}.")
    return found[0]


def free_name(tx: Connection, wanted: str, peer_id: str) -> str:
    """The wanted name, or with -2, -3 ... behind it while another peer has it."""
    name, number = wanted, 1
    while (holder := peers.by_name(tx, name)) is not None and holder.peer_id != peer_id:
        number += 1
        ending = f"-{number}"
        name = wanted[: _NAME_LIMIT_CHARS - len(ending)] + ending
    return name


def _starts(peer: Peer, id_part: str, name_part: str) -> bool:
    if name_part and peer.name.lower().startswith(name_part):
        return True
    tail = id_part.removeprefix(_ID_START)
    return len(tail) >= _SHORTEST_ID_PART and peer.peer_id.removeprefix(_ID_START).startswith(tail)


def _forget(tx: Connection, peer_id: str, now_ms: int) -> None:
    peers.remove(tx, peer_id)
    grants.revoke(tx, peer_id, now_ms)
    shares.remove_peer(tx, peer_id)
    mail.give_up(tx, peer_id, now_ms)


def _issued_to_paired(tx: Connection, peer_id: str) -> bytes | None:
    if peers.get(tx, peer_id) is None:
        return None
    grant = grants.current(tx, peer_id, "issued")
    return None if grant is None else grant.blob


def _is_name(name: str) -> bool:
    good = all("a" <= one <= "z" or "0" <= one <= "9" or one == "-" for one in name)
    return good and 0 < len(name) <= _NAME_LIMIT_CHARS and name.strip("-") == name
