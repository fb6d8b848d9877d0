"""The second net: every value of the owner's contacts and calendar, found in a text however it is spelled.

Two automata over the folded text (words, and everything squeezed together) plus digit groups for phone numbers plus one
typing error in long names. A miss is a leak and a false hit only a placeholder, so it leans to finding; names that are
everyday words need a second signal. Cost is linear: about a million characters a second without hits.
Must not know labels, peers, placeholders or where the values come from.
"""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import ahocorasick

from node.privacy.escapes import readings
from node.privacy.near_names import NearNames
from node.privacy.normalise import Folded, fold, fold_word, squeeze
from node.privacy.word_names import DATE_CUES, EVERYDAY, KINDS_OF_PLACE, MONTHS, STRONG_CUES, VERBS_AFTER, WEAK_CUES
from node.privacy.written_names import TITLES

__all__ = ["Hit", "Vault"]

# In a text, letters or digits with separators that may be a phone number or another long number.
_NUMBER = re.compile(r"\d(?:[\s().\-/\u2010-\u2015\u00a0\u200b]{0,3}\d){5,24}")
_TRUNK = re.compile(r"\((0)\)")     # +386 (0)41 ...: dialled at home only, no part of the number
_SHORTEST_NUMBER = 7        # digits; shorter numbers are dates, years and prices
_SHORTEST_DIGITS = 4        # of a value that is a number only; also makes a long value safe to find inside a word
_SHORTEST_PART = 3          # letters of a name part
_SHORTEST_PLACE = 4         # letters of a word of an address or a company
_SHORTEST_SQUEEZED = 7      # characters of a value that is also looked for without its separators
_NAME_TYPES = frozenset({"PERSON", "ORG", "ADDRESS", "PLACE"})
_TWO_LETTERS = str.maketrans({"ä": "ae", "ö": "oe", "ü": "ue", "Ä": "Ae", "Ö": "Oe", "Ü": "Ue", "å": "aa", "Å": "Aa",
                              "ø": "oe", "Ø": "Oe"})
_CONTEXT = 40               # characters looked at on each side for a second signal
_ISO_DATE = re.compile(r"(?P<year>\d{4})-?(?P<month>\d{2})-?(?P<day>\d{2})")
_MONTH_NAMES = ("january", "february", "march", "april", "may", "june", "july", "august", "september", "october",
                "november", "december")
_COMMON = EVERYDAY | KINDS_OF_PLACE
_SHORTEST_GLUED = 9         # characters of several joined words that count in the middle of a longer word, too
_WHOLE = -1


@dataclass(frozen=True, slots=True)
class Hit:
    """One found span [start, end) of the original text and the type of the value behind it."""

    start: int
    end: int
    type: str


@dataclass(frozen=True, slots=True)
class _Pattern:
    """What a word of the automaton means."""

    length: int
    type: str
    part_of: int        # number of the value it is a part of, -1 for a whole value
    everyday: bool      # also an ordinary word: needs a second signal
    glued: bool         # may stand directly beside letters (long values, values with digits)


class Vault:
    """An immutable set of values. Build a new one when the owner's data changes."""

    def __init__(
        self, values: Iterable[tuple[str, str]], *, strict: bool = False, doubtful: Iterable[tuple[str, str]] = (),
    ) -> None:
        """values: (text, type). strict: every value counts whatever its words (what a tool returned just now).

        doubtful: more values, of which single words need a second signal (what a detector took for personal).
        """
        self._doubting = False
        self._words: dict[str, _Pattern] = {}
        self._squeezed: dict[str, _Pattern] = {}
        self._numbers: dict[str, list[tuple[str, str]]] = {}    # last 7 digits -> [(all but leading zeros, type)]
        self._near = NearNames()
        self._strict = strict
        self._count = 0
        for text, type_ in values:
            self._add(text, type_)
        self._strict, self._doubting = False, True
        for text, type_ in doubtful:
            self._add(text, type_)
        self._word_automaton = _automaton(self._words)
        self._squeezed_automaton = _automaton(self._squeezed)

    def __len__(self) -> int:
        """Values taken in (those too short to be looked for are left out)."""
        return self._count

    def find(self, text: str) -> list[Hit]:
        """Every hit, in order of start, overlapping ones merged. Positions are of the original text."""
        if not self._count or not text:
            return []
        spans = self._spans(text)
        for meant in readings(text):
            spans += [
                Hit(meant.starts[hit.start], meant.ends[hit.end - 1], hit.type) for hit in self._spans(meant.text)]
        return merge(spans, text)

    def _spans(self, text: str) -> list[Hit]:
        folded = fold(text)
        return [
            *self._find_words(text, folded),
            *self._find_squeezed(squeeze(folded)),
            *self._find_numbers(text),
            *self._find_near(text, folded),
        ]

    # -- building ---------------------------------------------------------------------------------------------------

    def _add(self, text: str, type_: str) -> None:
        taken = False
        for spelling in _spellings(text, type_):
            taken = self._add_spelling(spelling, text, type_, self._count + 1) or taken
        self._count += taken

    def _add_spelling(self, whole: str, text: str, type_: str, number: int) -> bool:
        squeezed = whole.replace(" ", "")
        digits = sum(char.isdigit() for char in squeezed)
        if len(squeezed) < 2 or (squeezed.isdigit() and len(squeezed) < _SHORTEST_DIGITS):
            return False
        single = " " not in whole
        everyday = not self._strict and single and (
            whole in _COMMON or (type_ == "EVENT" and not digits) or (self._doubting and not digits)
        )
        self._put_word(whole, type_, _WHOLE, everyday=everyday)
        if len(squeezed) >= _SHORTEST_SQUEEZED and not everyday:
            glued = digits >= _SHORTEST_DIGITS or (not single and len(squeezed) >= _SHORTEST_GLUED)
            pattern = _Pattern(len(squeezed), type_, _WHOLE, everyday=False, glued=glued)
            self._put(self._squeezed, squeezed, pattern)
        if digits >= _SHORTEST_NUMBER and digits >= len(squeezed) - 4:
            plain = "".join(char for char in squeezed if char.isdigit()).lstrip("0")
            if len(plain) >= _SHORTEST_NUMBER:
                self._numbers.setdefault(plain[-_SHORTEST_NUMBER:], []).append((plain, type_))
        if type_ == "EMAIL":
            self._add_part(fold_word(text.rpartition("@")[0]), type_, number)
        elif type_ == "PERSON":
            self._add_names(whole, number)
        elif type_ in _NAME_TYPES and not single:
            self._add_place(whole.split(), type_, number)
        return True

    def _add_place(self, words: list[str], type_: str, number: int) -> None:
        # a house number or "street" alone names nobody; a street's own name does, and so do two words in a row
        telling = [len(word) >= _SHORTEST_PLACE and not word.isdigit() and word not in _COMMON for word in words]
        for at, word in enumerate(words):
            if telling[at]:
                self._put_word(word, type_, number, everyday=True)
            if at and (telling[at] or telling[at - 1]):
                self._put_word(f"{words[at - 1]} {word}", type_, number)

    def _add_names(self, whole: str, number: int) -> None:
        names = [word for word in whole.split() if word not in TITLES]
        if len(names) > 1:
            first, last = names[0], names[-1]
            spellings = [f"{last} {first}", f"{first} {last}", f"{first[0]} {last}", f"{last} {first[0]}"]
            if first not in EVERYDAY and last[0] not in "ai":     # "Dana I think" is no Dana I.
                spellings.append(f"{first} {last[0]}")
            for spelling in spellings:
                self._put_word(spelling, "PERSON", _WHOLE)
        for name in names:
            self._add_part(name, "PERSON", number)
            if not self._doubting:
                self._near.add(name, number)

    def _add_part(self, part: str, type_: str, number: int) -> None:
        if len(part.replace(" ", "")) >= _SHORTEST_PART:
            self._put_word(part, type_, number, everyday=self._doubting or part in EVERYDAY)

    def _put_word(self, word: str, type_: str, part_of: int, *, everyday: bool = False) -> None:
        self._put(self._words, word, _Pattern(len(word), type_, part_of, everyday, glued=False))

    @staticmethod
    def _put(table: dict[str, _Pattern], word: str, pattern: _Pattern) -> None:
        present = table.get(word)
        if present is None or (present.everyday and not pattern.everyday):
            table[word] = pattern

    # -- finding ----------------------------------------------------------------------------------------------------

    def _find_words(self, text: str, folded: Folded) -> Iterator[Hit]:
        body = folded.text
        doubtful: list[tuple[int, int, _Pattern]] = []
        seen: set[int] = set()
        for last, pattern in _matches(self._word_automaton, body):
            start, end = last - pattern.length + 1, last + 1
            if not _stands_alone(body, start, end):
                continue
            if pattern.everyday:
                doubtful.append((start, end, pattern))
                continue
            seen.add(pattern.part_of)
            yield _hit(folded, start, end, pattern.type)
        for start, end, pattern in doubtful:
            capital = text[folded.origin[start]].isupper()
            if (capital and pattern.part_of in seen) or _second_signal(text, folded, start, end):
                yield _hit(folded, start, end, pattern.type)

    def _find_squeezed(self, squeezed: Folded) -> Iterator[Hit]:
        origin = squeezed.origin
        for last, pattern in _matches(self._squeezed_automaton, squeezed.text):
            start, end = last - pattern.length + 1, last + 1
            before = start > 0 and origin[start] - origin[start - 1] <= 1
            after = end < len(origin) and origin[end] - origin[end - 1] <= 1
            if pattern.glued:
                before = before and squeezed.text[start].isdigit() and squeezed.text[start - 1].isdigit()
                after = after and squeezed.text[end - 1].isdigit() and squeezed.text[end].isdigit()
            elif after:     # "johnsmith84" and "johnsmiths" still name John Smith
                after = not squeezed.text[end].isdigit() and squeezed.text[end] != "s"
            if not before and not after:
                yield _hit(squeezed, start, end, pattern.type)

    def _find_numbers(self, text: str) -> Iterator[Hit]:
        if not self._numbers:
            return
        for match in _NUMBER.finditer(text):
            trunk = {zero.start(1) for zero in _TRUNK.finditer(text, match.start(), match.end())}
            places = [
                place for place in range(match.start(), match.end()) if text[place].isdigit() and place not in trunk]
            digits = "".join(str(int(text[place])) for place in places)
            for end in range(len(digits), _SHORTEST_NUMBER - 1, -1):
                mine = digits[:end].lstrip("0")
                for known, type_ in self._numbers.get(digits[end - _SHORTEST_NUMBER : end], ()):
                    if mine.endswith(known) or known.endswith(mine):
                        yield Hit(match.start(), places[end - 1] + 1, type_)

    def _find_near(self, text: str, folded: Folded) -> Iterator[Hit]:
        for start, end, sure in self._near.find(folded.text):
            place = folded.origin[start]
            if text[place - 1 : place] == "\\" and self._near.knows(folded.text[start + 1 : end].split(" ")[0]):
                start += 1      # the end of an escape, and no typing error: "\nNadia"
            if sure or (text[place].isupper() and not _starts_sentence(text, place)):
                yield _hit(folded, start, end, "PERSON")


def merge(hits: Iterable[Hit], text: str) -> list[Hit]:
    """Sorted and disjoint: the longest hits win; what a losing hit covers beyond them stays covered by its own type."""
    covered = bytearray(len(text))
    kept: list[Hit] = []
    lost: list[Hit] = []
    for hit in sorted(hits, key=lambda hit: (hit.start - hit.end, hit.start)):
        if covered.find(1, hit.start, hit.end) >= 0:
            lost.append(hit)
        else:
            covered[hit.start : hit.end] = b"\x01" * (hit.end - hit.start)
            kept.append(hit)
    for hit in lost:
        at = hit.start
        while at < hit.end:
            end = covered.find(1, at, hit.end)
            end = hit.end if end < 0 else end
            letters = [place for place in range(at, end) if text[place].isalnum()]
            if letters:
                rest = Hit(letters[0], letters[-1] + 1, hit.type)
                covered[rest.start : rest.end] = b"\x01" * (rest.end - rest.start)
                kept.append(rest)
            at = max(end, at + 1)
    return sorted(kept, key=lambda hit: hit.start)


def _automaton(words: dict[str, _Pattern]) -> "ahocorasick.Automaton | None":
    if not words:
        return None     # iterating an empty automaton raises
    automaton = ahocorasick.Automaton()
    for word, pattern in words.items():
        automaton.add_word(word, pattern)
    automaton.make_automaton()
    return automaton


def _matches(automaton: "ahocorasick.Automaton | None", body: str) -> Iterator[tuple[int, _Pattern]]:
    """(position of the last character, pattern) of every word of the automaton in the body."""
    if automaton is not None:
        yield from automaton.iter(body)


def _spellings(text: str, type_: str) -> set[str]:
    """The folded text; with two letters for a dotted or ringed one (Müller, Mueller); a date as people write it; an
    e-mail address with its signs in words."""
    spellings = {fold_word(text), fold_word(text.translate(_TWO_LETTERS))}
    if "(0)" in text:
        spellings.add(fold_word(text.replace("(0)", " ")))
    if type_ == "EMAIL":
        name, at, host = text.rpartition("@")
        if at:
            spelt = host.replace(".", " dot ")
            spellings |= {fold_word(f"{one} at {other}") for one in (name, name.replace(".", " dot "))
                          for other in (host, spelt)}
            spellings.add(fold_word(f"{name}@{spelt}"))
    date = _ISO_DATE.fullmatch(text.strip())
    if date is not None and 1 <= int(date["month"]) <= 12:
        year, month, day = date["year"], int(date["month"]), int(date["day"])
        name = _MONTH_NAMES[month - 1]
        for number in {f"{day}", f"{day:02d}"}:
            spellings |= {f"{number} {written} {year}" for written in (name, name[:3], f"{month}", f"{month:02d}")}
            spellings |= {f"{written} {number} {year}" for written in (name, name[:3], f"{month}", f"{month:02d}")}
            spellings |= {f"{number} {written} {year[2:]}" for written in (f"{month}", f"{month:02d}")}
            spellings |= {f"{written} {number} {year[2:]}" for written in (f"{month}", f"{month:02d}")}
            spellings |= {f"{number}{ending}{of} {name} {year}" for ending in ("st", "nd", "rd", "th", "")
                          for of in ("", " of")}
            spellings |= {f"{name} {number}{ending} {year}" for ending in ("st", "nd", "rd", "th")}
    return spellings


def _hit(folded: Folded, start: int, end: int, type_: str) -> Hit:
    return Hit(folded.origin[start], folded.origin[end - 1] + 1, type_)


def _stands_alone(body: str, start: int, end: int) -> bool:
    """A word boundary on both sides; a plural or possessive s, or digits after letters, still count as one."""
    if start > 0 and body[start - 1] != " " and not (body[start].isalpha() and body[start - 1].isdigit()):
        return False
    if end >= len(body) or body[end] == " ":
        return True
    if body[end - 1].isdigit():
        return False
    if body[end].isdigit():
        return True
    return body[end] == "s" and (end + 1 == len(body) or body[end + 1] == " ")


def _starts_sentence(text: str, place: int) -> bool:
    before = text[max(0, place - _CONTEXT) : place].rstrip(" \t\"'([*_-")
    return not before or before[-1] in ".!?\n:;•#>"


def _second_signal(text: str, folded: Folded, start: int, end: int) -> bool:
    """Whether an everyday word is a person here: a cue beside it, or a capital where none belongs."""
    body = folded.text
    before = (body[max(0, start - _CONTEXT) : start].split() or [""])[-1]
    after = (body[end : end + _CONTEXT].split() or [""])[0]
    if before in STRONG_CUES:
        return True
    place = folded.origin[start]
    written = text[place : folded.origin[end - 1] + 1]
    if not written[0].isupper():
        return False
    if text[max(0, place - _CONTEXT) : place + _CONTEXT].isupper():     # where all is capital, a capital says nothing
        return before in WEAK_CUES or after in VERBS_AFTER
    if body[start:end] in MONTHS and (before in DATE_CUES or after.isdigit()):
        return False
    return not _starts_sentence(text, place) or after in VERBS_AFTER
