"""Which model may plan freely: decided by the figures of its last kith eval on this device, never by its name.

Kept by the digest of the model's file, so that another file under the same name starts without. Must not know how
figures come about, nor plans.
"""

from collections.abc import Sequence

import msgspec

from node.clock import Clock, to_ms
from node.store import settings
from node.store.database import Database
from offload.evaluation.report import Scored

__all__ = ["LEAST_CASES", "LEAST_WITHOUT_TOOL", "MOST_WRONG", "Figures", "Permissions", "figures_of", "why_not"]

LEAST_CASES = 60
LEAST_WITHOUT_TOOL = 15
"""Cases that no tool fits: without them a model that always calls looks good."""
MOST_WRONG = 0.02
"""Wrong calls of all cases: another tool or other values than what was asked for, or any call where no tool fits."""
_KEY = "eval."


class Figures(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What one run of kith eval said of a model.

    without_tool: how many of the cases no tool fits. compared: how many of them this node's own rules answered too;
    ladder_right, model_right: how many of those were exact.
    """

    at_ms: int
    chooser: str
    cases: int
    without_tool: int
    right: int
    wrong_calls: int
    compared: int = 0
    ladder_right: int = 0
    model_right: int = 0


def figures_of(results: Sequence[Scored], ladder: Sequence[Scored], *, chooser: str, clock: Clock) -> Figures:
    """The figures of a run. ladder: what this node's own rules made of those of the cases that they can answer."""
    right = {one.case.case_id for one in results if one.score.right}
    compared = [one for one in ladder if one.case.case_id in {other.case.case_id for other in results}]
    return Figures(
        at_ms=to_ms(clock.now()), chooser=chooser, cases=len(results),
        without_tool=sum(one.case.right_tool is None for one in results), right=len(right),
        wrong_calls=sum(one.choice.kind == "call" and not one.score.right for one in results),
        compared=len(compared), ladder_right=sum(one.score.right for one in compared),
        model_right=sum(one.case.case_id in right for one in compared),
    )


def why_not(figures: Figures | None) -> str | None:
    """Why these figures don't let a model plan, in words; None when they do."""
    if figures is None:
        return "it was not measured on this device"
    if figures.cases < LEAST_CASES or figures.without_tool < LEAST_WITHOUT_TOOL:
        return (f"it takes {LEAST_CASES} cases, {LEAST_WITHOUT_TOOL} of them that no tool fits, and there were "
                f"{figures.cases} and {figures.without_tool}")
    share = figures.wrong_calls / figures.cases
    if share > MOST_WRONG:
        return f"{share:.0%} of its answers were wrong calls, and {MOST_WRONG:.0%} are the most"
    if not figures.compared:
        return "none of the cases were of your own, so that it could not be compared with this node's own rules"
    if figures.model_right <= figures.ladder_right:
        return (f"of {figures.compared} cases of your own it had {figures.model_right} right, and this node's own "
                f"rules {figures.ladder_right}")
    return None


class Permissions:
    """The figures by model, in the node's database."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def keep(self, digest: str, figures: Figures) -> None:
        """The figures of a model's newest run, in place of those before."""
        await self._database.write(settings.put, _KEY + digest, msgspec.json.encode(figures).decode())

    async def why_not(self, digest: str) -> str | None:
        """Why this model may not plan, in words; None when it may."""
        stored = await self._database.read(settings.get, _KEY + digest)
        if stored is None:
            return why_not(None)
        try:
            return why_not(msgspec.json.decode(stored, type=Figures))
        except msgspec.DecodeError:
            return why_not(None)
