"""Messages in a list: the agent's Postbox for tests."""

from collections.abc import Sequence
from datetime import UTC, datetime

from node.agent.tools.messages import ReceivedMessage


class MemoryPostbox:
    """Who can be written to, what was sent by id, what came in (newest first)."""

    def __init__(self, *peers: str) -> None:
        self.names = list(peers)
        self.own: set[str] = set()
        self.sent: dict[str, tuple[str, str, bool]] = {}
        self.inbox: list[ReceivedMessage] = []
        self.fails_at: int | None = None

    def receive(self, sender: str, text: str, at: datetime = datetime(2026, 3, 18, 7, 0, tzinfo=UTC)) -> None:
        self.inbox.insert(0, ReceivedMessage(sender, text, at))

    async def peers(self) -> Sequence[str]:
        return tuple(self.names)

    async def people(self) -> Sequence[str]:
        return tuple(name for name in self.names if name not in self.own)

    async def send_once(self, message_id: str, to: str, text: str, *, owners_words: bool) -> None:
        if self.fails_at is not None and len(self.sent) >= self.fails_at:
            raise RuntimeError("the node died here")
        self.sent.setdefault(message_id, (to, text, owners_words))

    async def received(self, *, limit: int, sender: str | None = None) -> Sequence[ReceivedMessage]:
        return [one for one in self.inbox if sender is None or one.sender == sender][:limit]
