"""What is in the texts that should leave: label values, vault values, shaped identifiers, what detectors take for
personal, and secrets; before masking and, but for the detectors, after it.

Pure of decisions: it says what it found and which nets looked; egress decides. Tests compose a blind one to prove that
their checks notice. Must not know levels, consent, the ledger or frames.
"""

import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

from node.privacy.labels import Confidentiality, Labeled, Value, is_own_text, known_values
from node.privacy.language import foreign_language, is_function_word
from node.privacy.nets import KnownValues, Net, run_net
from node.privacy.off_loop import off_loop
from node.privacy.patterns import PatternNet
from node.privacy.vault import Hit, Vault, merge

__all__ = ["Inspected", "Inspector", "blank", "blanks"]

_SEAM_CHARS = 160   # a secret may be split over two texts: this much of both sides is read as one
_DETECT_S = 75.0    # the detectors' process may have to be started
_DETECT_CHARS_PER_S = 400.0
_NOTHING = Vault(())
_NAMES = frozenset({"PERSON", "ORG", "PLACE", "NAME"})
_NOUN = re.compile(r"\b(?:[Tt]he|[Aa]n?|this|that|these|those|[Mm]y|your|[Oo]ur|his|her|their|its|some|any|every|no)"
                   r"\s+([a-z]{3,30})\b")


@dataclass(frozen=True, slots=True)
class Inspected:
    """hits[i]: personal spans of text i, sorted, not overlapping. secrets: kinds of secrets, never their text.

    known[i]: those of labels, vault and patterns alone. guessed: what only the detectors found. gaps: nets that could
    not judge these texts ("detectors (German text)").
    """

    hits: tuple[tuple[Hit, ...], ...]
    secrets: tuple[str, ...]
    known: tuple[tuple[Hit, ...], ...] = ()
    guessed: tuple[Value, ...] = ()
    gaps: tuple[str, ...] = ()

    @property
    def personal(self) -> bool:
        """Some value that may be personal stands in some text."""
        return any(self.hits)


class Inspector:
    """The nets of one node. detectors: None until they are installed."""

    def __init__(
        self, *, vault: KnownValues | None, secrets: Net | None, detectors: Net | None, timeout_s: float = 20.0,
    ) -> None:
        """timeout_s: for each net and text. A missing vault or secrets net means that nothing leaves."""
        self._vault = vault
        self._patterns: Net = PatternNet()
        self._secrets = secrets
        self._detectors = detectors
        self._timeout_s = timeout_s

    @property
    def nets(self) -> tuple[str, ...]:
        """Names of the nets that look at a text."""
        return ("labels", "vault", "patterns", "secrets", *(("detectors",) if self._detectors is not None else ()))

    @property
    def missing(self) -> tuple[str, ...]:
        """Names of those that should, and are not there, or not wholly."""
        detectors = () if self._detectors is not None else ("detectors",)
        return (*detectors, *(self._vault.gaps if self._vault is not None else ()))

    async def inspect(self, parts: Sequence[Labeled], returned: Vault, *, guess: bool = True) -> Inspected:
        """Everything found in the parts. guess: let the detectors look, too.

        Raises GuardFailed when a net does not do its work.
        """
        known = [
            await _merged(part, [*_labelled(part), *await self._find(part.value, returned)]) for part in parts
        ]
        hits, guessed, gaps = known, dict[Value, None](), dict[str, None]()
        if guess and self._detectors is not None:
            hits = []
            nouns = _nouns(part.value for part in parts)
            for part, certain in zip(parts, known, strict=True):
                found = [hit for hit in await self._detect(part) if not _is_noun(part.value, hit, nouns)]
                more = list(_beside(certain, found, part.value))
                hits.append(await _merged(part, [*certain, *more]) if more else certain)
                sure = set(certain)
                guessed.update(
                    (Value(part.value[hit.start : hit.end], hit.type), None) for hit in hits[-1] if hit not in sure)
                gaps.update((gap, None) for gap in await off_loop(len(part.value), self.gaps_of, part))
        secrets = await self.find_secrets([part.value for part in parts], returned)
        return Inspected(tuple(hits), secrets, tuple(known), tuple(guessed), (*self.missing, *gaps))

    def gaps_of(self, part: Labeled) -> tuple[str, ...]:
        """The nets that are here and cannot judge this text."""
        language = None if is_own_text(part) or self._detectors is None else foreign_language(part.value)
        if language is None:
            return ()
        return (f"detectors ({language} text)" if language[0].isupper() else f"detectors ({language})",)

    async def find_secrets(self, texts: Sequence[str], returned: Vault) -> tuple[str, ...]:
        """Kinds of secrets in the texts and across their seams."""
        kinds: dict[str, None] = {}
        seams = [f"{one[-_SEAM_CHARS:]}\n{two[:_SEAM_CHARS]}" for one, two in pairwise(texts)]
        for text in (*texts, *seams):
            kinds.update((hit.type, None) for hit in await self._run(self._secrets, text, returned))
        return tuple(kinds)

    async def find_personal(self, texts: Iterable[str], returned: Vault) -> tuple[str, ...]:
        """Types of known values and of shaped identifiers in texts that should hold none."""
        kinds: dict[str, None] = {}
        for text in texts:
            kinds.update((hit.type, None) for hit in await self._find(text, returned))
        return tuple(kinds)

    def is_real(self, text: str, returned: Vault) -> bool:
        """Whether an invented name is, or has in it, a real one."""
        return self._vault is None or self._vault.holds(text) or bool(returned.find(text))

    async def _find(self, text: str, returned: Vault) -> list[Hit]:
        known = await self._run(self._vault, text, returned)
        return [*known, *await self._run(self._patterns, text, returned)]

    async def _detect(self, part: Labeled) -> list[Hit]:
        if is_own_text(part) or not part.value.strip():
            return []
        timeout_s = _DETECT_S + len(part.value) / _DETECT_CHARS_PER_S
        return await run_net(self._detectors, part.value, _NOTHING, timeout_s=timeout_s)

    async def _run(self, net: Net | None, text: str, returned: Vault) -> list[Hit]:
        return await run_net(net, text, returned, timeout_s=self._timeout_s)


def blanks(texts: Sequence[str], tokens: Iterable[str]) -> list[str]:
    """The same for several texts."""
    return [blank(text, tokens) for text in texts]


def _nouns(texts: Iterable[str]) -> frozenset[str]:
    """Words in lower case behind an article or the like: what these texts use as common nouns."""
    return frozenset(match[1] for text in texts for match in _NOUN.finditer(text))


def _is_noun(text: str, hit: Hit, nouns: frozenset[str]) -> bool:
    """Whether a guessed name is one of the nouns with a capital: "Roof" where "the roof" is spoken of."""
    written = text[hit.start : hit.end]
    return hit.type in _NAMES and written[:1].isupper() and written.isalpha() and written.lower() in nouns


def _beside(certain: Sequence[Hit], guessed: Iterable[Hit], text: str) -> Iterator[Hit]:
    """The guesses without what is certain, which is sorted and disjoint. Of one that reaches beyond a known value
    ("Tell Dana") only what may be more of a name remains."""
    starts, ends = [one.start for one in certain], [one.end for one in certain]
    for hit in guessed:
        start = hit.start
        touching = certain[bisect_right(ends, start) : bisect_left(starts, hit.end)]
        if not touching:
            yield hit
            continue
        for begin, end in [*((one.start, one.end) for one in touching), (hit.end, hit.end)]:
            rest = text[start:begin] if start < begin else ""
            if any(char.isupper() or char.isdigit() for char in rest) and not all(map(is_function_word, rest.split())):
                bare = rest.strip(" \t\r\n,;:-")
                at = start + rest.index(bare)
                yield Hit(at, at + len(bare), hit.type)
            start = max(start, end)


async def _merged(part: Labeled, found: list[Hit]) -> tuple[Hit, ...]:
    return tuple(await off_loop(len(part.value), merge, found, part.value))


def blank(text: str, tokens: Iterable[str]) -> str:
    """The text with every token overwritten by x: what is left must hold no personal value.

    Whole words only: a stand-in must not hide the beginning of somebody's longer name.
    """
    choice = "|".join(
        r"\b" * _is_word(token[0]) + re.escape(token) + r"\b" * _is_word(token[-1])
        for token in sorted(tokens, key=len, reverse=True))
    return re.sub(choice, lambda match: "x" * len(match[0]), text) if choice else text


def _is_word(char: str) -> bool:
    return char.isalnum() or char == "_"


def _labelled(part: Labeled) -> list[Hit]:
    """The spans that the part's own label declares personal, found literally, however short they are."""
    if part.confidentiality is Confidentiality.PUBLIC or not part.value.strip():
        return []
    if part.values is None:
        start = len(part.value) - len(part.value.lstrip())
        return [Hit(start, len(part.value.rstrip()), "PRIVATE")]
    hits = []
    for value in known_values(part):
        if value.text.strip():
            literal = re.compile(rf"(?<!\w){re.escape(value.text.strip())}(?!\w)", re.IGNORECASE)
            hits += [Hit(match.start(), match.end(), value.type) for match in literal.finditer(part.value)]
    return hits
