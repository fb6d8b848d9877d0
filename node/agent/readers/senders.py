"""Who is meant to have written, where a request is about what somebody wrote: "what did Dana write?".

Words in, words out. Must not know who is paired, nor messages.
"""

import re
from dataclasses import dataclass

__all__ = ["Written", "written"]

_WHO = r"(?P<who>(?!(?:the|this|that|a|an|all|to|for|it|is|in)\s)[\w’'.-]+(?:\s+[\w’'.-]+){0,2}?)"
_NOBODY = frozenset({
    "i", "you", "he", "she", "they", "we", "it", "who", "one", "people", "somebody", "someone", "anybody", "anyone",
    "everybody", "everyone", "and", "or",       # of two, half an answer would look like a whole one
})
_BEFORE = r"(?:(?:so|and|ok|okay|hey|kith|please|tell\s+me|show\s+me|remind\s+me)\b[\s,]*)*"
_PAST = r"(?:wrote|written|said|sent|told|texted|messaged|answered|replied)"
_BARE = r"(?:write|say|send|tell|text|message|answer|reply)"
_HAS = r"(?:(?:has|had|have|just)\s+)*"
_TO_ME = re.compile(r"\s+(?:to\s+)?(?:me|us)\b")
_TO_OTHERS = re.compile(
    r"^\s+(?:to\s+(?!(?:me|us|my|our|mine|ours|this|that|these|those|it|the|a|an)\b)\w|(?:her|him|them|his|their)\b)")
_ASKED = re.compile(
    rf"^\s*{_BEFORE}what(?:\s+(?:did|has|have|had|does)|[’']s)\s+{_WHO}\s+(?:just\s+)?(?:{_BARE}|{_PAST})\b(?P<rest>.*)$",
    re.DOTALL)
_ASKED_MESSAGE = re.compile(
    rf"^\s*{_BEFORE}what\s+(?:does|do|did|is|are|was|stands)\s+(?:in\s+)?{_WHO}[’']s\s+"
    r"(?:(?:last|latest|newest|new|recent|unread)\s+)?messages?(?:\s+(?:say|mean|about))?(?P<rest>.*)$", re.DOTALL)
_WORK = re.compile(rf"\bwhat\s+{_WHO}\s+{_HAS}{_PAST}\b(?P<rest>.*)$", re.DOTALL)
_WORK_ON_MESSAGE = re.compile(
    rf"\b{_WHO}[’']s\s+(?:(?:last|latest|newest|new|recent|unread)\s+)?messages?\b(?P<rest>.*)$", re.DOTALL)
_ELSEWHERE = re.compile(
    r"\b(?:note|notes|file|files|document|book|article|letter|calendar|meeting|phone|call|e-?mail)\b")


@dataclass(frozen=True, slots=True)
class Written:
    """Something that somebody is said to have written."""

    who: str
    """The last word of the name, folded."""
    to_me: bool
    """It was written to the owner, which only a message is."""


def written(low: str, *, work: bool) -> Written | None:
    """Who wrote what a folded request is about; None for another request. work: it asks for work on it ("explain what
    Dana wrote"), not for what was written alone."""
    for pattern in (_WORK_ON_MESSAGE, _WORK) if work else (_ASKED_MESSAGE, _ASKED):
        match = pattern.search(low)
        if match is None or _ELSEWHERE.search(match["rest"]) or _TO_OTHERS.match(match["rest"]):
            continue
        if _NOBODY.intersection(match["who"].split()):
            continue
        return Written(match["who"].split()[-1], _TO_ME.match(match["rest"]) is not None)
    return None
