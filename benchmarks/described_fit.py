"""Fit the logistic of node/agent/described.py on the even half of BFCL v4's synthetic cases. Run from the checkout:

    PYTHONPATH=.:tests/support python -m benchmarks.described_fit [--write]

The rules stand in benchmarks/agent_described.py. The tool that is fitted on is the right one where one fits, else the
best by description. call_p is where 93 % of the fitted half's answerable cases are called: three points of room above
the 90 % that are asked for. Printed: both halves with these constants, and with constants of the other half.
"""

import json
import sys
from collections.abc import Sequence
from datetime import date
from pathlib import Path
from typing import Any

import numpy as np
import trio
from agent_node import StaticEmbedder

from benchmarks.agent_described import SYNTHETIC, described, even, measure, request_of
from benchmarks.bfcl import load
from node.agent.described import FEATURES, DescribedChooser, DescribedConstants
from offload.evaluation.cases import Case

RIDGE = 0.02
KEPT = 0.93
ROUNDS = 60


async def rows(cases: Sequence[Case]) -> tuple[Any, Any]:
    """Features and whether a tool fits."""
    chooser = DescribedChooser(StaticEmbedder(), DescribedConstants((), (), (), (), 0.0, 0.5, ""))
    x, y = [], []
    for case in cases:
        features = await chooser.features(request_of(case), described(case))
        names = [tool.name for tool in case.tools]
        best = names.index(case.right_tool) if case.right_tool else max(range(len(names)), key=lambda n: features[n][1])
        x.append(features[best])
        y.append(case.right_tool is not None)
    return np.array(x), np.array(y)


def fit(x: Any, y: Any, what: str) -> DescribedConstants:
    """A logistic with a ridge, by Newton's steps."""
    mean, scale = x.mean(0), x.std(0) + 1e-9
    z = np.c_[(x - mean) / scale, np.ones(len(x))]
    ridge = RIDGE * len(x) * np.diag([1.0] * x.shape[1] + [0.0])
    w = np.zeros(z.shape[1])
    for _ in range(ROUNDS):
        p = 1 / (1 + np.exp(-z @ w))
        w += np.linalg.solve((z.T * (p * (1 - p))) @ z + ridge, z.T @ (y - p) - ridge @ w)
    p = 1 / (1 + np.exp(-z @ w))

    def rounded(values: Any) -> tuple[float, ...]:
        return tuple(round(float(value), 5) for value in values)

    call_p = round(float(np.quantile(p[y], 1 - KEPT)), 4)
    return DescribedConstants(FEATURES, rounded(mean), rounded(scale), rounded(w[:-1]), round(float(w[-1]), 5), call_p,
                              what)


def main() -> None:
    """Fit on each half, show both on both, write the even one."""
    cases = [case for kind in SYNTHETIC for case in load(kind)]
    halves = {"even": [case for case in cases if even(case)], "odd": [case for case in cases if not even(case)]}
    fitted = {}
    for name, half in halves.items():
        x, y = trio.run(rows, half)
        what = (f"{date.today().isoformat()}: logistic, ridge {RIDGE}, on the {len(half)} BFCL v4 cases of "
                f"{', '.join(SYNTHETIC)} with an {name} SHA-256 ({int(y.sum())} that a tool fits), by "
                "benchmarks/described_fit.py")
        fitted[name] = fit(x, y, what)
        for other, measured in halves.items():
            print(f"fitted on {name}, measured on {other}: {measure(measured, fitted[name])}")
    print(dict(zip(FEATURES, fitted["even"].weight, strict=True)))
    if "--write" in sys.argv:
        one = fitted["even"]
        target = Path(__file__).resolve().parent.parent / "node" / "agent" / "described.json"
        target.write_text(json.dumps({name: getattr(one, name) for name in one.__struct_fields__}, indent=1) + "\n")
        print(f"wrote {target}")


if __name__ == "__main__":
    main()
