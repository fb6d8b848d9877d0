"""What the ladder alone would call for a request, for a comparison with a model: plain data.

Must not know how it is found or compared.
"""

from dataclasses import dataclass

from node.agent.tools.registry import Args

__all__ = ["Rehearsed"]


@dataclass(frozen=True, slots=True)
class Rehearsed:
    """A call that would be made. tool: empty when the ladder would ask or decline."""

    tool: str
    args: Args
