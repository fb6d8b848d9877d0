"""Builds the queue of requests that wait for a better answer, and wires it to the thinker, the guard and the owner.

Pure construction: nothing runs yet. Must not know how any part does its work.
"""

import os
from dataclasses import dataclass

from node.api.events import Events
from node.clock import Clock, Entropy
from node.daemon.desktop import DesktopNotices, find_notifier
from node.daemon.drafting import DraftingThinker
from node.daemon.peers import Roster
from node.daemon.queue_desk import QueueDesk, QueueTeller
from node.daemon.thinker import Thinker
from node.daemon.upgrading import LaterConsent, PeerUpgrader
from node.intents.driver import IntentQueue
from node.settings import Settings
from node.store.database import Database

__all__ = ["QueueParts", "build_queue"]


@dataclass(frozen=True, slots=True)
class QueueParts:
    """What runs (queue, notices), what the agent thinks with, and the owner's side."""

    queue: IntentQueue
    notices: DesktopNotices
    drafting: DraftingThinker
    desk: QueueDesk


def build_queue(
    thinker: Thinker, consent: LaterConsent, *, database: Database, roster: Roster, settings: Settings, events: Events,
    clock: Clock, entropy: Entropy, expiry: Clock,
) -> QueueParts:
    """The queue over this thinker, which must ask this consent."""
    notices = DesktopNotices(find_notifier(settings.intents.notify, os.environ))
    upgrader = PeerUpgrader(thinker, consent, clock, roster.is_paired)
    queue = IntentQueue(database, upgrader, clock, entropy, QueueTeller(events, notices.tell, clock), expiry)
    drafting = DraftingThinker(
        thinker, queue, roster, clock, node_name=settings.node.name, policy=settings.intents.queue,
        keep_days=settings.intents.keep_days,
    )
    return QueueParts(queue, notices, drafting, QueueDesk(queue, database, clock, roster.name_of))
