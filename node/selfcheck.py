"""Checks that need no running node: our own packages, file modes, disk, clock. kith doctor and start-up run them.

Must not open the database, the network or a model; those checks live with what they check.
"""

import importlib.util
import shutil
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Literal

from node.clock import Clock
from node.errors import ForeignPackage, KithError
from node.paths import Paths, check_private

__all__ = ["OWN_PACKAGES", "Check", "assert_own_packages", "check_clock", "check_disk", "check_file_modes", "run"]

OWN_PACKAGES = ("node", "protocol", "offload", "search")
_DISK_LOW_BYTES = 200_000_000
_DISK_WARN_BYTES = 1_000_000_000
# No correct clock shows less than the day this was written; one that does makes grants and windows meaningless.
_EARLIEST = datetime(2026, 1, 1, tzinfo=UTC)
_LATEST = datetime(2100, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class Check:
    """One line of kith doctor."""

    name: str
    state: Literal["ok", "warning", "problem"]
    text: str
    hint: str = ""


def assert_own_packages(expected_root: Path | None = None) -> None:
    """Pass when all four packages come from where this file is; else ForeignPackage (exit 70). Imports none of them."""
    root = expected_root or Path(__file__).resolve().parent.parent
    for name in OWN_PACKAGES:
        spec = importlib.util.find_spec(name)
        if spec is None or spec.origin is None:
            raise ForeignPackage(f"kith's own package {name!r} is missing from {root}.")
        found = Path(spec.origin).resolve()
        if found.parent.parent != root:
            raise ForeignPackage(f"Another package named {name!r} shadows kith's own: {found}.")


def check_file_modes(paths: Paths) -> list[Check]:
    """One line for the folders and one for each private file that exists."""
    folders = (paths.config_dir, paths.data_dir, paths.state_dir, paths.runtime_dir)
    files = (paths.identity_file, paths.database, paths.index_database, paths.log_file, paths.config_file)
    problems = [one for one in map(_private, (*folders, *files)) if one is not None]
    return problems or [Check("files", "ok", "folders and files are closed to other users")]


def check_disk(folder: Path) -> Check:
    """Whether there is room for the database and a model."""
    free = shutil.disk_usage(folder).free
    text = f"{free / 1e9:.1f} GB free at {folder}"
    if free < _DISK_LOW_BYTES:
        return Check("disk", "problem", text, f"Free some space: df -h {folder}")
    if free < _DISK_WARN_BYTES:
        return Check("disk", "warning", text, f"Free some space: df -h {folder}")
    return Check("disk", "ok", text)


def check_clock(clock: Clock) -> Check:
    """Whether the date can be right. How far it is from a peer's is checked where peers are known."""
    now = clock.now()
    if not _EARLIEST <= now < _LATEST:
        return Check("clock", "problem", f"the clock shows {now:%Y-%m-%d}, which cannot be", "Set it: timedatectl")
    return Check("clock", "ok", f"the clock shows {now:%Y-%m-%d %H:%M} UTC")


def run(paths: Paths, clock: Clock) -> list[Check]:
    """All checks of this module."""
    return [_own_packages(), *check_file_modes(paths), *_disks((paths.data_dir, paths.state_dir)), check_clock(clock)]


def _own_packages() -> Check:
    try:
        assert_own_packages()
    except ForeignPackage as error:
        return Check("packages", "problem", error.text, error.hint)
    return Check("packages", "ok", "kith's packages are its own")


def _disks(folders: Iterable[Path]) -> list[Check]:
    there = {folder.stat().st_dev: folder for folder in folders if folder.exists()}
    return [check_disk(folder) for folder in there.values()]


def _private(path: Path) -> Check | None:
    try:
        check_private(path)
    except FileNotFoundError:
        return None
    except KithError as error:
        return Check("files", "problem", error.text, error.hint)
    except OSError as error:
        return Check("files", "problem", f"{path} cannot be examined: {error.strerror}.", f"Check: ls -ld {path}")
    return None
