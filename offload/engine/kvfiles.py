"""Remembered sequences on disk: one sealed file each, opened only with the key that the daemon hands over for it.

A file is a magic number, a sealed index (the token ids and the sizes) and sealed blocks of the memory's data, by
AES-256-GCM with a key that seals this one file once; the nonce is the block's number. Bound to model, adapter, context
parameters, principal and name: with any of these different it does not open. What does not open is removed. It is a
cache: a file that is torn by a crash does not open, so nothing waits for the disk. The longest unused leaves first, and
for a guest's none of the owner's, as in memory. Must not know slots or scheduling.
"""

import os
import struct
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import BinaryIO

import msgspec
import numpy as np
from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from offload.engine.prefix import PrefixTree
from offload.ports import OWNER
from offload.worker_frames import FileKey

__all__ = ["Contents", "KvFiles", "Record", "Space"]

Space = tuple[str, str]     # principal, adapter

_DRAFT = ".part"
_MAGIC = b"KITHKV1\n"
_LENGTH = struct.Struct("<I")
_BLOCK_BYTES = 1024 * 1024
_TAG_BYTES = 16
_MOST_INDEX_BYTES = 16 * 1024 * 1024
_MOST_SPARE_KEYS = 64
_GUESTS_PART = 0.5      # of all that the files may take, for all guests together; the owner may take the whole


class _Index(msgspec.Struct, frozen=True, array_like=True):
    """What a file begins with. adapter and sizes as they were; tokens as 32-bit numbers."""

    adapter: str
    tokens: bytes
    checkpoints: list[tuple[int, int]]      # position, bytes
    state_bytes: int


@dataclass(frozen=True, slots=True, eq=False)
class Record:
    """One file as its index tells of it."""

    name: str
    space: Space
    tokens: list[int] = field(repr=False)
    index: _Index = field(repr=False)

    @property
    def positions(self) -> tuple[int, ...]:
        """Where it has checkpoints."""
        return tuple(position for position, _ in self.index.checkpoints)


@dataclass(frozen=True, slots=True)
class Contents:
    """What a file is for: a sequence's whole state, and the recurrent states on the way to it."""

    state: bytes = field(repr=False)
    checkpoints: Sequence[tuple[int, bytes]] = field(default=(), repr=False)


class KvFiles:
    """The files of one model in one folder. One thread only."""

    def __init__(self, folder: str, *, binding: str, limit_bytes: int, owners: str = "") -> None:
        """binding: model digest and context parameters in words. limit_bytes: how much all files may take. owners: how
        the names of the owner's files begin, also of those that are still closed; empty when none is."""
        self._folder = folder
        self._owners = owners
        self._binding = binding
        self._limit_bytes = limit_bytes
        self._keys: dict[str, tuple[str, AESGCM]] = {}       # name -> principal, key
        self._spare: dict[str, list[FileKey]] = {}
        self._trees: dict[Space, PrefixTree[Record]] = {}
        self._records: dict[str, Record] = {}
        self._broken = False
        self._remove_drafts()

    # -- keys

    def unlock(self, principal: str, keys: Sequence[FileKey]) -> None:
        """Read the index of these files of a principal."""
        for given in keys:
            if given.name in self._records or os.path.basename(given.name) != given.name:
                continue
            self._keys[given.name] = principal, AESGCM(given.key)
            try:
                with open(self._path(given.name), "rb") as file:
                    index = self._read_index(file, given.name)
            except (OSError, InvalidTag, ValueError, msgspec.DecodeError):
                self._remove(given.name)
                continue
            tokens = np.frombuffer(index.tokens, dtype="<i4").tolist()
            self._add(Record(given.name, (principal, index.adapter), tokens, index))

    def spare(self, principal: str, key: FileKey) -> None:
        """A key for one new file of this principal."""
        keys = self._spare.setdefault(principal, [])
        if os.path.basename(key.name) == key.name:
            keys.append(key)
        del keys[:-_MOST_SPARE_KEYS]

    def forget(self, principal: str) -> None:
        """Remove a principal's files and keys."""
        self._spare.pop(principal, None)
        for name in [name for name, (owner, _) in self._keys.items() if owner == principal]:
            self._remove(name)

    # -- finding, reading, writing

    def matches(self, space: Space, tokens: Sequence[int]) -> Iterator[tuple[Record, int]]:
        """Files of this space that begin like this, with how many tokens are the same, most first."""
        tree = self._trees.get(space)
        return tree.matches(tokens) if tree is not None else iter(())

    def missing(self, space: Space, tokens: Sequence[int]) -> int:
        """How many tokens at the end of these no file has; 0 when none could be written."""
        if self._broken or not self._spare.get(space[0]):
            return 0
        _, same = next(self.matches(space, tokens), (None, 0))
        return len(tokens) - same

    def load(self, record: Record) -> Contents | None:
        """What is in a file; None when it does not open, it is removed then."""
        try:
            with open(self._path(record.name), "rb") as file:
                index = self._read_index(file, record.name)
                data = self._read_data(file, record.name, index)
            os.utime(self._path(record.name))
        except (OSError, InvalidTag, ValueError, msgspec.DecodeError):
            self._remove(record.name)
            return None
        begin = 0
        checkpoints = []
        for position, size in index.checkpoints:
            checkpoints.append((position, data[begin:begin + size]))
            begin += size
        return Contents(data[begin:], checkpoints)

    def save(self, space: Space, tokens: Sequence[int], contents: Contents) -> bool:
        """Write a file, in the place of those whose tokens are a beginning of these. False: not possible."""
        size = len(contents.state) + sum(len(state) for _, state in contents.checkpoints) + 8 * len(tokens)
        keys = self._spare.get(space[0])
        if self._broken or not keys or not self._make_room(size, space[0]):
            return False
        given = keys.pop()
        self._keys[given.name] = space[0], AESGCM(given.key)
        index = _Index(
            space[1], np.array(tokens, dtype="<i4").tobytes(),
            [(position, len(state)) for position, state in contents.checkpoints], len(contents.state))
        try:
            self._write(given.name, index, contents)
        except OSError:
            self._broken = True     # no space, or no right to write: not again in this process
            self._remove(given.name)
            return False
        older = [record for record, same in self.matches(space, tokens) if same == len(record.tokens)]
        for record in older:
            self._remove(record.name)
        self._add(Record(given.name, space, list(tokens), index))
        return True

    # -- inside

    def _write(self, name: str, index: _Index, contents: Contents) -> None:
        draft = self._path(name + _DRAFT)
        _, key = self._keys[name]
        with open(draft, "wb", opener=lambda path, flags: os.open(path, flags | os.O_NOFOLLOW, 0o600)) as file:
            file.write(_MAGIC)
            sealed = key.encrypt(_nonce(0), msgspec.msgpack.encode(index), self._bound(name))
            file.write(_LENGTH.pack(len(sealed)) + sealed)
            number = 1
            for part in (*(state for _, state in contents.checkpoints), contents.state):
                view = memoryview(part)
                for begin in range(0, len(view), _BLOCK_BYTES):
                    file.write(key.encrypt(_nonce(number), view[begin:begin + _BLOCK_BYTES], self._bound(name)))
                    number += 1
        os.rename(draft, self._path(name))

    def _read_index(self, file: BinaryIO, name: str) -> _Index:
        _, key = self._keys[name]
        head = file.read(len(_MAGIC) + _LENGTH.size)
        if len(head) != len(_MAGIC) + _LENGTH.size or not head.startswith(_MAGIC):
            raise ValueError("not a file of ours")
        (length,) = _LENGTH.unpack(head[len(_MAGIC):])
        if not _TAG_BYTES <= length <= _MOST_INDEX_BYTES:
            raise ValueError("an index of impossible size")
        index = msgspec.msgpack.decode(key.decrypt(_nonce(0), file.read(length), self._bound(name)), type=_Index)
        if len(index.tokens) % 4:
            raise ValueError("half a token")
        return index

    def _read_data(self, file: BinaryIO, name: str, index: _Index) -> bytes:
        _, key = self._keys[name]
        data = bytearray()
        number = 1
        for size in (*(size for _, size in index.checkpoints), index.state_bytes):
            for begin in range(0, size, _BLOCK_BYTES):
                sealed = file.read(min(_BLOCK_BYTES, size - begin) + _TAG_BYTES)
                data += key.decrypt(_nonce(number), sealed, self._bound(name))
                number += 1
        return bytes(data)

    def _bound(self, name: str) -> bytes:
        principal, _ = self._keys[name]
        return msgspec.msgpack.encode(["kith/kv/1", self._binding, principal, name])

    def _add(self, record: Record) -> None:
        self._records[record.name] = record
        self._trees.setdefault(record.space, PrefixTree()).put(record, record.tokens)

    def _remove(self, name: str) -> None:
        self._keys.pop(name, None)
        record = self._records.pop(name, None)
        if record is not None:
            self._trees[record.space].drop(record)
        for path in (self._path(name), self._path(name + _DRAFT)):
            try:
                os.unlink(path)
            except OSError:
                continue

    def _remove_drafts(self) -> None:
        """What a process left half written."""
        try:
            with os.scandir(self._folder) as entries:
                drafts = [entry.path for entry in entries if entry.name.endswith(_DRAFT)]
            for path in drafts:
                os.unlink(path)
        except OSError:
            self._broken = True

    def _make_room(self, wanted_bytes: int, principal: str) -> bool:
        """Remove files until so much fits: guests' first, longest unused first, and for a guest none of the owner's.
        False when it never does; then nothing was removed."""
        for_owner = principal == OWNER
        try:
            with os.scandir(self._folder) as entries:
                found = sorted((entry.stat().st_mtime_ns, entry.stat().st_size, entry.name) for entry in entries)
        except OSError:
            return False
        guests = [(size, name) for _, size, name in found if not self._is_owners(name)]
        owners = [(size, name) for _, size, name in found if self._is_owners(name)]
        room = self._limit_bytes
        if not for_owner:
            room = min(int(room * _GUESTS_PART), room - sum(size for size, _ in owners))
        if wanted_bytes > room:
            return False
        leaving = guests + owners if for_owner else guests
        used = sum(size for size, _ in leaving)
        for size, name in leaving:
            if used + wanted_bytes <= room:
                break
            self._remove(name)
            used -= size
        return True

    def _is_owners(self, name: str) -> bool:
        principal, _ = self._keys.get(name, ("", None))
        return principal == OWNER or bool(self._owners and name.startswith(self._owners))

    def _path(self, name: str) -> str:
        return os.path.join(self._folder, name)


def _nonce(block: int) -> bytes:
    """Never used twice with a key: a key seals one file, once."""
    return block.to_bytes(12, "big")
