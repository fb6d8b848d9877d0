"""Keeps a model's thoughts apart from its answer, character by character, and counts them against a budget.

Nothing of a thought ever becomes answer, however the output is cut into pieces. A call written inside a thought that
the model never closed counts when the output ends with it. Must not know formats, tools or samplers.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from offload.engine.deltas import Delta, ReasoningDelta, TextDelta, ThoughtEnd, ThoughtEnded

__all__ = ["ThoughtMarks", "ThoughtSplitter", "starts_inside", "thought_marks"]

SUSPECTED_LIMIT_CHARS = 64 * 1024
_SPACE_LIMIT_CHARS = 256


@dataclass(frozen=True, slots=True)
class ThoughtMarks:
    """The texts around a thought."""

    opening: str = "<think>"
    closing: str = "</think>"

    @property
    def cutting(self) -> str:
        """What the engine writes in the model's place to end a thought."""
        return f"\n{self.closing}\n\n"


_KNOWN = (
    ThoughtMarks(), ThoughtMarks("<seed:think>", "</seed:think>"), ThoughtMarks("[THINK]", "[/THINK]"),
)


def thought_marks(template: str | None) -> ThoughtMarks | None:
    """The marks that a chat template speaks of; None for a model that doesn't think aloud."""
    return next((marks for marks in _KNOWN if template and marks.closing in template), None)


def starts_inside(prompt: str, marks: ThoughtMarks) -> bool:
    """Whether the rendered prompt ends in an open thought, so that the output begins inside it."""
    return prompt.rstrip().endswith(marks.opening)


class ThoughtSplitter:
    """One output as thoughts, reported as deltas, and what is left for the answer."""

    def __init__(
        self, marks: ThoughtMarks | None, *, inside: bool = False, budget_tokens: int | None = None,
        call_openings: Sequence[str] = (),
    ) -> None:
        """call_openings: what at the beginning of a line inside a thought may be a call that is meant."""
        self._marks = marks
        self._inside = inside and marks is not None
        self._budget = budget_tokens
        self._openings = tuple(call_openings)
        self._tokens = 0
        self._cut = False
        self._held = ""                     # what may still become a mark
        self._space = ""                    # of a thought, of which the last is dropped
        self._suspected: list[str] = []     # from the beginning of what may be a meant call
        self._line_start = True
        self._separating = False            # white space behind a thought
        self._any_thought = False           # whether the open thought holds anything but space

    @property
    def inside(self) -> bool:
        """Whether a thought is open."""
        return self._inside

    @property
    def over_budget(self) -> bool:
        """Whether the open thought has used its budget up: time to write what cut() gives."""
        return self._inside and not self._cut and self._budget is not None and self._tokens >= self._budget

    def cut(self) -> str:
        """The text to write in the model's place, to be fed like its own; empty when no thought is open."""
        if not self._inside or self._marks is None:
            return ""
        self._cut = True
        return self._marks.cutting

    def count(self, tokens: int) -> None:
        """Tokens that are about to be fed; those of open thoughts count."""
        if self._inside:
            self._tokens += tokens

    def step(self, char: str) -> tuple[list[Delta], str]:
        """The deltas of thoughts, and behind them what belongs to the answer."""
        if self._marks is None:
            return [], char
        return (self._think(char), "") if self._inside else self._answer(char)

    def skip(self, char: str) -> None:
        """A character of a call went by: marks inside of calls mean nothing."""
        self._line_start = char == "\n"
        self._separating = False

    def end(self, *, cut: bool) -> tuple[list[Delta], str, str]:
        """The deltas of what is left, what of it belongs to the answer, and what may be a call in an open thought.

        Of the last the caller gives back with keep() what is none.
        """
        if not self._inside:
            return [], self._drop_held(), ""
        rest = "".join(self._suspected) + self._drop_held()
        if self._suspected and not cut:
            self._suspected.clear()
            return [], "", rest
        self._suspected.clear()
        return self.keep(rest), "", ""

    def call_meant(self) -> list[Delta]:
        """The suspected text was a call: the thought ended before it."""
        return self._finish("call")

    def keep(self, suspected: str) -> list[Delta]:
        """The suspected text was no call: it is a part of the thought, which ends unfinished."""
        self._held = suspected
        return self._finish("unfinished")

    # -- outside

    def _answer(self, char: str) -> tuple[list[Delta], str]:
        assert self._marks is not None
        if self._separating and char.isspace():
            return [TextDelta("", char)], ""
        self._separating = False
        self._held += char
        if self._line_start:
            if self._held == self._marks.opening:
                self._inside, self._any_thought = True, False
                return [ReasoningDelta("", self._drop_held())], ""
            if self._held == self._marks.closing:       # of a thought that was never opened
                self._separating = True
                return [TextDelta("", self._drop_held())], ""
            if self._marks.opening.startswith(self._held) or self._marks.closing.startswith(self._held):
                return [], ""
        text = self._drop_held()
        for one in text:
            self._line_start = one == "\n" or (self._line_start and one.isspace())
        return [], text

    def _drop_held(self) -> str:
        held, self._held = self._held, ""
        return held

    # -- inside

    def _think(self, char: str) -> list[Delta]:
        assert self._marks is not None
        self._held += char
        found: list[Delta] = []
        while self._held:
            if self._held == self._marks.closing:
                return found + self._close()
            if self._marks.closing.startswith(self._held):
                return found
            if not self._suspected and self._line_start:
                if self._held in self._openings:
                    self._suspected.extend(self._drop_held())
                    return found
                if any(opening.startswith(self._held) for opening in self._openings):
                    return found
            first, self._held = self._held[0], self._held[1:]
            if self._suspected:
                self._suspected.append(first)
                if len(self._suspected) > SUSPECTED_LIMIT_CHARS:
                    found += self._unsuspect()
            else:
                found += self._thought(first)
            self._line_start = first == "\n" or (self._line_start and first.isspace())
        return found

    def _thought(self, text: str) -> list[Delta]:
        """White space waits: the last of a thought is dropped, and the first."""
        self._space += text
        if text.isspace() and len(self._space) <= _SPACE_LIMIT_CHARS:
            return []
        raw, self._space = self._space, ""
        shown = raw if self._any_thought else raw.lstrip()
        self._any_thought = True
        return [ReasoningDelta(shown, raw)]

    def _unsuspect(self) -> list[Delta]:
        found = [delta for char in self._suspected for delta in self._thought(char)]
        self._suspected.clear()
        return found

    def _close(self) -> list[Delta]:
        found = self._unsuspect()
        closing = self._drop_held()
        found += self._spare()
        found.append(ThoughtEnded("budget" if self._cut else "closed", self._tokens, closing))
        self._outside()
        return found

    def _finish(self, reason: ThoughtEnd) -> list[Delta]:
        found = [delta for char in self._drop_held() for delta in self._thought(char)]
        found += self._spare()
        found.append(ThoughtEnded(reason, self._tokens))
        self._outside()
        return found

    def _spare(self) -> list[Delta]:
        raw, self._space = self._space, ""
        return [ReasoningDelta("", raw)] if raw else []

    def _outside(self) -> None:
        self._inside, self._cut = False, False
        self._separating = self._line_start = True
