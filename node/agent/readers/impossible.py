"""Days and hours that there are none of: "31 February", "25:00", "13 pm". Whoever says one is asked, never corrected.

Must not know what the request is about.
"""

import re
from datetime import date

from node.agent.effects import Span
from node.agent.readers.day_words import MONTH, month_of

__all__ = ["impossible"]

_LEAP = 2028
_DAY = r"(?P<d>[1-3]?\d)(?:st|nd|rd|th)?"
_DAY_FIRST = re.compile(rf"(?<![\d.:/-]){_DAY}\s+(?:of\s+)?(?P<mon>{MONTH})")
_MONTH_FIRST = re.compile(
    rf"(?<!\d\s)(?<!\d)\b(?P<mon>{MONTH})\s+(?:the\s+)?{_DAY}(?![\d:])(?!\s*(?:[ap]m|min|hour|h\b|people|percent|%))")
_ISO = re.compile(r"(?<![\d-])(?P<y>20\d\d)-(?P<m>\d\d)-(?P<d>\d\d)(?![\d-])")
_CLOCK = re.compile(r"\b(?:at|from|until|till)\s+(?P<h>\d{1,2}):(?P<min>\d\d)(?![\d:])")
_TWELVE = re.compile(r"(?<![\d.:])(?P<h>\d{1,2})(?::(?P<min>\d\d))?\s*[ap]\.?m\b")


def impossible(text: str) -> list[Span]:
    """Where folded text names a day or an hour that does not exist. A 29 February is one in some years."""
    found = [Span(*match.span()) for pattern in (_DAY_FIRST, _MONTH_FIRST) for match in pattern.finditer(text)
             if not _is_day(_LEAP, month_of(match["mon"]), int(match["d"]))]
    found += [Span(*match.span()) for match in _ISO.finditer(text)
              if not _is_day(int(match["y"]), int(match["m"]), int(match["d"]))]
    found += [Span(*match.span()) for pattern, most in ((_CLOCK, 24), (_TWELVE, 12)) for match in pattern.finditer(text)
              if int(match["h"]) > most or int(match["min"] or 0) > 59]
    return sorted(found)


def _is_day(year: int, month: int, day: int) -> bool:
    try:
        return bool(date(year, month, day))
    except ValueError:
        return False
