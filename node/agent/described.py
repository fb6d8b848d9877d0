"""Which of some tools that are known by description alone is asked for, and whether any is.

For tools of others, without examples, cues or readers: the agent's own go by choice.py and gate.py. What counts is how
alike request and description are as wholes, and how well each word of one is met by a word of the other (static
vectors; names like Marie or Paris in a request count nowhere). The logistic over that is fitted on half of a public
list and kept in described.json (benchmarks/described_fit.py writes it). Must not know models, slots or what tools do.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib import resources
from math import exp

import msgspec

from node.agent.ports import Embedder
from node.agent.vectors import Vector, alike, unit

__all__ = ["FEATURES", "Described", "DescribedChoice", "DescribedChooser", "DescribedConstants", "features_of",
           "load_described"]

FEATURES = ("name", "described", "whole", "name_met", "description_met", "request_met", "same_words", "same_name",
            "numbers_lacking")
_WORDS_LIMIT = 80
"""More words of a description than this are not looked at one by one."""
_REMEMBERED = 4_000
_COMMON = frozenset((
    "a", "about", "all", "an", "and", "any", "are", "as", "at", "be", "been", "between", "by", "can", "could",
    "did", "do", "does", "find", "for", "from", "get", "give", "has", "have", "how", "i", "if", "in", "into",
    "is", "it", "its", "me", "my", "of", "on", "or", "please", "s", "t", "tell", "than", "that", "the", "their",
    "there", "these", "this", "those", "to", "use", "using", "was", "were", "what", "when", "where", "which",
    "who", "will", "with", "would", "you", "your",
))
_NUMERIC = frozenset({"integer", "float", "number"})


@dataclass(frozen=True, slots=True)
class Described:
    """A tool as its maker describes it."""

    name: str
    description: str
    parameters: Mapping[str, str]
    """Their descriptions, by name."""
    needs_number: bool = False

    @classmethod
    def of(cls, name: str, description: str, schema: Mapping[str, object]) -> "Described":
        """From a JSON schema of the parameters."""
        found = schema.get("properties")
        properties = found if isinstance(found, Mapping) else {}
        wanted = schema.get("required")
        required = wanted if isinstance(wanted, Sequence) else ()
        described = {str(key): _text_of(entry, "description") for key, entry in properties.items()}
        numbers = any(_text_of(properties.get(key), "type") in _NUMERIC for key in required)
        return cls(name, description, described, numbers)


class DescribedConstants(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The fitted logistic, and the probability from which on a tool is called."""

    features: tuple[str, ...]
    mean: tuple[float, ...]
    scale: tuple[float, ...]
    weight: tuple[float, ...]
    bias: float
    call_p: float
    fitted: str

    def probability(self, features: Sequence[float]) -> float:
        """How likely the tool is meant."""
        z = self.bias + sum(
            weight * (value - mean) / scale
            for weight, value, mean, scale in zip(self.weight, features, self.mean, self.scale, strict=True))
        return 1.0 / (1.0 + exp(-max(-30.0, min(30.0, z))))


@dataclass(frozen=True, slots=True)
class DescribedChoice:
    """The best tool; called False when none is meant."""

    name: str
    p: float
    called: bool


class DescribedChooser:
    """Chooses among tools that come with each request."""

    def __init__(self, embedder: Embedder, constants: DescribedConstants | None = None) -> None:
        self._embedder = embedder
        self._constants = constants or load_described()
        self._known: dict[str, Vector] = {}

    async def choose(self, text: str, tools: Sequence[Described]) -> DescribedChoice | None:
        """The tool that text most likely asks for; None without tools. Raises what the embedder raises."""
        best: DescribedChoice | None = None
        for tool, features in zip(tools, await self.features(text, tools), strict=True):
            p = self._constants.probability(features)
            if best is None or p > best.p:
                best = DescribedChoice(tool.name, p, p >= self._constants.call_p)
        return best

    async def features(self, text: str, tools: Sequence[Described]) -> list[tuple[float, ...]]:
        """FEATURES of each tool."""
        texts = {part for tool in tools for part in (text, *_texts(tool), *_request_words(text), *_tool_words(tool))}
        await self._learn(texts)
        return [features_of(text, tool, self._known) for tool in tools]

    async def _learn(self, texts: set[str]) -> None:
        if len(self._known) > _REMEMBERED:
            self._known.clear()
        new = [text for text in texts if text not in self._known]
        if new:
            self._known.update(zip(new, map(unit, await self._embedder.embed(new)), strict=True))


def features_of(text: str, tool: Described, vectors: Mapping[str, Vector]) -> tuple[float, ...]:
    """FEATURES, in their order. vectors: of text, of the tool's texts and of every word."""
    name, described, whole = (alike(vectors[text], vectors[part]) for part in _texts(tool))
    said, names, words = _request_words(text), _content(tool.name), _tool_words(tool)
    told = _content(f"{tool.name} {tool.description}")[:_WORDS_LIMIT]
    return (
        name, described, whole, _met(names, said, vectors), _met(told, said, vectors), _met(said, words, vectors),
        _share(said, words), _share(names, _words(text)),
        float(tool.needs_number and not re.search(r"\d", text)),
    )


def load_described() -> DescribedConstants:
    """The constants that ship with the node."""
    raw = resources.files("node.agent").joinpath("described.json").read_bytes()
    return msgspec.json.decode(raw, type=DescribedConstants)


def _texts(tool: Described) -> tuple[str, str, str]:
    """The name, with the description, with the parameters too."""
    name = " ".join(_words(tool.name)) or tool.name
    described = f"{name}. {tool.description}"
    parameters = " ".join(f"{' '.join(_words(key))} {text}" for key, text in tool.parameters.items())
    return name, described, f"{described} {parameters}"


def _tool_words(tool: Described) -> list[str]:
    return _content(_texts(tool)[2])[:_WORDS_LIMIT]


def _request_words(text: str) -> list[str]:
    """The words of content that are no names: small letters, or the first word."""
    found = re.findall(r"[A-Za-z]+", text)
    said = [word.lower() for index, word in enumerate(found) if index == 0 or word.islower()]
    return [word for word in said if word not in _COMMON and len(word) > 1][:_WORDS_LIMIT]


def _words(text: str) -> list[str]:
    parted = re.sub(r"([a-z])([A-Z])", r"\1 \2", text)
    return [word.lower() for word in re.findall(r"[A-Za-z]+", parted)]


def _content(text: str) -> list[str]:
    return [word for word in _words(text) if word not in _COMMON and len(word) > 1]


def _met(wanted: Sequence[str], by: Sequence[str], vectors: Mapping[str, Vector]) -> float:
    """How well each wanted word is met by its nearest among the others, on average."""
    if not wanted or not by:
        return 0.0
    others = [vectors[word] for word in dict.fromkeys(by)]
    return sum(max(alike(vectors[word], other) for other in others) for word in wanted) / len(wanted)


def _share(wanted: Sequence[str], by: Sequence[str]) -> float:
    """The share of different wanted words that stand there as they are."""
    return len(set(wanted) & set(by)) / len(set(wanted)) if wanted else 0.0


def _text_of(entry: object, key: str) -> str:
    return str(entry.get(key, "")) if isinstance(entry, Mapping) else ""
