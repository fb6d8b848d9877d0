"""Builds the agent of one node: its tools over the owner's data, its skills, and what it remembers.

Pure construction: nothing runs yet. Must not know how any part does its work.
"""

from collections.abc import Callable
from dataclasses import dataclass

import trio

from node.agent.gate import load_gate
from node.agent.lessons import Lessons
from node.agent.loop import Agent
from node.agent.ports import Thinker
from node.agent.readers.windows import Locale
from node.agent.records import StoredConversations, StoredJournal
from node.agent.skills.builtin import builtin_skills
from node.agent.tools.builtin import builtin_tools
from node.agent.tools.registry import Registry
from node.agent.turn import AgentParts, AgentSettings
from node.api.events import Events
from node.clock import Clock, Entropy
from node.daemon.lessons import LessonDesk, StoredLessons
from node.daemon.local_model import OwnModel
from node.daemon.messages import Messages
from node.daemon.owner import APPROVAL_DEADLINE_S, OwnerDesk
from node.daemon.owner_sources import Sources
from node.daemon.peers import Roster
from node.daemon.plan_permission import Permissions
from node.daemon.planning import EnginePlanner
from node.daemon.remembering import Absorb, RememberedConversations
from node.daemon.reminding import QuietHours, Reminding
from node.scan.client import ScanWorker
from node.settings import Settings
from node.store.database import Database
from node.zone import owner_zone
from offload.ports import Engine

__all__ = ["AgentBuilt", "build_agent"]


@dataclass(frozen=True, slots=True)
class AgentBuilt:
    """The agent and what it works with that has a life or a screen of its own."""

    agent: Agent
    registry: Registry
    reminding: Reminding
    lessons: LessonDesk


def build_agent(
    *, settings: Settings, sources: Sources, database: Database, roster: Roster, engine: Engine, scan: ScanWorker,
    thinker: Thinker, desk: OwnerDesk, messages: Messages, events: Events, notice: Callable[[str], None], clock: Clock,
    entropy: Entropy, new_id: Callable[[], str], keep_learning: Callable[[bool], None], absorb: Absorb,
) -> AgentBuilt:
    """The agent of this owner. notice: shows a line on the desktop. keep_learning: writes down whether it learns.
    absorb: lets the guard know each turn of a conversation.
    """
    zone = owner_zone(settings.sources.time_zone)
    reminding = Reminding(database, clock, QuietHours(settings.reminders.quiet, zone), events.publish, notice)
    registry = builtin_tools(
        calendars=sources.calendars, contacts=sources.contacts, notes=sources.notes, files=sources.files, peers=roster,
        clock=clock, reminders=reminding, postbox=messages,
    )

    async def names() -> tuple[str, ...]:
        contacts = await trio.to_thread.run_sync(sources.contacts.names)
        return tuple(dict.fromkeys((*contacts, *await messages.peers())))

    conversations = RememberedConversations(StoredConversations(database, clock, entropy), absorb)
    model = OwnModel(engine, new_id)
    lessons = Lessons(StoredLessons(database), scan, new_id, on=settings.agent.learn)
    agent = Agent(
        AgentParts(
            registry=registry,
            skills=builtin_skills(
                calendars=sources.calendars, notes=sources.notes, reminders=reminding, postbox=messages, model=model,
            ),
            embedder=scan, gate=load_gate(), names=names, thinker=thinker, approver=desk,
            journal=StoredJournal(database, clock), conversations=conversations,
            clock=clock, new_id=new_id, model=model, lessons=lessons,
            planner=EnginePlanner(engine, Permissions(database), new_id),
        ),
        AgentSettings(locale=Locale(zone), node_name=settings.node.name, approval_deadline_s=APPROVAL_DEADLINE_S),
    )
    return AgentBuilt(agent, registry, reminding, LessonDesk(database, lessons, keep_learning))
