"""A folder that the system does not let be read, for root too: as another user while the block runs."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

__all__ = ["as_somebody_else", "close", "open_to_all"]

_NOBODY = 65_534


def open_to_all(folder: Path) -> None:
    """Let everybody read this folder and what is in it, and pass through those above it as far as they are ours."""
    for place in (folder, *folder.rglob("*")):
        place.chmod(0o755 if place.is_dir() else 0o644)
    for above in folder.parents:
        if above.stat().st_uid == os.getuid() and above.stat().st_mode & 0o777 == 0o700:
            above.chmod(0o711)


def close(folder: Path, mode: int = 0) -> None:
    """Only root may do more with it than mode says."""
    folder.chmod(mode)


@contextmanager
def as_somebody_else() -> Iterator[None]:
    """Root becomes a user without rights for the while of the block; any other user stays who it is."""
    if os.geteuid() != 0:
        yield
        return
    os.seteuid(_NOBODY)
    try:
        yield
    finally:
        os.seteuid(0)
