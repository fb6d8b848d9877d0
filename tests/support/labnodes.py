"""Real nodes in the namespaces of a lab: `a` and `b` at their homes, `net` in the internet."""

import contextlib
import shutil
import tempfile
import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from netlab import Lab
from running_nodes import LOG_TAIL_BYTES, WAIT_S, until

from node.cli.demo.nodes import DAEMON, DemoNode
from node.cli.demo.owner import pair_two
from node.cli.failure import CommandFailure

__all__ = ["PORT", "LabNodes", "lab_nodes", "peer"]

PORT = 4711


@dataclass
class LabNodes:
    """The nodes of one test, by place."""

    lab: Lab
    root: Path
    nodes: dict[str, DemoNode] = field(default_factory=dict)

    def __getitem__(self, place: str) -> DemoNode:
        return self.nodes[place]

    def add(self, *places: str, **settings: str) -> None:
        """Make and start a node in each of these places, all at once. settings: KITH_* without the prefix."""
        made = []
        for place in places:
            home = self.root / place
            home.mkdir(mode=0o700)
            env = {**_env(place), **{f"KITH_{key.upper()}": value for key, value in settings.items()}}
            self.nodes[place] = node = DemoNode(place, home, (*self.lab.enter(place), *DAEMON), env)
            made.append(node)
        _start(made)

    def reconfigure(self, place: str, **settings: str) -> None:
        """Restart the node of this place with more settings."""
        old = self[place]
        old.stop()
        env = {**_env(place), **{f"KITH_{key.upper()}": value for key, value in settings.items()}}
        self.nodes[place] = DemoNode(place, old.home, (*self.lab.enter(place), *DAEMON), env)
        _start([self[place]])

    def restart(self, *names: str) -> None:
        """Stop and start these nodes, all at once."""
        for name in names:
            self[name].stop()
        _start([self[name] for name in names])

    def pair(self, shower: str, typist: str) -> None:
        pair_two(self[shower].client(), self[typist].client())
        self.wait_route(shower, typist, "")
        self.wait_route(typist, shower, "")

    def route(self, at: str, to: str) -> str:
        """How a node reaches a peer, as its status says; "offline..." when it does not."""
        return str(peer(self[at], to)["route"])

    def wait_route(self, at: str, to: str, start: str | tuple[str, ...], timeout_s: float = WAIT_S) -> str:
        """Wait until the peer is present by a route that starts so, or in one of these ways."""
        def look() -> str | None:
            found = peer(self[at], to)
            return str(found["route"]) if found["connected"] and found["route"].startswith(start) else None

        return self._until(look, f"{at} reaches {to} {start}", timeout_s)

    def wait_absent(self, at: str, to: str, timeout_s: float = WAIT_S) -> None:
        self._until(lambda: not peer(self[at], to)["connected"], f"{at} sees that {to} is gone", timeout_s)

    def _until(self, look: Callable[[], Any], what: str, timeout_s: float) -> Any:
        """Give up with all that the nodes say: they serve a whole file of tests, which does not end at a failure."""
        try:
            return until(look, what, timeout_s)
        except AssertionError as late:
            self.print_logs()
            seen = {}
            for place, node in self.nodes.items():
                with contextlib.suppress(CommandFailure):
                    seen[place] = node.status()["peers"]
            raise AssertionError(f"{late}: {seen}") from None

    def print_logs(self) -> None:
        """The ends of the nodes' logs."""
        for node in self.nodes.values():
            for log in (node.home / "output.log", node.home / "state" / "kith.log"):
                if log.is_file():
                    print(f"--- end of {log}\n{log.read_bytes()[-LOG_TAIL_BYTES:].decode(errors='replace')}")

    def send(self, at: str, to: str, body: str) -> None:
        self[at].client().post("/v1/messages", {"to": to, "body": body})

    def wait_message(self, at: str, body: str, timeout_s: float = WAIT_S) -> None:
        self._until(
            lambda: any(one["body"] == body for one in self[at].client().get("/v1/inbox")), f"{at} has {body}",
            timeout_s,
        )

    def stop(self) -> None:
        for node in self.nodes.values():
            with contextlib.suppress(CommandFailure):
                node.stop()


def _env(place: str) -> dict[str, str]:
    return {
        "KITH_NODE_NAME": place, "KITH_NODE_MODE": "online", "KITH_NET_LISTEN": "0.0.0.0",
        "KITH_NET_PORT": str(PORT), "KITH_LOG_LEVEL": "debug",
    }


def _start(nodes: Sequence[DemoNode]) -> None:
    threads = [threading.Thread(target=node.start, daemon=True) for node in nodes]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(WAIT_S)
    assert all(node.status()["stage"] == "ready" for node in nodes)


def peer(node: DemoNode, name: str) -> dict[str, Any]:
    """A peer as the node's status shows it."""
    found = [one for one in node.status()["peers"] if one["name"] == name]
    return found[0] if found else {"connected": False, "route": "unknown"}


@contextlib.contextmanager
def lab_nodes(lab: Lab) -> Iterator[LabNodes]:
    """Nodes in a lab; they end with the block. When it fails the ends of their logs are printed."""
    root = Path(tempfile.mkdtemp(prefix="kith-", dir="/tmp"))
    made = LabNodes(lab, root)
    try:
        yield made
    except BaseException:
        made.print_logs()
        raise
    finally:
        made.stop()
        shutil.rmtree(root, ignore_errors=True)
