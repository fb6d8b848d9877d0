"""A clearance: the proof that exactly these texts were decided, masked, consented to and entered in the ledger, and the
way back for what the peer answers.

Bound to one peer, purpose and request; only the guard makes one. Must not know how it was decided or what a frame is.
"""

from collections.abc import Callable
from typing import Any

import msgspec
import trio

from node.privacy.carrying import Carried
from node.privacy.ledger import Ledger
from node.privacy.left import Left
from node.privacy.placeholders import PlaceholderMap
from node.privacy.policy import Level, Purpose
from node.privacy.rehydrate import Restorer, StreamRehydrator
from node.store.ledger import Head

__all__ = ["EgressClearance"]

_CLOSE_DEADLINE_S = 20.0
_HEARD_LIMIT = 131_072      # characters and token ids of the peer's answer kept for resuming (the wire's own bound)


class EgressClearance:
    """Implements protocol.channel.Clearance. Close it when the exchange is over, whatever its end was."""

    def __init__(
        self, *, peer_id: str, purpose: Purpose, level: Level, conversation: str, request_id: str,
        texts: tuple[str, ...], substitutions: int, placeholders: PlaceholderMap, ledger: Ledger, place: Head,
        approved_by: str = "", like: Carried | None = None,
    ) -> None:
        """like: what goes on here; its token ids may go with its text, its text again to the peer that wrote it."""
        self.peer_id = peer_id
        self.purpose = purpose
        self.level = level
        self.conversation = conversation
        self.request_id = request_id
        self.substitutions = substitutions
        self.placeholders = placeholders
        self._texts = texts
        self._ledger = ledger
        self._place = place
        self._left = Left(whole=purpose is Purpose.ANSWER)
        self._closed = False
        self._heard_text = ""
        self._heard_ids: tuple[int, ...] = ()
        self._approved_by = approved_by
        self._like = like
        if like is not None and like.approval_for(peer_id) is not None:
            self._heard_text, self._heard_ids = like.text, like.token_ids

    def __repr__(self) -> str:
        """Never the texts."""
        return f"<EgressClearance entry {self._place.seq} {self.purpose} {self.level} {len(self._texts)} texts>"

    @property
    def texts(self) -> tuple[str, ...]:
        """The outgoing texts, in the order of the parts that were cleared."""
        return self._texts

    @property
    def entry(self) -> int:
        """The number of the ledger entry."""
        return self._place.seq

    @property
    def sent_bytes(self) -> int:
        """Bytes handed to the transport for it, length prefixes included."""
        return self._left.size_bytes

    @property
    def closed(self) -> bool:
        """Nothing more may be sent with it."""
        return self._closed

    def rehydrator(self) -> StreamRehydrator:
        """Fills the peer's stream in for the owner's display. Its output must never enter anything outgoing."""
        return StreamRehydrator(Restorer(self.placeholders.tokens))

    def restore(self, text: str) -> str:
        """The same for a whole text, such as one argument of a proposed tool call."""
        return Restorer(self.placeholders.tokens).restore(text)

    def carried(self) -> Carried:
        """The request as it leaves with this clearance, for the next one that goes on with it."""
        approved = {self.peer_id: self._approved_by}
        if self._like is not None:
            return msgspec.structs.replace(self._like, approved={**self._like.approved, **approved})
        return Carried(self._texts, self.level, self.placeholders.style, self.placeholders.tokens, approved)

    async def close(self, outcome: str) -> None:
        """Close the ledger entry with the byte count and digest of what left, also while being cancelled. A second call
        changes nothing. Raises StorageError or trio.TooSlowError when that could not be written.

        outcome: end, refused, cancelled, broken, failed, delivered...
        """
        if not self._closed:
            self._closed = True
            with trio.CancelScope(shield=True), trio.fail_after(_CLOSE_DEADLINE_S):
                await self._ledger.close(self._place, **self._totals(), outcome=outcome)

    def closing(self, outcome: str) -> Callable[[Any], None]:
        """close() as a step of the caller's own transaction; call the result with its connection."""
        self._closed = True
        return self._ledger.closing(self._place, **self._totals(), outcome=outcome)

    # -- for the guarded channel --------------------------------------------------------------------------------------

    def count(self, data: bytes) -> None:
        """Bytes that are about to be handed to the transport."""
        self._left.add(data)

    def hear(self, text: str, token_ids: tuple[int, ...]) -> None:
        """What this peer answered: it may be sent back to it when the request is resumed."""
        if len(self._heard_text) + len(text) <= _HEARD_LIMIT:
            self._heard_text += text
        if len(self._heard_ids) + len(token_ids) <= _HEARD_LIMIT:
            self._heard_ids += token_ids

    def resume_from(self, text: str, token_ids: tuple[int, ...]) -> None:
        """The answer goes on from here; what came after was dropped by the owner's side."""
        self._heard_text, self._heard_ids = text, token_ids

    def has_heard(self, text: str, token_ids: tuple[int, ...]) -> bool:
        """Whether both are the beginning of what this peer itself answered."""
        return self._heard_text.startswith(text) and self._heard_ids[: len(token_ids)] == token_ids

    def vouches_for(self, text: str, token_ids: tuple[int, ...]) -> bool:
        """Whether these ids may go along with the text: this peer sent them, or they came with what was carried here.
        """
        like = self._like
        return self.has_heard(text, token_ids) or (
            like is not None and (like.text, like.token_ids) == (text, token_ids))

    def _totals(self) -> dict[str, Any]:
        return {
            "sent_bytes": self._left.size_bytes, "digest": self._left.digest, "stretches": self._left.stretches,
            "bodies": self._left.bodies,
        }
