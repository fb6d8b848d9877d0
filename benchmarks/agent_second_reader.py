"""Rows of the second reader: the embedded model beside the rules on free text, on other people's wording.

Per free-text argument of a writing tool, with the right tool given: what the confirmation would show (the rules' value
and, where the model copies other words, both), whether the right value is among them, and whether it is the right one
when rules and model agree. The model is asked as the node asks it (node.agent.calling). The rules' author has read
the open parts: for unread wording take what docs/explain/agent.md says of the first run. Must not know how they read.
"""

import hashlib
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import agent_bank as bank
import trio

from benchmarks.bank import FOLDER, part
from benchmarks.report import Report
from benchmarks.timing import median
from node.agent.calling import Caller
from node.agent.copy_grammar import Copyist
from node.agent.ports import LocalModel
from node.agent.slots import SlotValue, text_kind
from node.daemon.local_model import OwnModel
from offload.local_engine import LocalEngine

__all__ = ["Shown", "add_reading_rows", "add_second_reader_rows", "foreign_cases", "free_text", "read_twice"]

MODELS = Path(sys.prefix) / "share" / "kith" / "models"
OTHERS = ("others", "others2", "others3")
QUICK_CASES = 24
DEADLINE_S = 60.0


@dataclass(frozen=True)
class Shown:
    """One free-text argument as the confirmation shows it."""

    case: bank.Case
    slot: str
    value: SlotValue | None
    """None: nothing found, it is asked for."""
    model_s: float
    """Spent in the model for the whole call."""

    @property
    def options(self) -> list[str]:
        """The values that are shown, the rules' first."""
        return [] if self.value is None else [str(self.value.value), *self.value.alternatives][:2]

    @property
    def agreed(self) -> bool:
        """Rules and model read the same."""
        return self.value is not None and self.value.source.endswith("model agrees")

    def right(self, option: str) -> bool:
        """Whether these words are the gold's."""
        gold = self.case.args[self.slot]
        return any(_bare(option) == _bare(one) for one in (gold if isinstance(gold, list) else [gold]))


class _Timed:
    """The model with a watch."""

    def __init__(self, model: LocalModel) -> None:
        self._model = model
        self.spent_s = 0.0

    async def complete(self, *args: Any, **more: Any) -> str:
        begun_s = time.perf_counter()
        try:
            return await self._model.complete(*args, **more)
        finally:
            self.spent_s += time.perf_counter() - begun_s


def foreign_cases() -> list[bank.Case]:
    """All open requests in other people's wording."""
    return [case for name in OTHERS if (FOLDER / f"{name}.jsonl").is_file() for case in part(name)]


def free_text(case: bank.Case) -> list[str]:
    """The free-text arguments that the gold of a writing tool holds."""
    spec = next((spec for spec in bank.specs() if spec.name == case.tool), None)
    if spec is None or spec.kind == "read":
        return []
    return [name for name, param in spec.params.items()
            if name in case.args and param.reads == "text" and text_kind(spec.name, name)]


def stratified(cases: Sequence[bank.Case], size: int) -> list[bank.Case]:
    """At most size cases, the tools in turn, always the same ones."""
    by_tool: dict[str, list[bank.Case]] = {}
    for case in sorted(cases, key=lambda case: hashlib.sha256(case.text.encode()).digest()):
        by_tool.setdefault(case.tool or "", []).append(case)
    chosen: list[bank.Case] = []
    while len(chosen) < min(size, len(cases)):
        chosen += [waiting.pop() for _, waiting in sorted(by_tool.items()) if waiting]
    return chosen[:size]


async def read_twice(cases: Sequence[bank.Case], model: LocalModel) -> list[Shown]:
    """Every free-text argument of these cases, read by rules and model as in the node."""
    specs, reader, timed = {spec.name: spec for spec in bank.specs()}, bank.reader(), _Timed(model)
    approvals: Any = None
    caller = Caller(reader, _NoClock(), approvals, Copyist(timed, DEADLINE_S))
    found: list[Shown] = []
    for case in cases:
        spec, reading = specs[case.tool or ""], reader.read(case.text, bank.NOW)
        timed.spent_s = 0.0
        filled = await caller.second_reading(spec, reader.fill(spec, reading, {}), reading)
        found += [Shown(case, slot, filled.values.get(slot), timed.spent_s) for slot in free_text(case)]
    return found


class _NoClock:
    """The clock that reading never looks at."""

    def now(self) -> Any:
        raise AssertionError("reading looks at no clock")

    def monotonic_s(self) -> float:
        raise AssertionError("reading looks at no clock")


async def _with_model(cases: Sequence[bank.Case]) -> list[Shown]:
    numbers = iter(range(1_000_000))
    engine = LocalEngine([MODELS], threads=1)
    async with trio.open_nursery() as nursery:
        await nursery.start(engine.run)
        model = OwnModel(engine, lambda: f"second-{next(numbers)}")
        await read_twice(cases[:1], model)          # loads the model and reads the common start
        found = await read_twice(cases, model)
        nursery.cancel_scope.cancel()
    return found


def add_second_reader_rows(report: Report, *, quick: bool) -> list[Shown]:
    """Right among two, agreement, and the model's time; over all open requests of others, or a stratified sample."""
    every = [case for case in foreign_cases() if free_text(case)]
    return add_reading_rows(report, stratified(every, QUICK_CASES) if quick else every, of=len(every))


def add_reading_rows(report: Report, cases: Sequence[bank.Case], *, of: int) -> list[Shown]:
    """The rows over these requests, out of so many."""
    shown = trio.run(_with_model, cases)
    agreed = [one for one in shown if one.agreed]
    size = f"{len(shown)} values of {len(cases)} of {of} requests"
    first = sum(one.right(one.options[0]) for one in shown if one.options) / len(shown)
    report.add(f"free text, others ({size}): the right value among the two shown; baseline: the rules' alone",
               sum(any(map(one.right, one.options)) for one in shown) / len(shown), "share", baseline=round(first, 4),
               at_least=0.85)
    report.add(f"free text, others: right where rules and model agree ({len(agreed)} of {len(shown)})",
               sum(one.right(one.options[0]) for one in agreed) / max(1, len(agreed)), "share", at_least=0.95)
    spent = [one.model_s for one in shown if one.model_s]
    report.add(f"free text, others ({len(spent)} calls that asked the model, one thread): its part, median",
               median(spent), "s", at_most=1.5)
    report.add("free text, others: the model's part, nine of ten below", sorted(spent)[int(0.9 * len(spent))], "s")
    return shown


def _bare(text: Any) -> str:
    return " ".join(str(text).strip(" .!?").lower().split())


def main() -> None:
    """Print the rows and every argument that is not right."""
    report = Report("agent")
    shown = add_second_reader_rows(report, quick="--quick" in sys.argv)
    report.print(as_json=False)
    for one in shown:
        if not any(map(one.right, one.options)) or (one.agreed and not one.right(one.options[0])):
            mark = "AGREED" if one.agreed else ""
            gold = one.case.args[one.slot]
            print(f"  {one.case.text!r}: {one.case.tool}.{one.slot} {one.options} not {gold!r} {mark}")


if __name__ == "__main__":
    main()
