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
    """Accounts of all peers that this node serves. Tokens of running requests count before they are booked."""

    def __init__(self, usage: UsageLog, today: Callable[[], date]) -> None:
        self._usage = usage
        self._today = today
        self._running: dict[str, int] = {}
        self._unbooked: dict[str, int] = {}
        self._booked: dict[str, tuple[date, int]] = {}
        self._bookings = 0

    def running(self, peer_id: str) -> int:
        """How many requests of this peer are at work."""
        return self._running.get(peer_id, 0)

    async def used_today(self, peer_id: str) -> int:
        """Tokens of this UTC day, those of running requests included."""
        return await self._booked_today(peer_id) + self._unbooked.get(peer_id, 0)

    async def open(self, peer_id: str, grant: Grant, *, context_tokens: int) -> None:
        """Take a place for one request. Raises QuotaExceeded: nothing is taken then."""
        if context_tokens > grant.max_context:
            raise QuotaExceeded("context_too_long", grant.max_context)
        if self.running(peer_id) >= grant.max_concurrency:
            raise QuotaExceeded("busy", grant.max_concurrency)
        self._running[peer_id] = self.running(peer_id) + 1
        try:
            await self.spend(peer_id, grant, 0)
        except BaseException:
            self.close(peer_id)
            raise

    async def spend(self, peer_id: str, grant: Grant, tokens: int) -> None:
        """Count tokens of a running request. Raises QuotaExceeded once the day's tokens reach the grant's; they count
        all the same. Every one must be booked by charge() at the end.
        """
        self._unbooked[peer_id] = self._unbooked.get(peer_id, 0) + tokens
        if await self.used_today(peer_id) >= grant.tokens_per_day:
            raise QuotaExceeded("quota", grant.tokens_per_day)

    async def charge(self, peer_id: str, prompt_tokens: int, output_tokens: int) -> None:
        """Book one request that is over, durably: the tokens that were spent."""
        try:
            await self._usage.add_tokens(
                peer_id, self._today(), prompt_tokens=prompt_tokens, output_tokens=output_tokens
            )
        finally:
            left = self._unbooked.get(peer_id, 0) - prompt_tokens - output_tokens
            self._unbooked[peer_id] = left
            if left <= 0:
                self._unbooked.pop(peer_id)
            self._booked.pop(peer_id, None)
            self._bookings += 1

    def close(self, peer_id: str) -> None:
        """Give the place back."""
        left = self.running(peer_id) - 1
        if left > 0:
            self._running[peer_id] = left
        else:
            self._running.pop(peer_id, None)

    async def _booked_today(self, peer_id: str) -> int:
        """The booked tokens, read once a day and after each booking, not for every token."""
        day = self._today()
        known = self._booked.get(peer_id)
        while known is None or known[0] != day:
            bookings = self._bookings
            known = (day, await self._usage.tokens_on(peer_id, day))
            if bookings == self._bookings:  # nothing was booked while this was read
                self._booked[peer_id] = known
            else:
                known = None
        return known[1]
