"""The paired peers: who they are, what each may do, and forgetting one in a way that takes effect at once.

The store holds the rows; this module keeps them consistent with the grants and tells the network when to cut. It must
not know connections: `cut` is a port.
"""

from collections.abc import Awaitable, Callable
from dataclasses import replace

from node.clock import Clock, to_ms
from node.errors import AmbiguousPeer, BugError, UnknownPeer, UsageError
from node.identity import granting
from node.identity.granting import TermsChange
from node.identity.keystore import Identity
from node.identity.trust import DEFAULT_TERMS, Terms, Trust
from node.store import grants, levels, mail, peers, shares
from node.store.connection import Connection
from node.store.database import Database
from node.store.peers import Peer
from protocol.grants import Grant, covers

__all__ = ["PeerBook", "free_name", "pick"]

_ID_START = "12D3KooW"
_SHORTEST_ID_PART = 4
_NAME_LIMIT_CHARS = 32

Cut = Callable[[str], Awaitable[None]]
Widened = Callable[[str], Awaitable[None]]


async def _nothing(peer_id: str) -> None:
    """Nobody needs to be told."""


class PeerBook:
    """Paired peers and their grants, over the database."""

    def __init__(
        self, database: Database, identity: Identity, clock: Clock, cut: Cut, widened: Widened = _nothing,
        narrowed: Widened | None = None,
    ) -> None:
        """cut(peer_id): close every stream and connection of this peer; awaited once the change is durable.
        widened(peer_id): its grant allows more now and nothing less, so what runs may go on. narrowed(peer_id): the
        same services, but less of one; what no longer fits must end, the rest may go on. None: cut.
        """
        self._database = database
        self._identity = identity
        self._clock = clock
        self._cut = cut
        self._widened = widened
        self._narrowed = narrowed or cut

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

        What the old grant allowed ends at once; running streams of the peer are cut and it may connect again. The trust
        that it has already changes nothing while its grant holds, whatever was edited in that.
        """
        peer = await self.find(who)
        if terms is None and peer.trust == trust and (trust is Trust.NONE or await self.grant_for(peer.peer_id)):
            return peer
        changed = await self._database.write(self._regrant, peer, trust, terms or DEFAULT_TERMS[trust])
        await self._cut(peer.peer_id)
        return changed

    async def edit_grant(self, who: str, change: TermsChange) -> Peer:
        """The peer, with a grant that differs in what the owner said. It replaces the old one under a new epoch.

        When it allows less in anything, those running answers that no longer fit are cut; when a service is gone, all
        streams. A revoked grant starts from nothing. Raises UnknownPeer, UsageError (also for a peer that is trusted
        with nothing).
        """
        peer = await self.find(who)
        if peer.trust == Trust.NONE:
            raise UsageError(
                f"{peer.name} is trusted with nothing, so nothing can be granted to it.",
                hint=f"First say what it is to you: kith trust {peer.name} friend",
            )
        old, new = await self._database.write(self._edit, peer, change)
        if old is not None and covers(new, old):
            await self._widened(peer.peer_id)
        elif old is not None and set(old.services) <= set(new.services):
            await self._narrowed(peer.peer_id)
        else:
            await self._cut(peer.peer_id)
        return peer

    async def revoke_grant(self, who: str) -> Peer:
        """The peer, still paired, without a grant: it may do nothing here until it is granted something again. Its
        streams are cut. Raises UnknownPeer.
        """
        peer = await self.find(who)
        await self._database.write(grants.revoke, peer.peer_id, to_ms(self._clock.now()), "issued")
        await self._cut(peer.peer_id)
        return peer

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
        grant = await self.issued_to(peer_id)
        return grant if grant is not None and to_ms(self._clock.now()) // 1000 <= grant.not_after_s else None

    async def issued_to(self, peer_id: str) -> Grant | None:
        """The grant that this paired peer holds and that was not taken back, also when its time is over."""
        stored = await self.issued_blob(peer_id)
        return None if stored is None else self.read_issued(stored, peer_id)

    async def issued_blob(self, peer_id: str) -> bytes | None:
        """The same grant as the signed bytes that its holder gets."""
        return await self._database.read(_issued_to_paired, peer_id)

    def read_issued(self, blob: bytes, peer_id: str) -> Grant | None:
        """The grant in bytes that this node signed for a peer."""
        return granting.read(blob, issuer=self._identity.peer_id, holder=peer_id, now=None)

    def read_received(self, blob: bytes, peer_id: str) -> Grant | None:
        """The grant in bytes that a peer sent; None when it is not genuine, not for this node, or over."""
        return granting.read(blob, issuer=peer_id, holder=self._identity.peer_id, now=self._clock.now())

    async def store_received(self, peer_id: str, blob: bytes) -> None:
        """Keep what a paired peer says we may do there; empty bytes take the last one back. An older grant than the
        stored one changes nothing. Raises StoreConflict for another grant of the stored one's number.
        """
        await self._database.write(self._store_received, peer_id, blob)

    def _store_received(self, tx: Connection, peer_id: str, blob: bytes) -> None:
        now_ms = to_ms(self._clock.now())
        if peers.get(tx, peer_id) is None:
            return
        if not blob:
            grants.revoke(tx, peer_id, now_ms, "received")
            return
        grant = self.read_received(blob, peer_id)
        if grant is None:
            return
        held = grants.current(tx, peer_id, "received")
        if held is None or grant.epoch >= held.epoch:
            grants.put(tx, peer_id, "received", grant.epoch, blob, now_ms)

    async def grant_from(self, peer_id: str) -> Grant | None:
        """What this peer said we may do there; None means nothing."""
        stored = await self._database.read(grants.current, peer_id, "received")
        if stored is None:
            return None
        return granting.read(stored.blob, issuer=peer_id, holder=self._identity.peer_id, now=self._clock.now())

    def _regrant(self, tx: Connection, peer: Peer, trust: Trust, terms: Terms) -> Peer:
        now = self._clock.now()
        peers.set_trust(tx, peer.peer_id, trust)
        levels.drop_clear(tx, peer.peer_id)
        if trust is Trust.NONE:
            grants.revoke(tx, peer.peer_id, to_ms(now), "issued")
        else:
            self._issue(tx, peer.peer_id, terms)
        return replace(peer, trust=trust)

    def _edit(self, tx: Connection, peer: Peer, change: TermsChange) -> tuple[Grant | None, Grant]:
        """The grant before and after."""
        own, now = self._identity.peer_id, self._clock.now()
        stored = _issued_to_paired(tx, peer.peer_id)
        old = None if stored is None else granting.read(stored, issuer=own, holder=peer.peer_id, now=None)
        terms = Terms() if old is None else granting.terms_of(old)
        blob = self._issue(tx, peer.peer_id, granting.changed(terms, change, now))
        new = granting.read(blob, issuer=own, holder=peer.peer_id, now=now)
        if new is None:
            raise BugError("A grant that was just made cannot be read.")
        return old, new

    def _issue(self, tx: Connection, peer_id: str, terms: Terms) -> bytes:
        now = self._clock.now()
        epoch = grants.reserve_epoch(tx)
        blob = granting.issue(self._identity, peer_id, terms, epoch, now)
        grants.put(tx, peer_id, "issued", epoch, blob, to_ms(now))
        return blob


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
    levels.forget(tx, peer_id)


def _issued_to_paired(tx: Connection, peer_id: str) -> bytes | None:
    if peers.get(tx, peer_id) is None:
        return None
    grant = grants.current(tx, peer_id, "issued")
    return None if grant is None else grant.blob


def _is_name(name: str) -> bool:
    good = all("a" <= one <= "z" or "0" <= one <= "9" or one == "-" for one in name)
    return good and 0 < len(name) <= _NAME_LIMIT_CHARS and name.strip("-") == name
