"""The one way out: decide, mask, check, ask, enter in the ledger, and only then hand out a clearance.

Fail closed: whatever is missing, raises, hangs or returns nonsense ends in EgressDenied and nothing is sent.
Must not know frames' meaning, models, tools or how the owner is asked.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from node.privacy.consent import ConsentAsker
from node.privacy.labels import Labeled
from node.privacy.policy import Level, PeerView, Purpose

__all__ = ["Egress", "EgressClearance", "Part", "PeerView", "Purpose"]


@dataclass(frozen=True, slots=True)
class Part:
    """One part of what should leave. role: system, user, assistant, tool, tools (schemas), query, mail, passage, stop."""

    role: str
    text: Labeled


class EgressClearance:
    """Implements protocol.channel.Clearance."""

    @property
    def texts(self) -> tuple[str, ...]:
        raise NotImplementedError

    @property
    def substitutions(self) -> int:
        raise NotImplementedError

    @property
    def level(self) -> Level:
        raise NotImplementedError

    def rehydrator(self) -> Any:
        """StreamRehydrator: feed(str) -> str, end() -> str. For the owner's display only, never for anything outgoing."""
        raise NotImplementedError

    async def close(self, outcome: str) -> None:
        """Close the ledger entry with the byte count and digest of what was really sent. Idempotent."""
        raise NotImplementedError


class Egress:
    """The guard of one node."""

    async def clear(
        self, *, peer: PeerView, purpose: Purpose, conversation: str, request_id: str, parts: Sequence[Part],
        ask: ConsentAsker, why: str = "", together_with: Callable[[Any], None] | None = None,
    ) -> EgressClearance:
        """A clearance whose `texts` (same order as parts) may be put into one content frame for this peer.

        together_with: run inside the transaction that writes the ledger entry (a message's outbox row).
        Raises EgressDenied (a leaf says why).
        """
        raise NotImplementedError

    async def reopen(self, *, peer: PeerView, request_id: str) -> EgressClearance:
        """The clearance of a message that is in the ledger and not closed yet (after a restart)."""
        raise NotImplementedError

    def absorb(self, conversation: str, *parts: Labeled) -> None:
        """Remember what a tool returned or a peer said in this conversation: its values are masked from now on."""
        raise NotImplementedError

    def forget(self, conversation: str) -> None:
        """Drop the placeholder maps and values of a conversation that ended."""
        raise NotImplementedError

    def channel(self, stream: Any) -> Any:
        """A GuardedChannel (protocol.channel.FrameChannel) over a PeerStream."""
        raise NotImplementedError
