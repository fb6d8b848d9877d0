"""The table of live connections: which one to use, and which ones must go. Pure bookkeeping; must not know sockets or
trio.

Three rules. A direct connection is used before one through a relay, whatever their age. Both sides dialled at once
(born within race_s, opposite directions): the one dialled by the smaller peer id stays, so that both sides keep the
same one without a word. Otherwise the newest is used: whoever dialled again has found the older one dead, even if this
side has not noticed.
"""

from dataclasses import dataclass, field
from typing import Any

__all__ = ["Connection", "ConnectionTable"]


@dataclass(eq=False, slots=True)
class Connection:
    """One upgraded connection. handle and muxer belong to the session that made it."""

    peer_id: str
    address: str
    dialled: bool
    born_s: float
    muxer: Any
    handle: Any
    via: str | None = None
    """The relay that carries it; None for a direct one."""
    local_ip: str = ""
    """This side's address; empty for a relayed one."""
    losing: bool = field(default=False)


class ConnectionTable:
    """Connections by peer, in the order they were made."""

    def __init__(self, own_id: str, *, race_s: float) -> None:
        self._own_id = own_id
        self._race_s = race_s
        self._by_peer: dict[str, list[Connection]] = {}

    def add(self, new: Connection, *, max_per_peer: int) -> list[Connection]:
        """Enter a connection; returns those to close now, which may include the new one. They are not used any more."""
        mine = self._by_peer.setdefault(new.peer_id, [])
        rivals = [
            old for old in mine
            if not old.losing and old.dialled != new.dialled and new.born_s - old.born_s < self._race_s
            and (old.via is None) == (new.via is None)
        ]
        mine.append(new)
        if rivals:
            for loser in rivals if self._stays(new) else [new]:
                loser.losing = True
        live = [one for one in mine if not one.losing]
        for oldest in live[: max(0, len(live) - max_per_peer)]:
            oldest.losing = True
        return [one for one in mine if one.losing]

    def _stays(self, connection: Connection) -> bool:
        return connection.dialled == (self._own_id < connection.peer_id)

    def remove(self, gone: Connection) -> bool:
        """Take a closed connection out; returns whether it was the peer's last."""
        mine = self._by_peer.get(gone.peer_id, [])
        if gone not in mine:
            return False
        mine.remove(gone)
        if not mine:
            del self._by_peer[gone.peer_id]
        return not mine

    def best(self, peer_id: str) -> Connection | None:
        """The connection to open streams on, or None."""
        live = [one for one in self._by_peer.get(peer_id, ()) if not one.losing and not one.muxer.is_closed]
        direct = [one for one in live if one.via is None]
        return (direct or live)[-1] if live else None

    def of(self, peer_id: str) -> list[Connection]:
        """All connections of this peer, losing ones included."""
        return list(self._by_peer.get(peer_id, ()))

    def all(self) -> list[Connection]:
        """Every connection."""
        return [one for mine in self._by_peer.values() for one in mine]

    def peers(self) -> set[str]:
        """Peers with a usable connection."""
        return {peer_id for peer_id in self._by_peer if self.best(peer_id) is not None}
