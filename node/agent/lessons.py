"""What the agent learns on this device: confirmed actions become private examples for choosing tools, copying words.

A lesson is the owner's sentence, the tool that was meant, and the words that became free-text arguments. It only ever
adds an example: the rules that refuse, the gate's constants and the owner's yes stay as they are. Must not know how
lessons are kept, nor how a tool is called.
"""

import logging
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Protocol

from node.agent.ports import Embedder, Span
from node.agent.readers.numbers import fold
from node.agent.readers.phrases import trimmed
from node.agent.vectors import alike, unit

__all__ = ["MOST", "Lesson", "LessonStore", "Lessons", "framed"]

_log = logging.getLogger(__name__)

MOST = 500
"""Lessons kept; the oldest goes."""
NEAR = 0.55
"""A lesson below this cosine says nothing about a request."""
_WORD = re.compile(r"[^\W_]+(?:['’-][^\W_]+)*|[:=>]")
_PREFIX, _SUFFIX = 3, 2
_MARKS = frozenset(":=>")
OPENS_ALIKE = 0.8
"""What two sentences count for that begin with the same words, up to where the free words stand."""


@dataclass(frozen=True, slots=True)
class Lesson:
    """One confirmed action."""

    lesson_id: str
    text: str
    tool: str
    made_at: datetime
    words: Mapping[str, str] = field(default_factory=dict)
    """Free-text argument -> the run of `text` that it was."""


class LessonStore(Protocol):
    """Where lessons are kept."""

    async def all(self) -> Sequence[Lesson]:
        """Every lesson, the newest first, at most MOST."""
        ...

    async def add(self, lesson: Lesson) -> None:
        """Keep one; the same sentence for the same tool replaces the older one."""
        ...


class Lessons:
    """The lessons of one owner, in memory with their vectors. Nothing is learnt or used while `on` is false."""

    def __init__(
        self, store: LessonStore, embedder: Embedder, new_id: Callable[[], str], *, on: bool = True,
    ) -> None:
        self._store = store
        self._embedder = embedder
        self._new_id = new_id
        self.on = on
        self._known: list[tuple[Lesson, Sequence[float]]] | None = None

    def forget_all(self) -> None:
        """Read them again from the store at the next use: some were removed."""
        self._known = None

    async def learn(self, text: str, tool: str, words: Mapping[str, str], now: datetime) -> None:
        """Keep a confirmed action. A failure is logged and costs the lesson, never the action."""
        if not self.on:
            return
        kept = {slot: said for slot, said in words.items() if said and said in text}
        try:
            await self._store.add(Lesson(self._new_id(), text, tool, now, kept))
        except Exception as error:  # the action is done; a lost lesson must not look like a failed action
            _log.warning("a lesson was not kept: %s", type(error).__name__)
        self._known = None

    async def near(self, text: str) -> list[tuple[Lesson, float]]:
        """Lessons like this request, the most alike first, with their cosine."""
        if not self.on:
            return []
        try:
            if self._known is None:
                lessons = list(await self._store.all())[:MOST]
                vectors = await self._embedder.embed([one.text for one in lessons]) if lessons else []
                self._known = [(one, unit(vector)) for one, vector in zip(lessons, vectors, strict=True)]
            if not self._known:
                return []
            query = unit((await self._embedder.embed([text]))[0])
        except Exception as error:  # without the vectors there are no lessons; the built-in examples still work
            _log.info("no lessons: %s", type(error).__name__)
            return []
        scored = [
            (one, max(alike(query, vector), OPENS_ALIKE if _opens_alike(one, text) else 0.0))
            for one, vector in self._known
        ]
        return sorted((found for found in scored if found[1] >= NEAR), key=lambda found: -found[1])


def framed(lesson: Lesson, slot: str, text: str, cut: Sequence[Span]) -> Span | None:
    """The words of text that stand where the lesson's words stood: behind the same words, up to the same words, to an
    understood time, or to the end. None where the frame is not the same."""
    said = lesson.words.get(slot)
    if not said:
        return None
    begin = lesson.text.find(said)
    end = begin + len(said)
    before = [word.group() for word in _WORD.finditer(fold(lesson.text[:begin]))][-_PREFIX:]
    after = [word.group() for word in _WORD.finditer(fold(lesson.text[end:]))][:_SUFFIX]
    words = [(word.group(), word.start(), word.end()) for word in _WORD.finditer(fold(text))]
    start = _behind(before, words) if before else 0
    if start is None:
        return None
    rest = [word for word in words if word[1] >= start]
    stop = len(text)
    for index, (word, at, _) in enumerate(rest):
        following = [one[0] for one in rest[index : index + len(after)]]
        if after and index and following == after[: len(following)] and word == after[0]:
            stop = at
            break
    # a time that stands behind the words ends them, as it did in the lesson
    stop = min([stop, *(span.start for span in cut if span.start > start)])
    return trimmed(text, Span(start, stop), cut) if start < stop else None


def _opens_alike(lesson: Lesson, text: str) -> bool:
    """Whether text begins with all the words that stood before the lesson's free words, where these say anything."""
    begins = [lesson.text.find(said) for said in lesson.words.values()]
    if not begins or min(begins) <= 0:
        return False
    opening = [word.group() for word in _WORD.finditer(fold(lesson.text[: min(begins)]))]
    if not opening or (len("".join(opening)) < 3 and not _MARKS & set(opening)):
        return False
    return [word.group() for word in _WORD.finditer(fold(text))][: len(opening)] == opening


def _behind(before: Sequence[str], words: Sequence[tuple[str, int, int]]) -> int | None:
    """Where the last of `before` ends in words, for the longest tail of it that stands there; None for none."""
    for length in range(len(before), 0, -1):
        tail = list(before[-length:])
        if length == 1 and len(tail[0]) < 3 and tail[0] not in _MARKS:
            return None     # "to", "a": no frame
        for index in range(len(words) - length + 1):
            if [word[0] for word in words[index : index + length]] == tail:
                return words[index + length - 1][2]
    return None
