"""The checks of a node that is not running: what node.selfcheck sees, the settings, and who holds the data folder.

Must not open the database or change anything.
"""

import fcntl
import os
from collections.abc import Mapping

from node.clock import Clock
from node.config import load
from node.errors import KithError
from node.paths import Paths
from node.selfcheck import Check, run

__all__ = ["check_resting"]


def check_resting(paths: Paths, env: Mapping[str, str], clock: Clock) -> list[Check]:
    """Every check that needs no running node, and the line that says none runs."""
    resting = Check("node", "warning", "kith is not running; database, ledger and model were not looked at",
                    "Start it with: kith up")
    return [resting, *run(paths, clock), _settings(paths, env), _lock(paths)]


def _settings(paths: Paths, env: Mapping[str, str]) -> Check:
    try:
        load(paths.config_file, env)
    except KithError as error:
        return Check("settings", "problem", error.text, error.hint)
    return Check("settings", "ok", f"{paths.config_file} is understood")


def _lock(paths: Paths) -> Check:
    """Whether a start would find the data folder free; a node that holds it and does not answer hangs."""
    try:
        descriptor = os.open(paths.lock_file, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW)
    except FileNotFoundError:
        return Check("lock", "ok", "no node has the data folder")
    except OSError as error:
        return Check("lock", "problem", f"{paths.lock_file} cannot be opened: {error.strerror}",
                     f"Check: ls -l {paths.lock_file}")
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)  # given back at once, by closing
    except BlockingIOError:
        return Check("lock", "problem", "a process holds the data folder and does not answer",
                     f"It is starting, or hangs; its process id: cat {paths.lock_file}")
    finally:
        os.close(descriptor)
    return Check("lock", "ok", "no node has the data folder")
