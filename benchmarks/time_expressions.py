"""Rows of reading times: our readers and every Python library at hand over one list, in one run.

The list (tests/data/agent/time_expressions.jsonl) has days, clock times and spans as people write them, each with its
value worked out by hand for Wednesday 18 March 2026, 09:30 in Berlin. Only starts are compared, for libraries know no
spans; a day needs no clock time. It was written by somebody who did not look at the readers, and scored 305 of 359 when
it was new; what was mended after that is no longer held out.
"""

import json
import subprocess
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from zoneinfo import ZoneInfo

from benchmarks.report import Report
from node.agent.readers.windows import Locale, read_when

__all__ = ["add_time_rows", "own_starts", "right", "time_expressions"]

ROOT = Path(__file__).resolve().parents[1]
LIST = ROOT / "tests" / "data" / "agent" / "time_expressions.jsonl"
ENVIRONMENT = ROOT / ".venv" / "share" / "kith" / "timelibs" / "bin" / "python"
ZONE = ZoneInfo("Europe/Berlin")
NOW = datetime(2026, 3, 18, 9, 30, tzinfo=ZONE)
LIMIT_S = 120

Expression = Mapping[str, str]


def time_expressions() -> list[Expression]:
    """The list: text, kind (day, clock, span), start, and for spans end; local times."""
    return [json.loads(line) for line in LIST.read_text(encoding="utf-8").splitlines()]


def own_starts(texts: Sequence[str]) -> list[str | None]:
    """What our readers take each text to begin at, in local time."""
    found: list[str | None] = []
    for text in texts:
        when = read_when(text, NOW.astimezone(UTC), Locale(ZONE))
        begin = when.start(NOW) if when.said else None
        if begin is None and (periods := when.periods(NOW)):
            begin = periods[0][0]
        found.append(begin.astimezone(ZONE).replace(tzinfo=None).isoformat(timespec="minutes") if begin else None)
    return found


def right(expression: Expression, start: str | None) -> bool:
    """Whether a start is the one of the list; of a day, the day is enough."""
    if start is None:
        return False
    return start[:10] == expression["start"] if expression["kind"] == "day" else start == expression["start"]


def _libraries(texts: Sequence[str]) -> dict[str, list[str | None]]:
    subprocess.run([ROOT / "scripts" / "guest_env", "timelibs"], check=True, timeout=600)
    done = subprocess.run(
        [ENVIRONMENT, ROOT / "benchmarks" / "time_guest.py", NOW.replace(tzinfo=None).isoformat(timespec="minutes")],
        input=json.dumps(texts), capture_output=True, text=True, check=True, timeout=LIMIT_S,
    )
    found: dict[str, list[str | None]] = json.loads(done.stdout.splitlines()[-1])
    return found


def add_time_rows(report: Report) -> None:
    """Our readers' share beside the best library's, by kind; every library's; and the time a text takes."""
    listed = time_expressions()
    texts = [one["text"] for one in listed]
    others = _libraries(texts)
    begun_s = time.process_time()
    own = own_starts(texts)
    each_ms = (time.process_time() - begun_s) / len(texts) * 1000
    scores = {
        name: Counter(one["kind"] for one, start in zip(listed, starts, strict=True) if right(one, start))
        for name, starts in {**others, "own": own}.items()
    }
    mine, sizes = scores.pop("own"), Counter(one["kind"] for one in listed)
    best = max(scores, key=lambda name: scores[name].total())
    report.add(f"time expressions right, of {len(listed)}; baseline: {best}", mine.total() / len(listed), "share",
               baseline=scores[best].total() / len(listed), at_least=0.7, ratio_at_least=1.0)
    for kind, size in sizes.items():
        report.add(f"  {kind}, of {size}; baseline: {best}", mine[kind] / size, "share",
                   baseline=scores[best][kind] / size)
    for name in sorted(scores, key=lambda one: -scores[one].total()):
        report.add(f"  {name}, for comparison", scores[name].total() / len(listed), "share")
    report.add("reading one time expression, CPU", each_ms, "ms")
