"""Who may connect and what they may speak: the allow-list, and the pairing window for a few strangers.

Deny by default; an empty list is nobody. Asked inside the Noise handshake (before a multiplexer or stream exists) and
again for every stream. Must not import libp2p or trio, nor know the time: whoever opens the window closes it.
"""

from collections.abc import Callable, Iterable

from protocol.names import PAIR

__all__ = ["MAX_STRANGERS", "Gate"]

MAX_STRANGERS = 4


class Gate:
    """The live set of allowed peers. Changes take effect at once, for standing connections too."""

    def __init__(self, allowed: Iterable[str] = ()) -> None:
        self._allowed = set(allowed)
        self._strangers: set[str] = set()
        self._stranger_limit = 0
        self._cuts: list[Callable[[str], None]] = []
        self.refused = 0

    def on_cut(self, cut: Callable[[str], None]) -> None:
        """Register what closes a peer's live connections; called with its id on forbid() and at the window's end."""
        self._cuts.append(cut)

    @property
    def allowed(self) -> frozenset[str]:
        """The peers on the list now."""
        return frozenset(self._allowed)

    @property
    def strangers(self) -> frozenset[str]:
        """Peers that are here through the pairing window only."""
        return frozenset(self._strangers)

    @property
    def pairing_open(self) -> bool:
        """Whether strangers may speak the pairing protocol now."""
        return self._stranger_limit > 0

    def allow(self, peer_id: str) -> None:
        """Put a peer on the list. A stranger in the window keeps its connection and may now speak everything."""
        self._allowed.add(peer_id)
        self._strangers.discard(peer_id)

    def forbid(self, peer_id: str) -> None:
        """Take a peer off the list and cut its live connections."""
        self._allowed.discard(peer_id)
        self._strangers.discard(peer_id)
        self._cut(peer_id)

    def open_pairing(self, max_strangers: int = 3) -> None:
        """Let up to max_strangers unknown peers (1 to 4) connect for the pairing protocol, until close_pairing()."""
        if not 1 <= max_strangers <= MAX_STRANGERS:
            raise ValueError(f"a pairing window takes 1 to {MAX_STRANGERS} strangers, not {max_strangers}")
        self._stranger_limit = max_strangers

    def close_pairing(self) -> None:
        """End the window and cut every stranger."""
        self._stranger_limit = 0
        strangers, self._strangers = self._strangers, set()
        for peer_id in strangers:
            self._cut(peer_id)

    def admit(self, peer_id: str) -> bool:
        """Whether this proven peer may hold a connection. Takes one of the strangers' places where that is why."""
        if peer_id in self._allowed:
            return True
        if self.pairing_open and (peer_id in self._strangers or len(self._strangers) < self._stranger_limit):
            self._strangers.add(peer_id)
            return True
        self.refused += 1
        return False

    def leave(self, peer_id: str) -> None:
        """A peer's last connection is gone: a stranger's place is free again."""
        self._strangers.discard(peer_id)

    def may(self, peer_id: str, protocol: str) -> bool:
        """Whether this peer and this node may open a stream of this protocol to each other now."""
        if peer_id in self._allowed:
            return True
        return self.pairing_open and peer_id in self._strangers and protocol == PAIR

    def _cut(self, peer_id: str) -> None:
        for cut in self._cuts:
            cut(peer_id)
