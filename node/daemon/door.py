"""Whether this node's data is open: locks it, unlocks it, changes its key and passphrase. Implements the API's Keys.

Holds the identity while it is open and nothing while it is locked. The life of the node ends and begins anew for each
of these; the door only says so. Python can't promise that no copy of a key is left in freed memory: it promises that
nothing uses one. Must not know what a life does.
"""

import gc
import logging
from collections.abc import Callable
from enum import StrEnum
from functools import partial

import trio

from node.api.privacy_views import KeyView
from node.clock import Entropy
from node.daemon import rotation
from node.errors import KithError, Locked, UsageError
from node.identity import keystore
from node.identity.keystore import Identity
from node.paths import Paths

__all__ = ["Door", "Ending"]

log = logging.getLogger(__name__)

CHANGE_DEADLINE_S = 60.0
TRY_PAUSE_S = 1.0       # a passphrase costs a second and 256 MiB to try; nobody tries two at once


class Ending(StrEnum):
    """Why a life of the node is to end."""

    STOP = "stop"
    LOCK = "lock"
    ROTATE = "rotate"


class Door:
    """One per process."""

    def __init__(
        self, paths: Paths, identity: Identity | None, entropy: Entropy, passphrase: str | None = None,
    ) -> None:
        """identity None: locked. passphrase: kept only while a rotation has to be finished."""
        self._paths = paths
        self._entropy = entropy
        self.identity = identity
        self.peer_id = identity.peer_id if identity else keystore.peer_id_of(paths.identity_file)
        unfinished = identity is not None and identity.next_storage is not None
        self._passphrase = passphrase if unfinished else None
        self._turn = trio.Lock()
        self._opened = trio.Event()
        self._settled = trio.Event()
        self._failed: KithError | None = None
        self._end: Callable[[Ending], None] = lambda why: None

    @property
    def is_open(self) -> bool:
        """The identity is here."""
        return self.identity is not None

    # -- for the life of the node -------------------------------------------------------------------------------------

    async def enter(self) -> Identity:
        """The identity, once the node is unlocked, with a rotation that was begun carried to its end."""
        while self.identity is None:
            await self._opened.wait()
        identity = self.identity
        if identity.next_storage is not None:
            identity = await trio.to_thread.run_sync(
                rotation.finish, self._paths, identity, self._passphrase, self._entropy)
            self.identity = identity
            log.info("the data at rest has a new key")
        self._passphrase = None
        return identity

    def begun(self, end: Callable[[Ending], None]) -> None:
        """A life runs; end(why) asks it to end."""
        self._end = end
        self._settled.set()

    def over(self, error: KithError | None = None) -> None:
        """The life is over and every database is closed."""
        self._end = lambda why: None
        self._failed = error
        if self.identity is None:
            gc.collect()
            self._settled.set()

    # -- for the owner ------------------------------------------------------------------------------------------------

    async def state(self) -> KeyView:
        """How things stand."""
        has_passphrase = await trio.to_thread.run_sync(keystore.is_locked, self._paths.identity_file)
        return KeyView(peer_id=self.peer_id, passphrase=has_passphrase, locked=not self.is_open)

    async def lock(self) -> KeyView:
        """Close every database and let go of the keys. Raises UsageError when there is no passphrase to come back by.
        """
        async with self._turn:
            if not await trio.to_thread.run_sync(keystore.is_locked, self._paths.identity_file):
                raise UsageError(
                    "The key has no passphrase: whoever can read its file can unlock it.",
                    hint="Give it one: kith key passphrase")
            if self.is_open:
                self.identity, self._passphrase = None, None
                self._opened = trio.Event()
                await self._end_life(Ending.LOCK)
                log.info("locked")
        return await self.state()

    async def unlock(self, passphrase: str) -> KeyView:
        """Open with the passphrase. Raises WrongPassphrase."""
        async with self._turn:
            if not self.is_open:
                identity = await self._load(passphrase)
                self._settled = trio.Event()
                self._passphrase = passphrase
                self.identity = identity
                self._opened.set()
                with trio.fail_after(CHANGE_DEADLINE_S):
                    await self._settled.wait()
                log.info("unlocked")
        return await self.state()

    async def rotate(self, passphrase: str | None) -> KeyView:
        """Encrypt everything at rest with a new key. Raises WrongPassphrase, PassphraseNeeded, Locked."""
        async with self._turn:
            if not self.is_open:
                raise Locked
            identity = await self._load(passphrase)
            changed = await trio.to_thread.run_sync(
                rotation.begin, self._paths, identity, passphrase, self._entropy)
            self._passphrase = passphrase
            self.identity = changed
            await self._end_life(Ending.ROTATE)
        return await self.state()

    async def set_passphrase(self, old: str | None, new: str | None) -> KeyView:
        """Set, change or remove the passphrase. Raises WrongPassphrase, PassphraseNeeded."""
        async with self._turn:
            identity = await self._load(old)
            change = partial(keystore.set_passphrase, self._paths.identity_file, identity, new, self._entropy)
            await trio.to_thread.run_sync(change)
        return await self.state()

    async def _load(self, passphrase: str | None) -> Identity:
        """The file's secrets. A wrong passphrase costs a pause besides."""
        locked = await trio.to_thread.run_sync(keystore.is_locked, self._paths.identity_file)
        try:
            given = passphrase if locked else None
            return await trio.to_thread.run_sync(keystore.load, self._paths.identity_file, given)
        except KithError:
            await trio.sleep(TRY_PAUSE_S)
            raise

    async def _end_life(self, why: Ending) -> None:
        """Ask the life to end, and wait until it is over, or the next one runs."""
        self._settled = trio.Event()
        self._end(why)
        with trio.fail_after(CHANGE_DEADLINE_S):
            await self._settled.wait()
        if self._failed is not None:
            raise self._failed
