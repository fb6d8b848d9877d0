"""Personal identifiers that have a shape of their own: e-mail addresses, telephone numbers, IBANs, US social security
numbers, however spelt. Found without knowing anybody.

A small net that always runs; names and addresses of unknown people need the detectors. Must not know the vault.
"""

import re
from collections.abc import Sequence

from node.privacy.escapes import readings
from node.privacy.normalise import visible
from node.privacy.off_loop import off_loop
from node.privacy.spelled_email import find_spelled_emails
from node.privacy.vault import Hit, Vault

__all__ = ["PatternNet", "find_ibans", "find_patterns"]

_EMAIL = re.compile(    # quoted, too, and with an apostrophe inside
    r"(?<![\w.+-])(?:\"[^\"\n@]{1,64}\"|(?:[\w.+-]{1,64}['’])?[\w.+-]{1,64})@(?:[\w-]{1,63}\.){1,6}[^\W\d_]{2,24}(?![\w-])")
_GAP = r"[\s.\-/()\u00a0\u2010-\u2015]{0,3}"
_INTERNATIONAL = re.compile(rf"(?<![\w+])\+{_GAP}[1-9](?:{_GAP}\d){{6,14}}(?!\w)")
_NATIONAL = re.compile(
    r"(?<![\w.,/-])(?:"
    r"\(\d{2,5}\)[ ./-]?\d{3,4}[ ./-]?\d{3,4}"              # (041) 234-567
    r"|\d{3}[ .-]\d{3}[ .-]\d{4}"                           # 555-123-4567
    r"|0\d{1,4}[ /-]\d{2,4}(?:[ /-]?\d{2,4}){1,3}"          # 041 234 567, 0171/123 45 67
    r"|00[1-9]\d{8,13}"                                     # 0038641234567
    r")(?![\w/-]|[.,]\d)",
)
_ANNOUNCED = re.compile(    # "phone: 60-56-85-91", "call me on 12345678"
    r"\b(?:phone|telephone|tel|mobile|cell|fax|call|ring|text|whatsapp|handy|telefon|number)\b[^\d\n]{0,16}?\n?"
    rf"(?P<number>[+(]?\d(?:{_GAP}\d){{5,14}})(?!\w)",
    re.IGNORECASE,
)
_SOCIAL = re.compile(r"(?<![\w-])(?!000|666|9)\d{3}-(?!00)\d{2}-(?!0000)\d{4}(?![\w-])")
_IBAN = re.compile(r"(?<!\w)[A-Z]{2}\d{2}(?:[ -]?[A-Z0-9]){11,30}(?!\w)", re.IGNORECASE)
_SHORTEST_IBAN, _LONGEST_IBAN = 15, 34      # ISO 13616


def find_patterns(text: str) -> list[Hit]:
    """Every hit, in no particular order; they may overlap. Invisible characters, full-width signs and escapes hide
    nothing."""
    hits = _find(text)
    for meant in readings(text):
        hits += [Hit(meant.starts[hit.start], meant.ends[hit.end - 1], hit.type) for hit in _find(meant.text)]
    return hits


def _find(text: str) -> list[Hit]:
    read = visible(text)
    plain, origin = read.text, read.origin
    spans = [
        (*match.span(), type_)
        for type_, shape in (("EMAIL", _EMAIL), ("PHONE", _INTERNATIONAL), ("PHONE", _NATIONAL), ("ID", _SOCIAL))
        for match in shape.finditer(plain)
    ]
    spans += [(*match.span("number"), "PHONE") for match in _ANNOUNCED.finditer(plain)]
    spans += [(start, end, "EMAIL") for start, end in find_spelled_emails(plain)]
    spans += [(hit.start, hit.end, hit.type) for hit in find_ibans(plain)]
    return [Hit(origin[start], origin[end - 1] + 1, type_) for start, end, type_ in spans]


def find_ibans(text: str) -> list[Hit]:
    """International bank account numbers whose check digits are right."""
    found = [(match.start(), _iban_end(match[0])) for match in _IBAN.finditer(text)]
    return [Hit(start, start + length, "ID") for start, length in found if length]


class PatternNet:
    """The same as a net."""

    name = "patterns"

    async def scan(self, text: str, returned: Vault) -> Sequence[Hit]:
        """Every hit."""
        return await off_loop(len(text), find_patterns, text)


def _iban_end(run: str) -> int:
    """How much of the run is an IBAN whose check digits are right; 0 for none. Words may stand behind it."""
    ends = [at for at in range(len(run), 0, -1) if at == len(run) or not run[at].isalnum()]
    for end in ends:
        plain = "".join(char for char in run[:end] if char.isalnum()).upper()
        if _SHORTEST_IBAN <= len(plain) <= _LONGEST_IBAN and plain.isascii():
            number = "".join(str(int(char, 36)) for char in plain[4:] + plain[:4])
            if int(number) % 97 == 1:
                return end
    return 0
