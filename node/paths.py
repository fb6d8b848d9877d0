"""Where the node keeps its files: XDG folders, or everything below KITH_HOME, made private on first use.

Must not read configuration, open databases or know what the files hold.
"""

import os
import stat
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from node.errors import LooseFileMode, PathTooLong, StorageError

__all__ = ["SOCKET_PATH_MAX_BYTES", "Paths", "check_private", "make_private_dir"]

# sun_path of unix(7) holds 108 bytes and the kernel wants the closing NUL among them.
SOCKET_PATH_MAX_BYTES = 107


@dataclass(frozen=True, slots=True)
class Paths:
    """The node's folders. Nothing is created until prepare()."""

    config_dir: Path
    data_dir: Path
    state_dir: Path
    runtime_dir: Path

    @classmethod
    def from_env(cls, env: Mapping[str, str], user_home: Path) -> "Paths":
        """The folders for this environment: KITH_HOME wins over XDG_*, XDG_* over the defaults below user_home.

        Without XDG_RUNTIME_DIR the socket lives in the state folder, never in a shared temporary folder.
        """
        if own := env.get("KITH_HOME"):
            root = Path(own).expanduser().absolute()
            return cls(root / "config", root / "data", root / "state", root / "run")
        state = _xdg(env, "XDG_STATE_HOME", user_home / ".local" / "state") / "kith"
        runtime = env.get("XDG_RUNTIME_DIR", "")
        return cls(
            config_dir=_xdg(env, "XDG_CONFIG_HOME", user_home / ".config") / "kith",
            data_dir=_xdg(env, "XDG_DATA_HOME", user_home / ".local" / "share") / "kith",
            state_dir=state,
            runtime_dir=Path(runtime) / "kith" if runtime.startswith("/") else state,
        )

    @property
    def config_file(self) -> Path:
        return self.config_dir / "config.toml"

    @property
    def identity_file(self) -> Path:
        return self.data_dir / "identity.json"

    @property
    def database(self) -> Path:
        return self.data_dir / "kith.db"

    @property
    def index_database(self) -> Path:
        return self.data_dir / "index.db"

    @property
    def models_dir(self) -> Path:
        return self.data_dir / "models"

    @property
    def kv_dir(self) -> Path:
        return self.state_dir / "kv"

    @property
    def lock_file(self) -> Path:
        return self.data_dir / "node.lock"

    @property
    def log_file(self) -> Path:
        return self.state_dir / "kith.log"

    @property
    def socket(self) -> Path:
        """The API socket. Raises PathTooLong when the kernel could not bind it."""
        path = self.runtime_dir / "node.sock"
        size = len(os.fsencode(path))
        if size > SOCKET_PATH_MAX_BYTES:
            raise PathTooLong(f"The socket's path has {size} bytes and {SOCKET_PATH_MAX_BYTES} are allowed: {path}")
        return path

    def prepare(self) -> None:
        """Make every folder, mode 0700.

        Raises LooseFileMode when one that exists is open to others, StorageError when one cannot be made.
        """
        for folder in (self.config_dir, self.data_dir, self.state_dir, self.runtime_dir, self.models_dir, self.kv_dir):
            make_private_dir(folder)


def make_private_dir(folder: Path) -> None:
    """Make the folder with mode 0700, or check that an existing one is ours and closed to others."""
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        text = f"The folder {folder} cannot be made: {error.strerror}."
        raise StorageError(text, hint=f"Check: ls -ld {folder.parent}") from error
    check_private(folder)


def check_private(path: Path) -> None:
    """Pass when the file or folder belongs to this user and nobody else may read or write it.

    Raises LooseFileMode with the command that mends it. Follows symlinks: what counts is the place the bytes lie in.
    """
    found = path.stat()
    wanted = "700" if stat.S_ISDIR(found.st_mode) else "600"
    if found.st_uid != os.geteuid():
        text = f"{path} belongs to another user (uid {found.st_uid})."
        raise LooseFileMode(text, hint=f"Take it over: sudo chown {os.geteuid()} {path}")
    if found.st_mode & 0o077:
        text = f"{path} is open to other users (mode {stat.S_IMODE(found.st_mode):04o})."
        raise LooseFileMode(text, hint=f"Close it: chmod {wanted} {path}")


def _xdg(env: Mapping[str, str], name: str, default: Path) -> Path:
    value = env.get(name, "")
    return Path(value) if value.startswith("/") else default  # the XDG specification: relative paths are to be ignored
