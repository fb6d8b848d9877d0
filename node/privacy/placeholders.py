"""The map from real values to what a peer sees instead: [PERSON_1], or an invented name.

One map per (conversation, peer), so that two peers cannot join what they saw. It never leaves this device and is
dropped with the conversation. The same value gets the same token as long as the map lives. Must not know where values
were found or who reads the result.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from node.privacy.normalise import fold_word, squeeze_word
from node.privacy.surrogates import surrogates
from node.privacy.vault import Hit
from node.privacy.written_names import name_words

__all__ = ["BRACKETS", "SURROGATES", "PlaceholderMap", "Replaced", "mask"]

BRACKETS = "brackets"
SURROGATES = "surrogates"

_TYPE = re.compile(r"[A-Z]{2,12}")
_ANY_TOKEN = re.compile(r"(?<![^\W_])([A-Za-z]{2,12})(?:\\{0,2}_|[-\s#:]){0,2}0{0,2}(\d{1,4})(?!\d)")
_LONGEST_SURROGATE = 36


class PlaceholderMap:
    """Values and their tokens, in the order they were first seen."""

    def __init__(self, style: str = BRACKETS) -> None:
        """style: BRACKETS or SURROGATES; anything else counts as BRACKETS."""
        self.style = SURROGATES if style == SURROGATES else BRACKETS
        self._tokens: dict[tuple[str, str], str] = {}
        self._values: dict[str, str] = {}
        self._last: dict[str, int] = {}
        self._reserved: set[tuple[str, int]] = set()
        self._seen_words: set[str] = set()
        self._parts: dict[str, str | None] = {}     # a name of a person -> its stand-in; None: of two persons

    @classmethod
    def of(cls, style: str, tokens: Mapping[str, str]) -> "PlaceholderMap":
        """A map with just these tokens, such as an earlier one's; it is for reading, and knows no numbers in use."""
        made = cls(style)
        made._values = dict(tokens)
        return made

    @property
    def tokens(self) -> dict[str, str]:
        """A copy: token -> the value as it was first written."""
        return dict(self._values)

    def reserve(self, text: str) -> None:
        """Never use a token for a value that already stands in this text: it would come back as that value."""
        for match in _ANY_TOKEN.finditer(text):
            self._reserved.add((match[1].upper(), int(match[2])))
        if self.style == SURROGATES:
            self._seen_words.update(fold_word(text).split())

    def token_for(self, value: str, type_: str, *, is_real: Callable[[str], bool] = lambda _: False) -> str:
        """The token of this value; a new one when it has none yet. is_real: whether an invented name is a real one."""
        kind = type_ if _TYPE.fullmatch(type_) else "PRIVATE"
        key = (kind, squeeze_word(value) or value)
        token = self._tokens.get(key)
        if token is None:
            token = self._invent(value, kind, is_real)
            self._tokens[key] = token
            self._values[token] = value
        return token

    def _invent(self, value: str, kind: str, is_real: Callable[[str], bool]) -> str:
        if self.style == SURROGATES:
            names = [squeeze_word(word) for word in name_words(value)] if kind == "PERSON" else []
            known = self._parts.get(names[0]) if names else None
            if known is not None and len(names) == 1:
                return known
            of_kind = surrogates(kind, words=len(names or value.split()), lines=value.count(",") + 1, given=known or "")
            for candidate in of_kind:
                if self._is_free(candidate.removeprefix(known or "")) and not is_real(candidate):
                    self._take(candidate, names)
                    return candidate
        number = self._last.get(kind, 0) + 1
        while (kind, number) in self._reserved:
            number += 1
        self._last[kind] = number
        return f"[{kind}_{number}]"

    def _take(self, candidate: str, names: Sequence[str]) -> None:
        """Keep the words of a stand-in from being used again, and which of them stands for which name of a person."""
        self._seen_words.update(fold_word(candidate).split())
        if not names:
            return
        for name, word in ((names[0], candidate.split()[0]), (names[-1], candidate.split()[-1])):
            if self._parts.setdefault(name, word) != word:
                self._parts[name] = None

    def _is_free(self, candidate: str) -> bool:
        if len(candidate) > _LONGEST_SURROGATE or candidate in self._values:
            return False
        names = [word for word in fold_word(candidate).split() if len(word) > 3 and word not in ("example", "org")]
        return not self._seen_words.intersection(names or fold_word(candidate).split()[-1:])


@dataclass(frozen=True, slots=True)
class Replaced:
    """One replaced span of the outgoing text."""

    start: int
    end: int
    token: str
    original: str
    type: str


def mask(
    text: str, hits: Sequence[Hit], tokens: PlaceholderMap, *, is_real: Callable[[str], bool] = lambda _: False,
) -> tuple[str, tuple[Replaced, ...]]:
    """The text with every hit replaced, and where in the new text the tokens stand. hits: sorted, not overlapping."""
    out: list[str] = []
    replaced: list[Replaced] = []
    length = at = 0
    for hit in hits:
        plus = hit.type == "PHONE" and hit.start > at and text[hit.start - 1] == "+"
        start = hit.start - plus        # digits are what is found; a sign in front of them is part of the number
        token = tokens.token_for(text[start : hit.end], hit.type, is_real=is_real)
        out += (text[at:start], token)
        length += start - at
        replaced.append(Replaced(length, length + len(token), token, text[start : hit.end], hit.type))
        length += len(token)
        at = hit.end
    out.append(text[at:])
    return "".join(out), tuple(replaced)
