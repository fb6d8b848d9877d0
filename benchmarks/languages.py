"""Requests in German, French, Spanish and Italian: right tool and exact call, for each language. No bound.

One author wrote the requests and the words that the agent looks for: the figures are upper bounds.
"""

import tempfile
from pathlib import Path

import trio
from agent_node import fill_folder, world
from foreign_requests import LANGUAGES, Outcome, load, outcome

from benchmarks.report import Report

__all__ = ["add_language_rows"]


async def _all() -> dict[str, list[Outcome]]:
    found: dict[str, list[Outcome]] = {language: [] for language in LANGUAGES}
    with tempfile.TemporaryDirectory() as folder:
        fill_folder(Path(folder))
        one = world(Path(folder))
        for request in load():
            found[request.language].append(await outcome(one, request))
    return found


def add_language_rows(report: Report) -> None:
    """Two rows a language."""
    for language, outcomes in trio.run(_all).items():
        size = len(outcomes)
        report.add(f"{language} ({size}): right tool, or none where none is served",
                   sum(one.right_tool for one in outcomes) / size, "share")
        report.add(f"{language} ({size}): exact", sum(one.exact for one in outcomes) / size, "share")
