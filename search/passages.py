"""Splits a document into passages of at most 200 words at the places where people pause. Pure; must not know files.

A passage ends at the end of a paragraph if it can, else of a line or sentence, else between words.
"""

import re
from collections.abc import Iterator

__all__ = ["PASSAGE_WORDS", "split_passages"]

PASSAGE_WORDS = 200
PASSAGE_CHARS = 4_000
"""Below the wire's limit for one passage."""
PASSAGES_LIMIT = 2_000

_PARAGRAPH = re.compile(r"\n\s*\n")
_SENTENCE = re.compile(r"(?<=[.!?;:])\s+|\n+")


def split_passages(text: str) -> tuple[str, ...]:
    """The passages in order, none empty; joined they hold every word of the text once, up to PASSAGES_LIMIT
    passages."""
    found: list[str] = []
    current: list[str] = []
    for paragraph in _PARAGRAPH.split(text):
        if not paragraph.strip():
            continue
        for piece in _pieces(paragraph.strip()):
            if current and not _fits("\n\n".join([*current, piece])):
                found.append("\n\n".join(current))
                current = []
            current.append(piece)
    if current:
        found.append("\n\n".join(current))
    return tuple(found[:PASSAGES_LIMIT])


def _pieces(paragraph: str) -> Iterator[str]:
    """The paragraph, or parts of it that fit."""
    if _fits(paragraph):
        yield paragraph
        return
    current = ""
    for sentence in _SENTENCE.split(paragraph):
        for part in _words(sentence):
            joined = f"{current} {part}".strip()
            if current and not _fits(joined):
                yield current
                joined = part
            current = joined
    if current:
        yield current


def _words(sentence: str) -> Iterator[str]:
    """The sentence, or runs of its words that fit."""
    if _fits(sentence):
        yield sentence
        return
    current: list[str] = []
    size = 0
    for word in sentence.split():
        for start in range(0, len(word), PASSAGE_CHARS):
            part = word[start:start + PASSAGE_CHARS]
            if current and (len(current) >= PASSAGE_WORDS or size + len(part) + 1 > PASSAGE_CHARS):
                yield " ".join(current)
                current, size = [], 0
            current.append(part)
            size += len(part) + 1
    if current:
        yield " ".join(current)


def _fits(text: str) -> bool:
    return len(text) <= PASSAGE_CHARS and len(text.split()) <= PASSAGE_WORDS
