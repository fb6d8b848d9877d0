"""People of the address book in the owner's words. Never a guess between two names.

An exact name or a name's own word counts, but never with another number ("pixel 9" is not "pixel 8"); one typo in a
capitalised word of four letters or more is only ever a question ("did you mean"); a capitalised stranger where a person
must stand ("with Zoe") is a question too. Must not know tools.
"""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from rapidfuzz.distance import OSA

from node.agent.ports import Span
from node.agent.readers.numbers import fold

__all__ = ["AddressBook", "People", "Person", "Unclear"]

_WORD = re.compile(r"[^\W\d_]+(?:[-'’][^\W\d_]+)*", re.UNICODE)
_PIECE = re.compile(r"\d+|[^\W\d_]+")
_GLUED = re.compile(r"(?:[-_.]?[^\W_]*\d[^\W_]*)+")
"""The rest of a word with digits: "pc-2", "node9b"."""
_NUMBER_AFTER = re.compile(r"[-_\s]?\d+(?!\w|[.:,]\d)")
_PARENTS = (
    frozenset({"mum", "mom", "mummy", "mommy", "mother", "mam", "mama"}),
    frozenset({"dad", "daddy", "father", "papa"}),
)
_TITLES = {"dr", "mr", "mrs", "ms", "prof", "sir"}
_NO_NAME = frozenset((
    "january", "february", "march", "april", "may", "june", "july", "august", "september", "october", "november",
    "december", "monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday", "mon", "tue", "wed",
    "thu", "fri", "sat", "sun", "today", "tomorrow", "tonight", "morning", "afternoon", "evening", "noon", "lunch",
    "i", "me", "my", "myself", "us", "we", "the", "a", "an", "and", "or", "please", "kith", "all", "everyone",
    "everybody", "someone", "somebody", "anyone", "everything", "next", "this",
))
_COMMON = frozenset((
    "will", "mark", "may", "april", "june", "august", "rose", "grace", "hope", "faith", "joy", "art", "bill", "sue",
    "pat", "rob", "drew", "dawn", "summer", "jack", "gene",
))
"""First names that are everyday words: taken only with a capital letter."""
_PERSON_PLACE = re.compile(
    r"\b(?:with|invite|inviting|meet|meeting|tell|text|message|ask|email|mail|ping|write\s+to|book|need|call|for|to|"
    r"of|let|from)\s+$",
)
_SURE_PLACE = re.compile(r"\b(?:with|invite|inviting|meet|tell|text|message|ask|ping|let)\s+(?:(?:my|the)\s+)?$")
_LIST_JOIN = re.compile(r"^\s*(?:,|,?\s*and|&|\+|,?\s*or)\s*$")
_TAKEN_BACK = re.compile(
    r"[\s,.…-]*(?:(?:no|oh|wait|sorry|actually|hang\s+on|or\s+rather|i\s+meant?|make\s+that|scratch\s+"
    r"that)[\s,.…-]*)+(?:to\s+)?"
)
_COMPANY_AFTER = re.compile(r"^\s+(?:street|road|airport|station|hotel|project|review|report|note|plan|budget)\b")


@dataclass(frozen=True, slots=True)
class Person:
    """One contact that is meant."""

    name: str
    """As the address book has it."""
    span: Span


@dataclass(frozen=True, slots=True)
class Unclear:
    """A word that stands for somebody, but whom?"""

    said: str
    span: Span
    candidates: tuple[str, ...]
    """Contacts it could be; empty for a stranger."""


@dataclass(frozen=True, slots=True)
class People:
    """Who was named."""

    found: tuple[Person, ...]
    unclear: tuple[Unclear, ...]

    @property
    def names(self) -> tuple[str, ...]:
        """The contacts, each once, in the order they were named."""
        return tuple(dict.fromkeys(person.name for person in self.found))


class AddressBook:
    """The names of all contacts, indexed by their words."""

    def __init__(self, names: Iterable[str]) -> None:
        """names: as the address book shows them; "Mum (Helen Marsh)" goes by each part."""
        self.names = tuple(names)
        self._by_word: dict[str, list[str]] = {}
        self._phrases: list[tuple[tuple[str, ...], str]] = []
        self._numbered: list[tuple[re.Pattern[str], str]] = []
        for name in self.names:
            for alias in (*_aliases(name), *_kin(name)):
                if any(map(str.isdigit, alias)) and any(map(str.isalpha, alias)):
                    self._numbered.append((_numbered(alias), name))
                words = tuple(fold(word) for word in _WORD.findall(alias))
                if len(words) > 1:
                    self._phrases.append((words, name))
                for word in words:
                    if word not in _TITLES and name not in self._by_word.setdefault(word, []):
                        self._by_word[word].append(name)
        self._phrases.sort(key=lambda phrase: -len(phrase[0]))
        self._numbered.sort(key=lambda one: -len(one[1]))

    def read(self, text: str, *, expected: bool = False, taken: Sequence[Span] = ()) -> People:
        """Everybody named in text. expected: text answers the question who, so every word of it may be a name. Words in
        taken spans (dates) are not looked at."""
        words = [_Token(match.group(), Span(*match.span())) for match in _WORD.finditer(text)]
        words = [token for word in words for token in word.without_possessive()]
        found: list[Person] = []
        unclear: list[Unclear] = []
        used: set[int] = {i for i, token in enumerate(words) if any(token.span.overlaps(span) for span in taken)}
        for shape, name in self._numbered:
            for match in shape.finditer(text):
                inside = {i for i, token in enumerate(words) if token.span.overlaps(Span(*match.span()))}
                if not used & inside:
                    used |= inside
                    found.append(Person(name, Span(*match.span())))
        for phrase, name in self._phrases:
            for index in range(len(words) - len(phrase) + 1):
                run = range(index, index + len(phrase))
                if not used.intersection(run) and all(words[i].low == phrase[i - index] for i in run):
                    used.update(run)
                    found.append(Person(name, Span(words[index].span.start, words[index + len(phrase) - 1].span.end)))
        for index, token in enumerate(words):
            if index in used or token.low in _NO_NAME or token.low in _TITLES:
                continue
            known = self._by_word.get(token.low, [])
            if known and not (token.low in _COMMON and not token.capital):
                other = self._other_number(text, token, known)
                if other is not None:
                    unclear.append(_unclear(text, other, tuple(known)))
                elif len(known) == 1:
                    found.append(Person(known[0], token.span))
                else:
                    unclear.append(_unclear(text, token.span, tuple(known)))
                used.add(index)
        named = [person.span for person in found] + [item.span for item in unclear]
        for index, token in enumerate(words):
            if index not in used and (item := self._stranger(text, token, named, expected=expected)):
                unclear.append(item)
                named.append(item.span)
        found = _meant(text, sorted(found, key=lambda p: p.span))
        return People(tuple(found), tuple(sorted(unclear, key=lambda u: u.span)))

    def _stranger(self, text: str, token: "_Token", named: Sequence[Span], *, expected: bool) -> Unclear | None:
        """A capitalised word that is nobody's name, where only a person can stand."""
        if (not token.capital and not expected) or token.low in _NO_NAME or len(token.text) < 2:
            return None
        before, after = fold(text[: token.span.start]), fold(text[token.span.end :])
        start = token.span.start
        listed = any(span.end <= start and _LIST_JOIN.match(text[span.end : start]) for span in named)
        close = self._close(token.low) if len(token.low) >= 3 else ()
        first_word = not before.strip()
        owning = re.match(r"[’']s\b", after) is not None
        if close and (owning or not first_word) and (owning or listed or expected or _PERSON_PLACE.search(before)):
            return _unclear(text, token.span, close)
        if _COMPANY_AFTER.match(after):
            return None
        if listed or expected or _SURE_PLACE.search(before):
            return _unclear(text, token.span, close)
        return None

    def _other_number(self, text: str, token: "_Token", known: Sequence[str]) -> Span | None:
        """The word and the number behind it, where a number belongs to all of these names: it is none of theirs."""
        after = _NUMBER_AFTER.match(text, token.span.end)
        numbered = {name for _, name in self._numbered}
        return Span(token.span.start, after.end()) if after and numbered.issuperset(known) else None

    def _close(self, low: str) -> tuple[str, ...]:
        """Contacts one typo away (insert, delete, change or swap of one letter)."""
        names = [name for word, owners in self._by_word.items()
                 if len(word) >= 3 and OSA.distance(word, low, score_cutoff=1) <= 1
                 for name in owners]
        return tuple(dict.fromkeys(names))


@dataclass(frozen=True, slots=True)
class _Token:
    text: str
    span: Span

    @property
    def low(self) -> str:
        return fold(self.text)

    @property
    def capital(self) -> bool:
        return self.text[:1].isupper()

    def without_possessive(self) -> "list[_Token]":
        for ending in ("'s", "’s"):
            if self.text.endswith(ending) and len(self.text) > 2:
                return [_Token(self.text[:-2], Span(self.span.start, self.span.end - 2))]
        return [self]


def _unclear(text: str, span: Span, candidates: tuple[str, ...]) -> Unclear:
    """As it was said, with the digits that are part of the word."""
    rest = _GLUED.match(text, span.end)
    whole = Span(span.start, rest.end()) if rest else span
    return Unclear(whole.of(text), whole, candidates)


def _numbered(alias: str) -> "re.Pattern[str]":
    """A name with digits in it, however its parts are joined: "pc-2", "pc 2", "PC2"."""
    joined = r"[\s_.'’-]*".join(map(re.escape, _PIECE.findall(alias)))
    return re.compile(rf"(?<![^\W_]){joined}(?![^\W_]|[.:,]\d)", re.IGNORECASE)


def _meant(text: str, found: list[Person]) -> list[Person]:
    """Without those that the speaker took back: "Ravi, wait no, Priya" is Priya."""
    return [
        person for number, person in enumerate(found)
        if not any(
            _TAKEN_BACK.fullmatch(fold(text[person.span.end : later.span.start])) for later in found[number + 1 :]
        )
    ]


def _kin(name: str) -> list[str]:
    """Other words for a parent whom the address book has by such a word: "mom" for Mum."""
    own = {fold(word) for alias in _aliases(name) for word in _WORD.findall(alias)}
    return [word for group in _PARENTS if own & group for word in sorted(group - own)]


def _aliases(name: str) -> list[str]:
    inner = re.findall(r"\(([^)]*)\)", name)
    outer = re.sub(r"\([^)]*\)", " ", name).strip()
    return [alias for alias in (outer, *inner) if alias]
