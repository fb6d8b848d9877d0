"""What waits for the owner's next words: an unfinished call, a choice between tools, a question of a skill, a
missing text.

A draft keeps the owner's words and when they were said, not values: they are read again with the clock of that
moment, so "tomorrow" still means the day after it was said. Must not know how drafts are stored or asked.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Literal

from node.agent.ports import Json

__all__ = ["ANSWER_IN_WORDS", "Draft", "DraftKind", "Given", "drops", "pick_choice"]

DraftKind = Literal["tool", "which", "skill", "think"]
ANSWER_IN_WORDS = "answer"
"""The choice beside the tools: no tool, a model's answer in words."""


_KINDS: dict[str, DraftKind] = {"tool": "tool", "which": "which", "skill": "skill", "think": "think"}


@dataclass(frozen=True, slots=True)
class Given:
    """One slot that was answered since."""

    slot: str
    text: str
    said_at: datetime
    replaces: bool = False
    """True for a correction: what was said before of the slot no longer holds, names too."""


@dataclass(frozen=True, slots=True)
class Draft:
    """The unfinished request."""

    kind: DraftKind
    name: str
    """The tool or skill; empty for which and think."""
    text: str
    said_at: datetime
    slot: str
    """What was asked for."""
    choices: tuple[str, ...] = ()
    given: tuple[Given, ...] = ()

    def answered(self, text: str, said_at: datetime) -> "Draft":
        """The draft with the asked slot answered by text."""
        return Draft(
            self.kind,
            self.name,
            self.text,
            self.said_at,
            self.slot,
            self.choices,
            (*self.given, Given(self.slot, text, said_at)),
        )

    def as_json(self) -> dict[str, Json]:
        """For the store."""
        return {
            "kind": self.kind,
            "name": self.name,
            "text": self.text,
            "said_at": self.said_at.isoformat(),
            "slot": self.slot,
            "choices": list(self.choices),
            "given": [
                {"slot": one.slot, "text": one.text, "said_at": one.said_at.isoformat(), "replaces": one.replaces}
                for one in self.given
            ],
        }

    @classmethod
    def from_json(cls, stored: Mapping[str, Json]) -> "Draft | None":
        """The stored draft; None for one that this version does not understand."""
        try:
            given, choices = stored["given"], stored["choices"]
            if not isinstance(given, list) or not isinstance(choices, list):
                return None
            return cls(
                _KINDS[str(stored["kind"])],
                str(stored["name"]),
                str(stored["text"]),
                datetime.fromisoformat(str(stored["said_at"])),
                str(stored["slot"]),
                tuple(str(choice) for choice in choices),
                tuple(
                    Given(str(one["slot"]), str(one["text"]), datetime.fromisoformat(str(one["said_at"])),
                          one.get("replaces") is True)
                    for one in given
                    if isinstance(one, Mapping)
                ),
            )
        except (KeyError, ValueError):
            return None


_FIRST = ("1", "1.", "first", "the first", "yes", "yes please", "ok", "okay", "sure", "the first one", "a")
_SECOND = ("2", "2.", "second", "the second", "the second one", "b")
_THIRD = ("3", "3.", "third", "the third", "the third one", "c")
_NO = ("no", "no thank you", "no thanks", "neither", "none", "cancel", "stop", "nothing")
_DROPPED = re.compile(
    r"(?:(?:oh|ah|no|nope|ok|okay|actually|well|hmm|please|wait|sorry|just|then|kith|let[’']?s)\b[\s,.!]*)*"
    r"(?:undo|revert|(?:undo|revert|scrap|scratch|skip|drop|forget|cancel|stop|leave)\s+(?:about\s+)?"
    r"(?:that|it|this|the\s+(?:question|last\s+(?:one|thing|question|request)|whole\s+thing))|"
    r"(?:take|call)\s+(?:that|it|this)\s+(?:back|off)|never\s*mind(?:\s+(?:that|it|about\s+(?:that|it)))?|"
    r"(?:do\s+not|don[’']?t)\s+(?:bother|do\s+(?:it|that))|not\s+now|no\s+(?:worries|problem|need)|i(?:\s+have|[’']?ve)?\s+changed\s+my\s+mind|"
    r"(?:it\s+)?does(?:\s+not|n[’']?t)\s+matter|nothing)"
    r"(?:[\s,.!]+(?:please|then|now|again|thanks?|thank\s+you|after\s+all|for\s+now|it[’']?s\s+(?:fine|ok(?:ay)?)))*",
    re.IGNORECASE,
)


def drops(text: str) -> bool:
    """Whether the message, all of it, takes back the request that a question was asked about: "never mind", "undo
    that". In quotation marks it is an answer."""
    low = text.strip().strip(".!?").strip()
    return low.casefold().replace(",", "") in _NO or _DROPPED.fullmatch(low) is not None


def pick_choice(text: str, choices: Sequence[str]) -> int | Literal["no"] | None:
    """Which of the choices the owner's answer means: its index, "no" for none of them, None when it is something
    else."""
    low = text.strip().strip(".!?").casefold()
    if low not in {choice.casefold() for choice in choices} and drops(text):
        return "no"
    for index, words in enumerate((_FIRST, _SECOND, _THIRD)):
        if low in words and index < len(choices):
            return index
    folded = [choice.casefold() for choice in choices]
    if low in folded:
        return folded.index(low)
    holding = [index for index, choice in enumerate(folded) if low and len(low) >= 3 and low in choice]
    return holding[0] if len(holding) == 1 else None
