"""Real values back in the place of placeholders, in whole texts and in streams, for the owner's eyes only.

Models bend placeholders: **[PERSON_1]**, <EMAIL_1>, (person 1), [PHONE\\_1], Person_1, PERSON-1, [Person_01]. All of
these are filled in; a token that was never given out stays visible, and prose such as "person 1" stays prose. A stream
holds back at most HELD_CHARS characters, and gives the same text as the whole would, however it is cut.
The result must never enter anything outgoing; the guard masks it again if it does. Must not know peers or the network.
"""

import re
from collections.abc import Iterator, Mapping

from node.privacy.surrogates import FIRMS
from node.privacy.written_names import name_words

__all__ = ["HELD_CHARS", "Restorer", "StreamRehydrator"]

HELD_CHARS = 40

_TOKEN = re.compile(r"\[([A-Z]{2,12})_(\d{1,4})\]")
_SEPARATOR = r"(?:\\{0,2}_|[-\s#:]){0,2}"
_PAIRS = (("[[", "]]"), ("{{", "}}"), ("<<", ">>"), ("[", "]"), ("<", ">"), ("{", "}"), ("(", ")"))
_START = re.compile(r"[\\\[<{(+]|\w")
_NEVER = re.compile(r"(?!)")
_FIRMS = frozenset(firm.lower() for firm in FIRMS)


class Restorer:
    """What the tokens of one map stand for, as it was when this was made."""

    def __init__(self, tokens: Mapping[str, str]) -> None:
        """tokens: token -> value. A token is [TYPE_n] or a surrogate of at most 36 characters."""
        self._numbered: dict[tuple[str, int], str] = {}
        self._literal: dict[str, str] = {}
        for token, value in tokens.items():
            match = _TOKEN.fullmatch(token)
            if match is None:
                self._literal[token.lower()] = value
            else:
                self._numbered[match[1], int(match[2])] = value
        for token, value in list(self._literal.items()):
            for part, meant in _parts(token, value):
                self._literal.setdefault(part, meant)
        self._prefixes = {literal[:end] for literal in self._literal for end in range(1, len(literal) + 1)}
        labels = sorted({label for label, _ in self._numbered}, key=len, reverse=True)
        self._bracketed, self._bare, self._partial = _patterns(labels)
        words = sorted(self._literal, key=len, reverse=True)
        choice = "|".join(re.escape(word).replace("\\ ", r"\s") for word in words)
        self._words = re.compile(rf"(?:{choice})(?!\w)", re.IGNORECASE) if choice else _NEVER

    def __len__(self) -> int:
        """How many tokens it knows."""
        return len(self._numbered) + len(self._literal)

    def restore(self, text: str) -> str:
        """The whole text with every known token filled in."""
        stream = StreamRehydrator(self)
        return stream.feed(text) + stream.end()

    def scan(self, text: str, before: str, *, final: bool) -> tuple[str, int]:
        """(restored text, how far text was used). before: the character that stood in front of text, or "".

        What is left is shorter than HELD_CHARS and may still become a token; nothing is left when final.
        """
        out: list[str] = []
        at = 0
        while at < len(text):
            start = _START.search(text, at)
            if start is None:
                out.append(text[at:])
                return "".join(out), len(text)
            place = start.start()
            out.append(text[at:place])
            at = place
            previous = text[place - 1] if place else before
            found = self._bracketed.match(text, place)
            if found is None:
                if not final and self._may_grow(text, place, previous):
                    return "".join(out), place
                found = self._match_bare(text, place, previous)
            if found is None:
                end = self._skip(text, place)
                out.append(text[place:end])
                at = end
            else:
                out.append(self._value(found))
                at = found.end()
        return "".join(out), len(text)

    def _may_grow(self, text: str, place: int, previous: str) -> bool:
        """Whether the rest of the text from here may become a token when more text comes."""
        rest = text[place:]
        if len(rest) >= HELD_CHARS:
            return False
        if rest[0].isalnum() and _is_word(previous):
            return False
        return bool(self._partial.fullmatch(rest)) or _plain(rest) in self._prefixes

    def _match_bare(self, text: str, place: int, previous: str) -> "re.Match[str] | None":
        if _is_word(previous):
            return None
        return self._words.match(text, place) or self._bare.match(text, place)

    def _value(self, found: "re.Match[str]") -> str:
        literal = self._literal.get(_plain(found[0]))
        if literal is not None:
            return literal
        groups = [group for group in found.groups() if group is not None]
        value = self._numbered.get((groups[-2].upper(), int(groups[-1])))
        if value is None:
            return found[0]     # never given out: it stays visible, nothing is guessed
        return f"({value})" if len(groups) == 3 else value

    @staticmethod
    def _skip(text: str, place: int) -> int:
        """The end of what surely holds no token start: one bracket, or the rest of a word."""
        if not _is_word(text[place]):
            return place + 1
        while place < len(text) and _is_word(text[place]):
            place += 1
        return place


class StreamRehydrator:
    """Fills tokens in while text streams."""

    def __init__(self, restorer: Restorer) -> None:
        self._restorer = restorer
        self._held = ""
        self._before = ""

    @property
    def held(self) -> int:
        """Characters held back now; never more than HELD_CHARS."""
        return len(self._held)

    def feed(self, text: str) -> str:
        """What can be shown after this piece."""
        return self._advance(text, final=False)

    def end(self) -> str:
        """What was still held; the stream is over."""
        return self._advance("", final=True)

    def _advance(self, text: str, *, final: bool) -> str:
        whole = self._held + text
        if not len(self._restorer):
            return whole
        shown, used = self._restorer.scan(whole, self._before, final=final)
        if used:
            self._before = whole[used - 1]
        self._held = whole[used:]
        return shown


def _parts(token: str, value: str) -> Iterator[tuple[str, str]]:
    """Shorter or other ways that a model may write a stand-in, and what each means: one name of a person, the street
    of an address or its town, a telephone number with other signs between its digits."""
    words = token.split()
    if token.startswith("+1 "):
        area, middle, last = words[1:]
        for prefix in ("", "+1 ", "+1-", "1-"):
            for number in (f"{area} {middle} {last}", f"{area}-{middle}-{last}", f"({area}) {middle}-{last}"):
                yield f"{prefix}{number}", value
    elif "," in token:
        street, _, town = token.partition(", ")
        real_street, comma, real_town = value.partition(",")
        if comma and real_town.strip():
            yield from ((street, real_street.strip()), (town, real_town.strip()))
    elif len(words) == 2 and token not in _FIRMS and all(word.isalpha() for word in words):
        names = name_words(value)
        if len(names) > 1 and all(word[0].isalpha() for word in names):
            yield from ((words[0], names[0]), (words[1], names[-1]))


def _plain(text: str) -> str:
    return "".join(" " if char.isspace() else char for char in text.lower())


def _is_word(char: str) -> bool:
    return char.isalnum() or char == "_"


def _patterns(labels: list[str]) -> "tuple[re.Pattern[str], re.Pattern[str], re.Pattern[str]]":
    """(in brackets, bare, anything that can still become one of them)."""
    if not labels:
        return _NEVER, _NEVER, _NEVER
    label = "|".join(labels)
    core = rf"({label}){_SEPARATOR}0{{0,2}}(\d{{1,4}})"
    bracketed = "|".join(
        # round brackets stay in the text: group 1 marks them
        rf"\\?{'(' if opener == '(' else '(?:'}{re.escape(opener)})\s{{0,2}}{core}\s{{0,2}}\\?{re.escape(closer)}"
        for opener, closer in _PAIRS
    )
    upper = rf"(?-i:({label})){_SEPARATOR}0{{0,2}}(\d{{1,4}})(?!\w)"
    joined = rf"({label})\\{{0,2}}_0{{0,2}}(\d{{1,4}})(?!\w)"
    starts = {name[:end] for name in labels for end in range(1, len(name) + 1)}
    prefixes = "|".join(sorted(starts, key=len, reverse=True))
    grown = rf"(?:{label}){_SEPARATOR}(?:\\{{0,2}}|\d{{1,6}}(?:\s{{0,2}}\\?[\]>}})]?)?)"
    opened = r"\\?(?:\[\[?|<<?|\{\{?|\()\s{0,2}"
    partial = rf"\\|{opened}|(?:{opened})?(?:{prefixes}|{grown})"
    flags = re.IGNORECASE
    return re.compile(bracketed, flags), re.compile(rf"{upper}|{joined}", flags), re.compile(partial, flags)
