"""Rows of learning: three people with habits of speech of their own, before and after about 30 confirmed actions.

The list (tests/data/agent/owners.jsonl) has sentences to learn from and others to ask, with other contents, and
requests in the same voice that no tool can do. An exact call has the right tool first, not declined, and the
free-text argument word for word. Static vectors, readers, choice and gate as in the node; no model.
"""

import json
import shutil
import tempfile
from collections.abc import Awaitable, Callable, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import trio

from benchmarks.report import Report
from node.agent.choice import Chooser
from node.agent.gate import Band, load_gate
from node.agent.lessons import Lesson, Lessons
from node.agent.recalling import fill_as_before, learnt_choice, recall

__all__ = ["add_learning_rows", "replay"]

ROOT = Path(__file__).resolve().parents[1]
LIST = ROOT / "tests" / "data" / "agent" / "owners.jsonl"
POINTS = 0.10


class _Store:
    def __init__(self) -> None:
        self.kept: list[Lesson] = []

    async def all(self) -> Sequence[Lesson]:
        return tuple(reversed(self.kept))

    async def add(self, lesson: Lesson) -> None:
        self.kept.append(lesson)


async def replay(world: Any, embedder: Any) -> dict[str, dict[str, float]]:
    """By owner: exact calls and abstaining, before and after. world: an agent over the bank's folder."""
    said = [json.loads(line) for line in LIST.read_text(encoding="utf-8").splitlines()]
    found: dict[str, dict[str, float]] = {}
    for owner in dict.fromkeys(one["owner"] for one in said):
        mine = [one for one in said if one["owner"] == owner]
        store, numbers = _Store(), iter(range(10_000))
        lessons = Lessons(store, embedder, lambda numbers=numbers: str(next(numbers)))
        judge = _judge(world, lessons, embedder)
        before = await _scores(judge, mine)
        taught = [one for one in mine if one["part"] == "learn"]
        for one in taught:
            await lessons.learn(one["text"], one["tool"], one["words"], datetime(2026, 3, 18, tzinfo=UTC))
        after = await _scores(judge, mine)
        found[owner] = {
            "lessons": len(taught), "exact_before": before[0], "exact_after": after[0], "abstain_before": before[1],
            "abstain_after": after[1], "asked": sum(one["part"] == "ask" and one["tool"] is not None for one in mine),
        }
    return found


Judge = Callable[[str], Awaitable[tuple[str | None, Mapping[str, str]]]]


def _judge(world: Any, lessons: Lessons, embedder: Any) -> Judge:
    from node.agent.judging import choosable
    from node.agent.readers.people import AddressBook
    from node.agent.slots import SlotReader

    registry, skills = world.agent._parts.registry, world.agent._parts.skills
    chooser, gate = Chooser(choosable(registry, skills), embedder), load_gate()

    async def judge(text: str) -> tuple[str | None, Mapping[str, str]]:
        reader = SlotReader(AddressBook(await world.agent._parts.names()), world.agent._settings.locale)
        reading = reader.read(text, world.clock.now())
        near = await recall(lessons, text)
        filled, evidence = {}, {}
        for tool in registry:
            got = reader.fill(tool.spec, reading, {})
            filled[tool.spec.name] = fill_as_before(near, tool.spec, got, reading)
            evidence[tool.spec.name] = filled[tool.spec.name].evidence(tool.spec)
        ranking = await chooser.choose(text, evidence, learnt_choice(near))
        verdict = gate.judge(ranking)
        if verdict.band is Band.DECLINE:
            return None, {}
        best = verdict.best[0]
        return best, {name: str(value.value) for name, value in filled[best].values.items()}

    return judge


async def _scores(judge: Judge, said: Sequence[Mapping[str, Any]]) -> tuple[float, float]:
    exact = tried = kept_back = nobody = 0
    for one in said:
        if one["part"] != "ask":
            continue
        tool, words = await judge(one["text"])
        if one["tool"] is None:
            nobody += 1
            kept_back += tool is None
        else:
            tried += 1
            exact += tool == one["tool"] and all(
                words.get(slot, "").casefold() == right.casefold() for slot, right in one["words"].items()
            )
    return exact / tried, kept_back / nobody


def add_learning_rows(report: Report) -> None:
    """Exact calls after learning beside before, by owner; and that nothing more is done that no tool can."""
    from agent_node import StaticEmbedder, fill_folder, world

    async def run() -> dict[str, dict[str, float]]:
        root = Path(tempfile.mkdtemp(prefix="kith-bench-"))
        try:
            await trio.to_thread.run_sync(fill_folder, root)
            return await replay(world(root), StaticEmbedder())
        finally:
            shutil.rmtree(root)

    for owner, one in trio.run(run).items():
        before, after = one["exact_before"], one["exact_after"]
        wanted = min(before + POINTS, before + (1 - before) / 2)
        size = f"{one['asked']:.0f} requests, {one['lessons']:.0f} lessons"
        report.add(f"learning, {owner} ({size}): exact calls; baseline: before", after, "share", baseline=before,
                   at_least=round(wanted, 4))
        report.add(f"learning, {owner}: abstains where no tool can; baseline: before", one["abstain_after"], "share",
                   baseline=one["abstain_before"], at_least=one["abstain_before"])
