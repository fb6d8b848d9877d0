"""Whether the best tool is good enough: act, ask, or say no.

A logistic over the features of a ranking, with constants fitted on the development bank and kept in gate.json
beside this file together with how they were fitted (benchmarks/agent_fit.py writes it). Must not know vectors,
texts or tools.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from importlib import resources
from math import exp

import msgspec

from node.agent.choice import Ranking

__all__ = ["ACT_P", "ASK_P", "MARGIN", "SHOWN_P", "Band", "Gate", "GateConstants", "Verdict", "load_gate"]

ACT_P = 0.8
SHOWN_P = 0.7
"""Enough to act where the owner sees what would be done and says yes or no."""
ASK_P = 0.3
MARGIN = 0.03
"""Closer than this to the second, with both plausible, is a question too."""


class Band(StrEnum):
    """What to do with the best tool."""

    ACT = "act"
    ASK = "ask"
    DECLINE = "decline"


class GateConstants(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The fitted logistic: p = 1 / (1 + exp(-(bias + sum(weight * (feature - mean) / scale))))."""

    features: tuple[str, ...]
    mean: tuple[float, ...]
    scale: tuple[float, ...]
    weight: tuple[float, ...]
    bias: float
    fitted: str
    """On what, when and with what result."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """The gate's decision and how sure it is."""

    band: Band
    p: float
    best: tuple[str, ...]
    """The best tools: two for ASK, one for ACT, the nearest three for DECLINE."""


class Gate:
    """Three bands over a ranking."""

    def __init__(self, constants: GateConstants) -> None:
        self._constants = constants

    def probability(self, features: Sequence[float]) -> float:
        """How likely the best tool is meant at all."""
        c = self._constants
        z = c.bias + sum(
            weight * (value - mean) / scale
            for weight, value, mean, scale in zip(c.weight, features, c.mean, c.scale, strict=True)
        )
        return 1.0 / (1.0 + exp(-max(-30.0, min(30.0, z))))

    def judge(self, ranking: Ranking) -> Verdict:
        """The band for this ranking; an empty one is declined."""
        names = tuple(tool.name for tool in ranking.tools)
        if not names:
            return Verdict(Band.DECLINE, 0.0, ())
        p = self.probability(ranking.features)
        if p < ASK_P:
            return Verdict(Band.DECLINE, p, names[:3])
        if p < (SHOWN_P if ranking.tools[0].shown else ACT_P) or ranking.margin < MARGIN:
            return Verdict(Band.ASK, p, names[:2])
        return Verdict(Band.ACT, p, names[:1])


def load_gate() -> Gate:
    """The gate with the constants that ship with the node."""
    raw = resources.files("node.agent").joinpath("gate.json").read_bytes()
    return Gate(msgspec.json.decode(raw, type=GateConstants))
