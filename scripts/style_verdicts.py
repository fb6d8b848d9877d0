"""Runs the trial of placeholders on the installed embedded models and writes the outcome: offload/style_verdicts.toml.

For whoever changes the trial, its tasks, the stand-ins or an embedded model; the outcome is committed. Must not know
what the trial asks.

    .venv/bin/python scripts/style_verdicts.py
"""

import sys
from itertools import count
from pathlib import Path

import tomli_w
import trio

from node.daemon.style_trial import StyleTrial
from offload.local_engine import LocalEngine
from offload.style_verdicts import VERDICTS

MODELS = Path(sys.prefix) / "share" / "kith" / "models"
DEADLINE_S = 900.0
HEAD = "# What the trial of placeholders said, by the file's digest. Written by scripts/style_verdicts.py.\n\n"


async def verdicts() -> dict[str, dict[str, int]]:
    """Digest -> the figures of a record."""
    numbers = count()
    engine = LocalEngine([MODELS])
    found = {}
    async with trio.open_nursery() as nursery:
        await nursery.start(engine.run)
        for info in await engine.models():
            verdict = await StyleTrial(engine, lambda: f"trial-{next(numbers)}", DEADLINE_S).choose(info.digest)
            if verdict is None:
                sys.exit(f"{info.name} could not be tried")
            found[info.digest] = {
                "trial_version": verdict.version, "trial_tasks": verdict.tasks, "well_in_brackets": verdict.brackets,
                "well_in_surrogates": verdict.surrogates}
            print(f"{info.name}: {verdict.style}, {verdict}")
        nursery.cancel_scope.cancel()
    return found


if __name__ == "__main__":
    VERDICTS.write_text(HEAD + tomli_w.dumps(trio.run(verdicts)), encoding="utf-8")
