"""Changes what the data at rest is encrypted with. Killed at any instant, it goes on at the next start.

    key file: storage             key file: storage, next          key file: next
    stores: old          ---->    stores: old or new        ---->  stores: new
                        begin()         finish(), in any number of runs

While the key file holds both, each store opens with one of them. Runs while no database is open. Must not know what is
in them.
"""

import logging
from dataclasses import replace
from pathlib import Path

from node.clock import Entropy
from node.errors import WrongKey
from node.identity import keystore, wrapped_key
from node.identity.keystore import SEED_BYTES, Identity
from node.paths import Paths
from node.store.rekeying import rekey

__all__ = ["begin", "engine_key", "finish"]

log = logging.getLogger(__name__)

DATABASE, INDEX, ENGINE = "database", "index", "engine-files"


def begin(paths: Paths, identity: Identity, passphrase: str | None, entropy: Entropy) -> Identity:
    """The identity with a next storage key, durable in the key file. Blocks, a second with a passphrase."""
    if identity.next_storage is not None:
        return identity
    changed = replace(identity, next_storage=entropy.bytes(SEED_BYTES))
    keystore.save(paths.identity_file, changed, passphrase, entropy)
    return changed


def finish(paths: Paths, identity: Identity, passphrase: str | None, entropy: Entropy) -> Identity:
    """The identity with the next storage key as its only one; every store opens with it. Blocks.

    Raises StorageError; what was done so far stays, and the next call goes on.
    """
    if identity.next_storage is None:
        return identity
    for purpose, path in ((DATABASE, paths.database), (INDEX, paths.index_database)):
        old, new = _keys(identity, purpose)
        if rekey(path, old, new):
            log.info("%s is encrypted with the new key", path.name)
    _rewrap(paths, identity, entropy)
    done = replace(identity, storage=identity.next_storage, next_storage=None)
    keystore.save(paths.identity_file, done, passphrase, entropy)
    return done


def engine_key(paths: Paths, identity: Identity, entropy: Entropy) -> bytes:
    """The key behind what the engine keeps on disk; made on first use. Outlives rotations. Raises WrongKey, OSError."""
    path = _engine_file(paths)
    wrapping = identity.storage_key(ENGINE)
    found = wrapped_key.unwrap(path, wrapping)
    if found is None:
        # files from before the key was wrapped stay readable
        found = identity.subkey(ENGINE) if identity.storage is None else entropy.bytes(wrapped_key.KEY_BYTES)
        wrapped_key.keep(path, found, wrapping, entropy)
    return found


def _rewrap(paths: Paths, identity: Identity, entropy: Entropy) -> None:
    path = _engine_file(paths)
    if not path.exists():
        return
    old, new = _keys(identity, ENGINE)
    try:
        key = wrapped_key.unwrap(path, new)
    except WrongKey:
        key = wrapped_key.unwrap(path, old)
        assert key is not None
        wrapped_key.keep(path, key, new, entropy)
        log.info("the engine's key is wrapped with the new key")


def _keys(identity: Identity, purpose: str) -> tuple[bytes, bytes]:
    new = identity.next_storage_key(purpose)
    assert new is not None
    return identity.storage_key(purpose), new


def _engine_file(paths: Paths) -> Path:
    return paths.data_dir / "engine.key"
