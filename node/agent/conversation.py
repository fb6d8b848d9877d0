"""One conversation while a request runs: its labelled history, its label that only rises, its unfinished draft.

Must not know how it is stored, nor what the turns are about.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from node.agent.errors import NoSuchConversation
from node.agent.ports import AUTO, Answer, Clock, ConversationStore, Json, ThinkPart, TurnRecord
from node.privacy.labels import ConversationLabel, Labeled

__all__ = ["HISTORY_CHARS", "HISTORY_TURNS", "Conversation"]

HISTORY_TURNS = 12
HISTORY_CHARS = 12_000


@dataclass(slots=True)
class Conversation:
    """What was said so far, and what may be said with it."""

    conversation_id: str
    label: ConversationLabel
    history: tuple[TurnRecord, ...]
    draft: Mapping[str, Json] | None
    _store: ConversationStore
    _clock: Clock

    @classmethod
    async def open(cls, wanted: str | None, store: ConversationStore, clock: Clock) -> "Conversation":
        """The conversation wanted, the latest for AUTO, a new one for None or when there is none yet. Raises
        NoSuchConversation."""
        known = await store.latest() if wanted == AUTO else wanted
        if known is None:
            return cls(await store.create(), ConversationLabel(), (), None, store, clock)
        label = await store.label(known)
        if label is None:
            raise NoSuchConversation(f"There is no conversation {known[:40]!r}.")
        turns = tuple(await store.turns(known, limit=HISTORY_TURNS))
        return cls(known, ConversationLabel(label), turns, await store.draft(known), store, clock)

    async def heard(self, text: Labeled) -> None:
        """Keep what the owner said."""
        self.label.absorb(text)
        await self._store.append(self.conversation_id, TurnRecord("user", text, self._clock.now()))

    async def said(self, text: Labeled, answer: Answer, call: Mapping[str, Json] | None = None) -> None:
        """Keep the answer with its label, where it came from, and the call it stands for."""
        self.label.absorb(text)
        detail: dict[str, Json] = {
            "kind": answer.kind.value, "reason": answer.reason, "tools": list(answer.tools_used),
        }
        if len(answer.legs) > 1:
            detail["legs"] = [{"ran_on": leg.ran_on, "model": leg.model, "begun_at": leg.begun_at, "ended": leg.ended}
                              for leg in answer.legs]
        if answer.domain:
            detail["caution"] = answer.domain
        if call is not None:
            detail["call"] = call
        if answer.intent_id:
            detail["intent"] = answer.intent_id
        await self._store.append(
            self.conversation_id,
            TurnRecord("assistant", text, self._clock.now(), answer.ran_on, answer.sources, detail),
            settles=answer.settles,
        )

    async def keep_draft(self, draft: Mapping[str, Json] | None) -> None:
        """Keep an unfinished call for the next message, or drop it."""
        if draft is None and self.draft is None:
            return
        self.draft = draft
        await self._store.keep_draft(self.conversation_id, draft)

    def parts(self) -> tuple[ThinkPart, ...]:
        """The history as parts of a job, oldest first, the newest that fit the limit; each with its own label."""
        kept: list[ThinkPart] = []
        chars = 0
        for turn in reversed(self.history):
            chars += len(turn.text.value)
            if chars > HISTORY_CHARS:
                break
            kept.append(ThinkPart(turn.role, turn.text, "history"))
        return tuple(reversed(kept))
