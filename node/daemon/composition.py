"""What a test may put in the place of a real part. The real node takes every default; no setting, flag or variable
reaches this.

A composition that could weaken a promise - a tap on outgoing bytes, other nets - only runs on a data folder that
is marked as a demonstration's: the file DEMO stands in it. Must not know how the node is built.
"""

from collections.abc import Callable
from dataclasses import dataclass, field

from node.clock import Clock, Entropy, SystemClock, SystemEntropy
from node.errors import BugError
from node.paths import Paths
from node.privacy.inspector import Inspector
from node.privacy.nets import KnownValues, Net

__all__ = ["DEMO_MARK", "Composition", "compose_inspector"]

DEMO_MARK = "DEMO"

MakeInspector = Callable[[KnownValues, Net, Net | None], Inspector]


def compose_inspector(vault: KnownValues, secrets: Net, detectors: Net | None) -> Inspector:
    """The real nets: labels, vault, patterns, secrets and detectors. Without detectors free text needs consent."""
    return Inspector(vault=vault, secrets=secrets, detectors=detectors)


@dataclass(frozen=True, slots=True)
class Composition:
    """The parts of one node that are passed in."""

    clock: Clock = field(default_factory=SystemClock)
    entropy: Entropy = field(default_factory=SystemEntropy)
    tap: Callable[[str, str, bytes], None] | None = None
    make_inspector: MakeInspector = compose_inspector

    def check(self, paths: Paths) -> None:
        """Raises BugError when a weakening part is composed for a folder that is not a demonstration's."""
        if self.tap is None and self.make_inspector is compose_inspector:
            return
        if not (paths.data_dir / DEMO_MARK).is_file():
            raise BugError("A tap or other nets may only be composed for a demonstration's data folder.")
