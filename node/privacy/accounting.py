"""Ledger entries for what a peer's own request draws from this node: inference answers and model files.

An answer derives from the peer's own prompt only and a model file holds nothing of the owner's, so they are accounted
and not scanned: one entry per request, durable before its first byte, closed with byte count and digest. Must not know
the engine, the answer's text or the file.
"""

from node.privacy.ledger import Draft, Ledger
from node.privacy.left import Left
from node.privacy.policy import Purpose
from node.store.ledger import Head

__all__ = ["ACCOUNTED_LEVEL", "AnswerAccount", "AnswerAccounts"]

ACCOUNTED_LEVEL = "accounted"


class AnswerAccount:
    """One answer under way."""

    def __init__(self, ledger: Ledger, place: Head) -> None:
        self._ledger = ledger
        self._place = place
        self._left = Left(whole=True, keep=False)
        self._sent_bytes = 0
        self._closed = False

    def count(self, data: bytes) -> None:
        """Bytes that are about to be handed to the transport."""
        self._left.add(data)
        self._sent_bytes += len(data)

    async def close(self, outcome: str) -> None:
        """Close the entry. A second call changes nothing."""
        if not self._closed:
            self._closed = True
            await self._ledger.close(
                self._place, sent_bytes=self._sent_bytes, digest=self._left.digest, outcome=outcome,
                stretches=self._left.stretches,
            )


class AnswerAccounts:
    """Opens accounts."""

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger

    async def open(self, peer_id: str, request_id: str, purpose: Purpose = Purpose.ANSWER) -> AnswerAccount:
        """An account whose entry is durable. Raises whatever the ledger raises; then nothing may be sent."""
        place = await self._ledger.append(Draft(
            peer_id=peer_id, purpose=purpose, level=ACCOUNTED_LEVEL, request_id=request_id, texts=(),
            substitutions=0, approved_by="owner, by the grant to this peer",
        ))
        return AnswerAccount(self._ledger, place)
