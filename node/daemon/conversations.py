"""The owner's conversations over the database: what the agent continues, and what the API lists, shows and erases.

Implements node.agent.ports.ConversationStore and node.api.ports.Conversations. Must not know how a turn came about.
"""

import json
from collections.abc import Mapping, Sequence
from typing import Any, Literal, cast

from node.agent.ports import Json, TurnRecord
from node.api.views import ConversationView, TurnView
from node.clock import Clock, Entropy, from_ms, new_id, to_ms
from node.errors import UsageError
from node.privacy.labels import Confidentiality, Integrity, Labeled
from node.store import conversations
from node.store.connection import Connection
from node.store.database import Database

__all__ = ["StoredConversations"]


class StoredConversations:
    """All conversations of this node."""

    def __init__(self, database: Database, clock: Clock, entropy: Entropy) -> None:
        self._database = database
        self._clock = clock
        self._entropy = entropy

    async def create(self) -> str:
        """A new conversation's id."""
        conversation_id = new_id(self._entropy)
        await self._database.write(
            conversations.create, conversation_id, to_ms(self._clock.now()),
            confidentiality=int(Confidentiality.PUBLIC), integrity=int(Integrity.OWNER),
        )
        return conversation_id

    async def latest(self) -> str | None:
        """The conversation last spoken in."""
        found = await self._database.read(conversations.latest)
        return None if found is None else found.conversation_id

    async def turns(self, conversation_id: str, *, limit: int) -> Sequence[TurnRecord]:
        """The newest turns, oldest first, with their labels."""
        found = await self._database.read(conversations.turns, conversation_id, limit=limit)
        return [
            TurnRecord(
                cast("Literal['user', 'assistant']", turn.role),
                _labeled(turn),
                from_ms(turn.at_ms),
            )
            for turn in found
        ]

    async def append(self, conversation_id: str, turn: TurnRecord) -> None:
        """Add a turn; the conversation's label rises with it."""
        text = turn.text
        record = conversations.Turn(
            turn.role, text.value, int(text.confidentiality), int(text.integrity), to_ms(turn.at),
        )
        await self._database.write(conversations.append, conversation_id, record)

    async def draft(self, conversation_id: str) -> Mapping[str, Json] | None:
        """The unfinished call of this conversation."""
        text = await self._database.read(conversations.draft, conversation_id)
        return None if text is None else json.loads(text)

    async def keep_draft(self, conversation_id: str, draft: Mapping[str, Json] | None) -> None:
        """Keep or drop the unfinished call."""
        await self._database.write(
            conversations.keep_draft, conversation_id, None if draft is None else json.dumps(draft)
        )

    async def all(self, limit: int) -> list[ConversationView]:
        """Newest first, without turns."""
        return [_view(found) for found in await self._database.read(conversations.newest, limit=limit)]

    async def one(self, conversation_id: str) -> ConversationView:
        """One conversation with its turns. Raises UsageError."""
        found = await self.resolve(conversation_id)
        turns = await self._database.read(conversations.turns, found.conversation_id)
        return _view(found, [_turn_view(turn) for turn in turns])

    async def delete(self, conversation_id: str) -> str:
        """Erase one conversation: its rows are overwritten and the log is folded in and emptied."""
        found = await self.resolve(conversation_id)
        await self._database.write(conversations.delete, found.conversation_id)
        await self._database.shrink_log()
        return found.conversation_id

    async def resolve(self, name: str) -> conversations.Conversation:
        """The conversation called by "last", its id or the beginning of it. Raises UsageError."""
        def look(tx: Connection) -> conversations.Conversation | None:
            return conversations.latest(tx) if name == "last" else conversations.find(tx, name)

        found = await self._database.read(look)
        if found is None:
            raise UsageError("There is no such conversation.", hint="See them: kith history")
        return found


def _labeled(turn: conversations.Turn) -> Labeled:
    source = f"conversation:{turn.role}"
    return Labeled(turn.text, Confidentiality(turn.confidentiality), Integrity(turn.integrity), source, ())


def _view(found: conversations.Conversation, turns: list[TurnView] | None = None) -> ConversationView:
    return ConversationView(
        conversation_id=found.conversation_id,
        created=from_ms(found.created_ms).isoformat(timespec="seconds"),
        label=f"{Confidentiality(found.confidentiality).name.lower()}/{Integrity(found.integrity).name.lower()}",
        title=found.title,
        turns=turns or [],
    )


def _turn_view(turn: conversations.Turn) -> TurnView:
    detail: dict[str, Any] = json.loads(turn.detail)
    return TurnView(
        role=turn.role, text=turn.text, at=from_ms(turn.at_ms).isoformat(timespec="seconds"), ran_on=turn.ran_on,
        tools=detail.get("tools", []),
    )
