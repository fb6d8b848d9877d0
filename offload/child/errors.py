"""Every error of a child process, drawn as a tree.

    ChildError
    +-- FrameTooLarge         a length prefix above the limit
    +-- ChildGone             the process ended, or was ended, while someone waited for it
    +-- ChildStartFailed      it ended, or said so, before it was ready
    +-- ChildQuarantined      it died too often and is not started again for now
    +-- ChildClosed           the supervisor is shutting down

Must not know what the children are for.
"""

__all__ = ["ChildClosed", "ChildError", "ChildGone", "ChildQuarantined", "ChildStartFailed", "FrameTooLarge"]


class ChildError(Exception):
    """A child process failed."""

    code = "child"
    hint = "Run: kith doctor"


class FrameTooLarge(ChildError):
    """The other end of the pipe announced a frame above the size limit."""

    code = "child_frame_too_large"


class ChildGone(ChildError):
    """The child process ended."""

    code = "child_gone"


class ChildStartFailed(ChildError):
    """The child process did not become ready."""

    code = "child_start_failed"


class ChildQuarantined(ChildError):
    """The child process died too often and is left alone for a while."""

    code = "child_quarantined"


class ChildClosed(ChildError):
    """The node is shutting down."""

    code = "child_closed"
