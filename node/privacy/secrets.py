"""The net for secrets: keys, tokens, passwords and PINs said in prose, one-time codes, cards, seed phrases.

A hit is refused, never masked: a model has no use for the place where a password stood, and a half-masked secret is a
leak. Wrong alarms cost the owner one local answer, so prose rules lean to refusing. Findings never carry the text.
Must not know labels, peers or the vault.
"""

import math
import re
import unicodedata
from bisect import bisect_right
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise

from node.privacy.escapes import readings
from node.privacy.normalise import is_unseen
from node.privacy.patterns import find_ibans
from node.privacy.prose_secrets import find_spoken
from node.privacy.seed_phrases import find_seed_phrases

__all__ = ["SecretHit", "find_secrets"]


@dataclass(frozen=True, slots=True)
class SecretHit:
    """Where (in the text without invisible characters) and what kind; never the secret itself."""

    start: int
    end: int
    kind: str


# Tokens whose makers gave them a shape.
_SHAPED: tuple[tuple[str, re.Pattern[str]], ...] = (
    ("private key", re.compile(r"-----BEGIN (?:[A-Z0-9]+ )*PRIVATE KEY(?: BLOCK)?-----")),
    ("private key", re.compile(r"\bPuTTY-User-Key-File-\d|\bAGE-SECRET-KEY-1[0-9A-Z]{20,}", re.IGNORECASE)),
    ("Nostr secret key", re.compile(r"\bnsec1[02-9ac-hj-np-z]{40,}")),
    ("extended private key", re.compile(r"\b[xyztuv]prv[1-9A-HJ-NP-Za-km-z]{50,}")),
    # looked for once in each run that a dot follows: looked for at each place, a long run would cost its square
    ("signed web token", re.compile(r"(?<![\w-])(?=[\w-]{11,}+\.[\w-]{6})[\w-]*?\beyJ[\w-]{8,}\.[\w-]{6,}\.?[\w-]*")),
    ("AWS key", re.compile(r"\b(?:AKIA|ASIA|AGPA|AIDA|AROA|ANPA)[0-9A-Z]{16}\b")),
    ("GitHub token", re.compile(r"\b(?:gh[pousr]_[A-Za-z0-9]{30,}|github_pat_[A-Za-z0-9_]{20,})")),
    ("GitLab token", re.compile(r"\bgl(?:pat|ptt|dt|rt|cbt|soat)-[\w-]{16,}")),
    ("API key", re.compile(r"\bsk-(?=[\w-]{0,200}\d)[\w-]{20,}")),
    ("payment key", re.compile(r"\b(?:sk|rk|pk|whsec)_(?:live|test)?_?[A-Za-z0-9]{16,}")),
    ("Slack token", re.compile(r"\bxox[abeoprs]-[\w-]{10,}|hooks\.slack\.com/services/\w+")),
    ("Google key", re.compile(r"\bAIza[\w-]{30,}|\bya29\.[\w-]{20,}|\bGOCSPX-[\w-]{20,}")),
    ("package registry token", re.compile(r"\bpypi-[\w-]{30,}|\bnpm_[A-Za-z0-9]{30,}")),
    ("model hub token", re.compile(r"\bhf_[A-Za-z0-9]{20,}")),
    ("bot token", re.compile(r"\b\d{8,10}:AA[\w-]{30,}")),
    ("mail service key", re.compile(r"\bSG\.[\w-]{16,}\.[\w-]{16,}|\bkey-[0-9a-f]{32}\b")),
    ("address with a password", re.compile(
        r"\b[a-z][a-z0-9+.-]{1,15}://[^\s/:@]{1,64}:[^\s/@]{3,128}@", re.IGNORECASE,
    )),
    ("authorisation header", re.compile(r"\b(?:bearer|basic)\s+(?=[\w+/=.~-]*\d)[\w+/=.~-]{16,}", re.IGNORECASE)),
    ("one-time-code seed", re.compile(r"\botpauth://\S{8,}", re.IGNORECASE)),
    ("pairing link", re.compile(r"\bkith:(?://)?pair\S{8,}", re.IGNORECASE)),
    ("wifi password", re.compile(r"\bWIFI:(?=[^\s]{0,120}\bP:)[^\s]{4,}")),
    ("raw private key", re.compile(
        r"\b(?:private|secret|signing|encryption|master|wallet)[\s_-]*key\b\W{0,5}(?:is\W{1,3})?(?:0x)?[0-9a-f]{32,128}\b",
        re.IGNORECASE,
    )),
    ("wallet key", re.compile(r"\b[5KL][1-9A-HJ-NP-Za-km-z]{50,51}\b")),
)
_DIGITS = re.compile(r"(?<![\d.,])\d(?:[ \u00a0-]?\d){11,18}(?![\d])")
_CARD_CUE = re.compile(r"\bcard|karte|maestro|debit|credit", re.IGNORECASE)
_DENSE = re.compile(r"(?<![\w+/=.-])[A-Za-z0-9+/_-]{24,256}={0,2}(?![\w+/=])")
_PEER_ID = re.compile(r"12D3KooW[1-9A-HJ-NP-Za-km-z]{44}")
_ENTROPY_BITS = 4.3         # per character; English words stay below 4.1, hexadecimal digests at or below 4
# Ranges of issuers and how many digits their cards have (ISO/IEC 7812): Visa, Mastercard, American Express, Diners,
# Discover, JCB, UnionPay and Maestro.
_SCHEMES: tuple[tuple[re.Pattern[str], frozenset[int]], ...] = (
    (re.compile(r"4"), frozenset({13, 16, 19})),
    (re.compile(r"5[1-5]|2(?:22[1-9]|2[3-9]|[3-6]|7[01]|720)"), frozenset({16})),
    (re.compile(r"3[47]"), frozenset({15})),
    (re.compile(r"3(?:0[0-5]|[689])"), frozenset({14, 16, 19})),
    (re.compile(r"35"), frozenset({16, 17, 18, 19})),
    (re.compile(r"2131|1800"), frozenset({15})),
    (re.compile(r"6(?:011|4[4-9]|5|2)|5[0678]|6[37]"), frozenset({12, 13, 14, 15, 16, 17, 18, 19})),
)


def find_secrets(text: str) -> list[SecretHit]:
    """Every hit in order. Positions are of the text after unseen characters were dropped and NFKC applied, or of that
    with its escapes undone."""
    hits = [hit for one in (text, *(meant.text for meant in readings(text))) for hit in _find(_plain(one))]
    return sorted(set(hits), key=lambda hit: (hit.start, hit.end, hit.kind))


def _find(plain: str) -> list[SecretHit]:
    return [
        *(SecretHit(match.start(), match.end(), kind) for kind, shape in _SHAPED for match in shape.finditer(plain)),
        *_cards(plain),
        *_dense(plain),
        *(SecretHit(start, end, kind) for start, end, kind in find_spoken(plain)),
        *(SecretHit(start, end, "seed phrase") for start, end in find_seed_phrases(plain)),
    ]


def _plain(text: str) -> str:
    if text.isascii():
        return text
    visible = "".join(char for char in text if char.isascii() or not is_unseen(char))
    return unicodedata.normalize("NFKC", visible)


def _cards(text: str) -> Iterator[SecretHit]:
    """Payment cards: 12 to 19 digits of a scheme's range whose check digit is right."""
    ibans = find_ibans(text)    # once, and in order: per run of digits it would cost the square of the text
    starts = [iban.start for iban in ibans]
    for match in _DIGITS.finditer(text):
        number = "".join(char for char in match[0] if char.isdigit())
        known = any(start.match(number) and len(number) in lengths for start, lengths in _SCHEMES)
        if len(number) == 12:   # as short as a telephone number: only beside the word
            known = known and bool(_CARD_CUE.search(text, max(0, match.start() - 60), match.end() + 60))
        before = bisect_right(starts, match.start()) - 1
        inside = before >= 0 and match.start() < ibans[before].end
        if known and _luhn([int(digit) for digit in number]) and not inside:
            yield SecretHit(match.start(), match.end(), "payment card")


def _luhn(digits: list[int]) -> bool:
    """ISO/IEC 7812-1 annex B."""
    total = 0
    for at, digit in enumerate(reversed(digits)):
        doubled = digit * 2 if at % 2 else digit
        total += doubled - 9 if doubled > 9 else doubled
    return total % 10 == 0


def _dense(text: str) -> Iterator[SecretHit]:
    """Random-looking strings: all three kinds of characters, well mixed. Words, digests and peer ids are not."""
    for match in _DENSE.finditer(text):
        run = match[0]
        if _PEER_ID.fullmatch(run) or not _mixed(run):
            continue
        if _entropy_bits(run) >= min(_ENTROPY_BITS, math.log2(len(run)) - 0.45):
            yield SecretHit(match.start(), match.end(), "random-looking key")


def _mixed(run: str) -> bool:
    kinds = ["d" if char.isdigit() else "u" if char.isupper() else "l" if char.islower() else "s" for char in run]
    changes = sum(first != second for first, second in pairwise(kinds))
    return kinds.count("d") >= 3 and "u" in kinds and "l" in kinds and changes >= len(run) / 3


def _entropy_bits(run: str) -> float:
    """Shannon entropy per character."""
    return -sum(count / len(run) * math.log2(count / len(run)) for count in Counter(run).values())
