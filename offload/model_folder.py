"""The folder in which this node keeps its own models: files go in whole, with a record beside them, and out again.

Must not know where a file comes from, what is in it beyond its facts, or which model is the default.
"""

import hashlib
import re
import shutil
import time
from collections.abc import Awaitable, Callable
from functools import partial
from pathlib import Path
from typing import BinaryIO

import trio

from offload.catalogue import Record, record_path, write_record
from offload.gguf import ModelFacts
from offload.model_errors import NoRoom, NotKept

__all__ = ["ModelFolder", "require_room"]

SPARE_BYTES = 200_000_000
_CHUNK_BYTES = 16 * 1024 * 1024
_COPY_END = ".copy.part"
_KEPT_S = 14 * 24 * 3600.0
_ODD = re.compile(r"[^A-Za-z0-9._+-]+")

OnProgress = Callable[[str, int, int], Awaitable[None]]


def require_room(folder: Path, more_bytes: int) -> None:
    """Raises NoRoom unless more_bytes fit and some space stays free. Blocks for a moment."""
    free_bytes = shutil.disk_usage(folder).free
    if more_bytes + SPARE_BYTES > free_bytes:
        raise NoRoom(
            f"The model needs {more_bytes / 1e6:.0f} MB more, and {free_bytes / 1e6:.0f} MB are free in {folder}.")


class ModelFolder:
    """One folder. Only whole files get a name that ends in .gguf."""

    def __init__(self, path: Path) -> None:
        self.path = path

    async def copy_in(self, source: Path, on_progress: OnProgress) -> tuple[Path, str]:
        """A copy of the file as a hidden part file, and its digest. Raises OSError, NoRoom; then nothing stays."""
        part = self.path / f".{_plain(source.name)}{_COPY_END}"
        digest = hashlib.sha256()
        total = (await trio.to_thread.run_sync(source.stat)).st_size
        await trio.to_thread.run_sync(require_room, self.path, total)
        try:
            with source.open("rb") as old, part.open("wb") as new:
                done = 0
                while count := await trio.to_thread.run_sync(_copy_some, old, new, digest):
                    done += count
                    await on_progress(source.name, done, total)
        except BaseException:
            part.unlink(missing_ok=True)
            raise
        return part, digest.hexdigest()

    async def admit(
        self, part: Path, digest: str, file_name: str, facts: ModelFacts, *, licence: str = "", source: str = "",
        taken: frozenset[str] = frozenset(), base: str = "",
    ) -> Path:
        """Make a part file one of the models, with its record. taken: names of other models. base: for an adapter,
        the digest of the model that it is for.

        A file or name that is already used for something else gets the beginning of the digest behind it.
        """
        stem = _plain(file_name.removesuffix(".gguf")) or "model"
        target = self.path / f"{stem}.gguf"
        name = stem.lower()
        if name in taken or target.exists():
            target, name = self.path / f"{stem}-{digest[:8]}.gguf", f"{name}-{digest[:8]}"
        record = Record(
            name=name, digest=digest, context_tokens=facts.context_tokens, source=source,
            quantisation=facts.quantisation or stem.rpartition(".")[2],
            licence=licence or facts.licence or "unknown", adapter=facts.adapter, base=base)
        await trio.to_thread.run_sync(_publish, part, target, record)
        return target

    async def sweep(self) -> None:
        """Delete what broken-off copies and transfers left: copies at once, transfers after two weeks without a byte.

        Only while nothing is being added.
        """
        await trio.to_thread.run_sync(_sweep, self.path, time.time() - _KEPT_S)

    async def drop(self, part: Path) -> None:
        """Delete a part file that is not wanted after all."""
        await trio.to_thread.run_sync(partial(part.unlink, missing_ok=True))

    async def remove(self, file: Path) -> None:
        """Delete a model and its record. Raises NotKept for a file anywhere else, OSError."""
        if file.parent.resolve() != self.path.resolve():
            raise NotKept(f"{file} is not in kith's own folder, so kith leaves it alone. Delete it there yourself.")
        await trio.to_thread.run_sync(file.unlink)
        await self.drop(record_path(file))


def _copy_some(old: BinaryIO, new: BinaryIO, digest: "hashlib._Hash") -> int:
    data = old.read(_CHUNK_BYTES)
    digest.update(data)
    new.write(data)
    return len(data)


def _sweep(folder: Path, oldest_s: float) -> None:
    for part in folder.glob(".*.part"):
        if part.name.endswith(_COPY_END) or part.stat().st_mtime < oldest_s:
            part.unlink(missing_ok=True)


def _publish(part: Path, target: Path, record: Record) -> None:
    write_record(target, record)    # first, so that the model is never there without the digest to compare with
    part.replace(target)


def _plain(name: str) -> str:
    return _ODD.sub("-", name).strip(".-")[:120]
