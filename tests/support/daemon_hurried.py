"""A node that lets itself be called as often as anybody likes. A program for tests of what strangers send it.

The limit on how often would keep most of that from being read at all. Nothing else of the node is changed.
"""

import sys

from node.daemon.__main__ import run_node
from node.daemon.composition import Composition
from node.net.limits import PaceLimits, Rate

if __name__ == "__main__":
    PaceLimits.__init__.__defaults__ = (Rate(1 << 30, 1.0),) * len(PaceLimits.__slots__)  # type: ignore[misc]
    sys.exit(run_node(sys.argv[1:], Composition()))
