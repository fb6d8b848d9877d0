"""What may leave for whom, as the owner sees and changes it. Implements node.api.ports.Privacy.

Reached over the owner's own socket only: no frame of a peer leads here. Must not know how a level is carried out.
"""

from collections.abc import Awaitable, Callable

from node.api.privacy_ports import LevelChange
from node.api.privacy_views import DenialView, LevelView, PeerLevels, PrivacyView
from node.clock import from_ms
from node.daemon.peers import Roster
from node.errors import UsageError
from node.privacy.decisions import CHOICES, Decisions
from node.privacy.inspector import Inspector
from node.privacy.policy import Level, PeerView, Purpose, level_for
from node.store.conversations import Conversation

__all__ = ["PrivacyDesk"]

DEFAULT = "default"


class PrivacyDesk:
    """One per node."""

    def __init__(
        self, decisions: Decisions, roster: Roster, inspector: Inspector,
        conversation: Callable[[str], Awaitable[Conversation]],
    ) -> None:
        """conversation: the one called by "last", its id or the beginning of it; raises UsageError."""
        self._decisions = decisions
        self._roster = roster
        self._inspector = inspector
        self._conversation = conversation

    async def show(self, name: str | None) -> PrivacyView:
        """The levels of every paired peer, or of one, and the standing refusals. Raises UnknownPeer."""
        wanted = self._roster.find(name) if name else None
        levels, denials = await self._decisions.rows()
        names = {peer.peer_id: peer for peer in self._paired() if wanted in (None, peer.peer_id)}
        return PrivacyView(
            peers=[self._levels(peer) for peer in names.values()],
            conversations=[
                LevelView(peer=self._roster.name_of(row.peer_id), purpose=row.purpose, level=row.level,
                          conversation=row.conversation, since=_time(row.set_ms))
                for row in levels if row.conversation and row.peer_id in names
            ],
            denials=[
                DenialView(number=row.number, peer=self._roster.name_of(row.peer_id), purpose=row.purpose,
                           since=_time(row.made_ms))
                for row in denials if row.peer_id in names
            ],
            nets=list(self._inspector.nets), nets_missing=list(self._inspector.missing),
        )

    async def set(self, change: LevelChange) -> PrivacyView:
        """Choose a level, or "default". Raises UsageError, UnknownPeer."""
        peer_id = self._roster.find(change.peer)
        purpose = _purpose(change.purpose)
        level = None if change.level == DEFAULT else _level(change.level, purpose)
        conversation = ""
        if change.conversation:
            if purpose is not Purpose.INFER:
                raise UsageError("Only what goes to a model belongs to a conversation.", hint="Leave --for away.")
            conversation = (await self._conversation(change.conversation)).conversation_id
        peer = next(one for one in self._paired() if one.peer_id == peer_id)
        if level is Level.CLEAR and purpose is Purpose.INFER and peer.trust not in ("self", "home"):
            raise UsageError(
                f"{peer.name} is trusted as {peer.trust}: clear is for your own devices.",
                hint="One request may go in clear: choose it when you are asked.",
            )
        await self._decisions.choose(peer_id, purpose, conversation, level)
        return await self.show(change.peer)

    async def allow_again(self, number: int) -> PrivacyView:
        """Take a standing refusal back. Raises UsageError."""
        if not await self._decisions.allow_again(number):
            raise UsageError(f"There is no refusal {number}.", hint="See them: kith privacy denials")
        return await self.show(None)

    def _paired(self) -> list[PeerView]:
        return [PeerView(one.peer_id, one.name, one.trust) for one in self._roster.screens({})]

    def _levels(self, peer: PeerView) -> PeerLevels:
        found = {}
        for purpose in CHOICES:
            chosen, _ = self._decisions.chosen(peer.peer_id, purpose, "")
            typed = purpose is not Purpose.QUERY
            level = level_for(peer, purpose, owner_typed=typed, chosen=chosen)
            denied = self._decisions.denied(peer.peer_id, purpose)
            found[purpose.value] = "denied" if denied else level.value + ("" if chosen is None else " (your choice)")
        return PeerLevels(peer=peer.name, peer_id=peer.peer_id, trust=peer.trust, levels=found)


def _purpose(text: str) -> Purpose:
    if text not in {purpose.value for purpose in CHOICES}:
        raise UsageError(f"{text!r} is no purpose.", hint=f"Use one of: {', '.join(CHOICES)}")
    return Purpose(text)


def _level(text: str, purpose: Purpose) -> Level:
    choices = [level.value for level in CHOICES[purpose]]
    if text not in choices:
        raise UsageError(f"{text!r} is no level for {purpose}.", hint=f"Use one of: {', '.join(choices)}, {DEFAULT}")
    return Level(text)


def _time(at_ms: int) -> str:
    return from_ms(at_ms).isoformat(timespec="seconds")
