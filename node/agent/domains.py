"""Questions on which a wrong answer can hurt: health, money, law. Told once a conversation, beside a model's own words.

Words in, a caution out. Must not know models, tools or screens.
"""

import re
from collections.abc import Iterable, Mapping

from node.agent.readers.numbers import fold

__all__ = ["caution_for", "own_words"]

_DOMAINS: Mapping[str, tuple[str, str]] = {
    "health": (
        r"\b(?:symptom|fever|pain|dose|dosage|medicine|medication|pill|tablet|ibuprofen|paracetamol|aspirin|antibiotic|"
        r"pregnan|allerg|blood\s+pressure|diabet|insulin|infection|rash|vaccin|doctor\s+say|diagnos|depress|suicid|"
        r"overdose|poison|chest\s+pain|headache)\w*",
        "This is a language model's answer about health, not medical advice. Ask a doctor or pharmacist before you act "
        "on it; in an emergency call your emergency number.",
    ),
    "money": (
        r"\b(?:invest|mortgage|loan|pension|tax|taxes|shares?|stocks?|bonds?|crypto|bitcoin|insurance|interest\s+rate|"
        r"retirement\s+fund|credit\s+score|bankrupt)\w*",
        "This is a language model's answer about money, not financial advice. Check figures and rules with an official "
        "source before you act on it.",
    ),
    "law": (
        r"\b(?:legal|illegal|lawsuit|sue|sued|lawyer|attorney|contract|tenant|landlord|evict|custody|divorce|visa|"
        r"immigration|copyright|liable|liability|police\s+stop|arrest)\w*",
        "This is a language model's answer about law, not legal advice. Rules differ by place and change; ask a lawyer "
        "or an advice centre before you act on it.",
    ),
}
_PATTERNS = {name: (re.compile(pattern), words) for name, (pattern, words) in _DOMAINS.items()}
OWN_WORDS = "the model's own words, no source"


def caution_for(text: str, told: Iterable[str]) -> tuple[str, str] | None:
    """The domain that a question belongs to and what the owner is told; None outside them, or when it was told."""
    before, low = set(told), fold(text)
    for name, (pattern, words) in _PATTERNS.items():
        if pattern.search(low):
            return None if name in before else (name, words)
    return None


def own_words(reason: str, sources: Iterable[str]) -> str:
    """The reason of an answer, saying so where nothing but the model stands behind it."""
    return reason if tuple(sources) else f"{reason}; {OWN_WORDS}"
