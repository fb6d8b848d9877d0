"""Which half of the day a word in the request puts a bare hour in: dinner is at 19:00 and breakfast at 7:00.

A word counts where it is what happens at that hour: "dinner with Bo on Friday at 7", "at 8 for drinks". What only has
to do with it ("buy drinks at 9", "the call about the party at 9") decides nothing. Must not know days, zones or tools.
"""

import re
from typing import Literal

from node.agent.ports import Span

__all__ = ["Half", "half_named", "half_of_request", "in_half"]

Half = Literal["", "morning", "evening"]

_EVENING = (
    r"(?:(?:dinner|supper)(?:\s+(?:party|date|meeting|reservation|table))?|drinks|a\s+drink|cinema|movies?|film|theatre|"
    r"theater|concert|gig|opera|ballet|disco|party|night\s+out|(?:date|games?|quiz|film|movie|girls[’']?|poker)\s+night|"
    r"evening)"
)
_BREAKFAST = r"breakfast"
_OTHER = (
    r"(?:lunch|brunch|coffee|tea|meeting|call|appointment|dentist|doctor|train|flight|plane|bus|taxi|class|lesson|"
    r"rehearsal|shift|school|work|alarm)"
)
"""What has hours of its own; the word before it says nothing about the hour after it."""
_NAMED = re.compile(rf"\b(?:(?P<evening>{_EVENING})|(?P<breakfast>{_BREAKFAST})|{_OTHER})\b(?![’'])")
_WEEKDAY = r"(?:mon|tues|wednes|thurs|fri|satur|sun)day"
_GOES_ON = re.compile(
    rf"\s*(?:[^\w\s’'-]|$|\d|(?:with|at|in|on|for|and|or|is|are|was|starts?|starting|begins?|from|to|till|until|near|by|"
    rf"around|about|after|before|next|this|today|tomorrow|tonight|time|here|there|everyone|together|again|now|then|"
    rf"mon|tues?|wed|thurs?|fri|sat|sun|{_WEEKDAY})\b)"
)
"""What may follow where the word stands for itself, and is not part of another ("concert tickets")."""
_ABOUT = re.compile(r"\b(?:about|regarding|concerning|re|without|no)\s+(?:(?:the|a|an|our|my|your|\w+[’']s)\s+)*$")
_ERRAND = re.compile(
    r"\b(?:buy|order|bake|call|ring|phone|e-?mail|shop|shopping|pay|collect|fetch|discuss|plan|planning|decorate|clean|"
    r"tidy|cancel|prepare\s+for|remind(?:er)?\b.*\b(?:book|reserve|get|plan|cancel))\s"
)
"""Work that is done at the hour that is named, whatever it is for."""
_OF_CHILDREN = re.compile(r"\b(?:kid|kid[’']?s|kids[’']|child[’']s|children(?:[’']?s)?|toddlers?[’']?s?)\s+$")
"""Whose parties are over before the evening."""
_CLAUSE = re.compile(r"[.;!?\n](?=\s|$)")
_BETWEEN = (
    rf"[\s,:–-]+(?:(?:for|to|at|the|a|an|our|my|on|next|this|today|tomorrow|go|going|see|watch|with|we|i|have|having|"
    rf"is|it[’']?s|there[’']?s|{_WEEKDAY})[\s,]+)*"
)
_AT_IT = re.compile(rf"{_BETWEEN}(?:(?P<evening>{_EVENING})|(?P<breakfast>{_BREAKFAST}))\b(?![’'])")
_FOR_IT = re.compile(
    r"(?P<between>[^.;!?\n]{0,40}?)\bfor\s+(?:(?P<evening>dinner|supper|drinks|a\s+drink)|(?P<breakfast>breakfast))\b(?![’'])"
)
_PART = re.compile(r"\b(?:mornings?|afternoons?)\b")


def half_named(low: str, span: Span) -> Half:
    """The half for the hour at span of a folded text; empty when no word, or a part of the day, decides it."""
    if _PART.search(low):
        return ""
    begin = max((match.end() for match in _CLAUSE.finditer(low, 0, span.start)), default=0)
    if half := _last_named(low[begin : span.start]):
        return half
    rest = low[span.end :]
    if (match := _AT_IT.match(rest)) and _goes_on(match, rest):
        return _half_of(match)
    if (match := _FOR_IT.match(rest)) and _goes_on(match, rest):
        between = f"{match['between']} "
        if not _NAMED.search(between) and not _ERRAND.search(between):
            return _half_of(match)
    return ""


def half_of_request(low: str) -> Half:
    """The half for an hour that is said later, as the answer to "when?"."""
    return "" if _PART.search(low) else _last_named(low)


def in_half(minutes: int, half: Half) -> int:
    """Minutes after midnight moved into the half; twelve o'clock stays as it was read."""
    if not half or minutes % 720 < 60:
        return minutes
    return minutes % 720 + (720 if half == "evening" else 0)


def _last_named(before: str) -> Half:
    """What the last thing that is named before an hour says about it."""
    last = None
    for match in _NAMED.finditer(before):
        last = match
    if last is None or not _half_of(last) or not _goes_on(last, before):
        return ""
    lead = before[: last.start()]
    return "" if _ABOUT.search(lead) or _ERRAND.search(lead) or _OF_CHILDREN.search(lead) else _half_of(last)


def _goes_on(match: re.Match[str], text: str) -> bool:
    return match["evening"] == "evening" or _GOES_ON.match(text, match.end()) is not None


def _half_of(match: re.Match[str]) -> Half:
    return "evening" if match["evening"] else "morning" if match["breakfast"] else ""
