"""Rows of what each peer used of this node's models, per UTC day. Limits are decided elsewhere.

Must not know grants.
"""

from dataclasses import dataclass

from node.store.connection import Connection

__all__ = ["DayUsage", "add", "days", "drop_before", "on_day"]


@dataclass(frozen=True, slots=True)
class DayUsage:
    """What one peer used on one day (UTC, YYYY-MM-DD)."""

    peer_id: str
    day: str
    requests: int = 0
    prompt_tokens: int = 0
    output_tokens: int = 0

    @property
    def tokens(self) -> int:
        """Prompt and output together: what a daily limit counts."""
        return self.prompt_tokens + self.output_tokens


def add(
    tx: Connection, peer_id: str, day: str, *, requests: int = 0, prompt_tokens: int = 0, output_tokens: int = 0,
) -> DayUsage:
    """The day's new total. Negative tokens are taken off, to 0 at most: what is given back may be of the day before."""
    tx.execute("INSERT INTO usage (peer_id, day) VALUES (?, ?) ON CONFLICT DO NOTHING", (peer_id, day))
    tx.execute(
        "UPDATE usage SET requests = requests + ?, prompt_tokens = max(0, prompt_tokens + ?), "
        "output_tokens = max(0, output_tokens + ?) WHERE peer_id = ? AND day = ?",
        (requests, prompt_tokens, output_tokens, peer_id, day),
    )
    return on_day(tx, peer_id, day)


def on_day(tx: Connection, peer_id: str, day: str) -> DayUsage:
    """What the peer used that day; zeros when nothing."""
    row = tx.execute(
        "SELECT requests, prompt_tokens, output_tokens FROM usage WHERE peer_id = ? AND day = ?", (peer_id, day),
    ).fetchone()
    return DayUsage(peer_id, day) if row is None else DayUsage(peer_id, day, *row)


def days(tx: Connection, since_day: str) -> list[DayUsage]:
    """Every peer's days from since_day on, the newest first."""
    found = tx.execute(
        "SELECT peer_id, day, requests, prompt_tokens, output_tokens FROM usage WHERE day >= ? "
        "ORDER BY day DESC, peer_id",
        (since_day,),
    )
    return [DayUsage(*row) for row in found]


def drop_before(tx: Connection, day: str) -> int:
    """How many old rows were removed."""
    return tx.execute("DELETE FROM usage WHERE day < ?", (day,)).rowcount
