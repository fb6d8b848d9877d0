"""Finds the owner's stored passwords and tokens in a text, also re-cased, spaced out, reversed, escaped or encoded.

A hit is refused like any secret. Short values count as whole words only. Must not know where values come from.
"""

import base64
import re
import unicodedata
import urllib.parse
from collections.abc import Iterable, Sequence

from node.privacy.escapes import readings
from node.privacy.normalise import is_unseen

__all__ = ["KnownSecrets"]

_WHOLE_WORD_BELOW_CHARS = 8
_ENCODED_FROM_CHARS = 6
_ALIGNMENTS = 3


class KnownSecrets:
    """A fixed set of values; make a new one when they change."""

    def __init__(self, values: Iterable[str]) -> None:
        """values: of at least 4 characters each; shorter ones are not looked for."""
        self._plain: list[str] = []
        self._squeezed: list[str] = []
        self._words: list[re.Pattern[str]] = []
        self._exact: list[str] = []
        for value in values:
            self._add(value)

    def holds(self, text: str) -> bool:
        """Whether one of the values stands in the text."""
        return bool(self._exact) and any(
            map(self._stands_in, (text, *(meant.text for meant in readings(text)))))

    def _stands_in(self, text: str) -> bool:
        visible = _visible(text)
        folded = visible.casefold()
        if any(value in folded for value in self._plain) or any(word.search(folded) for word in self._words):
            return True
        squeezed = _squeeze(folded)
        return any(value in squeezed for value in self._squeezed)

    def scrub(self, text: str) -> str:
        """The text with every literal occurrence replaced."""
        for value in sorted(self._exact, key=len, reverse=True):    # one may be the beginning of another
            text = text.replace(value, "<secret>")
        return text

    def _add(self, value: str) -> None:
        value = value.strip()
        if len(value) < 4:
            return
        self._exact.append(value)
        folded = _visible(value).casefold()
        if len(folded) < _WHOLE_WORD_BELOW_CHARS:
            self._words.append(re.compile(rf"(?<!\w){re.escape(folded)}(?!\w)"))
        else:
            self._plain.append(folded)
            if len(_squeeze(folded)) >= _WHOLE_WORD_BELOW_CHARS:
                self._squeezed += [_squeeze(folded), _squeeze(folded)[::-1]]
        if len(value) >= _ENCODED_FROM_CHARS:
            self._plain += [form.casefold() for form in _encoded(value) if len(form) >= _ENCODED_FROM_CHARS]


def _encoded(value: str) -> Sequence[str]:
    """The forms in which a tool or a model might write it down; base64 at each alignment, without its seams."""
    raw = value.encode()
    forms = [raw.hex(), urllib.parse.quote(value, safe=""), base64.b32encode(raw).decode().rstrip("="), value[::-1]]
    for shift in range(_ALIGNMENTS):
        whole = base64.b64encode(b"\0" * shift + raw).decode()
        first = -(-shift * 8 // 6)
        last = len(whole) - (4 if (shift + len(raw)) % 3 else 0)
        inner = whole[first:last]
        forms += [inner, inner.replace("+", "-").replace("/", "_")]
    return forms


def _visible(text: str) -> str:
    if text.isascii():
        return text
    return unicodedata.normalize("NFKC", "".join(char for char in text if char.isascii() or not is_unseen(char)))


def _squeeze(text: str) -> str:
    return "".join(char for char in text if char.isalnum())
