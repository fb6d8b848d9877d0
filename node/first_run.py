"""The first run: folders, identity and a node name, made without questions; later runs find them and change nothing.

Must not start anything.
"""

from collections.abc import Mapping
from pathlib import Path

from node.clock import Entropy
from node.config import load, set_value
from node.errors import KeyMissing, PassphraseNeeded
from node.identity import keystore
from node.identity.keystore import Identity
from node.paths import Paths
from protocol.words import new_node_name

__all__ = ["is_locked", "prepare", "read_passphrase"]

_FILE_NAMED_IN = "KITH_PASSPHRASE_FILE"


def read_passphrase(env: Mapping[str, str]) -> str | None:
    """The passphrase in the file that KITH_PASSPHRASE_FILE names, without its line end; None when it names none."""
    named = env.get(_FILE_NAMED_IN)
    if not named:
        return None
    try:
        return Path(named).read_text(encoding="utf-8").rstrip("\r\n")
    except OSError as error:
        raise PassphraseNeeded(f"The passphrase file {named} cannot be read: {error.strerror}.") from error


def is_locked(paths: Paths) -> bool:
    """Whether there is a key that needs a passphrase."""
    return paths.identity_file.exists() and keystore.is_locked(paths.identity_file)


def prepare(paths: Paths, entropy: Entropy, *, name: str | None = None, passphrase: str | None = None) -> Identity:
    """This device's identity, with its folders and name in place. Raises KithError, KeyMissing rather than make a new
    identity beside a database that it could not open.

    A passphrase given here locks a key that is not locked yet, and opens one that is.
    """
    paths.prepare()
    is_new = not paths.identity_file.exists()
    if is_new and passphrase is not None:
        keystore.check_passphrase(passphrase)       # or the key would be left behind in clear
    if is_new and paths.database.exists() and paths.database.stat().st_size:
        raise KeyMissing(f"This data folder has a database but no key: {paths.identity_file} is missing.")
    identity = keystore.load_or_create(paths.identity_file, entropy, passphrase)
    if passphrase is not None and (is_new or not keystore.is_locked(paths.identity_file)):
        keystore.set_passphrase(paths.identity_file, identity, passphrase, entropy)
    if name is not None or not load(paths.config_file, {}).settings.node.name:
        set_value(paths.config_file, "node.name", name or new_node_name(entropy))
    return identity
