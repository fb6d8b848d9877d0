"""The tool that lists the owner's paired devices and people. Must not know connections: it asks a port."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from node.agent.tools.examples import examples_of
from node.agent.tools.registry import Args, ToolAnswer, ToolContext, ToolSpec, check_args
from node.counting import counted
from node.privacy.labels import Confidentiality, Integrity, Labeled, Value

__all__ = ["PeerDirectory", "PeerEntry", "PeersList"]

_SPEC = ToolSpec(
    name="peers_list",
    description="List the paired devices and people, and which of them can be reached now",
    params={},
    required=(),
    examples=(
        "which devices are paired", "who is connected right now", "is my home computer reachable", "list my peers",
        "which nodes do you know", "show the machines you can send work to", "is anybody online", "who can you talk to",
        "what computers are linked to this one",
        *examples_of("peers_list"),
    ),
    kind="read",
    cues=("peers", "peer", "paired", "devices", "connected", "reachable", "online", "nodes"),
)


@dataclass(frozen=True, slots=True)
class PeerEntry:
    """One paired node."""

    name: str
    trust: str
    """self, home or friend."""
    connected: bool
    services: tuple[str, ...] = ()
    """What it grants to this node: infer, search, mail, models."""


class PeerDirectory(Protocol):
    """Who is paired."""

    async def peers(self) -> Sequence[PeerEntry]:
        """All paired nodes, by name."""
        ...


class PeersList:
    """Who is paired and there."""

    spec = _SPEC

    def __init__(self, directory: PeerDirectory) -> None:
        self._directory = directory

    async def choices(self, param: str) -> tuple[str, ...]:
        """It has no parameters."""
        return ()

    async def run(self, args: Args, ctx: ToolContext) -> ToolAnswer:
        """Every paired node in one line."""
        check_args(self.spec, args)
        peers = await self._directory.peers()
        values = tuple(Value(peer.name, "ID") for peer in peers)
        return ToolAnswer(
            Labeled(_text(peers), Confidentiality.PERSONAL, Integrity.LOCAL, "peers_list:peers", values),
            {"peers": [
                {"name": peer.name, "trust": peer.trust, "connected": peer.connected, "services": list(peer.services)}
                for peer in peers
            ]},
        )


def _text(peers: Sequence[PeerEntry]) -> str:
    if not peers:
        return "Nothing is paired yet. Pair a device with: kith pair"
    lines = [f"{counted(len(peers), 'node')} paired."]
    for peer in peers:
        does = f", does {' and '.join(peer.services)} for you" if peer.services else ""
        lines.append(f"- {peer.name} ({peer.trust}): {'connected' if peer.connected else 'not connected'}{does}")
    return "\n".join(lines)
