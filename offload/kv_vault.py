"""Keys for what the engine's workers put on disk of their memory, so that no worker ever holds more than it needs.

A worker writes half a conversation into each file. It gets a key per file, for files of its own model and of principals
whose requests it is given; never the device's key. Each principal has a secret of its own on disk: once that is erased,
the files of this principal can't be opened again, by nobody. (How well a disk erases 32 bytes is the disk's business.)
Must not know workers, formats or tokens.
"""

import logging
import os
import re
from collections.abc import Callable
from pathlib import Path

import trio
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

from offload.ports import OWNER
from offload.worker_frames import FileKey, Unlock

__all__ = ["KvVault", "WorkerKeys"]

_KEY_BYTES = 32
_NAME = re.compile(r"([0-9a-f]{32})-[0-9a-f]{32}\.kv")
_MOST_FILES = 4096      # of one principal and model
_one_at_a_time = trio.CapacityLimiter(1)
_log = logging.getLogger(__name__)


class KvVault:
    """Where the workers' files are, and the keys to them. Blocking, and called from one thread at a time."""

    def __init__(
        self, folder: Path, device_key: bytes, random_bytes: Callable[[int], bytes], *, limit_bytes: int = 2 * 1024**3,
    ) -> None:
        """device_key: 32 bytes for this purpose alone. limit_bytes: how much each model's files may take."""
        self.limit_bytes = limit_bytes
        self._folder = folder
        self._device_key = device_key
        self._random = random_bytes
        self._secrets: dict[str, bytes] = {}

    def folder_of(self, digest: str) -> Path:
        """The one folder that this model's worker may write to. Raises OSError."""
        folder = self._folder / digest[:32]
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        return folder

    def beginning(self, principal: str) -> str:
        """How the names of all of the principal's files begin, which opens none of them."""
        return f"{self._tag(principal)}-"

    def known(self, principal: str, digest: str) -> list[FileKey]:
        """The principal's files of this model, with their keys. Raises OSError."""
        tag = self._tag(principal)
        with os.scandir(self.folder_of(digest)) as entries:
            names = [entry.name for entry in entries if entry.is_file(follow_symlinks=False)]
        names = [name for name in names if (parts := _NAME.fullmatch(name)) and parts[1] == tag]
        return [FileKey(name, self._key(principal, digest, name)) for name in names[:_MOST_FILES]]

    def fresh(self, principal: str, digest: str) -> FileKey:
        """A name and key for one new file. Raises OSError."""
        name = f"{self.beginning(principal)}{self._random(16).hex()}.kv"
        return FileKey(name, self._key(principal, digest, name))

    def erase(self, principal: str) -> None:
        """Erase the principal's secret, and with it the use of its files, then the files. Raises OSError."""
        self._secrets.pop(principal, None)
        tag = self._tag(principal)
        secret = self._secret_path(tag)
        if secret.exists():
            with secret.open("r+b") as file:
                file.write(bytes(_KEY_BYTES))
                file.flush()
                os.fsync(file.fileno())
            secret.unlink()
        for path in self._folder.glob(f"*/{tag}-*.kv*"):
            path.unlink(missing_ok=True)

    def _key(self, principal: str, digest: str, name: str) -> bytes:
        purpose = f"kith/kv-file/1/{digest}/{name}".encode()
        return HKDF(algorithm=SHA256(), length=_KEY_BYTES, salt=self._secret(principal), info=purpose).derive(
            self._device_key)

    def _tag(self, principal: str) -> str:
        """What stands for the principal in file names: nobody without the device's key can tell who it is."""
        purpose = b"kith/kv-owner/1/" + principal.encode()
        return HKDF(algorithm=SHA256(), length=16, salt=None, info=purpose).derive(self._device_key).hex()

    def _secret(self, principal: str) -> bytes:
        known = self._secrets.get(principal)
        if known is None:
            known = self._secrets[principal] = self._read_secret(self._secret_path(self._tag(principal)))
        return known

    def _read_secret(self, path: Path) -> bytes:
        try:
            found = path.read_bytes()
        except FileNotFoundError:
            found = b""
        if len(found) == _KEY_BYTES:
            return found
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        secret = self._random(_KEY_BYTES)
        draft = path.with_suffix(".part")
        with os.fdopen(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb") as file:
            file.write(secret)
            file.flush()
            os.fsync(file.fileno())
        draft.rename(path)
        return secret

    def _secret_path(self, tag: str) -> Path:
        return self._folder / "secrets" / tag


class WorkerKeys:
    """What one worker process after another is given of the vault."""

    def __init__(self, vault: KvVault | None, digest: str) -> None:
        """vault None: nothing is kept on disk."""
        self._vault = vault
        self._digest = digest
        self._unlocked: set[str] = set()
        self.folder = ""
        self.limit_bytes = vault.limit_bytes if vault is not None else 0
        self.owners = vault.beginning(OWNER) if vault is not None else ""
        """How the names of the owner's files begin."""

    def begin(self) -> None:
        """A new process starts; it has no keys yet."""
        self._unlocked.clear()
        self.folder = ""
        if self._vault is not None:
            try:
                self.folder = str(self._vault.folder_of(self._digest))
            except OSError as error:
                _log.warning("the engine keeps nothing on disk: %s", error.strerror)

    async def for_request(self, principal: str) -> tuple[Unlock | None, FileKey | None]:
        """Keys to the principal's files, once per process, and one for a new file."""
        if self._vault is None or not self.folder:
            return None, None
        try:
            if principal in self._unlocked:
                return None, self._vault.fresh(principal, self._digest)
            known = await trio.to_thread.run_sync(self._vault.known, principal, self._digest, limiter=_one_at_a_time)
            if principal in self._unlocked:     # another request of it was faster
                return None, self._vault.fresh(principal, self._digest)
            self._unlocked.add(principal)
            return Unlock(principal, known), self._vault.fresh(principal, self._digest)
        except OSError as error:
            _log.warning("the engine's files can't be used: %s", error.strerror)
            return None, None

    def forget(self, principal: str) -> None:
        """The principal's files are erased: the next request gets new keys."""
        self._unlocked.discard(principal)
