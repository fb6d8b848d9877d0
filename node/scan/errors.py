"""Every error of the scan worker, drawn as a tree.

    ScanError (KithError)
    +-- ScanUnavailable       the worker can't be started, or died while it worked on this
    +-- ScanTooLate           it did not answer in time
    +-- ScanBusy              too many texts wait
    +-- ScanTooLarge          one call asks for too much

Must not know what is scanned.
"""

from node.errors import KithError

__all__ = ["ScanBusy", "ScanError", "ScanTooLarge", "ScanTooLate", "ScanUnavailable"]


class ScanError(KithError):
    """The text scanner failed."""

    code = "scan"
    hint = "Run: kith doctor"


class ScanUnavailable(ScanError):
    """The text scanner does not run."""

    code = "scan_unavailable"


class ScanTooLate(ScanError):
    """The text scanner did not answer in time."""

    code = "scan_too_late"


class ScanBusy(ScanError):
    """Too many texts wait for the scanner."""

    code = "scan_busy"
    hint = "Try again in a moment."


class ScanTooLarge(ScanError):
    """Too many or too long texts for the scanner at once."""

    code = "scan_too_large"
