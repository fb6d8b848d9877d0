"""The hours of a grant as its owner writes them, and the half hour that a clock shows. Must not know grants or time.

A day is 48 bits: bit n stands for the half hour that begins n * 30 minutes after midnight.
"""

import re
from datetime import datetime
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from node.errors import UsageError
from protocol.grants import ALL_DAY
from protocol.limits import HALF_HOURS_A_DAY

__all__ = ["half_hour_at", "hours_in_words", "read_hours"]

_SPAN = re.compile(r"(\d{1,2}):(00|30)-(\d{1,2}):(00|30)")
_HINT = "Write spans of half hours such as 22:00-07:00,12:00-13:30, or all, or none."


def read_hours(text: str) -> int:
    """The bits of "22:00-07:00,12:00-13:30", "all" or "none"; a span may go over midnight. Raises UsageError."""
    words = text.strip().lower()
    if words in ("all", "none"):
        return ALL_DAY if words == "all" else 0
    bits = 0
    for span in words.replace(" ", "").split(","):
        found = _SPAN.fullmatch(span)
        if found is None:
            raise UsageError(f"{span!r} are no hours.", hint=_HINT)
        begin, end = (2 * int(found[n]) + (found[n + 1] == "30") for n in (1, 3))
        if begin >= HALF_HOURS_A_DAY or end > HALF_HOURS_A_DAY or begin == end:
            raise UsageError(f"{span!r} are no hours of a day.", hint=_HINT)
        length = (end - begin) % HALF_HOURS_A_DAY or HALF_HOURS_A_DAY
        for n in range(begin, begin + length):
            bits |= 1 << n % HALF_HOURS_A_DAY
    return bits


def hours_in_words(bits: int) -> str:
    """The spans again, in order of their beginning; one over midnight is one span."""
    if bits == ALL_DAY or not bits:
        return "all" if bits else "none"
    starts = [n for n in range(HALF_HOURS_A_DAY) if bits >> n & 1 and not bits >> (n - 1) % HALF_HOURS_A_DAY & 1]
    spans = []
    for start in starts:
        end = start
        while bits >> end % HALF_HOURS_A_DAY & 1:
            end += 1
        spans.append(f"{_clock(start)}-{_clock(end % HALF_HOURS_A_DAY or HALF_HOURS_A_DAY)}")
    return ",".join(spans)


def half_hour_at(moment: datetime, zone: str) -> int | None:
    """Which half hour it is then by the clock of this zone; None when there is no such zone here."""
    try:
        local = moment.astimezone(ZoneInfo(zone))
    except (ZoneInfoNotFoundError, ValueError, OSError):
        return None
    return 2 * local.hour + local.minute // 30


def _clock(half_hours: int) -> str:
    return f"{half_hours // 2:02}:{half_hours % 2 * 30:02}"
