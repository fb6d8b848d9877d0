"""python -P -m node.daemon: start a node in the foreground.

Checks that the packages are Kith's own, takes the data folder's lock, makes identity and settings on the first
run, and lives.
"""

import argparse
import getpass
import os
import resource
import sys
from collections.abc import Sequence
from importlib.metadata import version
from pathlib import Path

import trio

from node import first_run, log, selfcheck
from node.config import load
from node.daemon import leash
from node.daemon.composition import Composition
from node.daemon.door import Door
from node.daemon.life import Node
from node.errors import KithError, StorageError
from node.identity import keystore
from node.net.lock import NodeLock
from node.paths import Paths

__all__ = ["main", "run_node"]


def run_node(arguments: Sequence[str], composition: Composition) -> int:
    """Run one node to its end; the exit code comes back. Tests pass a composition of their own."""
    parser = argparse.ArgumentParser(prog="kith up")
    parser.add_argument("--mode", choices=["offline", "lan", "online"])
    parser.add_argument("--port", type=int)
    parser.add_argument("--until-stdin-ends", action="store_true", help="stop with whoever started this node")
    options = parser.parse_args(arguments)
    if options.until_stdin_ends:
        leash.hold()
    try:
        selfcheck.assert_own_packages()
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))  # a crash leaves no image of the memory, nor does a child's
        paths = Paths.from_env(os.environ, Path.home())
        paths.prepare()
        with NodeLock(paths.data_dir):
            composition.check(paths)
            passphrase = first_run.read_passphrase(os.environ) or _ask_passphrase(paths)
            locked = passphrase is None and first_run.is_locked(paths)
            identity = None if locked else first_run.prepare(paths, composition.entropy, passphrase=passphrase)
            door = Door(paths, identity, composition.entropy, passphrase)
            config = load(
                paths.config_file, os.environ, {"node.mode": options.mode, "net.port": options.port}
            )
            lines = config.settings.log
            log.set_up(
                paths.log_file, level=lines.level, max_mb=lines.max_mb, keep_files=lines.keep_files,
                console=sys.stderr if sys.stderr.isatty() else None,
            )
            name = config.settings.node.name
            print(f"kith {version('kith-node')}   {name}   id {door.peer_id}   mode {config.settings.node.mode}")
            print("Press Ctrl-C to stop.", flush=True)
            if locked:
                print("The node is locked. Unlock it: kith unlock", flush=True)
            node = Node(config, paths, door, composition, lambda: print("ready", flush=True))
            trio.run(node.run, strict_exception_groups=True)
    except (KithError, OSError) as error:
        return _end(_known_errors(error))
    except BaseExceptionGroup as group:
        known = _known_errors(group)
        if not known:
            raise
        return _end(known)
    return 0


def _end(errors: Sequence[KithError]) -> int:
    """Say every error, each once; the exit code of the first comes back."""
    for text in dict.fromkeys(f"kith: {error.text}\n  {error.hint}" for error in errors):
        print(text, file=sys.stderr)
    return errors[0].exit_code


def _ask_passphrase(paths: Paths) -> str | None:
    """The passphrase typed on the terminal, when the key is locked and there is a terminal."""
    if not paths.identity_file.exists() or not sys.stdin.isatty() or not keystore.is_locked(paths.identity_file):
        return None
    return getpass.getpass("Passphrase of this device's key: ")


def _known_errors(error: BaseException) -> list[KithError]:
    """Every error in it as one of ours, in the order of the parts that failed; empty when one is a fault of kith's."""
    if isinstance(error, BaseExceptionGroup):
        found = [_known_errors(one) for one in error.exceptions]
        return [one for known in found for one in known] if all(found) else []
    if isinstance(error, KithError):
        return [error]
    if isinstance(error, OSError):
        place = f" ({error.filename})" if error.filename else ""
        text = f"The system refused something: {error.strerror or type(error).__name__}{place}."
        return [StorageError(text, hint="Check the disk and the folder: df -h, kith doctor")]
    return []


def main() -> None:
    """Run the real node."""
    sys.exit(run_node(sys.argv[1:], Composition()))


if __name__ == "__main__":
    main()
