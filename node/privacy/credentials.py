"""The owner's passwords and tokens for services: sealed at rest, handed to a connector by name, seen by nobody else.

A value never becomes part of a prompt, a label, a log line, a ledger entry or an answer of the API: only the connector
that dials the service asks for it by its handle. The guard refuses every text that holds one. Must not know connectors.
"""

import logging
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

import trio
from nacl.exceptions import CryptoError
from nacl.secret import Aead

from node.clock import Clock, to_ms
from node.errors import KithError, StorageError, UsageError
from node.privacy.errors import GuardFailed
from node.privacy.known_secrets import KnownSecrets
from node.privacy.nets import Net
from node.privacy.vault import Hit, Vault
from node.store import credentials as table
from node.store.credentials import Credential
from node.store.database import Database

__all__ = ["PURPOSES", "CredentialStore", "CredentialsNet", "NoSuchSecret", "SecretFacts"]

_log = logging.getLogger(__name__)

PURPOSES = ("upstream", "mail", "calendar", "contacts", "search", "other")
_NAME = re.compile(r"[a-z0-9][a-z0-9._-]{0,63}")
_VALUE_LIMIT_CHARS = 8_192
_LEAST_CHARS = 4
_NOTE_USE_EVERY_MS = 60_000
_INLINE_CHARS = 8_192   # longer texts are searched in a thread
_THREADS = trio.CapacityLimiter(2)


class NoSuchSecret(KithError):
    """There is no password or token under this name."""

    code = "no_such_secret"
    hint = "See the names: kith secrets list"


@dataclass(frozen=True, slots=True)
class SecretFacts:
    """What may be known of a stored value."""

    name: str
    purpose: str
    added_ms: int
    used_ms: int | None


class CredentialStore:
    """One per node. begin() or load() first: until then the guard lets nothing pass."""

    def __init__(self, database: Database, seal_key: bytes, clock: Clock) -> None:
        """seal_key: a sub-key of its own, 32 bytes."""
        self._database = database
        self._box = Aead(seal_key)
        self._clock = clock
        self._values: dict[str, str] = {}
        self._facts: dict[str, SecretFacts] = {}
        self._known: KnownSecrets | None = None
        self._planted: list[str] = []
        self._turn = trio.Lock()

    def __repr__(self) -> str:
        """Never a value."""
        return f"<CredentialStore of {len(self._values)}>"

    async def begin(self) -> None:
        """load(), for a node that starts: one that does not open is logged, for it takes a node that runs to remove it.
        """
        try:
            await self.load()
        except StorageError as error:
            _log.error("nothing leaves: %s %s", error.text, error.hint)

    async def load(self) -> None:
        """Read and open all. Raises StorageError for one that does not open: it is in the list and can be removed, and
        nothing passes the guard until it is."""
        async with self._turn:
            rows = await self._database.read(table.every)
            self._known, self._values = None, {}
            self._facts = {row.name: SecretFacts(row.name, row.purpose, row.added_ms, row.used_ms) for row in rows}
            self._values = {row.name: self._open(row) for row in rows}
            self._known = self._all_known()

    def _all_known(self) -> KnownSecrets:
        return KnownSecrets((*self._values.values(), *self._planted))

    def forget(self) -> None:
        """Drop the values from memory; nothing passes the guard until load()."""
        self._values, self._known = {}, None

    def all(self) -> list[SecretFacts]:
        """Names and purposes."""
        return list(self._facts.values())

    async def add(self, name: str, purpose: str, value: str) -> bool:
        """Keep a value under a name; whether it took another one's place. Raises UsageError."""
        if not _NAME.fullmatch(name):
            raise UsageError(f"{name!r} is no name for a secret.", hint="Use a-z, 0-9, dots and dashes, up to 64.")
        if purpose not in PURPOSES:
            raise UsageError(f"{purpose!r} is nothing a secret is for.", hint=f"Use one of: {', '.join(PURPOSES)}")
        if not _LEAST_CHARS <= len(value.strip()) <= _VALUE_LIMIT_CHARS:
            raise UsageError(
                f"A secret has {_LEAST_CHARS} to {_VALUE_LIMIT_CHARS} characters.", hint="Nothing was stored.")
        sealed = bytes(self._box.encrypt(value.strip().encode(), _bound(name, purpose)))
        row = Credential(name, purpose, sealed, to_ms(self._clock.now()), None)
        replaced = await self._database.write(table.put, row)
        await self.load()
        return replaced

    async def remove(self, name: str) -> None:
        """Erase one. Raises NoSuchSecret."""
        if not await self._database.write(table.remove, name):
            raise NoSuchSecret(f"There is no secret {name}.")
        await self._database.shrink_log()
        await self.load()

    async def use(self, name: str, purpose: str) -> str:
        """The value, for a connector that serves this purpose and puts it nowhere but into its request.

        Raises NoSuchSecret, also when it was stored for something else.
        """
        facts = self._facts.get(name)
        if facts is None or name not in self._values:
            raise NoSuchSecret(f"There is no secret {name}.")
        if facts.purpose != purpose:
            raise NoSuchSecret(f"The secret {name} is for {facts.purpose}, not for {purpose}.")
        value, now_ms = self._values[name], to_ms(self._clock.now())
        if facts.used_ms is None or now_ms - facts.used_ms >= _NOTE_USE_EVERY_MS:
            await self._database.write(table.used, name, now_ms)
            if name in self._facts:     # not erased meanwhile
                self._facts[name] = SecretFacts(name, purpose, facts.added_ms, now_ms)
        return value

    @contextmanager
    def also_known(self, value: str) -> Iterator[None]:
        """Treat one more value as stored while this lasts, in memory only: for a test of the guard."""
        self._planted.append(value)
        try:
            if self._known is not None:
                self._known = self._all_known()
            yield
        finally:
            self._planted.remove(value)
            if self._known is not None:     # not what was known before: a value may have come, or all been forgotten
                self._known = self._all_known()

    def holds(self, text: str) -> bool:
        """Whether a stored value stands in the text. Raises GuardFailed before load()."""
        if self._known is None:
            raise GuardFailed("the stored secrets are not loaded")
        return self._known.holds(text)

    def scrub(self, text: str) -> str:
        """The text without stored values, for log lines."""
        return text if self._known is None else self._known.scrub(text)

    def _open(self, row: Credential) -> str:
        try:
            return self._box.decrypt(row.sealed, _bound(row.name, row.purpose)).decode()
        except (CryptoError, ValueError) as error:
            raise StorageError(
                f"The secret {row.name} does not open with this device's key.",
                hint=f"Remove it and add it again: kith secrets remove {row.name}",
            ) from error


class CredentialsNet:
    """Implements node.privacy.nets.Net: the patterns of secrets, and every stored value."""

    name = "secrets"

    def __init__(self, patterns: Net, store: CredentialStore) -> None:
        self._patterns = patterns
        self._store = store

    async def scan(self, text: str, returned: Vault) -> Sequence[Hit]:
        """Hits; a stored value is told as one hit over the text, without its place."""
        found = list(await self._patterns.scan(text, returned))
        if len(text) <= _INLINE_CHARS:
            held = self._store.holds(text)
        else:
            held = await trio.to_thread.run_sync(self._store.holds, text, limiter=_THREADS, abandon_on_cancel=True)
        if held and text:
            found.append(Hit(0, len(text), "stored secret"))
        return found


def _bound(name: str, purpose: str) -> bytes:
    return f"kith-credential|{name}|{purpose}".encode()
