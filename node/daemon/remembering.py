"""Conversations whose turns the guard remembers: what was read in one is masked in all that leaves later in it.

Most turns are answered here and never pass the guard, and a request carries the newest turns only. So each turn is told
to the guard when it is kept, and the newest 2,000 of an older conversation when it is taken up again in this life of
the node. Must not know what the guard does with it, nor how turns are stored.
"""

import logging
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence

from node.agent.ports import ConversationStore, Json, TurnRecord
from node.privacy.errors import GuardFailed
from node.privacy.labels import Label, Labeled

__all__ = ["Absorb", "RememberedConversations"]

log = logging.getLogger(__name__)

TURNS_LIMIT = 2_000
_TAKEN_LIMIT = 256
"""Conversations of which it is known that the guard has them; fewer than it keeps."""

Absorb = Callable[[str, Sequence[Labeled]], None]


class RememberedConversations:
    """Implements node.agent.ports.ConversationStore over another one."""

    def __init__(self, store: ConversationStore, absorb: Absorb) -> None:
        """absorb: the guard takes in texts of a conversation; raises GuardFailed when they hold too many values."""
        self._store = store
        self._absorb = absorb
        self._taken: OrderedDict[str, None] = OrderedDict()

    async def create(self) -> str:
        """A new conversation's id."""
        return await self._store.create()

    async def label(self, conversation_id: str) -> Label | None:
        """How private and how trusted it has become; None when there is no such conversation."""
        return await self._store.label(conversation_id)

    async def latest(self) -> str | None:
        """The conversation last spoken in."""
        return await self._store.latest()

    async def turns(self, conversation_id: str, *, limit: int) -> Sequence[TurnRecord]:
        """The newest turns, oldest first. The guard knows all turns before the first of them is given out."""
        if conversation_id not in self._taken:
            every = await self._store.turns(conversation_id, limit=max(limit, TURNS_LIMIT))
            self._tell(conversation_id, every)
            return every[-limit:]
        self._taken.move_to_end(conversation_id)
        return await self._store.turns(conversation_id, limit=limit)

    async def append(self, conversation_id: str, turn: TurnRecord, *, settles: str = "") -> None:
        """Add a turn, which the guard knows before it is kept."""
        self._tell(conversation_id, (turn,))
        await self._store.append(conversation_id, turn, settles=settles)

    async def draft(self, conversation_id: str) -> Mapping[str, Json] | None:
        """The unfinished call that waits for the owner's next words."""
        return await self._store.draft(conversation_id)

    async def keep_draft(self, conversation_id: str, draft: Mapping[str, Json] | None) -> None:
        """Keep a draft, or drop it."""
        await self._store.keep_draft(conversation_id, draft)

    def _tell(self, conversation_id: str, turns: Sequence[TurnRecord]) -> None:
        try:
            self._absorb(conversation_id, [turn.text for turn in turns])
        except GuardFailed as error:    # nothing of this conversation leaves any more; it goes on here
            log.warning("the guard cannot remember all of a conversation: %s", error.code)
        self._taken[conversation_id] = None
        self._taken.move_to_end(conversation_id)
        while len(self._taken) > _TAKEN_LIMIT:
            self._taken.popitem(last=False)
