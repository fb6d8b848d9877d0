"""From a shared secret to the keys of one pairing: one key per purpose and side, bound to everything both sides saw.

Transcript = SHA-256 over the protocol id, the method, both peer ids (as the encrypted channel proved them) and both
opening messages, each with its length in front. Extract-then-expand in the manner of RFC 5869, with HMAC-SHA-256. Must
not know frames in flight, states or where the secret came from.
"""

import hashlib
import hmac
from typing import Literal

from protocol import limits
from protocol.names import PAIR

__all__ = ["Method", "PairingKeys", "Side", "macs_equal"]

Method = Literal["code", "secret"]
Side = Literal["initiator", "responder"]


class PairingKeys:
    """The keys of one exchange. Both sides hold equal ones exactly if secret, ids and messages were the same on
    both.
    """

    def __init__(
        self, shared: bytes, *, method: Method, initiator_id: str, responder_id: str, first: bytes, second: bytes
    ) -> None:
        """shared: the SPAKE2 result or the scanned secret; first and second: the opening messages in order."""
        digest = hashlib.sha256()
        for piece in (PAIR.encode(), method.encode(), initiator_id.encode(), responder_id.encode(), first, second):
            digest.update(len(piece).to_bytes(4, "big") + piece)
        self._transcript = digest.digest()
        self._key = hmac.digest(self._transcript, shared, "sha256")

    def confirm_mac(self, side: Side) -> bytes:
        """The proof of that side that it holds the key."""
        return self._mac("confirm", side, self._transcript)

    def card_mac(self, side: Side, card: bytes) -> bytes:
        """Authenticates that side's encoded card."""
        return self._mac("card", side, card)

    def accept_mac(self, side: Side, initiator_card: bytes, responder_card: bytes) -> bytes:
        """That side's owner accepted exactly these two cards."""
        both = hashlib.sha256(initiator_card).digest() + hashlib.sha256(responder_card).digest()
        return self._mac("accept", side, both)

    def emoji_bytes(self) -> bytes:
        """Three bytes that both screens show as pictures."""
        return self._expand("emoji", "")[: limits.EMOJI_CHECK_COUNT]

    def _mac(self, purpose: str, side: Side, data: bytes) -> bytes:
        return hmac.digest(self._expand(purpose, side), data, "sha256")

    def _expand(self, purpose: str, side: str) -> bytes:
        return hmac.digest(self._key, f"{PAIR} {purpose} {side}".encode() + b"\x01", "sha256")


def macs_equal(left: bytes, right: bytes) -> bool:
    """Whether two MACs are the same, in constant time."""
    return hmac.compare_digest(left, right)
