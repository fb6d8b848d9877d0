"""What a request is about, found by taking away all else: times, names of places to put it, and the words of asking.

The second way to free text, where no cue says where its words start ("Dress fitting, 11 April, 14:15, can that go in
the calendar?"): the request is cut into clauses, each loses the words of asking at its edges, and the first clause with
anything left is what is meant. Only tried where a word of the kind was said at all. Must not know tools or models.
"""

import re
from collections.abc import Mapping, Sequence

from node.agent.ports import Span
from node.agent.readers.numbers import fold

__all__ = ["asking_only", "is_filler", "remains", "without_asides"]

_FUNCTION = frozenset((
    "a", "an", "the", "this", "that", "these", "those", "my", "your", "our", "his", "her", "its", "their", "me",
    "you", "we", "us", "i", "it", "to", "of", "for", "in", "into", "on", "onto", "under", "at", "by", "from",
    "with", "about", "as", "and", "or", "but", "so", "then", "please", "kindly", "can", "could", "would", "will",
    "should", "might", "may", "must", "shall", "do", "does", "did", "be", "is", "are", "was", "have", "has", "had",
    "get", "got", "go", "going", "want", "need", "like", "let's", "let", "lets", "just", "now", "also", "right",
    "well", "ok", "okay", "hey", "hi", "hello", "kith", "there", "here", "somewhere", "anywhere", "some", "any",
    "one", "another", "new", "quick", "quickly", "short", "thanks", "thank", "cheers", "ta", "up", "down", "out",
    "off", "again", "later", "i'd", "i'll", "i've", "i'm", "you'll", "you'd", "you're", "whats", "what's", "too",
    "really", "ought", "able", "how", "sure", "if", "when", "whenever", "possible", "asap", "rn", "pls", "plz",
    "dear", "mate", "love", "kind", "mind", "minding", "help", "something", "anything", "someone", "somebody",
    "anyone", "bit", "little", "couple", "few", "more", "item", "items", "thing", "things", "stuff", "lines",
    "line", "particular", "certain", "whatever", "wanna", "gonna", "time", "while", "awhile", "myself", "gotta",
    "real", "before", "forget", "actually", "basically", "maybe", "perhaps", "them", "him", "they", "bits", "u",
    "ur", "wth",
))
"""Words that are no content at the edges of a clause."""
_GREETINGS = frozenset({"hi", "hello", "hey", "thanks", "thank", "cheers", "ok", "okay", "sure", "yes", "no", "love"})
"""Content where they are sent."""
_ASKING: Mapping[str, frozenset[str]] = {kind: frozenset(words.split()) for kind, words in {
    "title": "calendar diary schedule agenda planner entry entries event events slot time create make add put "
             "enter set "
             "book pencil block reserve plan arrange organise organize mark pop stick save record schedule insert "
             "appointment meeting called titled booked arranged go goes noted date happening hour hours minutes "
             "note shedule scedule",
    "reminder": "remind reminding reminds reminder reminders notify nudge alert ping buzz prompt tell shout set create "
                "make made give add put forget remember don't not memory jog drop let know sure see myself",
    "note": "dictate bits note notes list memo write jot put add append take save record log keep stick pop tack "
            "chuck throw "
            "include "
            "pencil get written remember self enter reminder make start goes belongs should ought need needs",
    "query": "search searching look looking find finding google check browse see run do go through over notes note web "
             "internet net online file files document documents mention mentions mentioned mentioning wrote written "
             "noted jotted information info contain contains word words have which where all across whether reading "
             "page site results read show get give entries everything",
    "message": "text message sms note line send sending write drop shoot give tell ask let know say saying says inform "
               "notify ping pass reply fire off him them quick short",
}.items()}
_SAID: Mapping[str, re.Pattern[str]] = {kind: re.compile(pattern) for kind, pattern in {
    "title": r"\b(?:s(?:ch|h|c)ed\w*|calendar|diary|agenda|planner|appointments?|meetings?|events?|book|pencil|"
             r"block\s+(?:out|off)|(?:add|put)\s+(?:it|that|this)|save\s+the\s+date)\b",
    "reminder": r"\b(?:remind\w*|notify|nudge|alert|ping|buzz|prompt|forget|remember|jog|shout)\b",
    "note": r"\b(?:notes?|list|memo|jot|write|written|log)\b",
    "query": r"\b(?:search\w*|google|look\w*|find|web|internet|online|notes?|grep)\b",
}.items()}
_COMPANY = re.compile(r"\bwith\b")
_MEETINGS = frozenset({"meeting", "appointment", "event", "slot"})
_ARTICLES = frozenset({"the", "a", "an", "my", "our", "his", "her", "their", "your"})
_KEEP_ARTICLE = frozenset({"note", "message"})
_CLAUSE_END = re.compile(r"[,;:!?\n]+(?=\s|$)|(?<!\bdr)(?<!\bmr)(?<!\bms)(?<!\bmrs)\.+(?=\s|$)|\s[-–—]+\s|…")
_ASIDE = re.compile(
    r"[\s,]*(?:(?:and|so|but|because|cos|since|or)\s+)?(?:i|i[’']\w+|we|we[’']\w+|it[’']s|there[’']s|he[’']?s?"
    r"|she[’']?s?|"
    r"they|"
    r"that[’']s|you\s+know|my|our)\b"
)
"""The beginning of a clause that tells something beside the request: "I'm off to bed"."""
_META = (
    r"(?:(?:and|so)\s+)?(?:please\s+)?(?:(?:can|could|would|will)\s+(?:you|that|it|this)\b|please\b|pls\b|thanks\b|"
    r"thank\s+you\b|cheers\b|ta\b|ok\b|okay\b|(?:find|put|get|add|write|note|save|send|show|read|do|pop|stick|log"
    r"|have)\s+"
    r"(?:it|that|this|them)\b|make\s+sure\b|don[’']?t\s+(?:forget|let)\b|if\s+(?:you|possible)\b|when\s+you\b|love\b|"
    r"dear\b|mate\b|quick(?:ly)?\b|asap\b|no\s+rush\b|would\s+be\s+(?:great|nice)\b|for\s+me\b|will\s+you\b|you\s+"
    r"know\b)"
)
_META_AFTER = re.compile(rf"\s*(?:[,;!?–—]|\.(?=\s)|\s-\s)\s*{_META}.*$", re.DOTALL)
_ASIDE_AFTER = re.compile(
    r"\s*(?:[,;!?–—]|(?<!\bdr)(?<!\bmr)\.(?=\s)|\s-\s)\s*(?:(?:and|so|but|because|cos|since|or|otherwise|before"
    r"|as)\s+)?"
    r"(?:i|i[’']\w+|we[’']\w+|it[’']s|there[’']s|he[’']s|she[’']s|they|that[’']s|you[’']re|my|our)\b.*$",
    re.DOTALL,
)


def is_filler(kind: str, words: str) -> bool:
    """True when words of this kind say nothing of their own: "a bit", "through my notes", "a message"."""
    asking = _ASKING.get(kind, frozenset())
    said = _words(words)
    if kind == "message" and _GREETINGS.intersection(said):
        return False
    return all(word in _FUNCTION or word in asking for word in said)


def asking_only(text: str) -> bool:
    """True when nothing but function words is in text."""
    return all(word in _FUNCTION for word in _words(text))


def without_asides(text: str, span: Span, *, told: bool) -> Span:
    """span without a clause at its end that only asks ("can you do that"), and, unless told, without one that tells
    something beside it ("I'd lose my head"). In a message or a note the telling is the content."""
    low = fold(span.of(text))
    for pattern in (_META_AFTER,) if told else (_META_AFTER, _ASIDE_AFTER):
        if (match := pattern.search(low)) and match.start() > 0:
            low = low[: match.start()]
    return Span(span.start, span.start + len(low))


def remains(text: str, kind: str, cut: Sequence[Span]) -> Span | None:
    """The first clause with content of its own, without the words of asking at its edges; None when the kind was not
    spoken of or nothing is left."""
    low = fold(text)
    company = _COMPANY.search(low) if kind == "title" else None
    if kind not in _SAID or not (company or _SAID[kind].search(low)):
        return None
    masked = list(low)
    for span in cut:
        masked[span.start : span.end] = " " * (span.end - span.start)
    found: list[tuple[bool, Span]] = []
    start = 0
    plain = "".join(masked)
    for end in [*(match.start() for match in _CLAUSE_END.finditer(plain)), len(plain)]:
        if (left := _stripped(plain, Span(start, end), kind)) is not None:
            found.append((_ASIDE.match(plain[start:end]) is not None, left))
        start = end
    found.sort(key=lambda one: one[0])          # what only tells something comes last
    return found[0][1] if found else None


def _stripped(plain: str, clause: Span, kind: str) -> Span | None:
    asking = _ASKING[kind]
    words = list(re.finditer(r"[^\W_]+(?:[-'’][^\W_]+)*", clause.of(plain)))
    edges = [word.group().replace("’", "'") in _FUNCTION or word.group() in asking for word in words]
    if all(edges):
        return None
    first = edges.index(False)
    last = len(edges) - 1 - edges[::-1].index(False)
    if kind == "title" and last + 1 < len(words) and words[last + 1].group() in _MEETINGS:
        last += 1           # "the staff meeting"
    end = clause.start + words[last].end()
    start = clause.start + words[first].start()
    if kind in _KEEP_ARTICLE and first and words[first - 1].group() in _ARTICLES:
        start = clause.start + words[first - 1].start()
    gap = re.search(r"\s{3,}" if kind != "title" else r"\s{3,}|\s+w(?:i?th|/)\s", plain[start:end])
    return Span(start, start + gap.start()) if gap else Span(start, end)


def _words(text: str) -> list[str]:
    return [word.replace("’", "'") for word in re.findall(r"[^\W_]+(?:[-'’][^\W_]+)*", fold(text))]
