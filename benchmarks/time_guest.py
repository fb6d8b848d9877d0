"""What other Python libraries read in a list of time expressions. Runs in the environment that holds them.

    ENVIRONMENT/bin/python benchmarks/time_guest.py NOW < texts as JSON > {library: [start or null, ...]} as JSON
"""

import json
import sys
import warnings
from collections.abc import Callable, Sequence
from datetime import datetime
from typing import Any

warnings.simplefilter("ignore")


def libraries(now: datetime) -> dict[str, Callable[[str], datetime | None]]:
    """Each library's best way to read one expression, told when it is said and that dates are day first."""
    import ctparse
    import dateparser
    import parsedatetime
    import timefhuman
    from dateparser.search import search_dates
    from recognizers_date_time import recognize_datetime

    settings: Any = {"RELATIVE_BASE": now, "PREFER_DATES_FROM": "future", "DATE_ORDER": "DMY"}
    calendar = parsedatetime.Calendar()

    def dateparser_search(text: str) -> datetime | None:
        found = search_dates(text, languages=["en"], settings=settings)
        return found[0][1] if found else None

    def recognizers(text: str) -> datetime | None:
        for result in recognize_datetime(text, "en-us", reference=now):
            values = result.resolution["values"]
            ahead = [one for one in map(_value, values) if one and one >= now.replace(hour=0, minute=0)]
            if ahead:
                return min(ahead)
        return None

    def ctparsed(text: str) -> datetime | None:
        found = ctparse.ctparse(text, ts=now, timeout=5)
        resolution = found.resolution if found else None
        resolution = getattr(resolution, "t_from", None) or resolution
        return resolution.dt if resolution is not None and hasattr(resolution, "dt") else None

    def human(text: str) -> datetime | None:
        found: Any = timefhuman.timefhuman(text, config=timefhuman.tfhConfig(now=now))
        while isinstance(found, list | tuple):
            found = found[0] if found else None
        return found if isinstance(found, datetime) else None

    def parsed(text: str) -> datetime | None:
        found, status = calendar.parseDT(text, sourceTime=now)
        return found if status else None

    return {
        "dateparser": lambda text: dateparser.parse(text, languages=["en"], settings=settings),
        "dateparser search": dateparser_search, "recognizers": recognizers, "ctparse": ctparsed,
        "timefhuman": human, "parsedatetime": parsed,
    }


def _value(value: dict[str, str]) -> datetime | None:
    text = value.get("start") or value.get("value") or ""
    for form in ("%Y-%m-%d %H:%M:%S", "%Y-%m-%d"):
        try:
            return datetime.strptime(text, form)
        except ValueError:
            continue
    return None


def main(now: datetime, texts: Sequence[str]) -> None:
    """Every library over every text; what a library fails on is None."""
    found: dict[str, list[str | None]] = {}
    for name, read in libraries(now).items():
        found[name] = []
        for text in texts:
            try:
                moment = read(text)
            except Exception:  # a library that fails on a text has not read it, whatever the way it fails
                moment = None
            found[name].append(moment.replace(tzinfo=None).isoformat(timespec="minutes") if moment else None)
    print(json.dumps(found))


if __name__ == "__main__":
    main(datetime.fromisoformat(sys.argv[1]), json.load(sys.stdin))
