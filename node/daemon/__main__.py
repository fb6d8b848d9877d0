"""python -P -m node.daemon: start a node in the foreground.

Checks that the packages are Kith's own, takes the data folder's lock, makes identity and settings on the first
run, and lives.
"""

import argparse
import getpass
import os
import sys
from collections.abc import Sequence
from importlib.metadata import version
from pathlib import Path

import trio

from node import first_run, log, selfcheck
from node.config import load
from node.daemon.composition import Composition
from node.daemon.life import Node
from node.errors import KithError
from node.identity import keystore
from node.net.lock import NodeLock
from node.paths import Paths

__all__ = ["main", "run_node"]


def run_node(arguments: Sequence[str], composition: Composition) -> int:
    """Run one node to its end; the exit code comes back. Tests pass a composition of their own."""
    parser = argparse.ArgumentParser(prog="kith up")
    parser.add_argument("--mode", choices=["offline", "lan", "online"])
    parser.add_argument("--port", type=int)
    options = parser.parse_args(arguments)
    try:
        selfcheck.assert_own_packages()
        paths = Paths.from_env(os.environ, Path.home())
        paths.prepare()
        with NodeLock(paths.data_dir):
            composition.check(paths)
            passphrase = first_run.read_passphrase(os.environ) or _ask_passphrase(paths)
            identity = first_run.prepare(paths, composition.entropy, passphrase=passphrase)
            config = load(
                paths.config_file, os.environ, {"node.mode": options.mode, "net.port": options.port}
            )
            lines = config.settings.log
            log.set_up(
                paths.log_file, level=lines.level, max_mb=lines.max_mb, keep_files=lines.keep_files,
                console=sys.stderr if sys.stderr.isatty() else None,
            )
            name = config.settings.node.name
            print(f"kith {version('kith-node')}   {name}   id {identity.peer_id}   mode {config.settings.node.mode}")
            print("Press Ctrl-C to stop.", flush=True)
            node = Node(config, paths, identity, composition, lambda: print("ready", flush=True))
            trio.run(node.run, strict_exception_groups=True)
    except KithError as error:
        print(f"kith: {error.text}\n  {error.hint}", file=sys.stderr)
        return error.exit_code
    except BaseExceptionGroup as group:
        known = _first_known(group)
        if known is None:
            raise
        print(f"kith: {known.text}\n  {known.hint}", file=sys.stderr)
        return known.exit_code
    return 0


def _ask_passphrase(paths: Paths) -> str | None:
    """The passphrase typed on the terminal, when the key is locked and there is a terminal."""
    if not paths.identity_file.exists() or not sys.stdin.isatty() or not keystore.is_locked(paths.identity_file):
        return None
    return getpass.getpass("Passphrase of this device's key: ")


def _first_known(group: BaseExceptionGroup[BaseException]) -> KithError | None:
    """The one error of ours in a group, when there is nothing else in it."""
    leaves: list[BaseException] = []
    pending: list[BaseException] = [group]
    while pending:
        error = pending.pop()
        if isinstance(error, BaseExceptionGroup):
            pending += error.exceptions
        else:
            leaves.append(error)
    return leaves[0] if len(leaves) == 1 and isinstance(leaves[0], KithError) else None


def main() -> None:
    """Run the real node."""
    sys.exit(run_node(sys.argv[1:], Composition()))


if __name__ == "__main__":
    main()
