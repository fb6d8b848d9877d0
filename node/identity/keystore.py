"""This device's secrets in a private file, optionally locked by a passphrase. All keys derive from them.

There are two: an Ed25519 seed, which is the device's identity and never changes, and what the data at rest is encrypted
with, which can be rotated. Until the first rotation the second is derived from the seed; while one is under way the
file holds the old and the next one. The file is JSON. Locked: the secrets sealed with XChaCha20-Poly1305 under Argon2id
parameters, which are bound to them. Must not know peers, databases or the network.
"""

import base64
import binascii
import json
import os
import stat
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self

from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF
from nacl.exceptions import CryptoError
from nacl.pwhash import argon2id
from nacl.secret import Aead
from nacl.signing import SigningKey

from node.clock import Entropy
from node.errors import DamagedKeyFile, PassphraseNeeded, StorageError, WrongPassphrase
from node.paths import check_private
from protocol.ids import peer_id_from_public_key

__all__ = [
    "SEED_BYTES", "Identity", "check_passphrase", "create", "is_locked", "load", "load_or_create", "peer_id_of", "save",
    "set_passphrase",
]

SEED_BYTES = 32
_SHORTEST_PASSPHRASE = 8
_SUBKEY_BYTES = 32
_FORMAT = 1
_NAMES = ("seed", "storage", "next_storage")
_FROM_SEED = bytes(SEED_BYTES)  # in the storage key's place while the first rotation is under way
_FILE_LIMIT_BYTES = 4096
# A file that was tampered with must not make us take all memory: the library's SENSITIVE profile is the most we accept.
_MEMORY_LIMIT_BYTES = argon2id.MEMLIMIT_SENSITIVE
_OPS_LIMIT = argon2id.OPSLIMIT_SENSITIVE


@dataclass(frozen=True, slots=True)
class Identity:
    """Who this device is. Its repr shows no secret."""

    seed: bytes = field(repr=False)
    public_key: bytes
    peer_id: str
    storage: bytes | None = field(default=None, repr=False)
    """What the data at rest is encrypted with; None: derived from the seed, as before the first rotation."""
    next_storage: bytes | None = field(default=None, repr=False)
    """What it is being changed to; None: nothing is under way."""

    @classmethod
    def from_seed(cls, seed: bytes, storage: bytes | None = None, next_storage: bytes | None = None) -> Self:
        """The identity of a 32-byte Ed25519 seed (RFC 8032)."""
        public_key = bytes(SigningKey(seed).verify_key)
        return cls(seed, public_key, peer_id_from_public_key(public_key), storage, next_storage)

    def subkey(self, purpose: str) -> bytes:
        """32 bytes for one purpose (HKDF-SHA256, RFC 5869), unrelated to those of any other purpose and to the seed."""
        return _derive(self.seed, b"kith/subkey/1/", purpose)

    def storage_key(self, purpose: str) -> bytes:
        """The key of one store at rest, as it is now."""
        return self.subkey(purpose) if self.storage is None else _derive(self.storage, b"kith/storage/1/", purpose)

    def next_storage_key(self, purpose: str) -> bytes | None:
        """The key that it is being changed to, if it is."""
        return None if self.next_storage is None else _derive(self.next_storage, b"kith/storage/1/", purpose)

    def sign(self, data: bytes) -> bytes:
        """The 64-byte Ed25519 signature of data. Callers put their purpose in front of what they sign."""
        return SigningKey(self.seed).sign(data).signature


def load_or_create(path: Path, entropy: Entropy, passphrase: str | None = None) -> Identity:
    """This device's identity; made on the first run. Raises as load() does, StorageError if it cannot be written."""
    if not path.exists():
        return create(path, entropy)
    return load(path, passphrase)


def create(path: Path, entropy: Entropy) -> Identity:
    """A new identity in a new file of mode 0600, whole or not at all. If another process was faster, that one's."""
    identity = Identity.from_seed(entropy.bytes(SEED_BYTES))
    if not _write_private(path, _plain(identity), entropy, replace=False):
        return load(path)
    return identity


def load(path: Path, passphrase: str | None = None) -> Identity:
    """The identity in the file. With a passphrase this takes about a second and 256 MiB: run it in a thread.

    Raises LooseFileMode (with the chmod to run), PassphraseNeeded, WrongPassphrase, DamagedKeyFile, StorageError.
    """
    record = _read(path)
    try:
        if record["kind"] == "plain":
            secrets = b"".join(_bytes(record[name], SEED_BYTES) for name in _NAMES if name in record)
        elif record["kind"] == "argon2id":
            secrets = _unlock(record, passphrase)
        else:
            raise DamagedKeyFile(f"The key file {path} is of an unknown kind.")
        if not secrets or len(secrets) % SEED_BYTES or len(secrets) > len(_NAMES) * SEED_BYTES:
            raise DamagedKeyFile(f"The key file {path} holds something else than keys.")
        seed, storage, following = (
            secrets[start : start + SEED_BYTES] or None for start in range(0, len(_NAMES) * SEED_BYTES, SEED_BYTES))
        assert seed is not None
        identity = Identity.from_seed(seed, None if storage == _FROM_SEED else storage, following)
        if record["peer_id"] != identity.peer_id:
            raise DamagedKeyFile(f"The key in {path} does not belong to the id beside it.")
    except (KeyError, TypeError, ValueError) as error:
        raise DamagedKeyFile(f"The key file {path} cannot be understood ({type(error).__name__}).") from error
    return identity


def peer_id_of(path: Path) -> str:
    """Whose key it is, also while it is locked. Raises as load() does for a file that cannot be read."""
    return str(_read(path).get("peer_id", ""))


def is_locked(path: Path) -> bool:
    """Whether the key needs a passphrase. Raises as load() does for a file that cannot be read."""
    return bool(_read(path).get("kind") == "argon2id")


def set_passphrase(path: Path, identity: Identity, passphrase: str | None, entropy: Entropy) -> None:
    """Lock the file by a passphrase (at least 8 characters), or with None leave it open to whoever can read it.

    Slow: run it in a thread. The file is replaced in one step; a crash leaves the old or the new one.
    """
    if passphrase is not None:
        check_passphrase(passphrase)
    save(path, identity, passphrase, entropy)


def check_passphrase(passphrase: str) -> None:
    """Pass when it may lock a key. Raises WrongPassphrase."""
    if len(passphrase) < _SHORTEST_PASSPHRASE:
        raise WrongPassphrase(
            f"A passphrase needs at least {_SHORTEST_PASSPHRASE} characters.", hint="Choose a longer one.")


def save(path: Path, identity: Identity, passphrase: str | None, entropy: Entropy) -> None:
    """Replace the file by one with these secrets, locked by this passphrase, if any. As set_passphrase()."""
    record = _plain(identity) if passphrase is None else _locked(identity, passphrase, entropy)
    _write_private(path, record, entropy, replace=True)
    for stray in path.parent.glob(f".{path.name}.*"):  # a draft in clear that a crash left would undo the lock
        stray.unlink(missing_ok=True)


def _secrets(identity: Identity) -> list[bytes]:
    """The file's secrets in order."""
    if identity.next_storage is not None:
        return [identity.seed, identity.storage or _FROM_SEED, identity.next_storage]
    return [identity.seed] if identity.storage is None else [identity.seed, identity.storage]


def _plain(identity: Identity) -> dict[str, Any]:
    named = zip(_NAMES, _secrets(identity), strict=False)
    return {
        "format": _FORMAT, "kind": "plain", "peer_id": identity.peer_id, **{name: _text(one) for name, one in named},
    }


def _locked(identity: Identity, passphrase: str, entropy: Entropy) -> dict[str, Any]:
    record: dict[str, Any] = {
        "format": _FORMAT, "kind": "argon2id", "peer_id": identity.peer_id,
        "salt": _text(entropy.bytes(argon2id.SALTBYTES)),
        "ops": argon2id.OPSLIMIT_MODERATE, "memory_bytes": argon2id.MEMLIMIT_MODERATE,
    }
    nonce = entropy.bytes(Aead.NONCE_SIZE)
    secrets = b"".join(_secrets(identity))
    record["sealed"] = _text(bytes(_box(record, passphrase).encrypt(secrets, _bound(record), nonce)))
    return record


def _unlock(record: dict[str, Any], passphrase: str | None) -> bytes:
    if passphrase is None:
        raise PassphraseNeeded
    try:
        secrets: bytes = _box(record, passphrase).decrypt(_bytes(record["sealed"]), _bound(record))
    except CryptoError as error:
        raise WrongPassphrase from error
    return secrets


def _derive(secret: bytes, scope: bytes, purpose: str) -> bytes:
    derive = HKDF(algorithm=SHA256(), length=_SUBKEY_BYTES, salt=None, info=scope + purpose.encode())
    return derive.derive(secret)


def _box(record: dict[str, Any], passphrase: str) -> Aead:
    ops, memory_bytes = int(record["ops"]), int(record["memory_bytes"])
    if not (0 < ops <= _OPS_LIMIT and 0 < memory_bytes <= _MEMORY_LIMIT_BYTES):
        raise ValueError("key derivation parameters out of range")
    salt = _bytes(record["salt"], argon2id.SALTBYTES)
    return Aead(argon2id.kdf(Aead.KEY_SIZE, passphrase.encode(), salt, opslimit=ops, memlimit=memory_bytes))


def _bound(record: dict[str, Any]) -> bytes:
    """What the seal covers besides the seed, so that no parameter can be exchanged."""
    bound = {key: value for key, value in record.items() if key != "sealed"}
    return json.dumps(bound, sort_keys=True).encode()


def _read(path: Path) -> dict[str, Any]:
    check_private(path)
    try:
        with path.open("rb") as file:
            data = file.read(_FILE_LIMIT_BYTES + 1)
    except OSError as error:
        text = f"The key file {path} cannot be read: {error.strerror}."
        raise StorageError(text, hint=f"Check: ls -l {path}") from error
    try:
        record = json.loads(data) if len(data) <= _FILE_LIMIT_BYTES else None
    except ValueError as error:
        raise DamagedKeyFile(f"The key file {path} is damaged.") from error
    if not isinstance(record, dict) or record.get("format") != _FORMAT:
        raise DamagedKeyFile(f"The key file {path} is of an unknown format.")
    return record


def _write_private(path: Path, record: dict[str, Any], entropy: Entropy, *, replace: bool) -> bool:
    """False when the file is there and may not be replaced. Durable when it returns; a crash leaves no half file."""
    draft = path.with_name(f".{path.name}.{entropy.bytes(8).hex()}")
    try:
        fd = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, stat.S_IRUSR | stat.S_IWUSR)
        with os.fdopen(fd, "wb") as file:
            file.write(json.dumps(record, indent=1).encode() + b"\n")
            file.flush()
            os.fsync(file.fileno())
        try:
            if replace:
                draft.replace(path)
            else:
                path.hardlink_to(draft)  # unlike a rename, fails when another process made the file meanwhile
        except FileExistsError:
            return False
        _sync_folder(path.parent)
    except OSError as error:
        text = f"The key file {path} cannot be written: {error.strerror}."
        raise StorageError(text, hint=f"Check: ls -ld {path.parent}") from error
    finally:
        draft.unlink(missing_ok=True)
    return True


def _sync_folder(folder: Path) -> None:
    fd = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)


def _text(data: bytes) -> str:
    return base64.b64encode(data).decode("ascii")


def _bytes(text: str, size: int | None = None) -> bytes:
    try:
        data = base64.b64decode(text, validate=True)
    except binascii.Error as error:
        raise ValueError("not base64") from error
    if size is not None and len(data) != size:
        raise ValueError("wrong length")
    return data
