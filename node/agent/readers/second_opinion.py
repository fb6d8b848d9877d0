"""A second opinion on a date that the own grammar does not read, by dateparser: said again as the grammar reads it.

For a text that is nothing but a date, such as an answer to "When?", in one of five languages; never a search in a
sentence, which finds dates where none are. Only a day, or a day with a time that is said. Must not know tools or slots.
"""

from collections.abc import Sequence
from datetime import datetime, timedelta, tzinfo

import dateparser

__all__ = ["LANGUAGES", "said_again"]

LANGUAGES = ("en", "de", "fr", "es", "it")
_LONGEST_CHARS = 60
_YEARS = 3
_SHIFT = timedelta(minutes=1)


def said_again(
    text: str, now: datetime, zone: tzinfo, *, day_first: bool = True, languages: Sequence[str] = LANGUAGES,
) -> str | None:
    """The date as "3 April 2026" or "3 April 2026 at 14:30"; None when there is none, or one too far away.

    What is read is only kept when it does not hang on the hour in which it is asked.
    """
    if not text.strip() or len(text) > _LONGEST_CHARS or not any(char.isalnum() for char in text):
        return None
    local = now.astimezone(zone).replace(tzinfo=None, hour=12, minute=0, second=0, microsecond=0)
    found, other = (_parse(text, base, day_first, languages) for base in (local, local + _SHIFT))
    if found is None or other is None or found.date() != other.date():
        return None
    if abs(found - local) > timedelta(days=366 * _YEARS):
        return None
    day = f"{found.day} {found:%B %Y}"
    if found != other or (found.hour, found.minute) == (0, 0):
        return day if found.date() != local.date() else None    # the hour was the base's, or none was said
    return f"{day} at {found:%H:%M}"


def _parse(text: str, base: datetime, day_first: bool, languages: Sequence[str]) -> datetime | None:
    found = dateparser.parse(text, languages=list(languages), settings={
        "RELATIVE_BASE": base, "PREFER_DATES_FROM": "future", "DATE_ORDER": "DMY" if day_first else "MDY",
        "PREFER_LOCALE_DATE_ORDER": False, "RETURN_AS_TIMEZONE_AWARE": False, "REQUIRE_PARTS": ["day", "month"],
    })
    return found if isinstance(found, datetime) else None
