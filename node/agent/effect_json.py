"""Effects and approvals as JSON texts and back, for the journal. Strict: an unknown field is an error.

Must not know where they are kept.
"""

from collections.abc import Mapping
from typing import Any, Literal

import msgspec

from node.agent.effects import Approval, Effect, EffectValue, Json, Origin, Span

__all__ = [
    "approval_from_json",
    "approval_to_json",
    "effect_from_json",
    "effect_to_json",
    "record_from_json",
    "record_to_json",
]


class _StoredValue(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    name: str
    value: Any  # JSON: any depth
    shown: str
    origin: Origin
    source: str
    span: Span | None
    alternatives: tuple[str, ...]


class _StoredEffect(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    tool: str
    kind: Literal["write", "destructive"]
    text: str
    values: tuple[_StoredValue, ...]
    idempotency_key: str
    cautions: tuple[str, ...] = ()
    replaces: str = ""
    takes_back: str = ""


def effect_to_json(effect: Effect) -> str:
    """The whole effect. The same effect gives the same text."""
    return msgspec.json.encode(effect, order="deterministic").decode()


def effect_from_json(text: str) -> Effect:
    """The effect as it was. Raises msgspec.DecodeError."""
    stored = msgspec.json.decode(text, type=_StoredEffect)
    values = tuple(
        EffectValue(one.name, one.value, one.shown, one.origin, one.source, one.span, one.alternatives)
        for one in stored.values
    )
    return Effect(
        stored.tool, stored.kind, stored.text, values, stored.idempotency_key, stored.cautions, stored.replaces,
        stored.takes_back,
    )


def approval_to_json(approval: Approval) -> str:
    """The decision."""
    return msgspec.json.encode(approval, order="deterministic").decode()


def approval_from_json(text: str) -> Approval:
    """The decision as it was. Raises msgspec.DecodeError."""
    return msgspec.json.decode(text, type=Approval)


def record_to_json(record: Mapping[str, Json]) -> str:
    """A tool's undo record."""
    return msgspec.json.encode(dict(record), order="deterministic").decode()


def record_from_json(text: str) -> dict[str, Json]:
    """The undo record as it was. Raises msgspec.DecodeError."""
    found: dict[str, Json] = msgspec.json.decode(text, type=dict[str, Any])
    return found
