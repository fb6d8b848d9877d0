"""The one way a list of tools can be refused. Hangs in the tree of offload.errors below RequestRefused.

Parsers raise nothing: whatever a model writes is a call, a repaired call or text. Must not know formats.
"""

from offload.errors import RequestRefused

__all__ = ["BadTools"]


class BadTools(RequestRefused):
    """The tools of this request can't be offered to a model."""

    code = "bad_tools"
    hint = "Check the names and parameter schemas of the tools."
