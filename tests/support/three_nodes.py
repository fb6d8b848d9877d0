"""One phone and two machines at home with the same model, as real processes on loopback, paired.

The second machine's key is known, so that a test can speak for it. Must not know what is tested.
"""

import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from netpair import seed_of

from node.cli.demo.nodes import DAEMON, DemoNode
from node.cli.demo.owner import pair_two
from node.cli.demo.world import make_world
from node.daemon.composition import DEMO_MARK
from node.identity import keystore

__all__ = ["ATTIC", "ThreeNodes", "three_nodes"]

ATTIC = "attic"


class _OneSeed:
    """Entropy whose first 32 bytes are this name's key."""

    def __init__(self, name: str) -> None:
        self._name = name

    def bytes(self, n: int) -> "bytes":
        return seed_of(self._name)[:n]


@dataclass
class ThreeNodes:
    """The phone and its two machines at home."""

    phone: DemoNode
    home_pc: DemoNode
    attic: DemoNode

    @property
    def providers(self) -> tuple[DemoNode, DemoNode]:
        """The two machines at home."""
        return self.home_pc, self.attic


@contextmanager
def three_nodes(*, home_pc: Sequence[str] = DAEMON, attic: Sequence[str] = DAEMON) -> Iterator[ThreeNodes]:
    """All three started, and both machines paired with the phone and here; the arguments are what starts them."""
    with tempfile.TemporaryDirectory(prefix="kx-") as folder:
        world = make_world(Path(folder), datetime.now(UTC))
        third = Path(folder) / ATTIC
        for part in ("config", "data", "library"):
            (third / part).mkdir(parents=True, mode=0o700)
        third.chmod(0o700)
        written = (world.home_pc / "config" / "config.toml").read_text().replace('"home-pc"', f'"{ATTIC}"')
        (third / "config" / "config.toml").write_text(written.replace(str(world.home_pc), str(third)))
        (third / "config" / "config.toml").chmod(0o600)
        keystore.create(third / "data" / "identity.json", _OneSeed(ATTIC))
        for home in (world.phone, world.home_pc):
            (home / "data").mkdir(mode=0o700)
        for home in (world.phone, world.home_pc, third):
            (home / "data" / DEMO_MARK).touch()
        with (
            DemoNode("phone", world.phone) as phone, DemoNode("home-pc", world.home_pc, home_pc) as one,
            DemoNode(ATTIC, third, attic) as other,
        ):
            for node in (phone, one, other):
                node.start()
            for provider in (one, other):
                pair_two(provider.client(), phone.client())
            phone.wait_for(lambda status: sum(peer["connected"] for peer in status["peers"]) == 2, "both are here")
            yield ThreeNodes(phone, one, other)
