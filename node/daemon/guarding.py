"""Puts the nets of one node together: the detectors when their parts are installed, and what to say when they are not.

Pure construction; the detectors' process starts when the first text asks for it. Must not know masking or peers.
"""

from collections.abc import Sequence

from node.clock import Clock, Entropy
from node.privacy.detectors import DetectorsNet
from node.privacy.public_names import PublicNames, shipped_names
from node.scan.detecting import DetectWorker
from node.scan.detectors.weights import missing_parts

__all__ = ["build_detectors"]

_KEY_BYTES = 32


def build_detectors(
    worker: DetectWorker, own_public_names: Sequence[str], clock: Clock, entropy: Entropy,
) -> DetectorsNet | None:
    """The third net; None when a part of the extra `guard` is not installed: free text then needs consent each time.

    own_public_names: names that the owner wants never masked, beside the shipped ones.
    """
    if missing_parts():
        return None
    public = PublicNames((*shipped_names(), *own_public_names))
    return DetectorsNet(
        worker, public=lambda: public, this_year=lambda: clock.now().year, key=entropy.bytes(_KEY_BYTES))
