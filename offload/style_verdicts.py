"""What the trial of placeholders said of the models that the set-up brings, as it was measured, by the file's digest.

Written by scripts/style_verdicts.py, which runs the real trial; a test runs it again and compares. Models that an owner
adds are tried on the spot instead. Must not know what the trial asks.
"""

import tomllib
from pathlib import Path
from typing import Any

import msgspec

from offload.catalogue import Record
from offload.ports import PlaceholderStyle

__all__ = ["VERDICTS", "with_verdict"]

VERDICTS = Path(__file__).with_name("style_verdicts.toml")


class _Verdict(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    trial_version: int
    trial_tasks: int
    well_in_brackets: int
    well_in_surrogates: int


def with_verdict(record: Record) -> Record:
    """The record with the style that suits its model and the figures behind it; unchanged when no trial is known."""
    raw: dict[str, Any] = tomllib.loads(VERDICTS.read_text(encoding="utf-8"))
    if record.digest not in raw:
        return record
    found = msgspec.convert(raw[record.digest], _Verdict)
    style: PlaceholderStyle = "surrogates" if found.well_in_surrogates > found.well_in_brackets else "brackets"
    return msgspec.structs.replace(record, placeholder_style=style, **msgspec.to_builtins(found))
