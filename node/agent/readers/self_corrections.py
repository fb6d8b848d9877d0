"""What is left of a request whose speaker took a part of it back: "on Monday, sorry, I mean Tuesday".

Must not know what the parts mean.
"""

import re
from typing import Protocol, TypeVar

from node.agent.ports import Span

__all__ = ["correcting", "meant"]

_CORRECTED = re.compile(
    r"\b(?:no\s*,?\s*wait|no\s*,?\s*sorry|sorry|i\s+meant?|make\s+that|or\s+rather|scratch\s+that)\b"
)


class _Said(Protocol):
    """Anything that was read, with its place."""

    @property
    def span(self) -> Span:
        """Where it stands."""
        ...


_Read = TypeVar("_Read", bound=_Said)


def meant(said: list[_Read], low: str) -> list[_Read]:
    """What is left when the speaker corrected himself: "on Monday, sorry, I mean Tuesday" is Tuesday."""
    return [
        item for number, item in enumerate(said)
        if not any(_CORRECTED.search(low[item.span.end : later.span.start]) for later in said[number + 1 : number + 2])
    ]


def correcting(back: list[Span], kept: list[Span], low: str) -> list[Span]:
    """The words with which something was taken back, between it and what was meant."""
    found: list[Span] = []
    for span in back:
        after = min((one.start for one in kept if one.start >= span.end), default=span.end)
        if match := _CORRECTED.search(low, span.end, after):
            found.append(Span(span.end, after) if not low[match.end() : after].strip(" ,.") else Span(*match.span()))
    return found
