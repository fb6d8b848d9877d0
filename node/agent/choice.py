"""Which tool a request asks for: static vectors, cue words, what the readers found, and whether it asks or commands.

A score per tool, best first; deciding whether the best is good enough is the gate's job. A request that removes
something can only ever mean a destructive tool: that rule comes before every score. Must not know models, slots'
values or approvals.
"""

import logging
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib import resources
from math import sqrt
from operator import mul
from types import MappingProxyType

from node.agent.heavy import Work, lacks_means, work_of
from node.agent.ports import Embedder
from node.agent.readers.numbers import fold
from node.agent.tools.registry import ToolKind, ToolSpec

__all__ = ["Choosable", "Chooser", "Ranking", "Scored", "is_question", "removes"]

_log = logging.getLogger(__name__)
_CUE_WEIGHT = 0.1
_EVIDENCE_WEIGHT = 0.15
_SAME_WORDS = 0.8
"""From here on a confirmed sentence is the owner's way of asking for this tool."""
_MOOD_WEIGHT = 0.08
_LEAD = 0.5
"""More for a cue that the request begins with: "note that the meeting moved" is a note, whatever follows."""

_POLITE = (
    r"(?:(?:please|kith|hey|ok|now|just|also|and|then|so)\b[\s,]*|(?:can|could|would|"
    r"will)\s+you\s+(?:please\s+)?|"
    r"i\s+(?:want|need|would\s+like|[’']?d\s+like)\s+(?:you\s+)?to\s+|i[’']d\s+like\s+(?:you\s+)?to\s+|"
    r"let[’']?s\s+)*"
)
_REMOVES = re.compile(
    rf"^\s*{_POLITE}(?:cancel|delete|remove|erase|discard|drop|clear|wipe|scrap|trash|unschedule|destroy|purge|"
    r"get\s+rid\s+of|throw\s+away|call\s+off|move|reschedule|postpone|push\s+back|bring\s+forward|rename|"
    r"change\s+(?:my|the)\s+(?:\w+\s+){0,3}(?:appointment|meeting|event|note)s?)\b|\boff\s+(?:of\s+)?(?:my|"
    r"the)\s+(?:calendar|schedule|agenda|list)\b|"
    rf"^\s*{_POLITE}take\b.+\b(?:off|out\s+of)\s+(?:my|the)\s+(?:calendar|schedule|agenda|list)\b",
)
_LEADING = re.compile(rf"\s*{_POLITE}")
_PURCHASES = re.compile(
    rf"^\s*{_POLITE}(?:book|reserve|order|buy|get|rent|hire)\s+(?:me\s+|us\s+)?(?:(?:a|an|the|some|one|two|three|"
    rf"four|\d+|my|our)\s+)*"
    r"(?:\w+\s+)?(?:flights?|hotels?|tickets?|taxi|cab|trains?|airbnb|rental|tables?\s+(?:at|for)|seats?)\b",
)
_QUESTION = re.compile(
    r"^\s*(?:what|which|when|where|who|whom|whose|why|how|is|are|was|were|am|do|does|did|has|have|had|any|may|"
    r"(?:can|could|should|will|would)\s+(?!you\b))\b",
)
_COMMAND = re.compile(
    rf"^\s*{_POLITE}(?:schedule|book|add|put|set|create|make|write|send|remind|block|jot|note|save|enter|arrange|"
    rf"organi[sz]e|"
    r"plan|invite|text|message|tell|turn|switch|enable|disable|change|append|insert|reserve|record|remember|pencil|"
    r"take)\b",
)


def removes(text: str) -> bool:
    """True when the request itself is to remove or move something that exists; false for "remind me to cancel the
    gym"."""
    return _REMOVES.search(fold(text)) is not None


def is_question(text: str) -> bool:
    """True when the request asks; polite commands ("can you ...") do not."""
    return _QUESTION.search(fold(text)) is not None


@dataclass(frozen=True, slots=True)
class Choosable:
    """What can be chosen: a tool or a skill, with the sentences that ask for it."""

    name: str
    description: str
    examples: tuple[str, ...]
    cues: tuple[str, ...]
    kind: ToolKind
    objects: tuple[str, ...] = ()

    @classmethod
    def of(cls, spec: ToolSpec) -> "Choosable":
        """The tool's own words about itself."""
        return cls(spec.name, spec.description, spec.examples, spec.cues, spec.kind, spec.objects)


@dataclass(frozen=True, slots=True)
class Scored:
    """One tool's score and what made it."""

    name: str
    score: float
    vector: float
    cue: float
    """Cue words that were said, each shared among the tools that claim it, at most 1; half more when one leads."""
    evidence: float


@dataclass(frozen=True, slots=True)
class Ranking:
    """All candidates, best first."""

    tools: tuple[Scored, ...]
    nobody: float
    """Cosine to the nearest sentence that asks for what no node can do."""
    lacking: bool = False
    """True when the words ask for what needs a device or a service that no node has."""
    vetoed: bool = False
    """True when the request removes something: only destructive tools are in the ranking."""

    @property
    def margin(self) -> float:
        """How far the best is ahead of the second."""
        return self.tools[0].score - self.tools[1].score if len(self.tools) > 1 else 1.0

    @property
    def features(self) -> tuple[float, ...]:
        """What the gate looks at, in its order: score, vector, vector minus nobody, cue, evidence, margin, lacking."""
        best = self.tools[0]
        return (best.score, best.vector, best.vector - self.nobody, best.cue, best.evidence, self.margin,
                float(self.lacking))


Vector = Sequence[float]


class Chooser:
    """Ranks tools for requests. Embeds the tools' own sentences once."""

    def __init__(self, tools: Sequence[Choosable], embedder: Embedder) -> None:
        self._tools = tuple(tools)
        self._embedder = embedder
        self._cue_owners = Counter(cue for tool in self._tools for cue in set(tool.cues))
        self._described: list[Vector] = []
        self._examples: list[list[Vector]] = []
        self._nobody: list[Vector] = []

    async def prepare(self) -> None:
        """Embed descriptions, examples and the sentences nobody can serve; called by choose when it was not."""
        nobody = nobody_can()
        texts = [f"{tool.name.replace('_', ' ')}. {tool.description}" for tool in self._tools]
        texts += [example for tool in self._tools for example in tool.examples] + list(nobody)
        vectors = [_unit(vector) for vector in await self._embedder.embed(texts)]
        count = len(self._tools)
        described, rest = vectors[:count], vectors[count:]
        examples: list[list[Vector]] = []
        for tool in self._tools:
            examples.append(rest[: len(tool.examples)])
            rest = rest[len(tool.examples) :]
        self._described, self._examples, self._nobody = described, examples, rest

    async def choose(
        self, text: str, evidence: Mapping[str, float], learnt: Mapping[str, float] = MappingProxyType({}),
    ) -> Ranking:
        """The tools for text, best first. evidence: share of a tool's required arguments that readers found, by
        name. learnt: by name, how alike the nearest sentence is that the owner confirmed for the tool."""
        query = await self._vector(text)
        low = fold(text)
        question, command, veto = is_question(text), _COMMAND.search(low) is not None, removes(text)
        buys = _PURCHASES.search(low) is not None        # "book a flight" is no appointment
        lacking = buys or lacks_means(text) or work_of(text, has_material=False) is Work.LIVE
        leading = _LEADING.match(low)
        head = low[leading.end() :] if leading else low
        scored: list[Scored] = []
        for index, tool in enumerate(self._tools):
            if (veto and tool.kind != "destructive") or (buys and tool.kind != "read"):
                continue
            if tool.objects and not any(_has(low, word) for word in tool.objects):
                continue        # "cancel my dentist appointment" removes no reminder
            vector = self._similarity(query, index, learnt.get(tool.name, 0.0))
            cue = min(1.0, sum(1 / self._cue_owners[word] for word in set(tool.cues) if _has(low, word)))
            cue += _LEAD * any(_has(head[: len(word) + 1], word) for word in tool.cues)
            share = evidence.get(tool.name, 0.0)
            score = vector + _CUE_WEIGHT * cue + _EVIDENCE_WEIGHT * share
            if (question and tool.kind != "read") or (command and not question and tool.kind == "read"):
                score -= _MOOD_WEIGHT
            scored.append(Scored(tool.name, score, vector, cue, share))
        scored.sort(key=lambda item: -item.score)
        nobody = max((_dot(query, vector) for vector in self._nobody), default=0.0) if query else 0.0
        return Ranking(tuple(scored), nobody, lacking=lacking, vetoed=veto)


    def _similarity(self, query: Vector, index: int, learnt: float) -> float:
        if not query:
            return 0.0
        described = _dot(query, self._described[index])
        example = max((_dot(query, vector) for vector in self._examples[index]), default=described)
        ordinary = (described + max(example, learnt)) / 2
        return max(ordinary, learnt) if learnt >= _SAME_WORDS else ordinary

    async def _vector(self, text: str) -> Vector:
        """The request's vector; empty when the worker is down: then cues and evidence alone decide, and the gate
        asks."""
        try:
            if not self._described:
                await self.prepare()
            return _unit((await self._embedder.embed([text]))[0])
        except Exception as error:
            _log.warning("no vectors for the choice of a tool: %s", type(error).__name__)
            return ()


def nobody_can() -> tuple[str, ...]:
    """Sentences that ask for what no node can do: one feature of the gate."""
    lines = resources.files("node.agent").joinpath("nobody_can.txt").read_text(encoding="utf-8").splitlines()
    return tuple(line.strip() for line in lines if line.strip())


def _has(low: str, cue: str) -> bool:
    position = low.find(cue)
    while position >= 0:
        end = position + len(cue)
        starts = position == 0 or not low[position - 1].isalnum() or not cue[0].isalnum()
        plural = low[end : end + 1] == "s" and not low[end + 1 : end + 2].isalnum()      # "gap" is said in "gaps"
        if starts and (end == len(low) or not low[end].isalnum() or not cue[-1].isalnum() or plural):
            return True
        position = low.find(cue, position + 1)
    return False


def _unit(vector: Vector) -> Vector:
    length = sqrt(sum(map(mul, vector, vector))) or 1.0
    return tuple(value / length for value in vector)


def _dot(a: Vector, b: Vector) -> float:
    return float(sum(map(mul, a, b)))
