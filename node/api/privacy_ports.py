"""What the API needs of the guard: the ledger, levels, secrets. Must not know how any of it is done."""

from typing import Protocol

import msgspec

from node.api.privacy_views import (
    AuditView,
    KeyView,
    LedgerEntryView,
    LedgerPage,
    LedgerReport,
    PrivacyView,
    SecretView,
)

__all__ = [
    "Auditing",
    "Keys",
    "Ledger",
    "LevelChange",
    "NewSecret",
    "Passphrases",
    "Privacy",
    "Secrets",
]



class Ledger(Protocol):
    """What left this node."""

    async def entries(self, *, since: str | None, peer: str | None, limit: int) -> list[LedgerEntryView]:
        """Newest first."""
        ...

    async def entry(self, entry_id: int) -> LedgerEntryView:
        """One entry with the exact texts that left."""
        ...

    async def verify(self, peer: str | None) -> LedgerReport:
        """Check the whole chain against its signed head and the peers' receipts; peer: ask it for missing ones first.
        """
        ...

    async def export(self, after: int, *, with_texts: bool) -> LedgerPage:
        """Entries in order behind this number, with the bytes that the chain covers."""
        ...


class NewSecret(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A password or token to be stored."""

    name: str
    value: str
    purpose: str = "other"

    def __repr__(self) -> str:
        """Never the value."""
        return f"NewSecret({self.name!r}, {self.purpose!r})"


class Secrets(Protocol):
    """Stored passwords and tokens."""

    async def all(self) -> list[SecretView]:
        """Names and purposes."""
        ...

    async def add(self, new: NewSecret) -> SecretView:
        """Keep one."""
        ...

    async def remove(self, name: str) -> str:
        """Erase one."""
        ...


class LevelChange(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What goes to a peer leaves in this form. level: never, masked, public, clear, default."""

    peer: str
    level: str
    purpose: str = "infer"
    conversation: str | None = None


class Privacy(Protocol):
    """What may leave for whom."""

    async def show(self, name: str | None) -> PrivacyView:
        """Levels and standing refusals, of one peer or of all."""
        ...

    async def set(self, change: LevelChange) -> PrivacyView:
        """Choose a level."""
        ...

    async def allow_again(self, number: int) -> PrivacyView:
        """Take a standing refusal back."""
        ...


class Passphrases(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What the owner types. passphrase: the present one, None when there is none. new: None takes it away."""

    passphrase: str | None = None
    new: str | None = None

    def __repr__(self) -> str:
        """Never one of them."""
        return "Passphrases(...)"


class Keys(Protocol):
    """This device's key and the lock on its data."""

    async def state(self) -> KeyView:
        """How things stand; answers while locked, too."""
        ...

    async def lock(self) -> KeyView:
        """Close every database and let go of the keys."""
        ...

    async def unlock(self, passphrase: str) -> KeyView:
        """Open them again."""
        ...

    async def rotate(self, passphrase: str | None) -> KeyView:
        """Encrypt everything at rest with a new key."""
        ...

    async def set_passphrase(self, old: str | None, new: str | None) -> KeyView:
        """Set, change or remove the passphrase."""
        ...


class Auditing(Protocol):
    """A look at everything that guards the owner's data."""

    async def look(self) -> AuditView:
        """Tools, peers, files, ledger, and the guard tested with planted values."""
        ...
