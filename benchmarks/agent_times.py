"""Row of the time that code takes to understand a request: readers, choice and gate of the whole agent, no model.

Over the open requests of others in turn, after one that prepares the vectors, which are embedded in this process (the
node asks its worker for them: some 0.2 ms more). Must not know what is right.
"""

import tempfile
import time
from pathlib import Path

import agent_bank as bank
import trio
from agent_node import fill_folder, world

from benchmarks.agent_second_reader import foreign_cases
from benchmarks.report import Report
from benchmarks.timing import median

__all__ = ["add_time_of_code_row"]

BOUND_MS = 20
QUICK_REQUESTS = 60


async def _spent_ms(texts: list[str]) -> list[float]:
    with tempfile.TemporaryDirectory() as folder:
        fill_folder(Path(folder))
        agent, reader = world(Path(folder)).agent, bank.reader()
        await agent._judging.judge(reader, reader.read("what is on tomorrow", bank.NOW))
        spent: list[float] = []
        for text in texts:
            begun_s = time.perf_counter()
            await agent._judging.judge(reader, reader.read(text, bank.NOW))
            spent.append(1000 * (time.perf_counter() - begun_s))
        return spent


def add_time_of_code_row(report: Report, *, quick: bool) -> None:
    """The median, with the ninth decile in the name's place beside it."""
    texts = [case.text for case in foreign_cases()]
    texts = texts[:: max(1, len(texts) // QUICK_REQUESTS)] if quick else texts
    spent = sorted(trio.run(_spent_ms, texts))
    title = f"readers, choice and gate ({len(spent)} requests of others, the node's own tools)"
    report.add(f"{title}: median", median(spent), "ms", at_most=BOUND_MS)
    report.add("readers, choice and gate: nine of ten below", spent[int(0.9 * len(spent))], "ms")
