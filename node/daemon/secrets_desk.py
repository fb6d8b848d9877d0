"""The owner's stored passwords as the API names them; it takes values in and never gives one out.

Implements node.api.ports.Secrets. Must not know what a value is used for.
"""

from node.api.privacy_ports import NewSecret
from node.api.privacy_views import SecretView
from node.clock import from_ms
from node.privacy.credentials import CredentialStore, SecretFacts

__all__ = ["SecretsDesk"]


class SecretsDesk:
    """One per node."""

    def __init__(self, store: CredentialStore) -> None:
        self._store = store

    async def all(self) -> list[SecretView]:
        """Names, purposes and times."""
        return [_view(facts) for facts in self._store.all()]

    async def add(self, new: NewSecret) -> SecretView:
        """Keep one. Raises UsageError."""
        await self._store.add(new.name, new.purpose, new.value)
        return next(_view(facts) for facts in self._store.all() if facts.name == new.name)

    async def remove(self, name: str) -> str:
        """Erase one. Raises NoSuchSecret."""
        await self._store.remove(name)
        return name


def _view(facts: SecretFacts) -> SecretView:
    return SecretView(
        name=facts.name, purpose=facts.purpose, added=_time(facts.added_ms),
        used=_time(facts.used_ms) if facts.used_ms is not None else None,
    )


def _time(at_ms: int) -> str:
    return from_ms(at_ms).isoformat(timespec="seconds")
