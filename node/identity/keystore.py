"""This device's one secret: an Ed25519 seed in a private file, optionally locked by a passphrase. All keys derive.

The file is JSON. Locked: the seed sealed with XChaCha20-Poly1305 under an Argon2id key, the parameters beside it and
bound to it. Must not know peers, databases or the network.
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

__all__ = ["SEED_BYTES", "Identity", "create", "is_locked", "load", "load_or_create", "set_passphrase"]

SEED_BYTES = 32
_SUBKEY_BYTES = 32
_FORMAT = 1
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

    @classmethod
    def from_seed(cls, seed: bytes) -> Self:
        """The identity of a 32-byte Ed25519 seed (RFC 8032)."""
        public_key = bytes(SigningKey(seed).verify_key)
        return cls(seed, public_key, peer_id_from_public_key(public_key))

    def subkey(self, purpose: str) -> bytes:
        """32 bytes for one purpose (HKDF-SHA256, RFC 5869), unrelated to those of any other purpose and to the seed."""
        derive = HKDF(algorithm=SHA256(), length=_SUBKEY_BYTES, salt=None, info=b"kith/subkey/1/" + purpose.encode())
        return derive.derive(self.seed)

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
    if not _write_private(path, _plain(identity.seed), entropy, replace=False):
        return load(path)
    return identity


def load(path: Path, passphrase: str | None = None) -> Identity:
    """The identity in the file. With a passphrase this takes about a second and 256 MiB: run it in a thread.

    Raises LooseFileMode (with the chmod to run), PassphraseNeeded, WrongPassphrase, DamagedKeyFile, StorageError.
    """
    record = _read(path)
    try:
        if record["kind"] == "plain":
            seed = _bytes(record["seed"], SEED_BYTES)
        elif record["kind"] == "argon2id":
            seed = _unlock(record, passphrase)
        else:
            raise DamagedKeyFile(f"The key file {path} is of an unknown kind.")
        identity = Identity.from_seed(seed)
        if record["peer_id"] != identity.peer_id:
            raise DamagedKeyFile(f"The key in {path} does not belong to the id beside it.")
    except (KeyError, TypeError, ValueError) as error:
        raise DamagedKeyFile(f"The key file {path} cannot be understood ({type(error).__name__}).") from error
    return identity


def is_locked(path: Path) -> bool:
    """Whether the key needs a passphrase. Raises as load() does for a file that cannot be read."""
    return bool(_read(path).get("kind") == "argon2id")


def set_passphrase(path: Path, identity: Identity, passphrase: str | None, entropy: Entropy) -> None:
    """Lock the file by a passphrase (at least 8 characters), or with None leave it open to whoever can read it.

    Slow: run it in a thread. The file is replaced in one step; a crash leaves the old or the new one.
    """
    if passphrase is not None and len(passphrase) < 8:
        raise WrongPassphrase("A passphrase needs at least 8 characters.", hint="Choose a longer one.")
    record = _plain(identity.seed) if passphrase is None else _locked(identity, passphrase, entropy)
    _write_private(path, record, entropy, replace=True)
    for stray in path.parent.glob(f".{path.name}.*"):  # a draft in clear that a crash left would undo the lock
        stray.unlink(missing_ok=True)


def _plain(seed: bytes) -> dict[str, Any]:
    identity = Identity.from_seed(seed)
    return {"format": _FORMAT, "kind": "plain", "peer_id": identity.peer_id, "seed": _text(seed)}


def _locked(identity: Identity, passphrase: str, entropy: Entropy) -> dict[str, Any]:
    record: dict[str, Any] = {
        "format": _FORMAT, "kind": "argon2id", "peer_id": identity.peer_id,
        "salt": _text(entropy.bytes(argon2id.SALTBYTES)),
        "ops": argon2id.OPSLIMIT_MODERATE, "memory_bytes": argon2id.MEMLIMIT_MODERATE,
    }
    nonce = entropy.bytes(Aead.NONCE_SIZE)
    record["sealed"] = _text(bytes(_box(record, passphrase).encrypt(identity.seed, _bound(record), nonce)))
    return record


def _unlock(record: dict[str, Any], passphrase: str | None) -> bytes:
    if passphrase is None:
        raise PassphraseNeeded
    try:
        seed: bytes = _box(record, passphrase).decrypt(_bytes(record["sealed"]), _bound(record))
    except CryptoError as error:
        raise WrongPassphrase from error
    return seed


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
