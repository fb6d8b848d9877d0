"""Words of courtesy around a request: they change neither what is asked nor what is said. Must not know tools."""

import re

from node.agent.ports import Span

__all__ = ["core"]

_BEFORE = re.compile(
    r"\s*(?:(?:please|pls|plz|kindly|hey|hi|hello|ok|okay|so|right|well|now|kith|yo|oh)\b[\s,!.]+|go\s+ahead\s+and\s+)+(?=\S)",
    re.IGNORECASE,
)
_AFTER = re.compile(
    r"(?<=\S)(?:[\s,]+(?:please|pls|plz)|\s*,\s*(?:thanks|thank\s+you|cheers|ta|ok|okay|mate|dear|love))+\s*[.!?]*$",
    re.IGNORECASE,
)


def core(text: str) -> Span:
    """Where the request itself stands: without "hey", "please" and the like at its ends. All of text when nothing else
    is in it."""
    before, after = _BEFORE.match(text), _AFTER.search(text)
    start, end = (before.end() if before else 0), (after.start() if after else len(text))
    return Span(start, end) if start < end else Span(0, len(text))
