"""Rows of choosing among tools known by description alone (BFCL v4): the right one, and calling none where none fits.

What may be fitted: node/agent/described.json, on the cases whose id has an even SHA-256 (`python -m
benchmarks.described_fit`), and nothing else; the rows measure the odd ones. Features were picked while both halves of
the synthetic kinds were open, so they are not blind to it; no case of the `live` kinds (requests and tools of real
users) was looked at before the constants stood. Without the wheel the rows are left out.
"""

import hashlib
import subprocess
import sys
from collections.abc import Sequence

import trio
from agent_node import StaticEmbedder

from benchmarks.bfcl import MODELS, load
from benchmarks.report import Report
from node.agent.described import Described, DescribedChoice, DescribedChooser, DescribedConstants
from node.daemon.gated_chooser import GatedChooser
from offload.evaluation.cases import Case, stratified_sample
from offload.evaluation.plain_chooser import PlainChooser
from offload.evaluation.scoring import score_choice
from offload.local_engine import LocalEngine
from offload.model_host import HostLimits

__all__ = ["add_described_rows", "described", "even", "figures", "request_of"]

SYNTHETIC = ("simple_python", "multiple", "irrelevance")
LIVE = ("live_multiple", "live_irrelevance")
QUICK_CASES = 60
LIVE_CASES = 300
"""Of each live kind, in the full run."""
MODEL_CASES = 30
"""Through the embedded model, in the full run."""


def even(case: Case) -> bool:
    """Whether the case is of the half that may be fitted on."""
    return hashlib.sha256(case.case_id.encode()).digest()[-1] % 2 == 0


def request_of(case: Case) -> str:
    """What the user says."""
    return "\n".join(text for role, text in case.messages if role == "user")


def described(case: Case) -> list[Described]:
    """The tools of a case."""
    return [Described.of(tool.name, tool.description, tool.parameters) for tool in case.tools]


Chosen = Sequence[tuple[Case, DescribedChoice | None]]


async def _choose(cases: Sequence[Case], constants: DescribedConstants | None) -> Chosen:
    chooser = DescribedChooser(StaticEmbedder(), constants)
    return [(case, await chooser.choose(request_of(case), described(case))) for case in cases]


def figures(chosen: Chosen) -> dict[str, tuple[int, int]]:
    """right: the right tool first, where there are several; kept: called at all where one fits; rejected: none called
    where none does. Each as how many of how many."""
    several = [(case, one) for case, one in chosen if case.right_tool and len(case.tools) > 1]
    fits = [one for case, one in chosen if case.right_tool]
    none = [one for case, one in chosen if not case.right_tool]
    return {
        "right": (sum(one is not None and one.name == case.right_tool for case, one in several), len(several)),
        "kept": (sum(one is not None and one.called for one in fits), len(fits)),
        "rejected": (sum(one is None or not one.called for one in none), len(none)),
    }


def measure(cases: Sequence[Case], constants: DescribedConstants | None = None) -> dict[str, tuple[int, int]]:
    """The figures of these cases, with the constants that ship or others."""
    return figures(trio.run(_choose, cases, constants))


async def _with_model(cases: Sequence[Case]) -> tuple[int, int, int]:
    """Cases right by the model's own choice, behind the described one, and how many there are."""
    engine = LocalEngine([MODELS], limits=HostLimits(context_tokens=4096), threads=1)
    async with trio.open_nursery() as nursery:
        await nursery.start(engine.run)
        alone = PlainChooser(engine, None)
        gated = GatedChooser(DescribedChooser(StaticEmbedder()), PlainChooser(engine, None, may_decline=False))
        right = [sum([score_choice(case, await one.choose(case)).right for case in cases]) for one in (alone, gated)]
        nursery.cancel_scope.cancel()
    return right[0], right[1], len(cases)


def add_described_rows(report: Report, *, quick: bool) -> None:
    """The half that nothing was fitted on, and in the full run the live kinds, without a bound."""
    try:
        cases = [case for kind in SYNTHETIC for case in load(kind) if not even(case)]
        live = [] if quick else [case for kind in LIVE for case in stratified_sample(load(kind), LIVE_CASES)]
    except (OSError, RuntimeError, subprocess.SubprocessError) as error:
        print(f"agent: tools by description are left out: {error}", file=sys.stderr)
        return
    found = measure(stratified_sample(cases, QUICK_CASES) if quick else cases)
    title = "BFCL, by description, the half not fitted on"
    _row(report, f"{title}: right tool of several", found["right"], 0.97)
    _row(report, f"{title}: called where a tool fits", found["kept"], 0.90)
    _row(report, f"{title}: none called where none fits", found["rejected"], 0.80)
    if live:
        alone, gated, size = trio.run(_with_model, stratified_sample(cases, MODEL_CASES))
        what = f"BFCL ({size}), the embedded model behind that choice: right; baseline: its own choice"
        report.add(what, gated / size,
                   "share", baseline=alone / size, at_least=alone / size)
        found = measure(live)
        for key, what in (("right", "right tool of several"), ("kept", "called where a tool fits"),
                          ("rejected", "none called where none fits")):
            _row(report, f"BFCL live (real users), by description: {what}", found[key], None)


def _row(report: Report, name: str, share: tuple[int, int], bound: float | None) -> None:
    right, total = share
    report.add(f"{name} ({total})", right / max(1, total), "share", at_least=bound)
