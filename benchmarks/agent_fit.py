"""Fit the agent's gate on the open parts of the bank and print the ladder's figures on it. Run from the checkout:

    PYTHONPATH=.:tests/support python -m benchmarks.agent_fit [--write]

--write replaces node/agent/gate.json. The figures are on the data that the gate was fitted on and that the
readers' author knew: optimistic. Beside them: each part measured with the gate that the other parts gave.
"""

import json
import sys
from datetime import date
from pathlib import Path

import agent_bank as bank
import numpy as np
import trio
from agent_node import StaticEmbedder

from benchmarks.bank import open_parts, part
from node.agent.choice import FEATURES, Choosable, Chooser
from node.agent.gate import ACT_P, ASK_P

RIDGE = 0.05


async def rankings():
    specs, reader = bank.specs(), bank.reader()
    chooser = Chooser([Choosable.of(spec) for spec in specs], StaticEmbedder())
    rows = []
    for owner, case in [(name, case) for name in open_parts() for case in part(name)]:
        reading = reader.read(case.text, bank.NOW)
        evidence = {}
        for spec in specs:
            filled = reader.fill(spec, reading, {})
            evidence[spec.name] = filled.evidence(spec)
        rows.append((owner, case, await chooser.choose(case.text, evidence)))
    return rows


def fit(x, y):
    mean, scale = x.mean(0), x.std(0) + 1e-9
    z = np.c_[(x - mean) / scale, np.ones(len(x))]
    w = np.zeros(z.shape[1])
    ridge = RIDGE * len(x) * np.diag([1.0] * x.shape[1] + [0.0])
    for _ in range(100):
        p = 1 / (1 + np.exp(-z @ w))
        hessian = (z * (p * (1 - p))[:, None]).T @ z + ridge
        step = np.linalg.solve(hessian, z.T @ (y - p) - ridge @ w)
        w += step
        if np.abs(step).max() < 1e-9:
            break
    return mean, scale, w


def main():
    rows = trio.run(rankings)
    x = np.array([ranking.features if ranking.tools else (0,) * len(FEATURES) for _, _, ranking in rows], dtype=float)
    y = np.array([case.tool is not None for _, case, _ in rows], dtype=float)
    mean, scale, w = fit(x, y)
    p = 1 / (1 + np.exp(-np.c_[(x - mean) / scale, np.ones(len(x))] @ w))
    parts = np.array([name for name, _, _ in rows])
    held = np.zeros(len(x))
    for name in open_parts():
        m, s, v = fit(x[parts != name], y[parts != name])
        held[parts == name] = 1 / (1 + np.exp(-np.c_[(x[parts == name] - m) / s, np.ones((parts == name).sum())] @ v))
    right = sum(case.tool == ranking.tools[0].name for _, case, ranking in rows if case.tool and ranking.tools)
    top2 = sum(case.tool in [t.name for t in ranking.tools[:2]] for _, case, ranking in rows if case.tool)
    print(f"right tool {right}/{int(y.sum())}, in the top two {top2}/{int(y.sum())}")
    everything = np.ones(len(x), dtype=bool)
    shown = [("fitted", p, everything)]
    shown += [(f"{name}, by the other parts", held, parts == name) for name in open_parts()]
    for name, values, chosen in shown:
        values, fits = values[chosen], y[chosen]
        print(
            f"{name}: kept at {ACT_P}: {int((values[fits == 1] >= ACT_P).sum())}, at {ASK_P}:"
            f" {int((values[fits == 1] >= ASK_P).sum())}"
            f" of {int(fits.sum())}; rejected below {ASK_P}: {int((values[fits == 0] < ASK_P).sum())}, below {ACT_P}:"
            f" {int((values[fits == 0] < ACT_P).sum())} of {int((1 - fits).sum())}"
        )
    for (_, case, ranking), value in zip(rows, p, strict=True):
        best = ranking.tools[0].name if ranking.tools else None
        if (
            (best != case.tool
            and case.tool)
            or (value >= ASK_P) != (case.tool is not None)
            or (value < ACT_P
            and case.tool)
        ):
            print(f"  {value:.2f} {case.text!r}: {best} (gold {case.tool}), margin {ranking.margin:.2f}")
    if "--write" in sys.argv:
        constants = {
            "features": FEATURES,
            "mean": [round(v, 5) for v in mean],
            "scale": [round(v, 5) for v in scale],
            "weight": [round(v, 5) for v in w[:-1]],
            "bias": round(float(w[-1]), 5),
            "fitted": f"{date.today().isoformat()}: logistic, ridge {RIDGE}, on {len(x)} requests of own and "
            f"others' wording ({int(y.sum())} that a tool fits) with the bank's 15 tools, by benchmarks/agent_fit.py",
        }
        target = Path(__file__).resolve().parent.parent / "node" / "agent" / "gate.json"
        target.write_text(json.dumps(constants, indent=1) + "\n")
        print(f"wrote {target}")


if __name__ == "__main__":
    main()
