"""Free text inside a request: a title, the words of a note, a reminder, a message, a search.

Each kind has cues that say where its words start; the end is where understood values (times, lengths) begin. These are
first candidates only: hand-written cues find about two thirds of unseen wording, so the agent compares them with the
model's copy and shows both when they differ. Must not know tools or models.
"""

import re
from collections.abc import Mapping, Sequence

from node.agent.ports import Span
from node.agent.readers.numbers import fold

__all__ = ["PHRASES", "is_empty_object", "phrase", "quoted", "repeats", "residual", "trimmed"]

_QUOTES = re.compile(r"\"(?P<a>[^\"]+)\"|“(?P<b>[^”]+)”|«(?P<c>[^»]+)»|(?<![\w])['‘](?P<d>[^'’\n]{2,}?)['’](?!\w)")
_EMPTY = frozenset((
    "something", "anything", "someone", "anybody", "somebody", "it", "this", "that", "them", "these", "those",
    "him", "her", "me", "myself", "us", "an", "a", "the", "event", "events", "meeting", "appointment", "reminder",
    "note", "notes", "message", "text", "calendar", "do", "be", "reminded", "about", "for", "to", "of", "file",
    "files", "folder", "document", "stuff", "things", "thing", "nothing", "later", "please", "one", "new", "my",
    "your", "some", "any", "quick", "short", "down", "list", "entry", "line", "in", "on", "with", "from", "ask",
    "can", "you",
))
_POLITE = re.compile(
    r"^(?:please|kindly|kith)[\s,]+|^(?:can|could|would|will)\s+you\s+(?:please\s+)?|[\s,]+(?:please|thanks|"
    r"thank\s+you|for\s+me)\s*[.!?]*$",
    re.IGNORECASE,
)
_REPEATS = re.compile(
    r"\b(?:every|each)\s+(?:(?:other|second|third|single|\d+)\s+)?(?:minutes?|hours?|days?|mornings?|afternoons?|"
    r"evenings?|nights?|weeks?|weekdays?|weekends?|months?|years?|(?:mon|tues?|wednes|thurs?|fri|satur|sun)days?)\b|"
    r"\b(?:hourly|daily|weekly|fortnightly|monthly|yearly|annually)\b",
    re.IGNORECASE,
)
_TO = re.compile(r"(?:me\s+)?to\s+(?=\w)", re.IGNORECASE)
_EDGE = " \t\n,;:.!?-–"
_LEFTOVER_END = re.compile(r"[\s,]+(?:on|at|in|for|by|from|with|and|to|the|this|next|until|before|after|around|"
                           r"about)\s*$", re.IGNORECASE)
_LEFTOVER_START = re.compile(r"^(?:,|and|that|to|about|of|for|on|:)\s+", re.IGNORECASE)


def repeats(text: str) -> bool:
    """Whether it speaks of something that happens again and again ("every other Tuesday", "weekly")."""
    return _REPEATS.search(text) is not None


def quoted(text: str) -> list[Span]:
    """The spans inside quotation marks; an apostrophe is none."""
    return [Span(*match.span(match.lastgroup or 0)) for match in _QUOTES.finditer(text)]


def is_empty_object(words: str) -> bool:
    """True for fillers that are no content: something, an event, a reminder, myself, it, this."""
    return all(word in _EMPTY for word in re.findall(r"\w+", fold(words)))


def trimmed(text: str, span: Span, cut: Sequence[Span] = ()) -> Span | None:
    """span without polite words, punctuation and understood values at its edges; None when nothing of content is
    left."""
    start, end = span.start, span.end
    for _ in range(24):
        before = (start, end)
        piece = text[start:end]
        start += len(piece) - len(piece.lstrip(_EDGE))
        end -= len(piece) - len(piece.rstrip(_EDGE))
        for other in cut:
            if other.start < end <= other.end + 1 and other.start > start:
                end = other.start
            if other.start - 1 <= start < other.end < end:
                start = other.end
            article = text[start : other.start].lower() in {"a ", "an ", "the "}
            if start < other.start and article and other.end < end:
                start = other.end
            if other.start <= start and end <= other.end:
                return None
        piece = text[start:end]
        if match := _POLITE.search(piece):
            start, end = (start + match.end(), end) if match.start() == 0 else (start, start + match.start())
        elif any(other.start <= end + 12 and other.end > end for other in cut):
            end = start + (match.start() if (match := _LEFTOVER_END.search(piece)) else len(piece))
        if before == (start, end):
            break
    if start >= end or is_empty_object(text[start:end]):
        return None
    return Span(start, end)


def residual(text: str, cut: Sequence[Span]) -> str:
    """text without the spans that are already understood and without polite words: what a model may copy from."""
    kept, position = [], 0
    for span in sorted(cut):
        if span.start >= position:
            kept.append(text[position : span.start])
            position = span.end
    kept.append(text[position:])
    joined = " ".join(part.strip() for part in kept if part.strip())
    joined = re.sub(r"\b(?:in|to|on|from)\s+my\s+calendar\b", " ", joined, flags=re.IGNORECASE)
    for _ in range(3):
        joined = _POLITE.sub("", joined).strip()
    return re.sub(r"\s+", " ", joined).strip(" ,;")


_TO_END = r"(?P<x>.+)$"
_NOTE = r"(?:a\s+|an\s+|another\s+|new\s+|quick\s+|my\s+|the\s+|in\s+my\s+|to\s+my\s+)*"
PHRASES: Mapping[str, tuple[tuple[re.Pattern[str], ...], bool]] = {
    kind: (tuple(re.compile(pattern, re.IGNORECASE | re.DOTALL) for pattern in patterns), cut)
    for kind, (patterns, cut) in {
        "title": ((
            r"\b(?:called|titled|named|entitled|title[d:]?|labelled)\s*:?\s*(?P<x>[^,.]+)",
            r"\b(?:to\s+(?:go\s+over|discuss|talk\s+(?:about|over|through)|review|plan|look\s+at|work\s+on|prepare|"
            r"celebrate|catch\s+up\s+on))\s+(?P<x>[^,]+)",
            r"\b(?:about|regarding|concerning|re:)\s+(?P<x>[^,]+)",
            r"^(?:(?:can|could|would|will)\s+you\s+|go\s+ahead\s+and\s+|i\s+want\s+you\s+to\s+)?(?:please\s+)?"
            r"(?:i\s+(?:need|want|have)\s+(?:to\s+)?|let[’']?s\s+|i[’']?d\s+like\s+(?:you\s+)?to\s+)?(?:schedule|book|add|create|set\s+up|plan|"
            r"put(?:\s+in)?|arrange|organi[sz]e|make|enter|have|insert|pencil\s+in|save|record|"
            r"block(?:\s+out)?(?:\s+time\s+for)?|reserve)\s+"
            r"(?:(?:me\s+)?(?:in\s+)?)(?P<x>.+?)(?=\s+(?:with|on|at|for|from|between|in|to|into|next|this|tomorrow|"
            r"today|tonight)\b|,|$)",
            r"\b(?:for|to)\s+(?P<x>(?:the|my|a|an|our)\s+[^,]+)",
            r"\b(?:remind(?:er)?|event|meeting|appointment)\s+for\s+(?P<x>[^,]+)",
            r"\b(?:invite\s+.+?\s+to)\s+(?P<x>.+?)(?=\s+(?:with|on|at|from|between|next|this|tomorrow)\b|,|$)",
            r"^(?:an?\s+|the\s+)?(?P<x>[\w’' -]+?)\s+with\b",
        ), True),
        "reminder": ((
            rf"\bremind\s+(?:me|us)\s+(?:again\s+)?(?:in\s+.{{1,25}}?\s+|at\s+.{{1,15}}?\s+|on\s+.{{1,20}}?\s+|"
            rf"tomorrow\s+|tonight\s+)?(?:to|about|of|that)\s+{_TO_END}",
            rf"\bdo(?:n[’']?t|\s+not)\s+let\s+me\s+forget\s+(?:to|about|that)?\s*{_TO_END}",
            rf"\breminder\s+for\s+(?:me|us)\s+(?:to|about|that)\s+{_TO_END}",
            rf"\b(?:set|create|add|make)\s+(?:up\s+)?(?:me\s+)?(?:a\s+|another\s+)?reminder\s+.{{0,30}}?"
            rf"(?:to|about|of|that|for)\s+{_TO_END}",
            r"^(?P<x>.+?)[\s,]+(?:so\s+)?(?:please\s+)?(?:can|could|would)\s+you\s+remind\s+me\b",
            rf"^tell\s+me\s+.{{1,25}}?\s+to\s+{_TO_END}",
            rf"\breminder\s+(?:to|about|of|that|for)\s"
            rf"+{_TO_END}", rf"\b(?:remember|make\s+sure\s+i|i\s+(?:have|need)\s+to)\s+(?:to\s+)?{_TO_END}",
            rf"\bremind\s+me\s+{_TO_END}", rf"\babout\s+{_TO_END}",
        ), True),
        "message": ((
            rf"\b(?:saying|that\s+says|which\s+says|with\s+the\s+text)\s*:?\s+(?:that\s+)?{_TO_END}",
            rf"\blet\s+.{{1,40}}?\s+know\s+(?:that\s+)"
            rf"?{_TO_END}",
            r"^(?P<x>.+?)[\s,]+(?:please\s+)?(?:let\s+\S+(?:\s+\S+)?\s+know|tell\s+\S+)\s*[.!]?$",
            rf"^[^:]{{2,60}}:\s*{_TO_END}", rf"\bthat\s+{_TO_END}",
        ), False),
        "note": ((
            rf"\b(?:note|memo|line)\s+(?:saying|that\s+says|which\s+says)\s*:?\s+(?:that\s+)?{_TO_END}",
            r"\b(?:need|want|would\s+like)\s+(?P<x>.+?)\s+(?:put|added|written)\s+(?:to|in|into|on|onto)\s",
            r"\b(?:be\s+sure\s+to\s+)?put\s+(?P<x>.+?)\s+on\s+(?:my\s+|the\s+)?[\w ]{0,40}?(?:note|list|plan)\b",
            rf"\b(?:note|memo|line)\s*(?:saying|that\s+says)?\s*:\s"
            rf"*{_TO_END}", rf"\b(?:write|jot|note|put|take)\s+(?:(?:this|it|that)\s+)?down\s*(?:that\b|"
                            rf":)?\s*{_TO_END}",
            rf"\b(?:make|take|write|create|add|leave)\s+{_NOTE}(?:note|memo)\s+(?:that|saying|to\s+self\s+that|"
            rf"about|of)\s+{_TO_END}",
            r"\b(?:add|append|put|write)\s+(?P<x>.+?)\s+(?:to|in|into|on|under)\s+(?:my\s+|the\s+)?[\w ]{0,"
            r"40}?(?:note|notes|list)\b", rf"\bnote\s+(?:that|to\s+self:?)\s+{_TO_END}",
            rf"\bremember\s+(?:that\s+)?{_TO_END}", rf"^[^:]{{2,60}}:\s*{_TO_END}",
        ), False),
        "query": ((
            r"\b(?:look|search)\s+(?:on|in)\s+the\s+(?:internet|web)\s+"
            r"(?P<x>(?:where|how|what|why|when|who|which)\b.+)$",
            r"\b(?:information|info|articles|anything|something|details|facts)\s+"
            r"(?:(?:online|on\s+the\s+(?:web|internet))\s+)?(?:on|about|for)\s+(?P<x>.+)$",
            r"\b(?:look\s+up|search\s+for|find)\s+(?P<x>.+?)\s+(?:on\s+(?:google|the\s+(?:web|internet))|online)\s*$",
            r"\bnotes?\s+(?:somewhere\s+|anywhere\s+)?(?:on|about|for)\s+(?P<x>.+?)(?:\s+(?:anywhere|somewhere))?$",
            rf"\b(?:search|look|looking)\s+(?:(?:through|in|online|on\s+the\s+(?:web|internet)|the\s+(?:web|"
            rf"internet)|all|my|files|notes|documents|around)\s+)*(?:for|about)\s+{_TO_END}",
            rf"\b(?:google|look\s+up|search\s+up)\s"
            rf"+{_TO_END}", rf"\b(?:mention(?:s|ing|ed)?|contain(?:s|ing)?|with\s+the\s+words?)\s+{_TO_END}",
            rf"\b(?:about|regarding|on\s+the\s+subject\s+of)\s"
            rf"+{_TO_END}", rf"\b(?:notes?|files?|documents?)\s+(?:on|for|with)\s+{_TO_END}",
            r"\bfind\s+(?:me\s+)?(?:online\s+|information\s+(?:about|on)\s+|the\s+(?:file|note|document)\s+(?:about|"
            r"with)\s+)?(?P<x>.+?)(?:\s+(?:in\s+my\s+\w+|online|on\s+the\s+(?:web|internet)))?$",
            r"\bsearch\s+(?P<x>(?!my\b|the\b|all\b|online\b).+)$",
        ), False),
    }.items()
}
"""Cues by kind, best first; the flag says whether understood times are cut off the words."""


def phrase(text: str, kind: str, cut: Sequence[Span]) -> Span | None:
    """The span of the words of this kind in text, or None. Quoted words win."""
    if marks := quoted(text):
        return marks[0]
    patterns, cuts = PHRASES[kind]
    for pattern in patterns:
        if (match := pattern.search(text)) and (span := trimmed(text, Span(*match.span("x")), cut if cuts else ())):
            lead = _TO.match(span.of(text)) if kind == "reminder" else None
            return Span(span.start + lead.end(), span.end) if lead else span
    return None
