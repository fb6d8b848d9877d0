"""A city or country in the owner's words ("what time is it in Tokyo"). Must not know time zones."""

import re

from node.agent.ports import Span
from node.agent.readers.courtesy import core

__all__ = ["place"]

_PLACE = re.compile(
    r"\b(?:in|at|for|over\s+in|of)\s+(?:the\s+)?(?P<place>[^\W\d_][\w'’.-]*(?:[ -](?!now\b|right\b|today\b|at\b|"
    r"please\b|currently\b|shortly\b|soon\b|then\b|what\w*\b|how\b|there\b|and\b|is\b|time\b|if\b|exactly\b|when\b"
    r"|who\b|for\b|so\b|i\b|the\b)"
    r"[^\W\d_][\w'’.-]*){0,3})",
)
_CITY_FIRST = re.compile(r"\b(?P<place>[A-Z][\w'’-]+(?:\s+[A-Z][\w'’-]+)*)\s+time\b")
_FIRST_WORD = re.compile(r"^(?P<place>[^\W\d_]{3,}(?:\s+[^\W\d_]{3,})?)\s+time\b", re.IGNORECASE)
_NO_PLACE = frozenset((
    "what", "whats", "tell", "give", "the", "local", "current", "show", "check", "need", "want", "got", "any", "spare",
    "free", "some", "over",
    "the", "a", "an", "my", "this", "that", "there", "here", "now", "right", "today", "moment", "hour", "day",
    "morning", "week", "weekday", "month", "year", "words", "it", "me", "us", "general", "time", "mine", "hey",
    "present", "minute", "clock", "date", "and", "so", "if", "you", "tea", "lunch", "dinner", "bed", "work",
    "home", "him", "her", "them", "hows", "how", "ok", "waht", "wat",
))


def place(text: str) -> Span | None:
    """The span of the last place named in text, or None."""
    inner = core(text)
    if inner.start:
        found = place(text[inner.start :])
        return Span(found.start + inner.start, found.end + inner.start) if found else None
    found = None
    for pattern in (_FIRST_WORD, _CITY_FIRST, _PLACE):
        for match in pattern.finditer(text):
            words = match.group("place").rstrip(" .?!,").split()
            if words and not _NO_PLACE & {word.lower().partition("'")[0].partition("’")[0] for word in words}:
                start = match.start("place")
                found = Span(start, start + len(match.group("place").rstrip(" .?!,")))
    return found
