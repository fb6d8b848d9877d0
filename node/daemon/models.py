"""The models of this device as the owner manages them. Implements node.api.ports.Models.

A file is copied, never moved, and only counts once its digest is recorded. Must not know what a model computes.
"""

import shutil
from collections.abc import Callable
from pathlib import Path

import trio

from node.api.views import ModelView
from node.errors import KithError, ModelMissing, UsageError
from offload.catalogue import Record, digest_of, write_record
from offload.joined_engine import JoinedEngine
from offload.ports import ModelInfo

__all__ = ["ModelShelf"]

GGUF_MAGIC = b"GGUF"
SPARE_BYTES = 200_000_000


class ModelShelf:
    """Lists, adds and chooses models."""

    def __init__(self, engine: JoinedEngine, folder: Path, keep_default: Callable[[str], None]) -> None:
        """keep_default: remember the chosen model's name for the next start."""
        self._engine = engine
        self._folder = folder
        self._keep_default = keep_default

    async def all(self) -> list[ModelView]:
        """Every model, the default first."""
        return [_view(info, default=at == 0) for at, info in enumerate(await self._engine.models())]

    async def default(self) -> ModelInfo | None:
        """The model that answers here; None when there is none."""
        found = await self._engine.models()
        return found[0] if found else None

    async def add(self, path: str) -> ModelView:
        """Copy a GGUF file into the models folder. Raises UsageError, KithError; nothing half-copied stays."""
        digest = await trio.to_thread.run_sync(_copy, Path(path), self._folder)
        self._engine.rescan()
        for view in await self.all():
            if view.digest == digest:
                return view
        raise KithError("The model was copied but is not found.", hint="Run: kith doctor")

    async def use(self, name: str) -> ModelView:
        """Make one model the default, now and at the next start. Raises ModelMissing."""
        for info in await self._engine.models():
            if name in (info.name, info.digest):
                self._engine.set_default(info.name)
                await trio.to_thread.run_sync(self._keep_default, info.name)
                return _view(info, default=True)
        raise ModelMissing(f"There is no model called {name} on this device.", hint="See them: kith models")


def _copy(source: Path, folder: Path) -> str:
    try:
        with source.open("rb") as file:
            if file.read(4) != GGUF_MAGIC:
                raise UsageError(f"{source.name} is no GGUF model file.", hint="Give a file that ends in .gguf")
        size_bytes = source.stat().st_size
        if shutil.disk_usage(folder).free < size_bytes + SPARE_BYTES:
            raise KithError(f"There is no room for {size_bytes / 1e6:.0f} MB.", hint=f"Free some space: df -h {folder}")
        target = folder / source.name
        part = folder / f".{source.name}.part"
        try:
            shutil.copyfile(source, part)
            digest = digest_of(part)
            name = source.stem.lower()
            write_record(target, Record(name=name, digest=digest, quantisation=source.stem.rpartition(".")[2]))
            part.replace(target)
        finally:
            part.unlink(missing_ok=True)
    except OSError as error:
        raise UsageError(f"{source} cannot be copied: {error.strerror}.", hint=f"Check: ls -l {source}") from error
    return digest


def _view(info: ModelInfo, *, default: bool) -> ModelView:
    return ModelView(
        name=info.name, digest=info.digest, size_bytes=info.size_bytes, context_tokens=info.context_tokens,
        quantisation=info.quantisation, licence=info.licence, loaded=info.loaded, default=default,
        placeholder_style=info.placeholder_style,
    )
