"""The signed end of the ledger, kept in a second place: without it a cut-off tail would look like an honest end.

The keeper replaces one small file, durably: what a power cut leaves is a whole head, and no older than the last one
that was waited for. Must not know entries.
"""

import os
from pathlib import Path
from typing import Protocol

import msgspec
import trio
from nacl.exceptions import BadSignatureError
from nacl.signing import SigningKey, VerifyKey

__all__ = [
    "CHECKPOINT", "FileHeadKeeper", "HeadKeeper", "SeedSigner", "SignedHead", "Signer", "sign_head", "verify_head",
]

_HEAD = b"kith-ledger-head-1|"
CHECKPOINT = b"kith-ledger-checkpoint-1|"
"""For sign_head(): the signature stands for entries that were removed up to there, not for the end of the chain."""
_FILE_LIMIT_BYTES = 4096


class SignedHead(msgspec.Struct, frozen=True, array_like=True):
    """The last entry's number and digest, signed by the device."""

    seq: int
    digest: bytes
    signature: bytes


class Signer(Protocol):
    """The device's Ed25519 key, or a sub-key."""

    @property
    def public_key(self) -> bytes:
        """32 bytes."""
        ...

    def sign(self, data: bytes) -> bytes:
        """The 64-byte signature."""
        ...


class HeadKeeper(Protocol):
    """The second place."""

    async def load(self) -> bytes | None:
        """What was stored last; None when nothing was."""
        ...

    async def store(self, head: bytes) -> None:
        """Replace what is stored."""
        ...


class SeedSigner:
    """A Signer over a 32-byte seed."""

    def __init__(self, seed: bytes) -> None:
        self._key = SigningKey(seed)

    @property
    def public_key(self) -> bytes:
        """32 bytes."""
        return bytes(self._key.verify_key)

    def sign(self, data: bytes) -> bytes:
        """The 64-byte signature."""
        return self._key.sign(data).signature


class FileHeadKeeper:
    """One 0600 file, replaced whole. One store() at a time."""

    def __init__(self, path: Path) -> None:
        self._path = path

    async def load(self) -> bytes | None:
        """The file's bytes, at most 4 KiB of them."""
        return await trio.to_thread.run_sync(self._load)

    async def store(self, head: bytes) -> None:
        """Write beside and rename over, so that a crash leaves the old or the new one; durable when it returns. Raises
        OSError.
        """
        await trio.to_thread.run_sync(self._store, head)

    def _load(self) -> bytes | None:
        try:
            with self._path.open("rb") as file:
                return file.read(_FILE_LIMIT_BYTES)
        except FileNotFoundError:
            return None

    def _store(self, head: bytes) -> None:
        beside = self._path.with_name(self._path.name + ".new")
        handle = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
        with os.fdopen(handle, "wb") as file:
            file.write(head)
            file.flush()
            os.fsync(file.fileno())     # before the rename: some file systems would leave an empty file under the name
        beside.replace(self._path)
        folder = os.open(self._path.parent, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)


def sign_head(signer: Signer, seq: int, digest: bytes, domain: bytes = _HEAD) -> bytes:
    """The encoded signed head."""
    return msgspec.msgpack.encode(SignedHead(seq, digest, signer.sign(_message(domain, seq, digest))))


def verify_head(public_key: bytes, stored: bytes, domain: bytes = _HEAD) -> SignedHead | None:
    """The head, or None when it is damaged or not signed by this key for this domain."""
    try:
        head = msgspec.msgpack.decode(stored, type=SignedHead)
        VerifyKey(public_key).verify(_message(domain, head.seq, head.digest), head.signature)
    except (msgspec.MsgspecError, BadSignatureError, ValueError):
        return None
    return head


def _message(domain: bytes, seq: int, digest: bytes) -> bytes:
    return domain + msgspec.msgpack.encode((seq, digest))
