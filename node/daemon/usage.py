"""What peers used of this node's models, kept per UTC day. Implements offload.quota.UsageLog."""

from datetime import UTC, date, datetime, timedelta

from node.store import usage
from node.store.database import Database

__all__ = ["StoredUsage", "day_left_s"]


def day_left_s(now: datetime) -> int:
    """Whole seconds until the next day in UTC begins."""
    here = now.astimezone(UTC)
    midnight = here.replace(hour=0, minute=0, second=0, microsecond=0) + timedelta(days=1)
    return -int((here - midnight).total_seconds() // 1)


class StoredUsage:
    """Counts over the table of days."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def tokens_on(self, peer_id: str, day: date) -> int:
        """Prompt and output tokens of that day."""
        return (await self._database.read(usage.on_day, peer_id, day.isoformat())).tokens

    async def add_tokens(
        self, peer_id: str, day: date, *, prompt_tokens: int, output_tokens: int, requests: int
    ) -> None:
        """Add tokens, and requests that are over, to the day."""
        await self._database.write(
            usage.add, peer_id, day.isoformat(), requests=requests, prompt_tokens=prompt_tokens,
            output_tokens=output_tokens,
        )
