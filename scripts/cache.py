"""Files kept in the user's cache between checkouts: fetched by digest, checked again at every use.

Knows pip as the only way to fetch. Must not know what a file is for. Standard library only: it runs before
anything is installed.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Literal

from locks import Locked

__all__ = ["fetched", "held", "sha256_of"]


def sha256_of(path: Path) -> str:
    """Returns the hex digest of a file."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


@contextmanager
def held(path: Path) -> Iterator[None]:
    """Holds an exclusive lock beside `path`: two set-ups at once fetch or build a thing once."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.with_name(path.name + ".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def fetched(locked: Locked, kind: Literal["source", "wheel"], folder: Path) -> Path:
    """Returns the package's file in `folder`, fetching it only when no file there has a locked digest.

    Raises subprocess.CalledProcessError when it cannot be fetched (pip has said why) and RuntimeError when what
    came is not what the lock names.
    """
    folder.mkdir(parents=True, exist_ok=True)
    prefix = locked.name.replace("-", "_") + "-" + locked.version
    with held(folder / prefix):
        suffix = ".whl" if kind == "wheel" else ".tar.gz"
        for path in sorted(folder.glob(f"{prefix}*{suffix}")):
            if sha256_of(path) in locked.digests:
                return path
            path.unlink()
        with tempfile.TemporaryDirectory(dir=folder, prefix=".fetch-") as scratch:
            wanted = Path(scratch, "requirement.txt")
            wanted.write_text(locked.text, encoding="utf-8")
            only = ["--no-binary" if kind == "source" else "--only-binary", locked.name]
            arguments = ["download", "-q", "--no-deps", "--require-hashes", *only, "-d", scratch, "-r", str(wanted)]
            subprocess.run([sys.executable, "-m", "pip", *arguments], check=True, stdout=sys.stderr)
            for path in Path(scratch).glob(f"*{suffix}"):
                if sha256_of(path) in locked.digests:
                    target = folder / path.name
                    os.replace(path, target)
                    return target
    raise RuntimeError(f"{locked.name}: the fetched file is not the one in the lock")
