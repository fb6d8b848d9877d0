"""The owner's conversations as the API lists, shows and erases them. Implements node.api.ports.Conversations.

Must not know how a turn came about: the agent writes them.
"""

import json
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

from node.api.views import ConversationView, TurnView
from node.clock import from_ms
from node.errors import UsageError
from node.privacy.labels import Confidentiality, Integrity
from node.store import conversations
from node.store.connection import Connection
from node.store.conversations import Conversation, Turn
from node.store.database import Database

__all__ = ["Conversations"]


class Conversations:
    """All conversations of this node."""

    def __init__(
        self, database: Database, forget: Callable[[str], None], forget_prompts: Callable[[], Awaitable[None]],
        erase: Sequence[Callable[[str], Awaitable[object]]] = (),
    ) -> None:
        """forget: drop what the guard remembers of a conversation. forget_prompts: what the engine does, of all.

        erase: remove what else stands in the database about it, such as the texts that left; before its own rows.
        """
        self._database = database
        self._erase = erase
        self._forget = forget
        self._forget_prompts = forget_prompts

    async def all(self, limit: int) -> list[ConversationView]:
        """Newest first, without turns."""
        return [_view(found) for found in await self._database.read(conversations.newest, limit=limit)]

    async def one(self, conversation_id: str) -> ConversationView:
        """One conversation with its turns. Raises UsageError."""
        found = await self.resolve(conversation_id)
        turns = await self._database.read(conversations.turns, found.conversation_id)
        return _view(found, [_turn_view(turn) for turn in turns])

    async def delete(self, conversation_id: str) -> str:
        """Erase one conversation and what left of it: rows are overwritten, the log is folded in and emptied, the
        engine's files of the owner's prompts lose their key. The ledger's entries and hashes stay.
        """
        found = await self.resolve(conversation_id)
        for erase in self._erase:
            await erase(found.conversation_id)
        await self._database.write(conversations.delete, found.conversation_id)
        await self._database.shrink_log()
        self._forget(found.conversation_id)
        await self._forget_prompts()
        return found.conversation_id

    async def resolve(self, name: str) -> Conversation:
        """The conversation called by "last", its id or the beginning of it. Raises UsageError."""
        def look(tx: Connection) -> Conversation | None:
            return conversations.latest(tx) if name == "last" else conversations.find(tx, name)

        found = await self._database.read(look)
        if found is None:
            raise UsageError("There is no such conversation.", hint="See them: kith history")
        return found


def _view(found: Conversation, turns: list[TurnView] | None = None) -> ConversationView:
    return ConversationView(
        conversation_id=found.conversation_id,
        created=from_ms(found.created_ms).isoformat(timespec="seconds"),
        label=f"{Confidentiality(found.confidentiality).name.lower()}/{Integrity(found.integrity).name.lower()}",
        title=found.title,
        turns=turns or [],
    )


def _turn_view(turn: Turn) -> TurnView:
    detail: dict[str, Any] = json.loads(turn.detail)
    return TurnView(
        role=turn.role, text=turn.text, at=from_ms(turn.at_ms).isoformat(timespec="seconds"), ran_on=turn.ran_on,
        tools=list(detail.get("tools", [])),
    )
