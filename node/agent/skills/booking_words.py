"""Words that ask for a meeting, and words that ask for something else however much they speak of one.

Must not know calendars, nor how a request goes on.
"""

import re

from node.agent.choice import is_question, removes
from node.agent.ports import Span
from node.agent.readers.numbers import fold
from node.agent.slots import Reading

__all__ = ["BOOKING", "DICTATED", "names_all_of_a_meeting"]

BOOKING = re.compile(
    r"\b(?:book|schedule|set\s+up|arrange|organi[sz]e|meet|meeting|invite|find\s+(?:me\s+|us\s+)?(?:a|an|"
    r"some)\s+(?:slot|time|hour)|"
    r"need\s+\w+\s+for|(?:need|have|want)\s+to\s+(?:see|meet|talk\s+to|talk\s+with|speak\s+(?:to|with)|"
    r"sit\s+down\s+with)|put\s+in|set\s+aside|pencil|catch\s+up|appointment|call\s+with|lunch\s+with|dinner\s+with|"
    r"coffee\s+with)\b",
    re.IGNORECASE,
)
DICTATED = re.compile(
    r"^\s*(?:please\s+|(?:can|could|would|will)\s+you\s+(?:please\s+)?)?(?:note|write|jot|remember|remind|record|tell|"
    r"text|message|send|ping|e-?mail|let\s+(?!us\b|me\b).{1,40}?\bknow)\b", re.IGNORECASE)
"""Words to be written down or passed on, whatever they say about meetings."""
_LEAD = r"^\s*(?:(?:hi|hey|hello|kith|please|ok|okay|so|and|now)\b[\s,]*|(?:can|could|would|will)\s+you\s+)*"
_OTHER_WORK = re.compile(
    rf"{_LEAD}(?:remind|tell|text|message|send|write|note|jot|remember|record|ask|e-?mail|mail|ping|call|phone|ring|search|"
    r"google|look|show|read|list|open|let\s+(?!us\b|me\b)|move|translate|summari[sz]e|draft|answer|reply|work\s+out|"
    r"convert|calculate|set\s+(?:a|an|my)\s+(?:timer|alarm|reminder)|don[’']?t|do\s+not|add\s+.*\bnotes?\b|"
    r"put\s+.*\bnotes?\b)\b|\b(?:remind\s+me|let\s+\w+\s+know|message|saying\s+that)\b",
)
_WE_MAY = re.compile(rf"{_LEAD}(?:can|could|shall|should|may)\s+(?:we|i)\b")
_WITH = re.compile(r"\b(?:with|meet|see|need|invite|pencil|get|book|for|of)\s+(?:my\s+|the\s+)?$")
_AND_ME = re.compile(r"^\s*(?:,|and|&)\s*(?:i|me|myself)\b")


def names_all_of_a_meeting(reading: Reading) -> bool:
    """True when who, how long and when are all said in the way of a meeting, and no other work is: then nothing else
    can be meant. Removals and questions about what is there are none."""
    text, low = reading.text, fold(reading.text)
    spans = [*(one.span for one in reading.people.found), *(one.span for one in reading.people.unclear)]
    length = reading.when.length
    if not spans or length is None or length.minutes <= 0 or length.from_now or not reading.when.said:
        return False
    if removes(text) or _OTHER_WORK.search(low) or (is_question(text) and not _WE_MAY.search(low)):
        return False
    return BOOKING.search(text) is not None or any(_together(low, span) for span in spans)


def _together(low: str, span: Span) -> bool:
    """"with Dana", "Dana and I"."""
    return _WITH.search(low[: span.start]) is not None or _AND_ME.search(low[span.end :]) is not None
