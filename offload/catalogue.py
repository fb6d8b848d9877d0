"""Models on disk: which files there are, what the record beside each says, and whether the file is still that one.

The files themselves are hashed here, and their first 24 bytes looked at; what reads further lives in a box. Must not
know llama.cpp, processes or requests.
"""

import hashlib
import json
import logging
import os
import struct
import tomllib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec
import tomli_w

from offload.ports import PlaceholderStyle

__all__ = [
    "Catalogue", "ModelFile", "Record", "digest_of", "is_called", "read_record", "record_path", "write_record",
]

_log = logging.getLogger(__name__)
_RECORD_LIMIT_BYTES = 64 * 1024
_MODELS_LIMIT = 256
_START = struct.Struct("<4sIQQ")        # GGUF's magic, version, number of tensors, number of facts
_VERSIONS = (2, 3)


class Record(msgspec.Struct, frozen=True, kw_only=True):
    """What is known of a model file, kept as `<file>.toml` beside it.

    adapter: "lora" for an adapter, which is no model of its own; base: then the digest of the model it is for.
    trial_version, trial_tasks, well_in_...: the trial that placeholder_style comes from, 0 when there was none.
    """

    name: str
    digest: str
    quantisation: str = "unknown"
    licence: str = "unknown"
    context_tokens: int = 0
    placeholder_style: PlaceholderStyle = "brackets"
    source: str = ""
    source_digest: str = ""
    adapter: str = ""
    base: str = ""
    trial_version: int = 0
    trial_tasks: int = 0
    well_in_brackets: int = 0
    well_in_surrogates: int = 0


class ModelFile(msgspec.Struct, frozen=True, kw_only=True):
    """One model file. changed: its digest is not the recorded one, so it must not be loaded.

    recorded: its record names this very content. damage: what its first bytes lack of a model, in words.
    """

    path: Path
    digest: str
    size_bytes: int
    record: Record
    changed: bool = False
    recorded: bool = False
    damage: str = ""


def is_called(model: ModelFile, name: str) -> bool:
    """Whether a model goes by this name: its own, its file's, or its digest."""
    return name.lower() in {model.digest, model.record.name.lower(), model.path.stem.lower(), model.path.name.lower()}


def digest_of(path: Path) -> str:
    """The file's sha256 in hex. Reads all of it."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def record_path(model: Path) -> Path:
    """Where the record of a model file lies."""
    return model.with_name(f"{model.name}.toml")


def read_record(model: Path) -> Record | None:
    """The record beside a model file; None when there is none that can be read."""
    path = record_path(model)
    try:
        if path.stat().st_size > _RECORD_LIMIT_BYTES:
            return None
        return msgspec.convert(tomllib.loads(path.read_text(encoding="utf-8")), Record)
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError, msgspec.ValidationError):
        return None


def write_record(model: Path, record: Record) -> None:
    """Write the record beside a model file, whole or not at all."""
    _write_whole(record_path(model), tomli_w.dumps(msgspec.to_builtins(record)))


class Catalogue:
    """The models in some folders. Digests are computed once per file, size and time of change."""

    def __init__(self, folders: Sequence[Path], digest_cache: Path | None = None) -> None:
        """digest_cache: a file to remember digests in; without it they are remembered while this object lives."""
        self._folders = tuple(folders)
        self._cache_path = digest_cache
        self._digests: dict[str, tuple[int, int, str]] = _read_digests(digest_cache) if digest_cache else {}

    def scan(self) -> list[ModelFile]:
        """All models, folder by folder, by file name, each file's content once. Blocks: it may have to hash."""
        found: dict[str, ModelFile] = {}
        known = dict(self._digests)
        for folder in self._folders:
            try:
                paths = sorted(path for path in folder.iterdir() if path.suffix == ".gguf" and path.is_file())
            except OSError:
                continue
            for path in paths[:_MODELS_LIMIT]:
                model = self._look_at(path)
                if model is not None:
                    found.setdefault(model.digest, model)
        if self._cache_path is not None and known != self._digests:
            try:
                _write_digests(self._cache_path, self._digests)
            except OSError as error:    # a full disk takes no model away: they are hashed again at the next start
                _log.warning("the digests of the models are not remembered: %s", error.strerror)
        return list(found.values())

    def _look_at(self, path: Path) -> ModelFile | None:
        try:
            stat = path.stat()
            cached = self._digests.get(str(path))
            if cached is None or cached[:2] != (stat.st_size, stat.st_mtime_ns):
                cached = (stat.st_size, stat.st_mtime_ns, digest_of(path))
                self._digests[str(path)] = cached
        except OSError:
            return None
        digest = cached[2]
        record = read_record(path)
        changed = record is not None and record.digest != digest
        recorded = record is not None and not changed
        if record is None:
            record = Record(name=path.stem.lower(), digest=digest, quantisation=path.stem.rpartition(".")[2])
        return ModelFile(
            path=path, digest=digest, size_bytes=stat.st_size, record=record, changed=changed, recorded=recorded,
            damage=_damage_at_start(path))


def _damage_at_start(path: Path) -> str:
    try:
        with path.open("rb") as file:
            start = file.read(_START.size)
    except OSError as error:
        return error.strerror or "It can't be read."
    if len(start) < _START.size or not start.startswith(b"GGUF"):
        return "It is no GGUF model file."
    _, version, tensors, facts = _START.unpack(start)
    if version not in _VERSIONS:
        return f"GGUF version {version} is not known."
    return "" if tensors and facts else "It holds no model."


def _read_digests(path: Path) -> dict[str, tuple[int, int, str]]:
    try:
        raw: Any = json.loads(path.read_bytes())
        return msgspec.convert(raw, dict[str, tuple[int, int, str]])
    except (OSError, ValueError):
        return {}


def _write_digests(path: Path, digests: dict[str, tuple[int, int, str]]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    _write_whole(path, json.dumps(digests), mode=0o600)     # it tells which files the owner has


def _write_whole(path: Path, text: str, *, mode: int = 0o666) -> None:
    unfinished = path.with_name(f"{path.name}.unfinished")
    unfinished.unlink(missing_ok=True)      # a leftover would keep its own mode
    descriptor = os.open(unfinished, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, mode)
    with open(descriptor, "w", encoding="utf-8") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
    unfinished.replace(path)
