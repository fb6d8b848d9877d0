"""What peers may still take today, checked before a request is accepted and again as tokens flow. The devices of one
person count together where that is known.

Counts live in memory and are handed to a port for keeping; the day is UTC. Must not know streams, engines, persons or
grants' signatures.
"""

from collections.abc import Callable
from datetime import date
from typing import Protocol

from protocol.grants import Grant

__all__ = ["QuotaBook", "QuotaExceeded", "UsageLog"]


class QuotaExceeded(Exception):
    """A limit of the grant is reached. code names the limit as the wire does, limit is its number, resets_in_s when it
    starts anew, where that is known.
    """

    def __init__(self, code: str, limit: int | None, resets_in_s: int | None = None) -> None:
        super().__init__(f"{code} ({limit})")
        self.code = code
        self.limit = limit
        self.resets_in_s = resets_in_s


class UsageLog(Protocol):
    """Keeps tokens per peer and day."""

    async def tokens_on(self, peer_id: str, day: date) -> int:
        """Tokens that this peer has used on that day."""
        ...

    async def add_tokens(
        self, peer_id: str, day: date, *, prompt_tokens: int, output_tokens: int, requests: int
    ) -> None:
        """Add tokens, and requests that are over, to the count, durably. Negative tokens are taken off, down to 0."""
        ...


class QuotaBook:
    """Accounts of all peers that this node serves. Tokens of running requests count before they are booked."""

    def __init__(
        self, usage: UsageLog, today: Callable[[], date], *,
        devices_of: Callable[[str], frozenset[str]] = lambda peer_id: frozenset({peer_id}),
        day_left_s: Callable[[], int | None] = lambda: None,
    ) -> None:
        """devices_of(peer_id): this peer and all others known to be the same person's. day_left_s: until the next day.
        """
        self._usage = usage
        self._today = today
        self._devices_of = devices_of
        self._day_left_s = day_left_s
        self._running: dict[str, int] = {}
        self._unbooked: dict[str, int] = {}
        self._booked: dict[str, tuple[date, int]] = {}
        self._bookings = 0

    def running(self, peer_id: str) -> int:
        """How many requests of this peer are at work."""
        return self._running.get(peer_id, 0)

    async def used_today(self, peer_id: str) -> int:
        """Tokens of this UTC day, those of running requests and of the person's other devices included."""
        used = 0
        for device in self._devices_of(peer_id):
            used += await self._booked_today(device)
        return used + sum(self._unbooked.get(device, 0) for device in self._devices_of(peer_id))

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
        self.note(peer_id, tokens)
        if await self.used_today(peer_id) >= grant.tokens_per_day:
            raise QuotaExceeded("quota", grant.tokens_per_day, self._day_left_s())

    def note(self, peer_id: str, tokens: int) -> None:
        """Count tokens of a running request that is ended whatever is left."""
        self._unbooked[peer_id] = self._unbooked.get(peer_id, 0) + tokens

    async def charge(self, peer_id: str, prompt_tokens: int, output_tokens: int, *, requests: int = 1) -> None:
        """Book tokens that were spent, durably: of one request that is over, or of one that runs (requests=0)."""
        try:
            await self._usage.add_tokens(
                peer_id, self._today(), prompt_tokens=prompt_tokens, output_tokens=output_tokens, requests=requests
            )
        finally:
            left = self._unbooked.get(peer_id, 0) - prompt_tokens - output_tokens
            self._unbooked[peer_id] = left
            if left <= 0:
                self._unbooked.pop(peer_id)
            self._booked.pop(peer_id, None)
            self._bookings += 1

    async def give_back(self, peer_id: str, prompt_tokens: int, output_tokens: int) -> None:
        """Take tokens off the day that were booked by a guess which was too high."""
        try:
            await self._usage.add_tokens(
                peer_id, self._today(), prompt_tokens=-prompt_tokens, output_tokens=-output_tokens, requests=0
            )
        finally:
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
