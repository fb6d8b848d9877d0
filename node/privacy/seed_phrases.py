"""Wallet seed phrases: a dozen or more unrelated short words in a row.

The BIP-39 list has 2,048 words of 3 to 8 letters and, by its rules, none of the commonest function words. Prose does
not run twelve words without "the", "and", "of", "is" and the like, nor without a word longer than eight letters or a
full stop; a seed phrase always does. So no word list is needed: a run of exactly 12, 15, 18, 21 or 24 such words is a
phrase, and after a cue ("seed", "recovery phrase", "wallet") any run of 12 or more is. A list of keywords of exactly
such a length is refused wrongly; that costs one local answer. Must not know how hits are used.
"""

import re
from collections.abc import Iterator

__all__ = ["find_seed_phrases"]

_LENGTHS = frozenset({12, 15, 18, 21, 24})
_SHORTEST = 12
_CUE_CHARS = 120
_CUE = re.compile(
    r"\b(?:seed|mnemonic|wallet|recovery\s+(?:phrase|words)|backup\s+(?:phrase|words)|secret\s+(?:phrase|words)|bip-?39|"
    r"ledger|trezor|metamask|ethereum|bitcoin|crypto)\b",
    re.IGNORECASE,
)
# words, each optionally numbered ("3. ", "3) "), between them white space, commas, or a dash; nothing else
_RUN = re.compile(
    r"(?:(?<![\w'’-])(?:\d{1,2}[.):]?\s{0,3})?[^\W\d_]{3,8}(?![\w'’-])(?:\s{1,4}|\s?[,;|/]\s{0,2}|\s-\s)?){12,}",
)
_WORD = re.compile(r"[^\W\d_]{3,8}")

# Frequent in prose and not in the BIP-39 list.
_PROSE = frozenset([
    "the", "and", "for", "are", "was", "were", "with", "from", "have", "has", "had", "not", "but", "his", "her", "she",
    "him", "our", "your", "its", "would", "been", "than", "them", "their", "into", "which", "who", "these", "those",
    "did", "does", "being", "how", "why", "may", "might", "shall", "must", "could", "said", "says", "got", "went",
    "made", "gets", "also", "too", "yet", "nor", "per", "via", "und", "der", "die", "das", "les", "des", "que", "los",
])


def find_seed_phrases(text: str) -> Iterator[tuple[int, int]]:
    """(start, end) of every run that looks like a seed phrase."""
    for match in _RUN.finditer(text):
        words = [word.lower() for word in _WORD.findall(match[0])]
        for start, end in _pure_runs(words):
            count = end - start
            before = text[max(0, match.start() - _CUE_CHARS) : match.start()] + " " + " ".join(words[:end])
            alone = start == 0 and end == len(words) and count in _LENGTHS and len(set(words)) >= count - 3
            if alone or _CUE.search(before):
                yield match.start(), match.end()
                break


def _pure_runs(words: list[str]) -> Iterator[tuple[int, int]]:
    """Stretches of at least twelve words without a word of prose."""
    start = 0
    for at, word in enumerate([*words, "the"]):
        if word in _PROSE:
            if at - start >= _SHORTEST:
                yield start, at
            start = at + 1
