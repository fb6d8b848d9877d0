"""One of a closed set of values (a note's title, a folder, a setting, a field) in the owner's words.

The whole name counts first, then everyday words for it, then one word that only one of them has. Must not know tools.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from node.agent.ports import Span
from node.agent.readers.numbers import NUMBER, fold, number

__all__ = ["Choice", "on_off_or_number", "pick"]


@dataclass(frozen=True, slots=True)
class Choice:
    """A value of the set that was named."""

    value: str
    span: Span
    exact: bool
    """True when its own name was said; False for a synonym or a part of the name."""
    others: tuple[str, ...] = ()
    """More values that the same words fit."""


_SYNONYMS: Mapping[str, tuple[str, ...]] = {
    "phone": ("phone number", "telephone", "number", "mobile", "cell", "call", "reach"),
    "email": ("e-mail", "mail address", "email address", "mail"),
    "address": ("live", "lives", "home address", "street"),
    "birthday": ("born", "birth date", "date of birth", "how old"),
    "brightness": ("screen brighter", "screen dimmer", "brighter", "dimmer", "screen"),
    "volume": ("louder", "quieter", "sound"),
    "wifi": ("wi-fi", "wlan", "wireless"),
    "do_not_disturb": ("do-not-disturb", "dnd", "silent mode"),
    "dark_mode": ("dark theme", "night mode"),
}
_BOOK = re.compile(r"\baddress\s+book\b")
"""Where people are looked up: no address."""
_WORD = re.compile(r"\w+", re.UNICODE)
_FILLER = frozenset((
    "the", "a", "an", "my", "of", "in", "to", "and", "or", "for", "note", "notes", "file", "folder", "list", "plan",
))


def pick(text: str, choices: Sequence[str], *, parts: bool = True) -> Choice | None:
    """The value of choices that text names, or None. parts: one word that only one value has is enough."""
    low = _BOOK.sub(lambda match: " " * len(match.group()), fold(text))
    named = [(span, value) for value in choices
             if (span := _phrase(low, fold(value).replace("_", " ")) or _phrase(low, fold(value)))]
    if named:                                   # the first one said, the longest where one name begins another
        span, value = min(named, key=lambda found: (found[0].start, -found[0].end))
        return Choice(value, span, exact=True)
    for value in choices:
        for word in _SYNONYMS.get(fold(value), ()):
            if span := _phrase(low, word):
                return Choice(value, span, exact=False)
    return _by_word(low, choices) if parts else None


def _by_word(low: str, choices: Sequence[str]) -> Choice | None:
    owners: dict[str, list[str]] = {}
    for value in choices:
        for word in {fold(part) for part in _WORD.findall(value.rpartition(".")[0] or value)} - _FILLER:
            owners.setdefault(word, []).append(value)
    best: Choice | None = None
    for match in _WORD.finditer(low):
        word = match.group()
        spoken = (word, f"{word}s", word.removesuffix("s")) if len(word) >= 3 else ()
        fitting = next((owners[one] for one in spoken if one in owners), None)
        if fitting and (best is None or len(fitting) < 1 + len(best.others)):
            best = Choice(fitting[0], Span(*match.span()), exact=False, others=tuple(fitting[1:]))
    return best


def _phrase(low: str, phrase: str) -> Span | None:
    match = re.search(rf"(?<!\w){re.escape(phrase)}(?!\w)", low)
    return Span(*match.span()) if match else None


_SWITCH = re.compile(
    r"\b(?P<off>off|disable[d]?|deactivate[d]?|mute|disconnect|kill|silence)\b|\b(?P<on>on|enable[d]?|activate[d]?"
    r"|unmute|connect)\b|"
    rf"(?P<n>\d{{1,3}})\s*(?:%|percent\b)?|(?<=\bto\s)(?P<w>{NUMBER})\b|\b(?P<p>{NUMBER})\s+percent\b|"
    r"\b(?P<max>max(?:imum)?|full)\b|\b(?P<min>min(?:imum)?|zero)\b",
)
_WHERE_ON = re.compile(r"\s+(?:this|the|my|that|a|an|our)\b")
_TURNED = re.compile(r"\b(?:turn\w*|switch\w*|flip\w*|put|get|keep)\s+$")
_INTO_MODE = re.compile(
    r"\b(?:put|set|switch|go|chang|get|turn)\w*\s+(?:.{0,30}?\s)?(?:in|into|to)\s+(?:the\s+)?(?:dark|night|silent"
    r"|quiet|sleep|do\s+not\s+"
    r"disturb)\b"
)


def on_off_or_number(text: str) -> Choice | None:
    """on, off or a number from 0 to 100 as a setting's value."""
    low = fold(text)
    for match in _SWITCH.finditer(low):
        span = Span(*match.span())
        if match.group("on") == "on" and _WHERE_ON.match(low, match.end()) and not _TURNED.search(low[: match.start()]):
            continue            # "the brightness on this screen" switches nothing on
        if match.group("n"):
            if int(match.group("n")) <= 100:
                return Choice(match.group("n"), span, exact=True)
            continue
        if words := match.group("w") or match.group("p"):
            return Choice(f"{number(words):g}", span, exact=True)
        value = next(name for name in ("off", "on", "max", "min") if match.group(name))
        return Choice({"max": "100", "min": "0"}.get(value, value), span, exact=True)
    if into := _INTO_MODE.search(low):
        return Choice("on", Span(*into.span()), exact=False)
    return None
