"""Runs cases one after the other through a chooser. Must not know how it chooses or how a score comes about."""

from collections.abc import Awaitable, Callable, Sequence

from offload.evaluation.cases import Case
from offload.evaluation.chooser import Chooser
from offload.evaluation.report import Scored
from offload.evaluation.scoring import score_choice

__all__ = ["run_cases"]


async def run_cases(
    cases: Sequence[Case], chooser: Chooser, *, tell: Callable[[Scored], Awaitable[None]],
) -> list[Scored]:
    """Every case with its choice and score; tell() hears each. Raises EngineError when the model can't answer."""
    results = []
    for case in cases:
        choice = await chooser.choose(case)
        results.append(Scored(case, choice, score_choice(case, choice)))
        await tell(results[-1])
    return results
