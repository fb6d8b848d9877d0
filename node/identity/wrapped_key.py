"""A random key in a small file, wrapped by another key, so that the wrapping key can change and the key stays.

Must not know what the key is for.
"""

import os
import stat
from pathlib import Path

from nacl.exceptions import CryptoError
from nacl.secret import Aead

from node.clock import Entropy
from node.errors import WrongKey

__all__ = ["KEY_BYTES", "keep", "unwrap"]

KEY_BYTES = 32
_BOUND = b"kith wrapped key 1"
_FILE_LIMIT_BYTES = 4096


def unwrap(path: Path, wrapping: bytes) -> bytes | None:
    """The key in the file; None when there is no file. Raises WrongKey when this wrapping key does not open it."""
    try:
        with path.open("rb") as file:
            sealed = file.read(_FILE_LIMIT_BYTES)
    except FileNotFoundError:
        return None
    try:
        return Aead(wrapping).decrypt(sealed, _BOUND)
    except (CryptoError, ValueError) as error:
        raise WrongKey(f"{path} does not open with this device's key, or is damaged.") from error


def keep(path: Path, key: bytes, wrapping: bytes, entropy: Entropy) -> None:
    """Put the key into the file, wrapped, in one step; durable when it returns. Raises OSError."""
    sealed = bytes(Aead(wrapping).encrypt(key, _BOUND, entropy.bytes(Aead.NONCE_SIZE)))
    draft = path.with_name(f".{path.name}.new")
    handle = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, stat.S_IRUSR | stat.S_IWUSR)
    with os.fdopen(handle, "wb") as file:
        file.write(sealed)
        file.flush()
        os.fsync(file.fileno())
    draft.replace(path)
    folder = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)
