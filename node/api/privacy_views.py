"""What the API tells of the guard: the ledger, levels, refusals for good, secrets by name."""

from typing import Any

import msgspec

from node.api.views import Check

__all__ = [
    "AuditPeer",
    "AuditTool",
    "AuditView",
    "DenialView",
    "KeyView",
    "LedgerEntryView",
    "LedgerPage",
    "LedgerReport",
    "LevelView",
    "PeerLevels",
    "PrivacyView",
    "SecretView",
]

SCHEMA = 1


class LedgerEntryView(msgspec.Struct, frozen=True, kw_only=True):
    """One thing that left this node, or was refused."""

    entry_id: int
    at: str
    peer: str
    purpose: str
    level: str
    size_bytes: int
    substitutions: int
    outcome: str
    digest: str
    texts: list[str] | None = None
    approved_by: str = ""
    receipt: str = ""
    """What the peer's side says: receipted, unreceipted, mismatch, open, nothing sent, uncounted, no receipt due."""
    dropped: str = ""
    """Why texts and bytes are no longer kept: age, deleted; empty while they are."""
    frames: list[str] | None = None
    """The exact bytes that left, in base64, one piece each."""


class LedgerPage(msgspec.Struct, frozen=True, kw_only=True):
    """A piece of an export: entries in order, each with the bytes that the chain covers."""

    schema: int = SCHEMA
    peer_id: str
    entries: list[dict[str, Any]]
    next: int | None
    """Ask again from here; None at the end."""


class LedgerReport(msgspec.Struct, frozen=True, kw_only=True):
    """The result of checking the whole chain."""

    schema: int = SCHEMA
    ok: bool
    entries: int
    head: str
    problems: list[str]
    disputes: list[str] = []
    """Entries for which a peer signed for other bytes than those that left."""
    first: int = 1
    """The first entry that is still there; a signed checkpoint stands for those before."""
    receipts: dict[str, int] = {}
    """How many entries stand how with their peers."""
    asked: int = 0
    """Entries whose receipts a peer was asked for just now, and how many came."""
    came: int = 0


class SecretView(msgspec.Struct, frozen=True, kw_only=True):
    """A stored password or token; its value is nowhere in here."""

    name: str
    purpose: str
    added: str
    used: str | None


class PeerLevels(msgspec.Struct, frozen=True, kw_only=True):
    """In which form what goes to one peer leaves, by purpose."""

    peer: str
    peer_id: str
    trust: str
    levels: dict[str, str]


class LevelView(msgspec.Struct, frozen=True, kw_only=True):
    """A level that the owner chose for one conversation."""

    peer: str
    purpose: str
    level: str
    conversation: str
    since: str


class DenialView(msgspec.Struct, frozen=True, kw_only=True):
    """What the owner refused for good."""

    number: int
    peer: str
    purpose: str
    since: str


class PrivacyView(msgspec.Struct, frozen=True, kw_only=True):
    """Everything that decides what may leave."""

    schema: int = SCHEMA
    peers: list[PeerLevels]
    conversations: list[LevelView]
    denials: list[DenialView]
    nets: list[str]
    nets_missing: list[str]


class KeyView(msgspec.Struct, frozen=True, kw_only=True):
    """How this device's key is kept."""

    schema: int = SCHEMA
    peer_id: str
    passphrase: bool
    locked: bool


class AuditTool(msgspec.Struct, frozen=True, kw_only=True):
    """One thing that the agent can do. kind: read, write, destructive."""

    name: str
    kind: str
    consequential: bool
    """Its exact effect is shown, and nothing happens without a yes."""
    does: str


class AuditPeer(msgspec.Struct, frozen=True, kw_only=True):
    """One peer: what it may ask of this node, and in which form what goes to it leaves."""

    peer: str
    trust: str
    may_ask_for: list[str]
    levels: dict[str, str]


class AuditView(msgspec.Struct, frozen=True, kw_only=True):
    """Who can reach and see what, and whether the guard holds."""

    schema: int = SCHEMA
    ok: bool
    tools: list[AuditTool]
    folders: dict[str, str]
    peers: list[AuditPeer]
    conversations: list[LevelView]
    denials: list[DenialView]
    checks: list[Check]
