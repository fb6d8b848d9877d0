"""Who may connect and what they may speak: the allow-list, the pairing window for a few strangers that call, and the
meeting with one stranger that this node calls.

Window and meeting are independent: neither opens, ends or takes the places of the other. Deny by default; an empty list
is nobody. Asked inside the Noise handshake (before a multiplexer or stream exists) and again for every stream. Must not
import libp2p or trio, nor know the time: whoever opens the window closes it.
"""

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager

from protocol.names import PAIR

__all__ = ["MAX_STRANGERS", "Gate"]

MAX_STRANGERS = 4


class Gate:
    """The live set of allowed peers. Changes take effect at once, for standing connections too."""

    def __init__(self, allowed: Iterable[str] = ()) -> None:
        self._allowed = set(allowed)
        self._guests: set[str] = set()
        self._guest_limit = 0
        self._is_meeting = False
        self._wanted: str | None = None
        self._met: str | None = None
        self._cuts: list[Callable[[str], None]] = []
        self.refused = 0

    def on_cut(self, cut: Callable[[str], None]) -> None:
        """Register what closes a peer's live connections; called with its id on forbid() and when the window or the
        meeting that it was here through ends."""
        self._cuts.append(cut)

    @property
    def allowed(self) -> frozenset[str]:
        """The peers on the list now."""
        return frozenset(self._allowed)

    @property
    def strangers(self) -> frozenset[str]:
        """Peers that are here through the pairing window or a meeting only."""
        return frozenset(self._guests if self._met is None else self._guests | {self._met})

    @property
    def pairing_open(self) -> bool:
        """Whether strangers may call for the pairing protocol now."""
        return self._guest_limit > 0

    @property
    def is_meeting(self) -> bool:
        """Whether this node may call a stranger now."""
        return self._is_meeting

    def allow(self, peer_id: str) -> None:
        """Put a peer on the list. A stranger that is here keeps its connection and may now speak everything."""
        self._allowed.add(peer_id)
        self.leave(peer_id)

    def forbid(self, peer_id: str) -> None:
        """Take a peer off the list and cut its live connections."""
        self._allowed.discard(peer_id)
        self.leave(peer_id)
        self._cut(peer_id)

    def open_pairing(self, max_strangers: int = 3) -> None:
        """Let up to max_strangers unknown peers (1 to 4) connect for the pairing protocol, until close_pairing()."""
        if not 1 <= max_strangers <= MAX_STRANGERS:
            raise ValueError(f"a pairing window takes 1 to {MAX_STRANGERS} strangers, not {max_strangers}")
        self._guest_limit = max_strangers

    def close_pairing(self) -> None:
        """End the window and cut every stranger that is here through it."""
        self._guest_limit = 0
        guests, self._guests = self._guests, set()
        for peer_id in guests - {self._met}:
            self._cut(peer_id)

    @contextmanager
    def meeting(self, peer_id: str | None = None) -> Iterator[None]:
        """Let this node call one unknown peer for the pairing protocol inside the block: this one, or whoever answers
        first. No stranger that calls is let in by it. Raises RuntimeError when there is a meeting already."""
        if self._is_meeting:
            raise RuntimeError("one meeting at a time")
        self._is_meeting, self._wanted = True, peer_id
        try:
            yield
        finally:
            met, self._is_meeting, self._wanted, self._met = self._met, False, None, None
            if met is not None and met not in self._guests:
                self._cut(met)

    def admit(self, peer_id: str, *, dialled: bool = False) -> bool:
        """Whether this proven peer may hold a connection; dialled: this node called it. Takes one of the strangers'
        places where that is why."""
        if peer_id in self._allowed:
            return True
        if dialled and self._is_meeting and self._wanted in (None, peer_id) and self._met in (None, peer_id):
            self._met = peer_id
            return True
        if not dialled and self.pairing_open and (peer_id in self._guests or len(self._guests) < self._guest_limit):
            self._guests.add(peer_id)
            return True
        self.refused += 1
        return False

    def leave(self, peer_id: str) -> None:
        """A peer's last connection is gone: a stranger's place is free again."""
        self._guests.discard(peer_id)
        if self._met == peer_id:
            self._met = None

    def may(self, peer_id: str, protocol: str) -> bool:
        """Whether this peer and this node may open a stream of this protocol to each other now."""
        return peer_id in self._allowed or (protocol == PAIR and peer_id in self.strangers)

    def _cut(self, peer_id: str) -> None:
        for cut in self._cuts:
            cut(peer_id)
