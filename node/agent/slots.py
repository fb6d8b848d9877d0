"""Slots: which argument of which tool is said in a request, read by code, each value with where it came from.

A request is read once; every tool's arguments are then taken from that reading. What a required argument lacks is
named, so that exactly this can be asked. Must not know vectors, gates, models or approvals.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime

from node.agent.ports import Interval, Origin, Span
from node.agent.readers.closed import on_off_or_number, pick
from node.agent.readers.messages import message
from node.agent.readers.people import AddressBook, People, Unclear
from node.agent.readers.phrases import phrase, quoted, trimmed
from node.agent.readers.places import place as place_of
from node.agent.readers.quantities import conversion, evaluate, expression
from node.agent.readers.second_opinion import said_again
from node.agent.readers.windows import Locale, When, read_when
from node.agent.tools.registry import ArgValue, Param, ToolSpec

__all__ = ["Filled", "Reading", "SlotReader", "SlotValue", "show_interval", "show_moment", "text_kind"]


@dataclass(frozen=True, slots=True)
class SlotValue:
    """One argument."""

    value: ArgValue
    shown: str
    origin: Origin
    source: str
    span: Span | None = None
    alternatives: tuple[str, ...] = ()
    certain: bool = False
    """True for quoted words and exact names: nothing to compare."""


@dataclass(frozen=True, slots=True)
class Reading:
    """One request, read."""

    text: str
    now: datetime
    when: When
    people: People

    @property
    def understood(self) -> tuple[Span, ...]:
        """The spans that are taken by times and lengths."""
        return self.when.spans


@dataclass(frozen=True, slots=True)
class Filled:
    """A tool's arguments as far as the request gives them."""

    values: Mapping[str, SlotValue]
    missing: tuple[str, ...] = ()
    """Required arguments without a value, in the tool's order."""
    unclear: tuple[Unclear, ...] = ()
    """People who must be asked about before anything runs."""
    offered: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """For a missing closed choice: what it can be."""

    def evidence(self, spec: ToolSpec) -> float:
        """The share of the required arguments that was said: a name that is not clear yet was said, too."""
        if not spec.required:
            return 0.0
        said = len(spec.required) - len(self.missing)
        return min(1.0, (said + bool(self.unclear and self.missing)) / len(spec.required))


def text_kind(tool: str, param: str) -> str | None:
    """Which kind of free text a parameter holds: title, reminder, message, note or query; None when no reader
    knows it."""
    if param in {"query", "words", "title", "name"}:
        return {"words": "query", "name": "title"}.get(param, param)
    if param != "text":
        return None
    if "remind" in tool:
        return "reminder"
    return "message" if "message" in tool or "send" in tool else "note"


def show_moment(moment: datetime, locale: Locale) -> str:
    """A moment as the owner reads it, in the owner's zone."""
    local = moment.astimezone(locale.zone)
    return f"{local:%a} {local.day} {local:%B %Y, %H:%M}"


def show_interval(interval: Interval, locale: Locale) -> str:
    """An interval as the owner reads it."""
    start, end = (edge.astimezone(locale.zone) for edge in interval)
    if start.date() == end.date():
        return f"{show_moment(start, locale)}-{end:%H:%M}"
    return f"{show_moment(start, locale)} to {show_moment(end, locale)}"


class SlotReader:
    """Reads requests for one owner: their address book, zone and way of writing dates."""

    def __init__(self, book: AddressBook, locale: Locale) -> None:
        self.book = book
        self.locale = locale

    def read(self, text: str, now: datetime, *, names_expected: bool = False) -> Reading:
        """Everything the readers understand in text, once."""
        when = read_when(text, now, self.locale)
        return Reading(text, now, when, self.book.read(text, expected=names_expected, taken=when.spans))

    def fill(self, spec: ToolSpec, reading: Reading, choices: Mapping[str, Sequence[str]]) -> Filled:
        """The arguments of spec in reading. choices: the living values of closed parameters, by name."""
        values: dict[str, SlotValue] = {}
        offered: dict[str, tuple[str, ...]] = {}
        contacts = False
        place: Span | None = None           # where a text is to be put is no part of the text
        for name, param in sorted(spec.params.items(), key=lambda item: item[1].reads == "text"):
            allowed = param.choices or tuple(choices.get(name, ()))
            contacts = contacts or self._are_contacts(param, allowed)
            found = self._value(spec, name, param, allowed, reading, place)
            if found and param.reads == "choice":
                place = found.span
            if found:
                values[name] = found
            elif param.reads == "choice" and allowed:
                offered[name] = tuple(allowed)
        values = {name: values[name] for name in spec.params if name in values}
        self._apart(spec, values)
        missing = tuple(name for name in spec.required if name not in values)
        takes_names = contacts or any(param.reads == "names" for param in spec.params.values())
        return Filled(values, missing, reading.people.unclear if takes_names else (), offered)

    def expected(
        self, spec: ToolSpec, name: str, text: str, now: datetime, choices: Sequence[str], *,
        earlier: When | None = None,
    ) -> SlotValue | People | None:
        """The value of one argument in the answer to a question for exactly it. People when a name is still unclear.
        earlier: what the request itself said about when; the answer adds to it."""
        param = spec.params[name]
        reading = self.read(text, now)
        again = self.date_again(text, now) if param.reads in _TIMES and not reading.when.said else None
        if again is not None:
            reading = self.read(again, now)
        if earlier is not None and reading.when.said:
            reading = replace(reading, when=reading.when.over(earlier))
        named = param.reads == "names" or self._are_contacts(param, choices)
        if named:
            reading = self.read(text, now, names_expected=True)
        if named and reading.people.unclear:
            return reading.people
        if param.reads == "text" and name not in _READ_BY_CODE:
            marks = quoted(text)
            span = marks[0] if marks else trimmed(text, Span(0, len(text)))
            return _text_value(text, span, Origin.CHOSEN) if span else None
        value = self._value(spec, name, param, param.choices or tuple(choices), reading)
        if value is not None and again is not None:
            return replace(value, span=None, source=f'your words: "{text.strip()}", read as {again}')
        return value

    def dates_at(self, now: datetime) -> Callable[[str], str | None]:
        """date_again at this moment."""
        return lambda text: self.date_again(text, now)

    def date_again(self, text: str, now: datetime) -> str | None:
        """A date that the own grammar does not read, said as it does; None when text is no date at all."""
        return said_again(text, now, self.locale.zone, day_first=self.locale.day_first)

    def _value(
        self, spec: ToolSpec, name: str, param: Param, allowed: Sequence[str], reading: Reading,
        place: Span | None = None,
    ) -> SlotValue | None:
        match param.reads:
            case "window":
                return self._window(reading)
            case "moment":
                return self._moment(reading, strict=name == "start")
            case "minutes":
                return _minutes(reading, windowed=any(one.reads == "window" for one in spec.params.values()))
            case "names":
                return _names(reading, guests=name == "attendees")
            case "choice":
                if self._are_contacts(param, allowed):
                    return _contact(reading)
                return _choice(allowed, reading, parts=spec.kind == "read" or name in spec.required)
            case "place":
                span = place_of(reading.text)
                return _text_value(reading.text, span) if span else None
            case "text":
                return _text(spec, name, reading, place)

    def _window(self, reading: Reading) -> SlotValue | None:
        periods = reading.when.periods(reading.now)
        if not periods:
            return None
        shown = ", ".join(show_interval(period, self.locale) for period in periods[:3])
        return SlotValue(
            periods[0] if len(periods) == 1 else periods, shown + (", ..." if len(periods) > 3 else ""),
            Origin.REQUEST, _quote_spans(reading), _first(reading),
        )

    def _moment(self, reading: Reading, *, strict: bool) -> SlotValue | None:
        when = reading.when
        moment = when.start(reading.now) if strict else when.rough_start(reading.now)
        if moment is None:
            return None
        shown, source = show_moment(moment, self.locale), _quote_spans(reading)
        if when.start(reading.now) is None and when.day_from_min is None:
            source += ", the hour is assumed"
        return SlotValue(moment, shown, Origin.REQUEST, source, _first(reading))

    def _are_contacts(self, param: Param, allowed: Sequence[str]) -> bool:
        """True for a closed choice among the people of the address book: names have rules of their own."""
        return param.reads == "choice" and bool(allowed) and set(allowed) <= set(self.book.names)

    @staticmethod
    def _apart(spec: ToolSpec, values: dict[str, SlotValue]) -> None:
        """Two arguments never share words: a title that stands inside the text to write is no title."""
        text, title = values.get("text"), values.get("title")
        if text and title and text.span and title.span and text.span.overlaps(title.span):
            del values["title" if "text" in spec.required else "text"]


_TIMES = frozenset({"window", "moment"})
_READ_BY_CODE = frozenset({"expression", "value", "from_unit", "to_unit"})


def _quote_spans(reading: Reading) -> str:
    said = ", ".join(f'"{span.of(reading.text)}"' for span in reading.when.spans)
    return f"your words: {said}"


def _first(reading: Reading) -> Span | None:
    return reading.when.spans[0] if reading.when.spans else None


def _minutes(reading: Reading, *, windowed: bool) -> SlotValue | None:
    """windowed: a range of time is where to look, and no length."""
    when = reading.when
    if when.length and when.length.minutes > 0:
        words = when.length.span.of(reading.text)
        return SlotValue(
            when.length.minutes, f"{when.length.minutes} mi"
                                 f"n", Origin.REQUEST, f'your words: "{words}"', when.length.span,
        )
    if when.end_min is not None and when.fixed_min is not None and not windowed:
        minutes = when.end_min - when.fixed_min
        return SlotValue(minutes, f"{minutes} min", Origin.REQUEST, _quote_spans(reading), _first(reading))
    return None


def _names(reading: Reading, *, guests: bool) -> SlotValue | None:
    """guests: whoever only owns something ("Mum's birthday") is not invited to it."""
    found = [
        person for person in reading.people.found if not (guests and _OWNING.match(reading.text, person.span.end))
    ]
    names = tuple(dict.fromkeys(person.name for person in found))
    if not names:
        return None
    said = ", ".join(f'"{person.span.of(reading.text)}"' for person in found)
    return SlotValue(names, ", ".join(names), Origin.SOURCE, f"address book, for your words: {said}", found[0].span)


_OWNING = re.compile(r"[’']s?\b")


def _contact(reading: Reading) -> SlotValue | None:
    if not reading.people.found:
        return None
    person = reading.people.found[0]
    source = f'address book, for your words: "{person.span.of(reading.text)}"'
    return SlotValue(person.name, person.name, Origin.SOURCE, source, person.span, certain=True)


_BESIDE_NOUN = re.compile(r"[’']?s?\s+(?:note|list|file|folder|document)\b", re.IGNORECASE)


def _choice(allowed: Sequence[str], reading: Reading, *, parts: bool) -> SlotValue | None:
    found = pick(reading.text, allowed, parts=parts)
    if not found and not parts:     # of a name that is optional, one word counts beside its noun: "the budget note"
        found = pick(reading.text, allowed)
        if found and not _BESIDE_NOUN.match(reading.text, found.span.end):
            found = None
    if not found:
        return None
    words = found.span.of(reading.text)
    return SlotValue(
        found.value, found.value, Origin.REQUEST, f'your words: "{words}'
            f'"', found.span, found.others, certain=found.exact,
    )


def _text(spec: ToolSpec, name: str, reading: Reading, place: Span | None) -> SlotValue | None:
    text = reading.text
    if name == "expression":
        read = expression(text)
        result = evaluate(read.code) if read else None
        return _coded(text, read.code, read.said) if read and result is not None else None
    if name in {"value", "from_unit", "to_unit"} and "to_unit" in spec.params:
        said = conversion(text)
        part = {"value": said.amount, "from_unit": said.source, "to_unit": said.target}[name]
        return _coded(text, *part) if part else None
    if name == "value":
        found = on_off_or_number(text)
        return _coded(text, found.value, found.span) if found else None
    marks = quoted(text)
    kind = text_kind(spec.name, name)
    if kind is None:
        return None
    if kind == "message" and not marks:
        span = message(text, [person.span for person in reading.people.found])
    else:
        span = phrase(text, kind, reading.understood, place)
    return _text_value(text, span, certain=bool(marks) and span == marks[0]) if span else None


def _coded(text: str, value: str, span: Span) -> SlotValue:
    return SlotValue(value, value, Origin.REQUEST, f'your words: "{span.of(text)}"', span, certain=True)


def _text_value(text: str, span: Span, origin: Origin = Origin.REQUEST, *, certain: bool = False) -> SlotValue:
    words = span.of(text)
    source = "your answer" if origin is Origin.CHOSEN else f'your words: "{words}"'
    return SlotValue(words, words, origin, source, span, certain=certain or origin is Origin.CHOSEN)
