"""Which findings of the detectors are masked: those that tell of a person, and not every date, acronym or public name.

The detectors lean to finding; masking all of it would leave prompts nobody can answer. What is dropped here: public
names, dates that are no birth date and not long past, acronyms, nationalities, times. What is added: ages of adults and
titles before a name. Never weighed: labels, the vault, patterns. Must not know models, peers or placeholders.
"""

import re
from collections.abc import Iterable, Sequence

from node.privacy.public_names import PublicNames
from node.privacy.vault import Hit, merge

__all__ = ["weigh"]

_CONTEXT = 48
_LONG_PAST_YEARS = 10       # dates before that are biography (births, weddings); later ones are mostly plans
_ADULT, _OLDEST = 18, 120   # a child's age is what the answer depends on, and tells little
_DATE = re.compile(
    r"\b\d{1,4}[-/.]\d{1,2}[-/.]\d{2,4}\b"
    r"|\b\d{1,2}(?:st|nd|rd|th)?\s+(?:of\s+)?(?:jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)[a-z]*\.?,?\s+\d{4}\b"
    r"|\b(?:jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)[a-z]*\.?\s+\d{1,2}(?:st|nd|rd|th)?,?\s+\d{4}\b",
    re.IGNORECASE,
)
_YEAR = re.compile(r"(?<!\d)(?:1[89]|20)\d\d(?!\d)")
_BIRTH = re.compile(r"\b(?:born|birth|birthday|birthdate|dob|d\.o\.b|date\s+of\s+birth)\b", re.IGNORECASE)
_AGE = re.compile(
    r"\b(?:aged|age\s*(?:is|of|:)?)\s*(?P<before>\d{1,3})\b"
    r"|\b(?P<after>\d{1,3})(?=[\s-]{0,2}(?:years?[\s-]+old|yrs?[\s-]+old|y/?o\b|years?\s+of\s+age))",
    re.IGNORECASE,
)
_TITLE = re.compile(r"\b(?:mr|mrs|ms|miss|mx|dr|prof|professor|sir|madam|rev|fr)\b\.?(?=\s{1,2}$)", re.IGNORECASE)
_ACRONYM = re.compile(r"[A-Z0-9&]{1,5}s?")
_SHORT_CAPITALS = re.compile(r"[A-Z]{1,3}")      # US, UK, and every short word where all is capital
_BARE_NUMBER = re.compile(r"\d{1,2}")           # a house number tells nothing without its street
_JOINING = re.compile(r"[ \t]{1,2}|,[ \t]?|[ \t]?\n[ \t,>?]{0,6}")
_NAMES = frozenset({"PERSON", "ORG", "PLACE", "NAME", "GROUP", "ADDRESS"})
_RANK = {type_: at for at, type_ in enumerate(("EMAIL", "PHONE", "ID", "URL", "ADDRESS", "PERSON", "PLACE", "ORG"))}
_PLACES = frozenset({"ADDRESS", "PLACE"})


def weigh(text: str, spans: Iterable[tuple[int, int, str]], public: PublicNames, *, this_year: int) -> list[Hit]:
    """The spans (start, end, type) that are to be masked, sorted and disjoint, and ages and titles beside them."""
    kept = [
        Hit(start, end, type_) for start, end, type_ in spans
        if _counts(text, start, end, type_, public, this_year)
    ]
    kept.sort(key=lambda hit: _RANK.get(hit.type, len(_RANK)))      # of two types for one span the surer one counts
    kept += _ages(text)
    kept += _titles(text, kept)
    joined = _joined(text, merge(kept, text))
    return [hit for hit in joined if not (hit.type == "ADDRESS" and _BARE_NUMBER.fullmatch(text, hit.start, hit.end))]


def _counts(text: str, start: int, end: int, type_: str, public: PublicNames, this_year: int) -> bool:
    written = text[start:end]
    if type_ == "DATE":
        return _is_personal_date(text, start, end, this_year)
    if type_ in _NAMES and public.holds(written):
        return False
    if type_ in ("ORG", "GROUP", "NAME"):
        return not _ACRONYM.fullmatch(written) and any(char.isalpha() for char in written)
    if type_ == "PLACE" and _SHORT_CAPITALS.fullmatch(written):
        return False
    if type_ in ("PERSON", "PLACE"):
        return any(char.isalpha() for char in written)
    return True


def _is_personal_date(text: str, start: int, end: int, this_year: int) -> bool:
    written = text[start:end]
    if _BIRTH.search(text, max(0, start - _CONTEXT), min(len(text), end + 16)):
        return any(char.isdigit() for char in written)
    year = _YEAR.search(written)
    return bool(_DATE.search(written)) and year is not None and int(year[0]) <= this_year - _LONG_PAST_YEARS


def _ages(text: str) -> list[Hit]:
    found = []
    for match in _AGE.finditer(text):
        group = "before" if match["before"] else "after"
        if _ADULT <= int(match[group]) <= _OLDEST:
            found.append(Hit(match.start(group), match.end(group), "AGE"))
    return found


def _titles(text: str, hits: Sequence[Hit]) -> list[Hit]:
    found = []
    for hit in hits:
        if hit.type in ("PERSON", "NAME"):
            before = max(0, hit.start - 12)
            title = _TITLE.search(text[before : hit.start])
            if title is not None:
                found.append(Hit(before + title.start(), before + title.end(), "TITLE"))
    return found


def _joined(text: str, hits: Sequence[Hit]) -> list[Hit]:
    """An address or a name found in pieces becomes one span: one placeholder reads better than four."""
    joined: list[Hit] = []
    for hit in hits:
        last = joined[-1] if joined else None
        if last is not None and _JOINING.fullmatch(text, last.end, hit.start) and _go_together(text, last, hit):
            joined[-1] = Hit(last.start, hit.end, _wider(last.type, hit.type))
        else:
            joined.append(hit)
    return joined


def _go_together(text: str, one: Hit, two: Hit) -> bool:
    if one.type in _PLACES and two.type in _PLACES:
        return "ADDRESS" in (one.type, two.type)
    between = text[one.end : two.start]
    return between == " " and {one.type, two.type} <= {"PERSON", "NAME"}


def _wider(one: str, two: str) -> str:
    if one == two:
        return one
    return "ADDRESS" if "ADDRESS" in (one, two) else "PERSON"
