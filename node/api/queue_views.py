"""Queued requests as the local API shows them. Must not know how they are run."""

from typing import Any

import msgspec

__all__ = ["ClearedView", "QueuedDetail", "QueuedView"]

SCHEMA = 1


class QueuedView(msgspec.Struct, frozen=True, kw_only=True):
    """One request that waits for a better answer, or had it.

    state: waiting, needs_consent, running; done, cancelled, expired, refused, failed.
    """

    intent_id: str
    key: str
    state: str
    text: str
    """The start of what was asked."""
    wants: str
    """The peer it waits for; empty: any that the router takes."""
    model: str | None
    reason: str
    """Why it is where it is, in words."""
    attempts: int
    created: str
    expires: str
    conversation_id: str
    ran_on: str
    new: bool
    """Done and not looked at yet."""


class QueuedDetail(msgspec.Struct, frozen=True, kw_only=True):
    """One queued request with its answers, and the question that waits for the owner."""

    schema: int = SCHEMA
    queued: QueuedView
    draft: str
    answer: str
    question: dict[str, Any] | None
    """In state needs_consent: exactly what would leave, in the form of a consent question."""


class ClearedView(msgspec.Struct, frozen=True, kw_only=True):
    """How many settled requests were removed from the list."""

    schema: int = SCHEMA
    removed: int
