"""The words of a message: what follows the cue that opens them, or those who get it.

"Drop Sam a line saying X" has a cue; "text Sam X" has none, but a recipient, known or not, and a few words that lead
over. Must not know address books.
"""

import re
from collections.abc import Sequence

from node.agent.ports import Span
from node.agent.readers.courtesy import core
from node.agent.readers.phrases import phrase
from node.agent.readers.remains import is_filler, without_asides

__all__ = ["message"]

_ASKED = r"(?:please|can|could|would|will|you|just|hey|ok|and|i|want|need|like|to|let['’]?s|i['’]d)"
_RECIPIENT = re.compile(
    rf"^(?:\W*(?:{_ASKED}\b[\s,]*)*)(?:text|message|tell|ask|ping|notify|inform|msg|(?:send|write|drop|shoot|give"
    rf"|compose|start|create)"
    r"(?:\s+to|\s+(?:an?\s+)?(?:\w+\s+)?(?:text|message|note|line)(?:\s+message)?\s+(?:to|and\s+tell))?)\s+(?:(?:my"
    r"|the|our)\s+)?"
    r"(?!(?:an?|the|my|some|somebody|someone|something|anything|anyone|that|this|to|it|up|down|back|message|text"
    r"|out)\b)(?P<who>[^\W\d_][\w'’-]*)",
    re.IGNORECASE,
)
"""A command to write to somebody, and whom: one word, known or not."""
_TO_SOMEBODY = re.compile(r"(?<=\w)\s+to\s+(?:(?:my|the)\s+)?[^\W\d_][\w-]*\s*[.!]*$")
"""Who gets it, said last: "a text that says hi to Abby"."""
_BY_TEXT = re.compile(r"\s+(?:via|by|in|with|as)\s+(?:an?\s+)?(?:text|message|sms)\s*[.!]*$", re.IGNORECASE)
_SUBJECT = re.compile(r"(?:about|regarding|concerning)\s", re.IGNORECASE)
_OPENING = ("saying", "says", ":", "saying that", "says that", "know", "know that", "text")
_CORRECTION = re.compile(r"[\s,]*(?:no\s*,?\s*wait|wait\s*,?\s*no|no|sorry|i\s+mean|rather)[\s,]*", re.IGNORECASE)
_LIST_JOIN = re.compile(r"\s*(?:,|,?\s*and|&)\s*", re.IGNORECASE)
_LEAD_OVER = re.compile(
    r"\s*[,:–-]*\s*(?:(?:an?\s+text|an?\s+message)\s+)?(?:(?:for|from)\s+me\b)?\s*(?:know\b)?\s*(?:(?:an?|another"
    r"|this)\s+)?(?:(?:quick|short|little|new)\s+)?"
    r"(?:(?:text(?:\s+"
    r"message)?|txt|txet|"
    r"mes+age|msg|sms|note|line)\b)?\s*(?:,?\s*(?:and\s+)?(?:to\s+)?(?:say|tell\s+(?:him|her|them)|let\s+(?:him|her"
    r"|them)\s+"
    r"know|ask(?:\s+(?:him|her|them))?|saying|asking|telling\s+(?:him|her|them)|(?:that|which)\s+says|with\s+(?:the"
    r"|this)\s+"
    r"message|give\s+(?:him|her|them)\s+(?:the|this)\s+message)\b)?\s*[:,–-]*\s*(?:(?:that"
    r"|to)\b)?\s*[:,]?\s*",
    re.IGNORECASE,
)


def message(text: str, people: Sequence[Span]) -> Span | None:
    """The span of the words to send, or None. people: where contacts are named, in order."""
    inner = core(text)
    if inner.start or inner.end < len(text):
        ahead = [Span(one.start - inner.start, one.end - inner.start) for one in people if one.start >= inner.start]
        found = message(inner.of(text), ahead)
        return Span(found.start + inner.start, found.end + inner.start) if found else None
    found = phrase(text, "message", ())
    recipients = _end_of_recipients(text, people)
    if recipients is None and found is not None and (last := _TO_SOMEBODY.search(found.of(text))):
        return Span(found.start, found.start + last.start())
    if recipients is None or (found is not None and _opened(text, found)):
        return found
    lead = _LEAD_OVER.match(text, recipients)
    span = without_asides(text, Span(lead.end() if lead else recipients, len(text)), told=True)
    words = _BY_TEXT.sub("", span.of(text))
    rest = Span(span.start, span.start + len(words.rstrip()))
    if _SUBJECT.match(words):
        return None             # "message Sam about the picnic": what is to be said about it?
    if not is_filler("message", words):
        return rest
    return found if found is not None and found.end <= recipients else None


def _opened(text: str, span: Span) -> bool:
    """True when the words before span say that the message's own words begin there, or it stands before all else."""
    before = text[: span.start].rstrip().lower()
    return not before or before.endswith(_OPENING)


def _end_of_recipients(text: str, people: Sequence[Span]) -> int | None:
    """Where those who get it end: the word after the command, and the contacts that are listed or put right there."""
    command = _RECIPIENT.match(text)
    if command is not None:
        end = command.end("who")
    elif people:
        end = people[0].end
    else:
        return None
    for person in people:
        if person.start <= end <= person.end or (person.start >= end and (
            _LIST_JOIN.fullmatch(text, end, person.start) or _CORRECTION.fullmatch(text, end, person.start)
            or text[end : person.start].isspace()
        )):
            end = max(end, person.end)
    return end
