"""What the owner decided about disclosure, beside the table in the code: levels for one peer, and standing refusals.

Only the owner's own interface writes here; nothing that a peer sends reaches it. A decision narrows what the table
allows; the one that widens, clear, counts for own devices only and is dropped when the trust in the peer changes. Must
not know how it is shown.
"""

from collections.abc import Mapping
from types import MappingProxyType

import trio

from node.clock import Clock, to_ms
from node.privacy.policy import Level, Purpose
from node.store import levels
from node.store.database import Database
from node.store.levels import Denial
from node.store.levels import Level as LevelRow

__all__ = ["CHOICES", "Decisions"]

CHOICES: Mapping[Purpose, tuple[Level, ...]] = MappingProxyType({
    Purpose.INFER: (Level.NEVER, Level.PUBLIC, Level.MASKED, Level.CLEAR),
    Purpose.QUERY: (Level.NEVER, Level.PUBLIC),
    Purpose.MAIL: (Level.NEVER, Level.PUBLIC, Level.CLEAR),
    Purpose.ANSWER: (Level.NEVER, Level.CLEAR),
})
"""The levels that make sense for each purpose."""


class Decisions:
    """All of them, read once and kept in step with the rows. load() first: until then everything is refused."""

    def __init__(self, database: Database, clock: Clock) -> None:
        self._database = database
        self._clock = clock
        self._levels: dict[tuple[str, str, str], Level] = {}
        self._denied: set[tuple[str, str]] = set()
        self._loaded = False
        self._turn = trio.Lock()

    async def load(self) -> None:
        """Read the rows. One at a time: what an earlier look saw must not take the place of a later one's."""
        async with self._turn:
            rows, denials = await self.rows()
            self._levels = {(row.peer_id, row.purpose, row.conversation): Level(row.level) for row in rows}
            self._denied = {(row.peer_id, row.purpose) for row in denials}
            self._loaded = True

    def chosen(self, peer_id: str, purpose: Purpose, conversation: str) -> tuple[Level | None, bool]:
        """The level that the owner chose, None for none; and whether for this very conversation."""
        if not self._loaded:
            return Level.NEVER, False
        own = self._levels.get((peer_id, purpose, conversation)) if conversation else None
        return (own, True) if own is not None else (self._levels.get((peer_id, purpose, "")), False)

    def denied(self, peer_id: str, purpose: Purpose) -> bool:
        """Whether the owner said: never again."""
        return not self._loaded or (peer_id, purpose) in self._denied

    def keeps_prompts_from(self, peer_id: str) -> str:
        """Why no prompt leaves for this peer in any conversation, in words; "" when one may."""
        if self.denied(peer_id, Purpose.INFER):
            return "you said that nothing leaves for it (to take that back: kith privacy denials)"
        level, _ = self.chosen(peer_id, Purpose.INFER, "")
        change = "to change it: kith privacy set PEER default"
        return f"its level for prompts is never ({change})" if level is Level.NEVER else ""

    # -- the owner's changes ------------------------------------------------------------------------------------------

    async def choose(self, peer_id: str, purpose: Purpose, conversation: str, level: Level | None) -> None:
        """Set a level, or with None take the decision back."""
        if level is None:
            await self._database.write(levels.drop, peer_id, purpose, conversation)
        else:
            row = LevelRow(peer_id, purpose, conversation, level, to_ms(self._clock.now()))
            await self._database.write(levels.put, row)
        await self.load()

    async def deny_always(self, peer_id: str, purpose: Purpose) -> None:
        """Refuse from now on without asking."""
        await self._database.write(levels.deny, peer_id, purpose, to_ms(self._clock.now()))
        await self.load()

    async def allow_again(self, number: int) -> bool:
        """Take a refusal back: the owner is asked again. Whether there was one."""
        gone = await self._database.write(levels.allow_again, number)
        await self.load()
        return gone

    async def rows(self) -> tuple[list[LevelRow], list[Denial]]:
        """Everything that was decided."""
        return await self._database.read(levels.every), await self._database.read(levels.denials)

    async def forget_conversation(self, conversation: str) -> None:
        """It was deleted."""
        await self._database.write(levels.forget_conversation, conversation)
        await self.load()
