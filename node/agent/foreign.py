"""Requests in German, French, Spanish and Italian, as far as they are served: said again in English, with what is
quoted left in the owner's words.

English comes first: a request that reads as English is left alone. Must not know tools, models or conversations.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass

from node.agent.foreign_words import TONGUES, Tongue
from node.privacy.language import foreign_language

__all__ = ["DateAgain", "Foreign", "understand"]

DateAgain = Callable[[str], str | None]

_WORD = re.compile(r"[^\W\d_]+(?:[-'’][^\W\d_]+)*")
_BEFORE_DAY = re.compile(r"^(?:am|den|le|el|il)\s+")
_QUOTES = str.maketrans({'"': "'", "\u201e": "'", "\u201c": "'", "\u201d": "'", "«": "'", "»": "'"})


@dataclass(frozen=True, slots=True)
class Foreign:
    """A request in another language. english: what it says in English; empty when it is none of those served.

    apology: in that language, for a request that only the agent could serve, and does not; empty for one that a model
    may answer.
    """

    language: str
    english: str = ""
    apology: str = ""


def understand(text: str, date_again: DateAgain = lambda text: None) -> Foreign | None:
    """The request in English words; None for a request in English, or a language that is not served.

    date_again: a second opinion on words that should be a date; in English, or None.
    """
    told = foreign_language(text)
    for tongue in TONGUES:
        if english := _english(text, tongue, date_again):
            return Foreign(tongue.name, english)
    for tongue in TONGUES:
        if told == tongue.name:
            timed = _times(text, tongue)[0]     # a model knows of no day of the owner's
            return Foreign(told, apology=tongue.apology if timed or tongue.own.search(text.lower()) else "")
    return None


def _english(text: str, tongue: Tongue, date_again: DateAgain) -> str:
    said = " ".join(text.split()).rstrip(" ?.!")
    low = said.lower()
    if len(low) != len(said):
        return ""
    if match := tongue.note.match(low):
        words = said[match.end():].strip(" ,.")
        return f'note: "{words.translate(_QUOTES)}"' if words else ""
    if match := tongue.remind.match(low):
        when, rest = _times(said[match.end():], tongue)
        words = tongue.lead.sub("", rest.strip(" ,.:"), count=1).strip(" ,.:")
        return f'remind me {when} about "{words.translate(_QUOTES)}"' if words and when else ""
    for pattern, question in ((tongue.free, "when am I free"), (tongue.list_days, "what do I have")):
        if pattern.search(low):
            when, rest = _times(low, tongue)
            unknown = set(_WORD.findall(rest)) - tongue.filler
            if not when or unknown:
                words = " ".join(word for word in rest.split() if word.strip("¿?,.") not in tongue.filler)
                day = date_again(_BEFORE_DAY.sub("", words)) if not when else None
                return f"{question} on {day}" if day else ""
            return f"{question} {when}" if when and not unknown else ""
    return ""


def _times(text: str, tongue: Tongue) -> tuple[str, str]:
    """The times said in text, in English and in their order, and the rest of it."""
    found: list[tuple[int, str]] = []
    rest = text
    for pattern, english in tongue.times:
        while match := pattern.search(rest.lower()):
            found.append((match.start(), _said(match, english)))
            rest = rest[: match.start()] + " " * (match.end() - match.start()) + rest[match.end():]
    return " ".join(words for _, words in sorted(found)), " ".join(rest.split())


def _said(match: re.Match[str], english: str) -> str:
    if not english.startswith("at \\1"):
        return match.expand(english)
    minutes = next((one for one in match.groups()[1:] if one), "00")
    return f"at {match[1]}:{minutes}"
