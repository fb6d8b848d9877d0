"""The key of an upstream engine, in a file that only its owner can read. Must not know where the key is sent."""

import os
import stat
from pathlib import Path

from offload.upstream_errors import UpstreamMisconfigured

__all__ = ["read_key"]

_KEY_LIMIT_BYTES = 4096


def read_key(path: Path) -> str:
    """The key in a file that only its owner can read. Raises UpstreamMisconfigured. Blocks."""
    try:
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
        with os.fdopen(fd, "rb") as file:
            facts = os.fstat(fd)
            if not stat.S_ISREG(facts.st_mode) or facts.st_uid != os.getuid() or facts.st_mode & 0o077:
                raise UpstreamMisconfigured(f"Others can read or change the key in {path}: chmod 600 {path}")
            key = file.read(_KEY_LIMIT_BYTES + 1).strip()
    except OSError as error:
        raise UpstreamMisconfigured(f"The key in {path} cannot be read: {error.strerror}.") from error
    if not key or len(key) > _KEY_LIMIT_BYTES or not key.isascii() or not key.decode().isprintable() or b" " in key:
        raise UpstreamMisconfigured(f"{path} holds no key: one line without spaces is expected.")
    return key.decode()
