"""The question to the owner before free text leaves, and the answer.

The node draws the question, no model does: the exact outgoing text, what was replaced, to whom, why, which nets ran.
Must not know how it is shown (terminal, event, page). There is no answer that means "always".
"""

import hashlib
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Protocol

import msgspec

from node.privacy.policy import Level, Purpose

__all__ = ["Choice", "ConsentAnswer", "ConsentAsker", "ConsentQuestion", "OutgoingText", "Substitution", "digest_of"]


class Substitution(msgspec.Struct, frozen=True):
    """One replaced span of an outgoing text. `original` is for the owner's eyes only and never leaves."""

    start: int
    end: int
    token: str
    original: str
    type: str


class OutgoingText(msgspec.Struct, frozen=True):
    """One text exactly as it would leave, with its substitutions in order."""

    role: str
    text: str
    source: str
    substitutions: tuple[Substitution, ...] = ()


class ConsentQuestion(msgspec.Struct, frozen=True):
    """What the owner decides about. `digest` names this very question: an answer must repeat it."""

    question_id: str
    request_id: str
    conversation: str
    peer_id: str
    peer_name: str
    purpose: Purpose
    level: Level
    why: str
    texts: tuple[OutgoingText, ...]
    nets_ran: tuple[str, ...]
    nets_missing: tuple[str, ...]
    deadline_s: float
    digest: str


class Choice(StrEnum):
    """What the owner chose. There is no "always allow"."""

    ONCE = "once"                   # exactly this, now; or no, now
    DENY_ALWAYS = "deny_always"     # no, and do not ask again for this purpose and peer
    CLEAR = "clear"                 # show me the same without placeholders, and ask once more


@dataclass(frozen=True, slots=True)
class ConsentAnswer:
    """allowed counts only when digest is the question's; by: who answered ("owner", a device name).

    unanswered: nobody was there before the deadline; a no that says nothing about the owner's mind.
    """

    allowed: bool
    digest: str
    by: str = field(default="owner")
    choice: Choice = Choice.ONCE
    unanswered: bool = False


class ConsentAsker(Protocol):
    """Whoever can reach the owner: the API's event stream, a terminal."""

    async def ask(self, question: ConsentQuestion) -> ConsentAnswer:
        """The owner's answer. May wait for ever: the guard has the deadline, and takes silence as no."""
        ...


def digest_of(request_id: str, peer_id: str, purpose: Purpose, level: Level, texts: tuple[OutgoingText, ...]) -> str:
    """The digest that binds an answer to peer, purpose, level and the exact outgoing texts."""
    body = msgspec.msgpack.encode((request_id, peer_id, purpose, level, [(t.role, t.text) for t in texts]))
    return hashlib.blake2b(body, digest_size=16, person=b"kith-consent").hexdigest()
