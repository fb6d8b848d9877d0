"""Sums and units, worked out by code: what a small model gets wrong and never needs to see.

Taken only when nothing but the sum or the conversion is asked. Must not know models, tools or sources.
"""

import re

from node.agent.readers.quantities import conversion, convert, evaluate, expression
from node.agent.readers.shares import numbers_used, sharing
from node.agent.skills.registry import SkillCall, SkillOutcome, SkillSay
from node.agent.slots import Reading
from node.privacy.labels import Confidentiality, Integrity, Labeled

__all__ = ["WorkOut"]

_ROUND = re.compile(
    r"\b(?:what\s+is|what[’']?s|how\s+much|how\s+many|is|are|does|make|equals?|calculate|compute|work\s+out|"
    r"evaluate|solve|convert|"
    r"tell\s+me|please|can|could|you|the|result|sum|of|in|into|to|there|a|an|and|add|up|kith|total|altogether|together)\b|"
    r"[\s?.=!,:]+",
    re.IGNORECASE,
)
_CURRENCIES = (r"€|\beuros?\b|\beur\b", r"\$|\bdollars?\b|\busd\b", r"£|\bpounds\b|\bgbp\b", r"\bfrancs?\b|\bchf\b")


class WorkOut:
    """The skill; it has no sources."""

    name = "work_out"
    description = "Work out sums and convert units"
    claims: tuple[str, ...] = ()
    examples = ("what is 15% of 80?", "3 miles in km", "split 86.40 between 4 people")
    cues: tuple[str, ...] = ()

    def takes(self, tool: str, reading: Reading) -> bool:
        """Never in a tool's place."""
        return False

    def evidence(self, reading: Reading) -> float:
        """None: it is taken when it is sure, or not at all."""
        return 0.0

    def sure(self, reading: Reading) -> bool:
        """True when the request is a sum or a conversion and nothing else."""
        return _answer(reading.text) is not None

    async def run(self, call: SkillCall) -> SkillOutcome:
        """The result."""
        text = _answer(call.reading.text) or "There is nothing to work out in that."
        return SkillSay(Labeled(text, Confidentiality.PUBLIC, Integrity.OWNER, "worked "
            "out"), "worked out by code on this device")


def _answer(text: str) -> str | None:
    said = conversion(text)
    if said.amount and said.source and said.target:
        spans = [part[1] for part in (said.amount, said.source, said.target)]
        result = convert(float(said.amount[0]), said.source[0], said.target[0])
        if result is not None and _nothing_else(text, [(span.start, span.end) for span in spans]):
            return f"{said.amount[0]} {said.source[0]} = {result:.6g} {said.target[0]}"
    if sum(re.search(words, text, re.IGNORECASE) is not None for words in _CURRENCIES) > 1:
        return None         # nothing here knows what a dollar is worth
    shared = sharing(text)
    if shared and (value := evaluate(shared)) is not None:
        return f"{shared} = {value:.12g}"
    text = re.sub("|".join(_CURRENCIES), lambda match: " " * len(match.group()), text, flags=re.IGNORECASE)
    found = expression(text)
    if found is None or not _nothing_else(text, [(found.said.start, found.said.end)]):
        return None
    if not numbers_used(found.said.of(text), found.code):
        return None
    value = evaluate(found.code)
    return None if value is None else f"{re.sub(' +', ' ', found.code)} = {value:.12g}"


def _nothing_else(text: str, spans: list[tuple[int, int]]) -> bool:
    rest, position = "", 0
    for start, end in sorted(spans):
        rest, position = rest + text[position:start] + " ", end
    return not _ROUND.sub("", rest + text[position:]).strip()
