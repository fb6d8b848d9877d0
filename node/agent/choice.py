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
from heapq import nlargest
from importlib import resources
from types import MappingProxyType

from node.agent.heavy import Work, lacks_means, work_of
from node.agent.ports import Embedder
from node.agent.readers.courtesy import core
from node.agent.readers.numbers import fold
from node.agent.sentences import WordOdds, frame, unlike
from node.agent.tools.registry import ToolKind, ToolSpec
from node.agent.vectors import Vector, alike, unit

__all__ = ["FEATURES", "Choosable", "Chooser", "Ranking", "Scored", "forbids", "is_question", "removes"]

_log = logging.getLogger(__name__)
# Weights beside the vectors' one: fitted as a choice among tools on open parts of the bank and two public corpora, each
# measured with what the others gave, then rounded (docs/explain/agent.md).
_CUE_WEIGHT = 0.05
_EVIDENCE_WEIGHT = 0.1
_MOOD_WEIGHT = 0.1
_WORDS_WEIGHT = 0.007
_SAME_WORDS = 0.8
"""From here on a confirmed sentence is the owner's way of asking for this tool."""
_COARSE = 64
"""The first numbers of a vector say most: they find the candidates, all numbers decide among them."""
_CANDIDATES = 8
_NEAREST = 3
"""So many of a tool's examples count together, beside the nearest alone: one may be near by its content."""
_NOBODY = ""
"""Stands for "no tool" among the tools' names where words are counted."""
_LEAD = 0.5
"""More for a cue that the request begins with: "note that the meeting moved" is a note, whatever follows."""

_POLITE = (
    r"(?:(?:please|kith|hey|ok|now|just|also|and|then|so)\b[\s,]*|(?:can|could|would|"
    r"will)\s+you\s+(?:please\s+)?|"
    r"i\s+(?:want|need|would\s+like|[’']?d\s+like)\s+(?:you\s+)?to\s+|i[’']d\s+like\s+(?:you\s+)?to\s+|"
    r"let[’']?s\s+)*"
)
_REMOVES = re.compile(
    rf"^\s*{_POLITE}(?:cancel|delete|remove|erase|discard|drop(?!\s+(?:\w+\s+){{1,3}}an?\s+)|clear|cross\s+(?:off"
    rf"|out)|tick\s+off|strike|wipe|scrap|trash|unschedule|destroy|purge|"
    r"get\s+rid\s+of|push\s+.{1,40}\s+back|throw\s+away|call\s+off|move|reschedule|postpone|push\s+back|bring\s+"
    r"forward|rename|"
    r"snooze|put\s+.{1,30}\s+on\s+hold|change\s+(?:my|the)\s+(?:\w+\s+){0,3}(?:appointment|meeting|event|note"
    r"|reminder|alarm)s?)\b|\boff\s+(?:of\s+)?(?:my|"
    r"the)\s+(?:[\w-]+\s+){0,3}(?:calendar|schedule|agenda|list)\b|"
    rf"^\s*{_POLITE}take\b.+\b(?:off|out\s+of)\s+(?:of\s+)?(?:my|the)\s+(?:[\w-]+\s+){{0,3}}"
    r"(?:calendar|schedule|agenda|list)\b|\b(?:event|meeting|appointment|entry|reminder|that|it)\s+"
    r"(?:can\s+)?(?:be\s+)?taken\s+(?:out|off)\b|"
    r"^\s*(?:(?:no|oops|sorry|wait|actually|make\s+(?:it|that))\b[,.! ]*)+(?:\S+\s+){0,3}(?:hours?|minutes?|mins?|"
    r"days?|weeks?|bit|little)\s+(?:earlier|later|sooner)\s*[.!]?\s*$",
)
_FORBIDS = re.compile(
    rf"^\s*{_POLITE}(?:(?:do\s+not|don[’']?t|never|(?:there\s+is\s+)?no\s+need\s+to|you\s+need(?:n[’']?t|\s+not)|"
    r"you\s+don[’']?t\s+(?:have|need)\s+to)\s+(?:please\s+|ever\s+)?(?:schedule|book|add|put|set|create|make|write|send|"
    r"remind|block|jot|note|save|enter|arrange|organi[sz]e|plan|invite|text|message|tell|notify|inform|ping|nudge)|"
    r"stop\s+(?:reminding|telling|sending|messaging|texting))\b"
    r"(?!.*(?:[,;:?]|\b(?:but|just|only|until|till|before|after|unless|without|instead|rather|than)\b))",
)
"""A command turned round and nothing else: "don't tell Dana that I am late", but not "don't book it, just look"."""
_LEADING = re.compile(rf"\s*{_POLITE}")
_PURCHASES = re.compile(
    rf"^\s*{_POLITE}(?:book|reserve|order|buy|get|rent|hire|schedule)\s+(?:me\s+|us\s+)?(?:(?:a|an|the|some|one|two|three|"
    rf"four|\d+|my|our)\s+)*"
    r"(?:on(?:to)?\s+the\s+)?(?:[\w:]+\s+){0,2}(?:flights?|hotels?|tickets?|taxi|cab|trains?|airbnb|rental"
    r"|tables?\s+(?:at|for)|seats?)\b",
)
_WHY = re.compile(r"\s*why\b(?!\s+(?:not|don[’']?t\s+(?:you|we|i))\b)")
_QUESTION = re.compile(
    r"^\s*(?:what|which|when|where|who|whom|whose|why|how|is|are|was|were|am|do|does|did|has|have|had|any|may|"
    r"(?:can|could|should|will|would)\s+(?!you\b))\b|"
    rf"^\s*{_POLITE}(?:tell\s+me\s+(?!to\b|at\b|in\b|on\b|when\s+it\b|tomorrow\b|tonight\b|later\b)|let\s+me\s+"
    rf"(?:see|hear|"
    r"have|know\s+(?:what|when|who|where|which|if|how))\b|i\s+wonder\b|do\s+tell\b)",
)
_COMMAND = re.compile(
    rf"^\s*{_POLITE}(?:schedule|book|add|put|set|create|make|write|send|remind|block|jot|note|save|enter|arrange|"
    rf"organi[sz]e|"
    r"plan|invite|text|message|tell(?!\s+me\b(?!\s+(?:at|in|on|tomorrow|tonight|later|this|next)\b))|turn|switch"
    r"|enable|disable|change|append|insert|reserve|record|remember|"
    r"pencil|take|pop|stick|tack|chuck|include|log|drop|shoot|notify|inform|ask|nudge|ping|alert|mark)\b",
)


_PASSED_ON = re.compile(
    rf"^\s*{_POLITE}(?:(?:tell|inform|notify|text|message|ping)\s+(?!me\b|us\b)(?:\S+\s+){{1,5}}?that\b|"
    r"let\s+(?!me\b|us\b)(?:\S+\s+){1,5}?know\b)",
)
"""Words for somebody else: whatever they speak of, only a tool that sends can be meant."""


def _asked(text: str) -> str:
    return fold(core(text).of(text))


def removes(text: str) -> bool:
    """True when the request itself is to remove or move something that exists, or not to do something; false for
    "remind me to cancel the gym"."""
    return _REMOVES.search(_asked(text)) is not None or forbids(text)


def forbids(text: str) -> bool:
    """True when the request is only not to do something: no tool that does it can be meant."""
    return _FORBIDS.search(_asked(text)) is not None


def is_question(text: str) -> bool:
    """True when the request asks; polite commands ("can you ...") do not."""
    return _QUESTION.search(_asked(text)) is not None


@dataclass(frozen=True, slots=True)
class Choosable:
    """What can be chosen: a tool or a skill, with the sentences that ask for it."""

    name: str
    description: str
    examples: tuple[str, ...]
    cues: tuple[str, ...]
    kind: ToolKind
    objects: tuple[str, ...] = ()
    sends: bool = False

    @classmethod
    def of(cls, spec: ToolSpec) -> "Choosable":
        """The tool's own words about itself."""
        return cls(spec.name, spec.description, spec.examples, spec.cues, spec.kind, spec.objects, spec.sends)


@dataclass(frozen=True, slots=True)
class Scored:
    """One tool's score and what made it."""

    name: str
    score: float
    vector: float
    cue: float
    """Cue words that were said, each shared among the tools that claim it, at most 1; half more when one leads."""
    evidence: float
    words: float = 0.0
    """Log odds of the words for this tool, as its examples teach them."""
    shown: bool = False
    """True when what the tool would do is shown to the owner before it is done."""


@dataclass(frozen=True, slots=True)
class Ranking:
    """All candidates, best first."""

    tools: tuple[Scored, ...]
    nobody: float
    """How near the sentences are that ask for what no node can do, as Scored.vector."""
    against_mood: bool = False
    """True when it asks and the best tool writes, or it commands and the best only reads."""
    nobody_words: float = 0.0
    """Log odds of the words for those sentences, as Scored.words."""
    lacking: bool = False
    """True when the words ask for what needs a device or a service that no node has."""
    vetoed: bool = False
    """True when the request removes something, or forbids it: only destructive tools are in the ranking."""

    @property
    def margin(self) -> float:
        """How far the best is ahead of the second."""
        return self.tools[0].score - self.tools[1].score if len(self.tools) > 1 else 1.0

    @property
    def features(self) -> tuple[float, ...]:
        """What the gate looks at, in the order of FEATURES."""
        best = self.tools[0]
        return (best.score, best.vector, best.vector - self.nobody, best.cue, best.evidence, self.margin,
                float(self.lacking), best.words, best.words - self.nobody_words, float(self.against_mood))


FEATURES = (
    "score", "vector", "vector_minus_nobody", "cue", "evidence", "margin", "lacking", "words", "words_minus_nobody",
    "against_mood",
)

@dataclass(frozen=True, slots=True)
class _Sentences:
    """Sentences as vectors: whole, and by their frames alone."""

    whole: "_Vectors"
    frames: "_Vectors"


@dataclass(frozen=True, slots=True)
class _Vectors:
    """Unit vectors, each beside its first numbers."""

    coarse: tuple[Vector, ...] = ()
    exact: tuple[Vector, ...] = ()

    @classmethod
    def of(cls, vectors: Sequence[Vector]) -> "_Vectors":
        return cls(tuple(vector[:_COARSE] for vector in vectors), tuple(vectors))

    def nearest(self, query: Vector, count: int) -> list[float]:
        """The cosines of the nearest few, the nearest first."""
        head = query[:_COARSE]
        near = nlargest(_CANDIDATES, range(len(self.exact)), key=lambda index: alike(head, self.coarse[index]))
        return nlargest(count, (alike(query, self.exact[index]) for index in near))


class Chooser:
    """Ranks tools for requests. Embeds the tools' own sentences once."""

    def __init__(self, tools: Sequence[Choosable], embedder: Embedder) -> None:
        self._tools = tuple(tools)
        self._embedder = embedder
        self._cue_owners = Counter(cue for tool in self._tools for cue in set(tool.cues))
        self._hopeless = unlike(nobody_can(), [example for tool in tools for example in tool.examples])
        self._odds = WordOdds({_NOBODY: self._hopeless, **{tool.name: tool.examples for tool in tools}})
        self._described: list[Vector] = []
        self._examples: list[_Sentences] = []
        self._nobody = _Sentences(_Vectors(), _Vectors())

    async def prepare(self) -> None:
        """Embed descriptions, examples and the sentences nobody can serve; called by choose when it was not."""
        described = await self._vectors([f"{tool.name.replace('_', ' ')}. {tool.description}" for tool in self._tools])
        examples = [await self._sentences(tool.examples) for tool in self._tools]
        self._nobody = await self._sentences(self._hopeless)
        self._described, self._examples = described, examples

    async def choose(
        self, text: str, evidence: Mapping[str, float], learnt: Mapping[str, float] = MappingProxyType({}),
    ) -> Ranking:
        """The tools for text, best first. evidence: share of a tool's required arguments that readers found, by
        name. learnt: by name, how alike the nearest sentence is that the owner confirmed for the tool."""
        query = await self._query(text)
        low = fold(text)
        question, command, veto = is_question(text), _COMMAND.search(_asked(text)) is not None, removes(text)
        buys = _PURCHASES.search(low) is not None        # "book a flight" is no appointment
        lacking = buys or _WHY.match(low) is not None or lacks_means(text)
        lacking = lacking or work_of(text, has_material=False) is Work.LIVE
        leading = _LEADING.match(low)
        head = low[leading.end() :] if leading else low
        against = {"write", "destructive"} if question else {"read"} if command else set()
        passed_on = _PASSED_ON.search(low) is not None and any(tool.sends for tool in self._tools)
        odds = self._odds.of(text)
        scored: list[Scored] = []
        for index, tool in enumerate(self._tools):
            if (veto and tool.kind != "destructive") or (buys and tool.kind != "read"):
                continue
            if tool.objects and not any(_has(low, word) for word in tool.objects):
                continue        # "cancel my dentist appointment" removes no reminder
            if passed_on and not tool.sends:
                continue        # "tell Dana that we meet on Tuesday" is no appointment
            vector = self._similarity(query, index, learnt.get(tool.name, 0.0))
            cue = min(1.0, sum(1 / self._cue_owners[word] for word in set(tool.cues) if _has(low, word)))
            cue += _LEAD * any(_has(head[: len(word) + 1], word) for word in tool.cues)
            share, words = evidence.get(tool.name, 0.0), odds.get(tool.name, 0.0)
            score = vector + _CUE_WEIGHT * cue + _EVIDENCE_WEIGHT * share + _WORDS_WEIGHT * words
            if tool.kind in against:
                score -= _MOOD_WEIGHT
            scored.append(Scored(tool.name, score, vector, cue, share, words, tool.kind != "read"))
        scored.sort(key=lambda item: -item.score)
        nobody = sum(_nearest(query, self._nobody)) / 4 if query.whole else 0.0
        mood = any(tool.kind in against for tool in self._tools if scored and tool.name == scored[0].name)
        return Ranking(
            tuple(scored), nobody, against_mood=mood, nobody_words=odds.get(_NOBODY, 0.0), lacking=lacking, vetoed=veto,
        )

    def _similarity(self, query: "_Query", index: int, learnt: float) -> float:
        """The mean of five: the description, the nearest example and the nearest few, both whole and by frames."""
        if not query.whole:
            return 0.0
        described = alike(query.whole, self._described[index])
        nearest, few, *frames = _nearest(query, self._examples[index], described)
        ordinary = (described + max(nearest, learnt) + few + sum(frames)) / 5
        return max(ordinary, learnt) if learnt >= _SAME_WORDS else ordinary

    async def _query(self, text: str) -> "_Query":
        """The request's vectors; empty when the worker is down: then words, cues and evidence alone decide, and the
        gate asks."""
        try:
            if not self._described:
                await self.prepare()
            return _Query(*await self._vectors([core(text).of(text), frame(text)]))
        except Exception as error:
            _log.warning("no vectors for the choice of a tool: %s", type(error).__name__)
            return _Query((), ())

    async def _sentences(self, texts: Sequence[str]) -> _Sentences:
        vectors = await self._vectors([*texts, *map(frame, texts)])
        return _Sentences(_Vectors.of(vectors[: len(texts)]), _Vectors.of(vectors[len(texts) :]))

    async def _vectors(self, texts: Sequence[str]) -> list[Vector]:
        return [unit(vector) for vector in await self._embedder.embed(texts)] if texts else []


@dataclass(frozen=True, slots=True)
class _Query:
    whole: Vector
    frame: Vector


def _nearest(query: _Query, sentences: _Sentences, otherwise: float = 0.0) -> tuple[float, float, float, float]:
    """The cosine of the nearest sentence and the mean of the nearest few: whole, then by frames."""
    found: list[float] = []
    for vector, others in ((query.whole, sentences.whole), (query.frame, sentences.frames)):
        near = others.nearest(vector, _NEAREST) or [otherwise]
        found += near[0], sum(near) / len(near)
    return found[0], found[1], found[2], found[3]


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

