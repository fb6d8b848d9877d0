"""Free text inside a request: a title, the words of a note, a reminder, a message, a search.

Each kind has cues that say where its words start; the end is where understood values (times, lengths) begin. These are
first candidates only, so the agent compares them with the model's copy and shows both when they differ. Where no cue is
said, what remains of the request is taken (remains.py). Must not know tools or models.
"""

import re
from collections.abc import Mapping, Sequence

from node.agent.ports import Span
from node.agent.readers.courtesy import core
from node.agent.readers.numbers import fold
from node.agent.readers.remains import asking_only, is_filler, remains, without_asides

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
_MET = re.compile(r"\b(?:meeting|appointment|event)s?\b", re.IGNORECASE)
"""No title of an appointment, but something to be reminded of."""
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
    return all(word in _EMPTY for word in re.findall(r"\w+(?:-\w+)*", fold(words)))


def trimmed(text: str, span: Span, cut: Sequence[Span] = (), *, kind: str = "") -> Span | None:
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
    met = kind == "reminder" and _MET.search(text, start, end) is not None
    if start >= end or (is_empty_object(text[start:end]) and not met):
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
_PLACE = "§"
"""Stands for the note that is named, in the patterns for a note's text."""
_INTO = (
    r"(?:on|onto|on\s+to|to|in|into|under|at\s+the\s+end\s+of)\s+(?:my\s+|the\s+|that\s+|our\s+)?(?:note\s+"
    r"(?:called\s+|about\s+)?)?§+"
)
_PUT = (
    r"(?:add|append|put|write|pop|stick|tack|chuck|throw|bung|jot(?:\s+down)?|include|get|enter|log|save|record"
    r"|note(?:\s+down)?|"
    r"need|want|have|slip|list)"
)
_WEB = r"(?:the\s+)?(?:internet|web|net|google)"
_FOR_GOOD = r"(?:don[’']?t|do\s+not|never)\s+(?:let\s+me\s+)?forget(?:\s+(?:it|this|that))?"
PHRASES: Mapping[str, tuple[tuple[re.Pattern[str], ...], bool]] = {
    kind: (tuple(re.compile(pattern, re.IGNORECASE | re.DOTALL) for pattern in patterns), cut)
    for kind, (patterns, cut) in {
        "title": ((
            r"\b(?:called|titled|named|entitled|title[d:]?|labelled)\s*:?\s*(?P<x>[^,.]+)",
            r"^\s*(?:(?:new|add|another)\s+)*(?:calendar|diary|agenda|appointment|event|entry|meeting)(?:\s+"
            r"entry)?\s*:\s*(?P<x>[^,.]+)",
            r"^(?P<x>.+?)\s+(?:needs?|has|have|should|ought|must|can|could)\s+(?:to\s+)?(?:be|go|get)\s+(?:(?:added"
            r"|put|entered|noted|"
            r"booked|scheduled)\s+)?(?:on|in|into|onto|to)\s+(?:my|the|our)\s+(?:calendar|diary|schedule|agenda)\b",
            r"\b(?:put|book|sign|pencil|mark)\s+(?:me|us)\s+(?:down|in|up)\s+for\s+(?P<x>[^,]+)",
            r"^(?:[\w’', ]{0,30}?\s)?meet(?:ing)?\s+.{1,30}?\s+for\s+(?P<x>(?:a\s+)?\w+(?:\s\w+)?)",
            r"\b(?:need|want)\s+(?P<x>(?!to\b|you\b).+?)\s+(?:put\s+)?(?:on|in|into|onto)\s+(?:my|the|our)\s+"
            r"(?:calendar|diary|schedule|"
            r"agenda)\b",
            r"\b(?:to\s+(?:go\s+over|discuss|talk\s+(?:about|over|through)|review|plan|look\s+at|work\s+on|prepare|"
            r"celebrate|catch\s+up\s+on))\s+(?P<x>[^,]+)",
            r"\b(?:about|regarding|concerning|re:)\s+(?P<x>[^,]+)",
            r"\b(?:i\s+have|i[’']?ve\s+got|i\s+got|we\s+have|we[’']?ve\s+got|there(?:[’']s|\s+is)|i[’']m\s+"
            r"having)\s+(?!to\b)"
            r"(?P<x>(?:a|an|the|my|our|another)?\s*.+?)(?=\s{3}|\s+(?:with|on|at|for|from|between|in|to|next|this"
            r"|tomorrow|"
            r"today|tonight)\b|[,.;]|$)",
            r"^(?:(?:can|could|would|will)\s+you\s+|go\s+ahead\s+and\s+|i\s+want\s+you\s+to\s+)?(?:please\s+)?"
            r"(?:i\s+(?:need|want|have)\s+(?:to\s+)?|let[’']?s\s+|i[’']?d\s+like\s+(?:you\s+)?to\s+)?(?:s(?:ch|h"
            r"|c)edule|book|add|create|set\s+up|plan|"
            r"put(?:\s+in)?|arrange|organi[sz]e|make|enter|have|insert|pencil\s+in|save|record|stick|pop|get|"
            r"block(?:\s+out)?(?:\s+time\s+for)?|reserve)\s+"
            r"(?:(?:me\s+)?(?:in\s+)?)(?P<x>.+?)(?=\s+(?:with|on|onto|at|for|from|between|in|to|into|next|this"
            r"|tomorrow|"
            r"today|tonight)\b|,|$)",
            r"\b(?:for|to)\s+(?P<x>(?:the|my|a|an|our)\s+(?!calendar\b|diary\b|schedule\b|agenda\b|same\b)[^,]+)",
            r"\b(?:remind(?:er)?|event|meeting|appointment)\s+for\s+(?P<x>[^,]+)",
            r"\b(?:invite\s+.+?\s+to)\s+(?P<x>.+?)(?=\s+(?:with|on|at|from|between|next|this|tomorrow)\b|,|$)",
        ), True),
        "reminder": ((
            rf"^(?P<x>.{{4,}}?)[\s,.;–-]+(?:(?:and|so)\s+)?(?:please\s+)?(?:(?:make|be|see)\s+(?:sure\s+)?"
            rf"(?:that\s+)?(?:i\s+)?"
            rf"(?:{_FOR_GOOD}|remember(?:\s+(?:it|this|that))?)|{_FOR_GOOD})\s*(?:[,.!].*)?$",
            r"^(?P<x>.{4,}?)[\s,.;–-]+(?:(?:and|so)\s+)?(?:please\s+)?(?:(?:can|could|would|will)\s+you\s+)?"
            r"(?:please\s+)?re?mi?nd\s+(?:me|us)(?:\s+(?:please|then|"
            r"(?:about|of)\s+"
            r"(?:it|that|this)))?\s*[.!]*$",
            rf"^[^:]*\b(?:reminder|alert|remind\s+me)\b[^:]*:\s*{_TO_END}",
            r"\b(?:nudge|notify|alert|ping|buzz|prompt|wake|re?mi?nd)\s+(?:me|us)\b[\s,]*(?:again\s+)?(?:please\s+)?"
            r"(?:when\s+it[’']s\s+)?"
            rf"(?:to|about|of|that)\s+{_TO_END}",
            rf"\bremind(?:ing|ed)\s+(?:to|about|of|that)\s+{_TO_END}",
            rf"\b(?:give|drop|send)\s+me\s+a\s+(?:\w+\s+)?(?:shout|nudge|reminder|ping|alert|buzz)\s+(?:to|about|of"
            rf"|that|for)\s+{_TO_END}",
            rf"\bremind\s+(?:me|us)\s+(?:again\s+)?(?:in\s+.{{1,25}}?\s+|at\s+.{{1,15}}?\s+|on\s+.{{1,20}}?\s+|"
            rf"tomorrow\s+|tonight\s+)?(?:to|about|of|that)\s+{_TO_END}",
            rf"\bdo(?:n[’']?t|\s+not)\s+let\s+me\s+forget\s+(?:to|about|that)?\s*{_TO_END}",
            rf"\breminder\s+for\s+(?:me|us)\s+(?:to|about|that)\s+{_TO_END}",
            rf"\b(?:set|create|add|make)\s+(?:up\s+)?(?:me\s+)?(?:a\s+|another\s+)?reminder\s+.{{0,30}}?"
            rf"(?:to|about|of|that|for)\s+{_TO_END}",
            r"^(?P<x>.+?)[\s,]+(?:so\s+)?(?:please\s+)?(?:can|could|would)\s+you\s+remind\s+me\b",
            rf"(?:^|[\s,.]{{2,}})tell\s+me\s+(?:.{{1,25}}?\s+)?to\s+{_TO_END}",
            rf"\breminder\s+(?:to|about|of|that|for)\s+{_TO_END}",
            rf"\b(?:remember|make\s+sure\s+i|i\s+(?:have|need)\s+to)\s+(?:to\s+)?{_TO_END}",
            rf"\bremind\s+me\s+{_TO_END}", rf"\babout\s+{_TO_END}",
        ), True),
        "message": ((
            rf"\b(?:saying|that\s+says|which\s+says|with\s+the\s+text)\s*:?\s+(?:that\s+)?{_TO_END}",
            rf"\blet\s+.{{1,40}}?\s+know\s+(?:that\s+)?{_TO_END}",
            r"^(?P<x>.+?)[\s,]+(?:please\s+)?(?:let\s+\S+(?:\s+\S+)?\s+know|tell\s+\S+)\s*[.!]?$",
            r"\bsay\s+(?P<x>.+?)\s+to\s+(?:my\s+|the\s+)?\w+(?:\s+\w+)?(?:\s+(?:in|by|with)\s+a\s+(?:text"
            r"|message))?\s*[.!]*$",
            rf"^[^:]{{2,60}}:\s+{_TO_END}", rf"\bthat\s+{_TO_END}",
        ), False),
        "note": ((
            rf"\b(?:note|memo|line)\s+(?:saying|that\s+says|which\s+says)\s*:?\s+(?:that\s+)?{_TO_END}",
            rf"^(?:.{{0,40}}?\b)?(?:in|under|to|on|into|for)\s+(?:my\s+|the\s+|that\s+)?§+(?:\s+(?:note"
            rf"|list))?\s*[,:]?\s*(?:please\s+)?"
            rf"(?:add|put|write|note|jot\s+down|include|save|record|log)\s+(?:down\s+)?(?:that\s+)?{_TO_END}",
            rf"§+(?:\s+(?:note|list))?\s*(?:,\s*)?(?::|\bthat\b|\bsaying\b)\s*{_TO_END}",
            r"^(?P<x>.+?)\s+(?:should|ought\s+to|has\s+to|have\s+to|needs?\s+to|must|can|could|wants?\s+to)\s+(?:go"
            r"|be|get)\s+"
            rf"(?:(?:put|added|written|noted)\s+)?(?:down\s+)?{_INTO}",
            rf"^(?P<x>.+?)[\s,.;–-]+(?:(?:and|so)\s+)?(?:please\s+)?(?:(?:can|could|would)\s+you\s+)?{_PUT}\s+(?:it"
            rf"|that|this)\s+"
            rf"(?:down\s+)?{_INTO}",
            r"§+\s+(?:needs?|wants?|should\s+have)\s+(?P<x>.+?)\s+(?:adding|added|putting|put|writing|written)\b",
            rf"\b(?:need|want|like)\s+(?P<x>(?!to\b|you\b).+?)\s+(?:to\s+be\s+)?(?:put|added|written|noted)\s+"
            rf"(?:down\s+)?(?:{_INTO}|"
            rf"(?:to|in|into|on|onto)\s)",
            rf"\b{_PUT}\s+(?P<x>.+?)\s+{_INTO}",
            r"\b(?:be\s+sure\s+to\s+)?put\s+(?P<x>.+?)\s+on\s+(?:my\s+|the\s+)?[\w ]{0,40}?(?:note|list|plan)\b",
            rf"\b(?:note|memo|line)\s*(?:saying|that\s+says)?\s*:\s*{_TO_END}",
            rf"\b(?:write|jot|note|put|take)\s+(?:(?:this|it|that)\s+)?down\s*(?:that\b|:)?\s*{_TO_END}",
            rf"\b(?:make|take|write|create|add|leave)\s+{_NOTE}(?:note|memo)\s+(?:that|saying|to\s+self\s+that|"
            rf"about|of)\s+{_TO_END}",
            r"\b(?:add|append|put|write)\s+(?P<x>.+?)\s+(?:to|in|into|on|under)\s+(?:my\s+|the\s+)?[\w ]{0,"
            r"40}?(?:note|notes|list)\b", rf"\bnote\s+(?:that|to\s+self:?)\s+{_TO_END}",
            rf"\b(?:write|record|log|save|jot|keep|put)\s+(?:(?:in|to)\s+my\s+notes\s+)?that\s+{_TO_END}",
            rf"\bremember\s+(?:that\s+)?{_TO_END}", rf"^[^:]{{2,60}}:\s+{_TO_END}",
        ), False),
        "query": ((
            r"\bwith\s+the\s+words?\s+(?P<x>.+?)(?:\s+in\s+(?:it|them))?$",
            r"\b(?:anything|something|stuff|everything)\s+(?:\w+\s+)?(?:to\s+do\s+with|related\s+to|regarding"
            r"|concerning|mentioning|"
            r"containing)\s+(?P<x>.+)$",
            rf"\b(?:look|search|check|browse|see)\s+(?:up\s+)?(?:on|in|what)\s+{_WEB}\s+(?:for\s+|about\s+|(?:has"
            rf"|says|knows)\s+(?:on|about)\s+)?{_TO_END}",
            r"\b(?:internet|web|online)\s+(?:for\s+)?(?P<x>(?:where|how|what|why|when|who|which|whether|if)\b.+)$",
            r"\b(?:information|info|articles|anything|something|details|facts)\s+"
            r"(?:(?:online|on\s+the\s+(?:web|internet))\s+)?(?:on|about|for)\s+(?P<x>.+)$",
            r"\b(?:look\s+up|search\s+for|find|check|see|look\s+for)\s+(?P<x>.+?)\s+(?:on\s+(?:google|the\s+(?:web"
            r"|internet|net))|online)\s*[.?!]*$",
            r"\bnotes?\s+(?:of\s+mine\s+)?(?:somewhere\s+|anywhere\s+)?(?:on|about|for)\s+(?P<x>.+?)(?:\s+"
            r"(?:anywhere|somewhere))?$",
            rf"\b(?:sea?rch|look|looking)\s+(?:(?:through|in|online|on\s+the\s+(?:web|internet)|the\s+(?:web|"
            rf"internet)|all|my|files|notes|documents|around)\s+)*(?:for|about)\s+{_TO_END}",
            rf"\b(?:google|look\s+up|search\s+up)\s+(?:on\s+{_WEB}\s+)?{_TO_END}",
            rf"\b(?:mention(?:s|ing|ed)?|contain(?:s|ing)?|with\s+the\s+words?)\s+{_TO_END}",
            rf"\b(?:about|regarding|on\s+the\s+subject\s+of)\s+{_TO_END}",
            rf"\b(?:notes?|files?|documents?)\s+(?:on|for|with)\s+{_TO_END}",
            r"\bfind\s+(?:me\s+)?(?:online\s+|information\s+(?:about|on)\s+|the\s+(?:file|note|document)\s+(?:about|"
            r"with)\s+)?(?P<x>.+?)(?:\s+(?:in\s+my\s+\w+|online|on\s+the\s+(?:web|internet)))?$",
            r"\bsea?rch\s+(?P<x>(?!my\b|the\b|all\b|online\b).+)$",
        ), False),
    }.items()
}
"""Cues by kind, best first; the flag says whether understood times are cut off the words."""
_TOLD = frozenset({"message", "note"})
_ANYTHING = re.compile(
    r"^(?:any|some)(?:thing|\s+\w+)\s+(?:about|on|to\s+do\s+with|regarding|with\s+the\s+words?)\s+", re.IGNORECASE,
)
_ABOUT = re.compile(r"^(?:search\s+(?:on|for|about)|says?\s+(?:on|about)|(?:what(?:ever)?|anything)\s+i\s+(?:wrote"
                    r"|noted|said|put|jotted)"
                    r"(?:\s+down)?\s+(?:on|about)|on|about|for|regarding|of|whether\s+there\s+(?:is|are))\s+",
                    re.IGNORECASE)
_WHERE = re.compile(
    r"\s+(?:(?:some|any)where\s*)?(?:in\s+(?:it|them|(?:all\s+)?(?:of\s+)?(?:my|the)\s+(?:notes?|files?"
    r"|documents?))|on\s+(?:the\s+)?"
    r"(?:web|internet|net|google)|online|anywhere|somewhere|for\s+me|at\s+all)\s*[.?!]*$", re.IGNORECASE)
_LED = re.compile(
    r"(?:for|of|about|in|on|at)\s+(?:(?:me|us)\s+(?:(?:an?\s+)?appointment\s+(?:for\s+)?)?)?", re.IGNORECASE)
_NAMED = re.compile(r"(?:called|titled|named)\b", re.IGNORECASE)
_AGAIN = re.compile(
    r"^(?:(?:alert|remind|notify|tell|warn)\s+me\s+(?:to|about|of|that|when\s+it[’']?s\s+time\s+to|when)\s+|is\s+"
    r"|when\s+it[’']?s\s+time\s+to\s+)",
    re.IGNORECASE,
)
_DUTY = re.compile(
    r"^(?:i|we)(?:[’'](?:ve|d))?\s+(?:really\s+|absolutely\s+|still\s+)?(?:ought\s+to|have\s+(?:got\s+)?to|got\s+to"
    r"|need\s+to|must|"
    r"should|better|had\s+better|want\s+to|am\s+supposed\s+to)\s+(?:really\s+|not\s+forget\s+to\s+)?", re.IGNORECASE)
_SET_UP = re.compile(
    r"\b(?P<x>meeting|appointment|call|session)\s+(?:set\s+up|booked(?:\s+in)?|scheduled|arranged|in)\s+with\b",
    re.IGNORECASE,
)
_BARE_MEETING = re.compile(
    r"\b(?P<x>(?:meeting|appointment|call|chat|catch-?up|session)\s+with\s+(?:(?:my|the)\s+)?[^\s,.;]+(?:\s+"
    r"(?:and\s+)?[^\s,.;]+){0,4}?)"
    r"(?=\s{2,}|\s+(?:on|at|for|from|between|in|to|about|next|this|tomorrow|today|tonight|please)\b|\s*[,.;!?]|\s*$)",
    re.IGNORECASE,
)


def phrase(text: str, kind: str, cut: Sequence[Span], place: Span | None = None) -> Span | None:
    """The span of the words of this kind in text, or None. Quoted words win. place: where a note is named that a note's
    text goes to."""
    if marks := quoted(text):
        return marks[0]
    inner = core(text)
    if inner.start or inner.end < len(text):
        first = inner.start
        shifted = [Span(max(0, one.start - first), one.end - first) for one in cut if one.end > first]
        named = Span(place.start - first, place.end - first) if place and place.start >= first else None
        found = phrase(inner.of(text), kind, shifted, named)
        return Span(found.start + inner.start, found.end + inner.start) if found else None
    patterns, cuts = PHRASES[kind]
    cut = cut if cuts else ()
    blank = _blanked(text, cut, " ")
    if place is not None:
        blank = _blanked(blank, (place,), _PLACE)
    for pattern in patterns:
        if (match := pattern.search(blank)) and (span := _tidy(text, kind, Span(*match.span("x")), cut)):
            return span
    if kind == "title" and (match := _BARE_MEETING.search(blank) or _SET_UP.search(blank)):
        return Span(*match.span("x"))
    left = remains(_blanked(text, (place,), " ") if place else text, kind, cut)
    return _tidy(text, kind, left, cut) if left else None


def _blanked(text: str, spans: Sequence[Span], by: str) -> str:
    """text of the same length with by in place of the spans."""
    letters = list(text)
    for span in spans:
        letters[span.start : span.end] = by * (span.end - span.start)
    return "".join(letters)


def _tidy(text: str, kind: str, span: Span, cut: Sequence[Span]) -> Span | None:
    """span without asides and words of asking at its edges; None when it says nothing."""
    span = without_asides(text, span, told=kind in _TOLD)
    if kind == "message":           # polite words are part of what is written
        words = span.of(text)
        span = Span(span.start + len(words) - len(words.lstrip(_EDGE)), span.end - len(words) + len(words.rstrip()))
        return span if span.start < span.end and not is_filler(kind, span.of(text)) else None
    found = trimmed(text, span, cut, kind=kind)
    if found is None:
        return None
    if kind == "query":
        words = found.of(text)
        lead, tail = _ANYTHING.match(words), _WHERE.search(words)
        lead = lead or _ABOUT.match(words)
        found = Span(found.start + (lead.end() if lead else 0), found.start + (tail.start() if tail else len(words)))
    if kind == "title" and (led := _LED.match(found.of(text))):
        found = Span(found.start + led.end(), found.end)
    if kind == "note" and _NAMED.match(found.of(text)):
        return None             # what a new note is called is not what it says
    if kind in {"reminder", "title"} and (duty := _DUTY.match(found.of(text))):
        found = Span(found.start + duty.end(), found.end)
    if kind == "reminder" and (again := _AGAIN.match(found.of(text))):
        found = Span(found.start + again.end(), found.end)
    if kind == "reminder" and (to := _TO.match(found.of(text))):
        found = Span(found.start + to.end(), found.end)
    if found.start >= found.end or asking_only(found.of(text)) or is_filler(kind, found.of(text)):
        return None
    return trimmed(text, found, cut, kind=kind)
