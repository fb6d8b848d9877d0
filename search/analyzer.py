"""Text to terms: one way for documents and queries, so that both meet. Must not know the index or ranking.

Lower case, Unicode letters and digits, accents off, English stop words out, Porter stems. A change here is a new
ANALYZER name, and the index is built again.
"""

import re
import unicodedata

from search.porter import stem

__all__ = ["ANALYZER", "terms", "words"]

ANALYZER = "en1"
WORD_LIMIT_CHARS = 64

_WORD = re.compile(r"[^\W_]+")
_STOP = frozenset((
    "a", "about", "all", "an", "and", "any", "are", "as", "at", "be", "been", "being", "both", "but", "by", "can",
    "could",
    "did", "do", "does", "for", "from", "had", "has", "have", "he", "her", "his", "how", "i", "if", "in", "into", "is",
    "it", "its", "itself", "may", "me", "my", "no", "not", "of", "on", "or", "our", "she", "should", "so", "such",
    "that",
    "the", "their", "them", "then", "there", "these", "they", "this", "those", "to", "us", "was", "we", "were", "what",
    "when", "where", "which", "who", "will", "with", "would", "you", "your", "between",
))


def words(text: str) -> list[str]:
    """The words that count, in order, unstemmed."""
    plain = text.lower() if text.isascii() else _plain(text)
    return [
        word for word in _WORD.findall(plain)
        if word not in _STOP and (len(word) > 1 or word.isdigit()) and len(word) <= WORD_LIMIT_CHARS
    ]


def terms(text: str) -> list[str]:
    """The stems of the words that count, in order, repetitions kept."""
    return [stem(word) for word in words(text)]


def _plain(text: str) -> str:
    parts = unicodedata.normalize("NFKD", text.lower())
    return "".join(part for part in parts if not unicodedata.combining(part))
