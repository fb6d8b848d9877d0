"""What peers may still take today: one account per peer, checked before a request is accepted and again as tokens flow.

Counts live in memory and are handed to a port for keeping; the day is UTC. Must not know streams, engines or grants'
signatures.
"""

from collections.abc import Callable
from datetime import date
from typing import Protocol

from protocol.grants import Grant

__all__ = ["QuotaBook", "QuotaExceeded", "UsageLog"]


class QuotaExceeded(Exception):
    """A limit of the grant is reached. code names the limit as the wire does, limit is its number."""

    def __init__(self, code: str, limit: int | None) -> None:
        super().__init__(f"{code} ({limit})")
        self.code = code
        self.limit = limit


class UsageLog(Protocol):
    """Keeps tokens per peer and day."""

    async def tokens_on(self, peer_id: str, day: date) -> int:
        """Tokens that this peer has used on that day."""
        ...

    async def add_tokens(self, peer_id: str, day: date, *, prompt_tokens: int, output_tokens: int) -> None:
        """Add one request to the count, durably."""
        ...


class QuotaBook:
    """Accounts of all peers that this node serves."""

    def __init__(self, usage: UsageLog, today: Callable[[], date]) -> None:
        self._usage = usage
        self._today = today
        self._running: dict[str, int] = {}

    def running(self, peer_id: str) -> int:
        """How many requests of this peer are at work."""
        return self._running.get(peer_id, 0)

    async def open(self, peer_id: str, grant: Grant, *, context_tokens: int) -> None:
        """Take a place for one request. Raises QuotaExceeded: nothing is taken then."""
        if context_tokens > grant.max_context:
            raise QuotaExceeded("context_too_long", grant.max_context)
        if self.running(peer_id) >= grant.max_concurrency:
            raise QuotaExceeded("busy", grant.max_concurrency)
        self._running[peer_id] = self.running(peer_id) + 1
        try:
            await self.check_tokens(peer_id, grant)
        except BaseException:
            self.close(peer_id)
            raise

    async def check_tokens(self, peer_id: str, grant: Grant, *, more: int = 0) -> None:
        """Raises QuotaExceeded when today's tokens, with `more` on top, pass the grant's."""
        used = await self._usage.tokens_on(peer_id, self._today())
        if used + more >= grant.tokens_per_day:
            raise QuotaExceeded("quota", grant.tokens_per_day)

    async def charge(self, peer_id: str, prompt_tokens: int, output_tokens: int) -> None:
        """Add one request to today's count."""
        await self._usage.add_tokens(peer_id, self._today(), prompt_tokens=prompt_tokens, output_tokens=output_tokens)

    def close(self, peer_id: str) -> None:
        """Give the place back."""
        left = self.running(peer_id) - 1
        if left > 0:
            self._running[peer_id] = left
        else:
            self._running.pop(peer_id, None)
