"""The bank of requests: what the ladder makes of them, per rung, per tool and per slot.

The open parts (benchmarks/bank/): `own` has the development cases and more of the same author; `others` is other
people's public wording, rewritten; `others2` was the first sealed part, opened once (openings.jsonl names it by its
digest, with the figures of that opening) and read since; `others3` is more by somebody who saw no code. `sealed` is
written by the same hand as others3, read by nobody who works on the agent, and opened by benchmarks.sealed only. The
tools are the bank's fifteen: they measure readers, choice and gate, not the node's own tools.

    PYTHONPATH=.:tests/support python -m benchmarks.bank [own|others|others2|others3] [--errors]
"""

import argparse
import json
from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import agent_bank as bank
import trio
from agent_node import StaticEmbedder

from benchmarks.report import Report
from node.agent.choice import Choosable, Chooser, Ranking
from node.agent.gate import Band, Gate, Verdict, load_gate
from node.agent.readers.quantities import conversion, evaluate
from node.agent.slots import Filled

__all__ = [
    "FOLDER", "OPEN_PARTS", "Figures", "Judged", "add_bank_rows", "judge", "measure", "open_parts", "part",
    "print_shares",
]

FOLDER = Path(__file__).resolve().parent / "bank"
OPEN_PARTS = ("own", "others", "others2", "others3")
KEPT_SHARE = 0.85
THIS_WEEK, REST_OF_WEEK = "2026-03-16T00:00/2026-03-23T00:00", "2026-03-18T00:00/2026-03-23T00:00"
"""From Monday, or from the bank's today, a Wednesday."""


@dataclass(frozen=True)
class Judged:
    """One request through the ladder, without a model."""

    case: bank.Case
    ranking: Ranking
    verdict: Verdict
    filled: dict[str, Filled]
    """Of the gold tool and the best."""

    @property
    def best(self) -> str | None:
        return self.ranking.tools[0].name if self.ranking.tools else None

    @property
    def right(self) -> bool:
        return self.best == self.case.tool

    def wrong(self) -> list[str]:
        """What is wrong with the arguments of the gold tool."""
        assert self.case.tool is not None
        return bank.differs(self.filled[self.case.tool], self.case)


@dataclass
class Figures:
    """Shares over one part."""

    size: int = 0
    right_tool: float = 0.0
    top_two: float = 0.0
    exact: float = 0.0
    arguments: float = 0.0
    """Exact arguments given the right tool."""
    abstain: float = 0.0
    """Rejected of what no tool can do, at the threshold that keeps 85 % of the rest."""
    asked_right: float = 0.0
    """Exactly the missing argument asked for."""
    wrong_runs: int = 0
    """Calls that the gate would run at once although nothing fits or something is missing."""
    by_tool: dict[str, tuple[int, int]] = field(default_factory=dict)
    by_slot: dict[str, tuple[int, int]] = field(default_factory=dict)
    errors: list[str] = field(default_factory=list)


def open_parts() -> tuple[str, ...]:
    """The open parts that are here, in order."""
    return tuple(name for name in OPEN_PARTS if (FOLDER / f"{name}.jsonl").exists())


def part(name: str) -> list[bank.Case]:
    """The requests of one part. Raises FileNotFoundError."""
    rows = [json.loads(line) for line in (FOLDER / f"{name}.jsonl").read_text(encoding="utf-8").splitlines()]
    found = [
        bank.Case(row["text"], row["tool"], *_of_known_people(_in_one_form(row["args"]), row["missing"]))
        for row in rows
    ]
    return [*bank.cases(), *found] if name == "own" else found


def _in_one_form(args: dict[str, Any]) -> dict[str, Any]:
    """Gold that several authors wrote, in the form of the development cases: sums as their value, units by one name."""
    found = dict(args)
    if isinstance(sum_ := found.get("expression"), str) and (value := evaluate(sum_.replace("^", "**"))) is not None:
        found["expression"] = f"{value:g}"
    for name in ("from_unit", "to_unit"):
        if isinstance(unit := found.get(name), str):
            found[name] = conversion(f"1 {unit} in {unit}").source
            found[name] = found[name][0] if found[name] else unit
    if "value" in found:
        found["value"] = f"{found['value']:g}" if isinstance(found["value"], float | int) else str(found["value"])
    if found.get("when") == THIS_WEEK:       # two authors read "this week" differently; both are right
        found["when"] = [THIS_WEEK, REST_OF_WEEK]
    if isinstance(place := found.get("place"), str):
        found["place"] = [place]
    return found


def _of_known_people(args: dict[str, Any], missing: Sequence[str]) -> tuple[dict[str, Any], tuple[str, ...]]:
    """Gold without people whom the address book does not hold: a stranger is asked about by name, never filled in, so
    the one who must get a message is missing."""
    lacking = list(missing)
    for name in ("to", "attendees", "name"):
        said = args.get(name)
        people = said if isinstance(said, list) else [said] if said else []
        known = [one for one in people if one in bank.BOOK.names]
        if len(known) < len(people):
            args = {key: value for key, value in args.items() if key != name} | ({name: known} if known else {})
            lacking += [name] if name in {"to", "name"} and not known else []
    return args, tuple(lacking)


async def judge(cases: Sequence[bank.Case], gate: Gate | None = None) -> list[Judged]:
    """Every request through readers, choice and gate."""
    specs, reader, gate = bank.specs(), bank.reader(), gate or load_gate()
    by_name = {spec.name: spec for spec in specs}
    chooser = Chooser([Choosable.of(spec) for spec in specs], StaticEmbedder())
    found: list[Judged] = []
    for case in cases:
        reading = reader.read(case.text, bank.NOW)
        filled = {spec.name: reader.fill(spec, reading, {}) for spec in specs}
        evidence = {name: one.evidence(by_name[name]) for name, one in filled.items()}
        ranking = await chooser.choose(case.text, evidence)
        wanted = {case.tool, ranking.tools[0].name if ranking.tools else None}
        kept = {name: one for name, one in filled.items() if name in wanted}
        found.append(Judged(case, ranking, gate.judge(ranking), kept))
    return found


def measure(judged: Sequence[Judged]) -> Figures:
    """The figures of one part."""
    fits = [one for one in judged if one.case.tool is not None]
    none = [one for one in judged if one.case.tool is None]
    complete = [one for one in fits if not one.case.missing]
    lacking = [one for one in fits if one.case.missing]
    found = Figures(size=len(judged))
    found.right_tool = _share(one.right for one in fits)
    found.top_two = _share(one.case.tool in [tool.name for tool in one.ranking.tools[:2]] for one in fits)
    found.exact = _share(one.right and not one.wrong() for one in complete)
    found.arguments = _share(not one.wrong() for one in complete if one.right)
    kept = sorted((one.verdict.p for one in fits), reverse=True)
    threshold = kept[min(len(kept) - 1, round(KEPT_SHARE * len(kept)) - 1)] if kept else 1.0
    found.abstain = _share(one.verdict.p < threshold for one in none)
    found.asked_right = _share(
        one.right and set(one.filled[one.case.tool or ""].missing) == set(one.case.missing) for one in lacking
    )
    found.wrong_runs = sum(
        one.verdict.band is Band.ACT and (one.case.tool is None or bool(one.case.missing))
        and not one.filled[one.best or ""].missing for one in judged if one.best in one.filled
    )
    _details(found, fits, none)
    return found


def _details(found: Figures, fits: Sequence[Judged], none: Sequence[Judged]) -> None:
    tools: dict[str, Counter[bool]] = defaultdict(Counter)
    slots: dict[str, Counter[bool]] = defaultdict(Counter)
    for one in fits:
        tools[one.case.tool or ""][one.right] += 1
        wrong = one.wrong()
        for name in one.case.args:
            slots[f"{one.case.tool}.{name}"][not any(text.startswith(f"{name}:") for text in wrong)] += 1
        if not one.right or wrong:
            found.errors.append(f"{one.case.text!r}: {one.best} for {one.case.tool}, {'; '.join(wrong) or 'exact'}")
    found.errors += [f"{one.case.text!r}: {one.best} at {one.verdict.p:.2f} for none" for one in none
                     if one.verdict.band is not Band.DECLINE]
    found.by_tool = {name: (seen[True], seen.total()) for name, seen in sorted(tools.items())}
    found.by_slot = {name: (seen[True], seen.total()) for name, seen in sorted(slots.items())}


def _share(values: Any) -> float:
    listed = list(values)
    return sum(map(bool, listed)) / len(listed) if listed else 0.0


def add_bank_rows(report: Report, name: str, figures: Figures) -> None:
    """One part's figures with the bounds that hold for its kind of wording."""
    own = name == "own"
    title = f"bank, {name} ({figures.size})"
    report.add(f"{title}: right tool", figures.right_tool, "share", at_least=0.95 if own else 0.90)
    report.add(f"{title}: right tool among two", figures.top_two, "share", at_least=0.97)
    report.add(f"{title}: exact call, no model", figures.exact, "share", at_least=0.90 if own else 0.70)
    report.add(f"{title}: arguments exact, given the tool", figures.arguments, "share")
    report.add(f"{title}: abstains where no tool can, 85 % kept", figures.abstain, "share", at_least=0.93)
    report.add(f"{title}: the missing argument asked by name", figures.asked_right, "share", at_least=0.90)
    report.add(f"{title}: would run though nothing fits or something is missing", figures.wrong_runs, "requests")


def main() -> None:
    """Print one open part's figures, per tool and slot; --errors lists what went wrong."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.bank")
    parser.add_argument("part", nargs="?", default="own", choices=OPEN_PARTS)
    parser.add_argument("--errors", action="store_true")
    given = parser.parse_args()
    figures = measure(trio.run(judge, part(given.part)))
    report = Report("agent")
    add_bank_rows(report, given.part, figures)
    report.print(as_json=False)
    print_shares(figures)
    if given.errors:
        print("\n" + "\n".join(figures.errors))


def print_shares(figures: Figures) -> None:
    """Print how many were right per tool and per slot."""
    for kind, found in (("tool", figures.by_tool), ("slot", figures.by_slot)):
        print(f"\nright per {kind}:")
        for key, (right, total) in found.items():
            print(f"  {key}: {right}/{total}")


if __name__ == "__main__":
    main()
