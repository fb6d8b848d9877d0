"""Every service that the routes may reach, attached as the node starts. Must not know what a service does."""

from collections.abc import Callable
from dataclasses import dataclass, fields

from node.api.events import Events
from node.api.lesson_ports import Lessons
from node.api.net_views import Reachability
from node.api.ports import (
    Asking,
    Bench,
    Conversations,
    Evaluating,
    Following,
    Granting,
    Measuring,
    Messages,
    Models,
    NodeControl,
    Offloading,
    Pairing,
    Peers,
    Searching,
    Waking,
)
from node.api.privacy_ports import Auditing, Keys, Ledger, Privacy, Secrets
from node.api.queue_ports import Queue
from node.api.reminder_ports import Reminders

__all__ = ["Services"]


_STAYING = frozenset({"node", "keys", "locked", "events"})


@dataclass(slots=True)
class Services:
    """Everything the routes may reach; parts are None until they have started."""

    node: NodeControl
    keys: Keys | None = None
    locked: Callable[[], bool] = lambda: False
    measuring: Measuring | None = None
    events: Events | None = None
    queue: Queue | None = None
    reminders: Reminders | None = None
    lessons: Lessons | None = None
    waking: Waking | None = None
    reachability: Reachability | None = None
    asking: Asking | None = None
    pairing: Pairing | None = None
    peers: Peers | None = None
    granting: Granting | None = None
    following: Following | None = None
    offloading: Offloading | None = None
    ledger: Ledger | None = None
    privacy: Privacy | None = None
    secrets: Secrets | None = None
    auditing: Auditing | None = None
    models: Models | None = None
    bench: Bench | None = None
    evaluating: Evaluating | None = None
    messages: Messages | None = None
    searching: Searching | None = None
    conversations: Conversations | None = None

    def detach(self) -> None:
        """Take every service away that lives on opened data."""
        for one in fields(self):
            if one.name not in _STAYING:
                setattr(self, one.name, None)
