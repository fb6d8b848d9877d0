"""What a message means in the light of the ones before it: two goals in one, a correction, "her number", "undo that".

Words in, words out; decides nothing and runs nothing. Must not know tools' work, approvals or stores.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from node.agent.drafts import Draft
from node.agent.ports import Json, Span, TurnRecord
from node.agent.readers.dates import days
from node.agent.readers.day_words import NAMED_DAY
from node.agent.readers.people import AddressBook
from node.agent.readers.windows import Locale, When, read_when
from node.agent.slots import Reading, SlotReader
from node.agent.tools.registry import ToolSpec

__all__ = [
    "LastCall", "corrected_slot", "correction", "in_its_week", "last_call", "last_person", "leans", "nothing_else",
    "only_refused", "rewritten", "split_goals", "wants_undo", "when_of", "with_name",
]

_UNDO = re.compile(
    r"^\s*(?:please\s+|oh\s+|no,?\s+)*(?:undo(?:\s+(?:that|it|this|the\s+last(?:\s+\w+)?))?|"
    r"take\s+(?:that|it|this)\s+back|revert(?:\s+(?:that|it|this))?)\s*[.!]?\s*$", re.IGNORECASE,
)
_CORRECTION = re.compile(
    r"^\s*(?:(?:no|nope|oops|sorry|wait|actually|hmm|ah)\b[,.! ]*)+(?:(?:i\s+(?:meant?|said)|make\s+(?:it|that)|"
    r"change\s+(?:it|that)\s+to|it\s+should\s+be|rather)\s+)?(?:to\s+)?(?P<a>.+?)(?:\s+instead|,?\s+please)?\s*[.!]?\s*$"
    r"|^\s*(?:i\s+(?:meant?|said)|make\s+(?:it|that)|change\s+(?:it|that)\s+to|better|rather)\s+(?P<b>.+?)"
    r"(?:\s+instead|,?\s+please)?\s*[.!]?\s*$", re.IGNORECASE | re.DOTALL,
)
_A_DAY = rf"(?:on\s+)?(?:(?:next|this)\s+)?(?:{NAMED_DAY}|today\b|tomorrow\b)"
_NOT_THAT_DAY = re.compile(
    rf"^\s*(?:no\b[,.! ]*)?(?:not\s+{_A_DAY}[,; ]*(?:but\s+)?(?P<a>\w.*?)|(?P<b>{_A_DAY}),?\s+not\s+{_A_DAY}|"
    rf"(?P<c>{_A_DAY})\s+instead)\s*[.!]?\s*$", re.IGNORECASE,
)
"""Not Monday, Tuesday."""
_ONLY_NOT = re.compile(
    r"^\s*(?:(?:oh|sorry|wait)\b[,.! ]*)*(?:(?:no|nope)\b[,.! ]*)+not\s+(?:(?!\b(?:but|rather|instead)\b)[^,;:])+$",
    re.IGNORECASE)
_SMALL = re.compile(r"\b(?:on|at|the|with|for|and|of|by|it|is|should|be|instead|please)\b|[\s,.!]+", re.IGNORECASE)
_TO = re.compile(r"^\s*(?:to|with|for)\s+", re.IGNORECASE)
_THIS = re.compile(r"\b(?:this|coming)\b", re.IGNORECASE)
_SHIFT = re.compile(
    r"\b(?:hours?|minutes?|mins?|days?|weeks?|bit|little)\s+(?:earlier|later|sooner)\s*[.!]?\s*$", re.IGNORECASE,
)
"""How far something is to be moved is neither its time nor its length."""
_VERB = (
    r"(?:remind|tell|message|text|send|write|add|book|schedule|put|set|read|find|show|list|note|jot|look|search|let|cancel|"
    r"what|when|who|which|am\s+i|do\s+i|is\s+there|give|create|make\s+a|take\s+a)\b"
)
_JOINT = re.compile(
    rf"\s*(?:;\s*(?:and\s+|then\s+)?|[.!?]\s+(?:and\s+|then\s+|also\s+)?|,?\s+and\s+(?:then\s+|also\s+)?|,\s*then\s+)"
    rf"(?={_VERB})",
    re.IGNORECASE,
)
_OF_SOMEBODY = re.compile(
    r"\b(?P<word>her|his|their)\s+(?=(?:(?:phone|mobile|home|work|e-?mail|mail)\s+)*(?:number|phone|mobile|e-?mail|mail|"
    r"address|birthday|calendar))", re.IGNORECASE,
)
_SOMEBODY = re.compile(
    r"\b(?P<lead>(?:tell|message|text|ask|call|phone|meet|meeting|with|to|invite|reach|write|email)\s+)"
    r"(?P<word>her|him|them)\b",
    re.IGNORECASE,
)
_LEANS = re.compile(
    r"\b(?:it|them|him|her|his|their|(?:about|of|with|send|to|note|forward)\s+(?:that|this|those|these)|the\s+same)\b|"
    r"\bthen\s*[.!?]?$", re.IGNORECASE,
)
MOST_GOALS = 3


@dataclass(frozen=True, slots=True)
class LastCall:
    """The call that the last answer came from. key: of the write it made; empty when it wrote nothing."""

    draft: Draft
    key: str


def wants_undo(text: str) -> bool:
    """Whether the message takes back the last write, and nothing else."""
    return _UNDO.match(text) is not None


def split_goals(text: str) -> tuple[str, ...]:
    """The requests in one message, in their order; the message alone where it is one."""
    parts, begin = [], 0
    for match in _JOINT.finditer(text):
        parts.append(text[begin : match.start()].strip())
        begin = match.end()
    parts.append(text[begin:].strip())
    good = 1 < len(parts) <= MOST_GOALS and all(len(part.split()) >= 2 for part in parts)
    return tuple(parts) if good else (text,)


def leans(part: str) -> bool:
    """Whether a request speaks of what another one in the same message is about ("and send it to Priya")."""
    return _LEANS.search(part) is not None


def correction(text: str) -> str | None:
    """The words that replace something said before ("no, Tuesday", "make it an hour"); None for another message, also
    for "make it an hour later"."""
    if match := _NOT_THAT_DAY.match(text):
        return (match["a"] or match["b"] or match["c"]).strip()
    match = _CORRECTION.match(text)
    if match is None or _SHIFT.search(text) or only_refused(text):
        return None
    return (match.group("a") or match.group("b") or "").strip() or None


def only_refused(text: str) -> bool:
    """Whether the message says what was wrong, and not what is right: "no, not Dana"."""
    return _ONLY_NOT.match(text) is not None and _NOT_THAT_DAY.match(text) is None


def nothing_else(said: Reading) -> bool:
    """Whether the words are times, lengths and people throughout: no part of a text to write."""
    spans = [*said.when.spans, *(one.span for one in said.people.found)]
    spans += [one.span for one in said.people.unclear if one.candidates]
    rest = "".join(
        " " if any(span.start <= at < span.end for span in spans) else letter for at, letter in enumerate(said.text))
    return bool(spans) and not _SMALL.sub("", rest)


def in_its_week(words: str, corrected: When, now: datetime, read_at: datetime, locale: Locale) -> str:
    """The words of a correction, said at now, as they are to be read at read_at: a bare weekday is meant in the week of
    the day it corrects, unless that is over. "Tuesday" for "next Monday" is the Tuesday after."""
    today = now.astimezone(locale.zone).date()
    bare = [day for day in days(words, today, day_first=locale.day_first) if day.weekday is not None]
    weeks = {edge - timedelta(days=edge.weekday()) for first, after in corrected.windows
             for edge in (first, after - timedelta(days=1))}
    if len(bare) != 1 or bare[0].anchored or bare[0].weekday is None or _THIS.search(words):
        return words
    wanted = bare[0].first
    if len(weeks) == 1 and (there := weeks.pop() + timedelta(days=bare[0].weekday)) >= today:
        wanted = there
    at = bare[0].span.end - len(bare[0].span.of(words).split()[-1])
    dated = f"{words[: bare[0].span.end]} {wanted.day} {wanted:%B %Y}{words[bare[0].span.end :]}"
    said = (words, f"{words[:at]}next {words[at:]}", dated)
    window = ((wanted, wanted + timedelta(days=1)),)
    return next((one for one in said if read_when(one, read_at, locale).windows == window), words)


def last_call(history: Sequence[TurnRecord]) -> LastCall | None:
    """What the newest answer called, when it is known and nothing was said since."""
    for turn in reversed(history):
        if turn.role != "assistant":
            continue
        stored = turn.detail.get("call")
        if not isinstance(stored, Mapping) or not isinstance(stored.get("draft"), Mapping):
            return None
        draft = Draft.from_json(_mapping(stored["draft"]))
        return LastCall(draft, str(stored.get("key", ""))) if draft else None
    return None


def corrected_slot(spec: ToolSpec, said: Reading) -> str | None:
    """Which argument of a tool a correction is about: the one that its words can fill."""
    of_kind: dict[str, str] = {param.reads: name for name, param in reversed(list(spec.params.items()))}
    if said.when.said and (slot := of_kind.get("moment") or of_kind.get("window")):
        return slot
    if said.when.length is not None and "minutes" in of_kind:
        return of_kind["minutes"]
    if (said.people.found or said.people.unclear) and (slot := of_kind.get("names") or of_kind.get("choice")):
        return slot
    return of_kind.get("text") or of_kind.get("choice")


def rewritten(before: Reading, said: Reading, *, added: bool = True) -> str | None:
    """The earlier request with what the correction says in place of what it said of the same kind: a day for a day, a
    time for a time, a length, people. None when the correction is about nothing that was read there.
    added: also when there was nothing of its kind to replace."""
    new = said.when
    dated = bool(new.windows or new.moment)
    times = new.fixed_min is not None or new.day_from_min is not None or new.moment is not None
    people = bool(said.people.found or said.people.unclear)
    if not (dated or times or new.length is not None or people):
        return None
    gone: list[Span] = []
    for span in before.when.spans:
        old = read_when(span.of(before.text), before.now, Locale(before.when.zone))
        timed = old.fixed_min is not None or old.day_from_min is not None
        lengths = new.length is not None and old.length is not None
        if (dated and old.windows) or (times and timed) or (old.moment and (dated or times)) or lengths:
            gone.append(span)
    if people:
        gone += [person.span for person in before.people.found]
        gone += [stranger.span for stranger in before.people.unclear]
    if not gone and not added:
        return None
    if len(gone) == 1 and people and not (dated or times or new.length):
        return f"{before.text[: gone[0].start]}{_TO.sub('', said.text)}{before.text[gone[0].end :]}"
    if len(gone) == 1 and not people:
        return f"{before.text[: gone[0].start]}{said.text}{before.text[gone[0].end :]}"
    text, at = "", 0
    for span in sorted(gone):
        text, at = text + before.text[at : span.start].rstrip(" "), max(at, span.end)
    kept = (text + before.text[at:]).strip(" ,.")
    joint = "" if dated or times else "with " if people else "for "
    return f"{kept} {joint}{said.text}"


def when_of(reader: SlotReader, draft: Draft) -> When:
    """What the draft's words say about time, with what was answered since over it."""
    when = reader.read(draft.text, draft.said_at).when
    for one in draft.given:
        said = reader.read(one.text, one.said_at).when
        when = said.over(when) if said.said else when
    return when


def last_person(history: Sequence[TurnRecord], book: AddressBook) -> str | None:
    """The contact spoken of last, when it was one alone in that message."""
    for turn in reversed(history):
        names = book.read(turn.text.value, expected=False, taken=()).names if turn.role == "user" else ()
        if names:
            return names[0] if len(names) == 1 else None
    return None


def with_name(text: str, name: str | None) -> str:
    """The message with "her number" or "tell him" naming the person; as it is when nobody is known."""
    if name is None:
        return text
    if match := _OF_SOMEBODY.search(text):
        return f"{text[: match.start()]}{name}'s {text[match.end() :]}"
    if match := _SOMEBODY.search(text):
        return f"{text[: match.start('word')]}{name}{text[match.end('word') :]}"
    return text


def _mapping(value: Json) -> Mapping[str, Json]:
    assert isinstance(value, Mapping)
    return value
