"""A real node with a tap: every frame on its way to the transport, and every address that the process calls or binds.

Run like the node itself: `python -P tapped_daemon.py [--null-guard] [--hold-network] [kith up's options]`, for a
KITH_HOME whose data folder carries the DEMO mark. Writes HOME.tap (frames) and HOME.calls (JSON lines) beside the
home, never into it. --null-guard composes an inspector that finds nothing: the negative control of the canary test.
--hold-network keeps the import of libp2p waiting until the file HOME.go exists. read_tap and read_calls are for tests.
"""

import json
import os
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from importlib.abc import MetaPathFinder
from pathlib import Path
from typing import Any

import msgspec

__all__ = ["TAPPED", "Tapped", "read_calls", "read_tap", "tapped"]

TAPPED = (sys.executable, "-P", str(Path(__file__).resolve()))
_WATCHED = ("socket.connect", "socket.bind", "socket.sendto", "socket.sendmsg", "socket.getaddrinfo")


def tapped(*switches: str) -> tuple[str, ...]:
    """The command that starts a tapped node."""
    return (*TAPPED, *switches)


@dataclass(frozen=True)
class Tapped:
    """One frame as it was handed to the transport, its length prefix included."""

    peer_id: str
    protocol: str
    data: bytes


def _beside(home: Path, ending: str) -> Path:
    return home.parent / f"{home.name}.{ending}"


def read_tap(home: Path) -> list[Tapped]:
    """Every frame that the node of this home sent, in order, over all its starts."""
    found, rest = [], _beside(home, "tap").read_bytes()
    while rest:
        size = int.from_bytes(rest[:4], "big")
        found.append(Tapped(*msgspec.msgpack.decode(rest[4 : 4 + size], type=tuple[str, str, bytes])))
        rest = rest[4 + size :]
    return found


def read_calls(home: Path) -> list[list[Any]]:
    """[event, address] for everything that the process of this home asked of the network."""
    return [json.loads(line) for line in _beside(home, "calls").read_text().splitlines()]


class _HeldImport(MetaPathFinder):
    """Finds nothing, but looks for libp2p only once the file `go` is there. Runs in whatever thread imports it."""

    def __init__(self, go: Path) -> None:
        self._go = go

    def find_spec(self, fullname: str, path: object, target: object = None) -> None:
        if fullname == "libp2p":
            while not self._go.exists():
                time.sleep(0.02)


def _appender(path: Path) -> Callable[[bytes], None]:
    file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    turn = threading.Lock()

    def append(data: bytes) -> None:
        with turn:
            os.write(file, data)

    return append


def _watch_calls(append: Callable[[bytes], None]) -> None:
    def hook(event: str, arguments: tuple[Any, ...]) -> None:
        if event in _WATCHED:
            address = arguments[1] if event != "socket.getaddrinfo" else arguments[0]
            append((json.dumps([event, address], default=repr) + "\n").encode())

    sys.addaudithook(hook)


def _main() -> int:
    home = Path(os.environ["KITH_HOME"])
    arguments = sys.argv[1:]
    _watch_calls(_appender(_beside(home, "calls")))
    if "--hold-network" in arguments:
        arguments.remove("--hold-network")
        sys.meta_path.insert(0, _HeldImport(_beside(home, "go")))
    null_guard = "--null-guard" in arguments
    if null_guard:
        arguments.remove("--null-guard")
    sys.path.insert(0, str(Path(__file__).resolve().parent))

    from guard_bench import BlindInspector

    from node.daemon.__main__ import run_node
    from node.daemon.composition import Composition, compose_inspector

    append = _appender(_beside(home, "tap"))

    def tap(peer_id: str, protocol: str, data: bytes) -> None:
        record = msgspec.msgpack.encode((peer_id, protocol, data))
        append(len(record).to_bytes(4, "big") + record)

    def blind(*_: object) -> BlindInspector:
        return BlindInspector()

    return run_node(arguments, Composition(tap=tap, make_inspector=blind if null_guard else compose_inspector))


if __name__ == "__main__":
    sys.exit(_main())
