"""Gives texts the form in which they would leave at a level: as they are, or masked and looked at once more.

Everything that goes wrong is a refusal. Must not know consent, the ledger or how anything is sent.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

import trio

from node.privacy.carrying import Carried, check_carried, spans_of
from node.privacy.errors import GuardFailed, HoldsPersonal, HoldsSecret
from node.privacy.inspector import Inspected, Inspector, blanks
from node.privacy.labels import Confidentiality, Labeled
from node.privacy.memory import ConversationMemory
from node.privacy.off_loop import off_loop
from node.privacy.placeholders import BRACKETS, PlaceholderMap, Replaced, mask
from node.privacy.policy import Level, PeerView, Purpose

__all__ = ["Former", "Outgoing"]


@dataclass(frozen=True, slots=True)
class Outgoing:
    """Texts in the form they would leave. gaps: nets that could not judge them, for the owner to know."""

    texts: tuple[str, ...]
    replaced: tuple[tuple[Replaced, ...], ...]
    placeholders: PlaceholderMap
    personal_in_clear: bool
    gaps: tuple[str, ...]


class Former:
    """Forms texts with the nets of one node."""

    def __init__(self, inspector: Inspector) -> None:
        self._inspector = inspector
        self._masking = trio.Lock()

    async def form(
        self, peer: PeerView, purpose: Purpose, level: Level, texts: Sequence[Labeled], memory: ConversationMemory,
        like: Carried | None, *, owner_typed: bool,
    ) -> Outgoing:
        """The texts at this level. Raises HoldsSecret, HoldsPersonal, GuardFailed."""
        if like is not None:
            gaps = await check_carried(like, peer.peer_id, texts, self._inspector, memory.returned)
            spans = tuple(spans_of(text, like.tokens) for text in like.outgoing)
            return Outgoing(like.outgoing, spans, like.placeholders, level is not Level.MASKED, gaps)
        if any(text.confidentiality is Confidentiality.SECRET for text in texts):
            raise HoldsSecret("labelled as secret")
        # what the owner typed for this peer, or shares with it, leaves as it is: there is nothing to guess
        decided = purpose is Purpose.ANSWER or (owner_typed and purpose is not Purpose.INFER)
        found = await self._inspect(texts, memory, guess=not decided, keep=level is Level.MASKED)
        if found.secrets:
            raise HoldsSecret(", ".join(found.secrets))
        if level is Level.PUBLIC:
            _check_public(texts, found, memory, owner_typed=owner_typed)
        if level is Level.MASKED:
            return await self._mask(peer, texts, found, memory)
        shown = tuple(
            tuple(Replaced(hit.start, hit.end, text.value[hit.start : hit.end],
                           text.value[hit.start : hit.end], hit.type) for hit in hits)
            for text, hits in zip(texts, found.hits, strict=True)
        )
        plain = tuple(text.value for text in texts)
        return Outgoing(plain, shown, PlaceholderMap(BRACKETS), found.personal, found.gaps)

    async def _inspect(
        self, texts: Sequence[Labeled], memory: ConversationMemory, *, guess: bool, keep: bool,
    ) -> Inspected:
        """What is found; a name that a detector sees in one text is then masked in all of this conversation."""
        found = await self._inspector.inspect(texts, memory.returned, guess=guess)
        if len(found.hits) != len(texts):
            raise GuardFailed("the inspection returned nonsense")
        if keep and memory.suspect(found.guessed):
            found = await self._inspector.inspect(texts, memory.returned, guess=guess)
            if len(found.hits) != len(texts):
                raise GuardFailed("the inspection returned nonsense")
        return found

    async def _mask(
        self, peer: PeerView, texts: Sequence[Labeled], found: Inspected, memory: ConversationMemory,
    ) -> Outgoing:
        placeholders = memory.map_for(peer.peer_id, peer.style)
        is_real = partial(self._inspector.is_real, returned=memory.returned)
        size = sum(len(text.value) for text in texts)
        async with self._masking:       # one at a time and to its end: a map must not grow in two threads
            with trio.CancelScope(shield=True):
                masked = await off_loop(size, _masked, texts, found, placeholders, is_real)
        outgoing = tuple(text for text, _ in masked)
        blanked = await off_loop(size, blanks, outgoing, placeholders.tokens)
        left = await self._inspector.find_personal(blanked, memory.returned)
        if left:
            raise HoldsPersonal(f"left after masking: {', '.join(left)}")
        secrets = await self._inspector.find_secrets(outgoing, memory.returned)
        if secrets:
            raise HoldsSecret(", ".join(secrets))
        replaced = tuple(spans for _, spans in masked)
        return Outgoing(outgoing, replaced, placeholders, personal_in_clear=False, gaps=found.gaps)


def _masked(
    texts: Sequence[Labeled], found: Inspected, placeholders: PlaceholderMap, is_real: Callable[[str], bool],
) -> list[tuple[str, tuple[Replaced, ...]]]:
    for text in texts:
        placeholders.reserve(text.value)
    return [
        mask(text.value, hits, placeholders, is_real=is_real) for text, hits in zip(texts, found.hits, strict=True)
    ]


def _check_public(
    texts: Sequence[Labeled], found: Inspected, memory: ConversationMemory, *, owner_typed: bool,
) -> None:
    """No known personal value in it; and none read before, unless the owner typed it word for word.

    What only detectors suspect does not stop it: it is shown to the owner, who decides.
    """
    if any(text.confidentiality is not Confidentiality.PUBLIC for text in texts):
        raise HoldsPersonal("labelled as personal")
    if any(found.known):
        kinds = sorted({hit.type for hits in found.known for hit in hits})
        raise HoldsPersonal(", ".join(kinds))
    if not owner_typed and memory.label.label.confidentiality is not Confidentiality.PUBLIC:
        raise HoldsPersonal("the conversation holds personal data and the owner did not type this")
