"""Scores added up: by kind of case, and what they cost. Pure. Must not know models or how a choice was made."""

import math
from collections.abc import Sequence

import msgspec

from offload.evaluation.cases import Case, CaseKind
from offload.evaluation.chooser import Choice
from offload.evaluation.scoring import Score

__all__ = ["EvalReport", "KindReport", "Scored", "add_up", "wilson_interval"]

_KINDS: tuple[CaseKind, ...] = ("simple", "multiple", "irrelevance")
_Z = 1.959964       # two-sided 95 %


class Scored(msgspec.Struct, frozen=True):
    """One case with its choice and score."""

    case: Case
    choice: Choice
    score: Score


class KindReport(msgspec.Struct, frozen=True, kw_only=True):
    """One kind of case. accuracy: the share that is right, with the 95 % interval of Wilson for so few cases.

    tool, argument_names, argument_values: mean partial credit; 0 for irrelevance. abstained, asked, broken: how often
    no tool was chosen, a question came back, or nothing that can be read.
    """

    kind: str
    cases: int
    right: int
    accuracy: float
    low: float
    high: float
    tool: float
    argument_names: float
    argument_values: float
    abstained: int
    asked: int
    broken: int


class EvalReport(msgspec.Struct, frozen=True, kw_only=True):
    """The whole result. *_per_right: everything spent, for each case that came out right; None when none did."""

    model: str
    digest: str
    quantisation: str
    chooser: str
    kinds: list[KindReport]
    cases: int
    right: int
    prompt_tokens: int
    output_tokens: int
    retries: int
    output_tokens_per_right: float | None
    retries_per_right: float | None


def add_up(results: Sequence[Scored], *, model: str, digest: str, quantisation: str, chooser: str) -> EvalReport:
    """The report over these results."""
    right = sum(one.score.right for one in results)
    output_tokens = sum(one.choice.output_tokens for one in results)
    retries = sum(one.choice.tries - 1 for one in results)
    by_kind = [(kind, [one for one in results if one.case.kind == kind]) for kind in _KINDS]
    return EvalReport(
        model=model, digest=digest, quantisation=quantisation, chooser=chooser,
        kinds=[_kind_report(kind, ones) for kind, ones in by_kind if ones], cases=len(results), right=right,
        prompt_tokens=sum(one.choice.prompt_tokens for one in results), output_tokens=output_tokens, retries=retries,
        output_tokens_per_right=output_tokens / right if right else None,
        retries_per_right=retries / right if right else None)


def _kind_report(kind: str, results: Sequence[Scored]) -> KindReport:
    count, right = len(results), sum(one.score.right for one in results)
    low, high = wilson_interval(right, count)

    def chosen(what: str) -> int:
        return sum(one.choice.kind == what for one in results)

    return KindReport(
        kind=kind, cases=count, right=right, accuracy=right / count, low=low, high=high,
        tool=sum(one.score.tool for one in results) / count,
        argument_names=sum(one.score.argument_names for one in results) / count,
        argument_values=sum(one.score.argument_values for one in results) / count,
        abstained=chosen("none"), asked=chosen("ask"), broken=chosen("broken"))


def wilson_interval(right: int, count: int) -> tuple[float, float]:
    """The 95 % interval of a share (E. B. Wilson, 1927). count is at least 1."""
    share, z2 = right / count, _Z * _Z
    middle = (share + z2 / (2 * count)) / (1 + z2 / count)
    half = _Z * math.sqrt(share * (1 - share) / count + z2 / (4 * count * count)) / (1 + z2 / count)
    return max(0.0, middle - half), min(1.0, middle + half)
