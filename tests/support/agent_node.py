"""A whole agent over real tools and real files in a folder, with memory ports around it: for tests of the loop."""

import shutil
from array import array
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import agent_bank as bank
import pytest
import trio
from agent_memory import Events, FixedClock, MemoryConversations, MemoryJournal, Owner, Thoughts
from memory_postbox import MemoryPostbox
from reminder_memory import MemoryReminders

from node.agent.gate import load_gate
from node.agent.loop import Agent
from node.agent.plan_port import Planner
from node.agent.ports import Answer, AskRequest, LocalModel
from node.agent.skills.builtin import builtin_skills
from node.agent.tools.builtin import builtin_tools
from node.agent.turn import AgentParts, AgentSettings
from node.sources.ics import Calendars
from node.sources.notes import NoteFolder
from node.sources.vcf import Contacts

NOTES = {
    "Roof repair": "Rafters are fine. The quote of the roofer is 2,400 euros, valid until May.",
    "Garden plan": "Tomatoes south, beans along the fence.",
    "Packing list": "Passport, charger, rain jacket.",
}


class StaticEmbedder:
    """The real static vectors in this process, without the scan worker."""

    _vectors: Any = None

    async def embed(self, texts: Sequence[str]) -> Sequence[Sequence[float]]:
        vectors = pytest.importorskip("search.vectors", reason="the static vectors are not installed")
        if StaticEmbedder._vectors is None:
            StaticEmbedder._vectors = vectors.StaticVectors()
        numbers = array("f", StaticEmbedder._vectors.embed(list(texts)))
        return [numbers[at : at + vectors.DIMENSIONS].tolist() for at in range(0, len(numbers), vectors.DIMENSIONS)]


class NoPeers:
    async def peers(self) -> Sequence[Any]:
        return ()


@dataclass
class World:
    """The agent and everything around it that a test looks at."""

    agent: Agent
    root: Path
    journal: MemoryJournal
    conversations: MemoryConversations
    owner: Owner
    thoughts: Thoughts
    clock: FixedClock
    events: Events
    reminders: MemoryReminders
    postbox: MemoryPostbox

    async def ask(self, text: str, **more: Any) -> Answer:
        return await self.agent.ask(AskRequest(text, **more), self.events)

    def calendar_text(self) -> str:
        return (self.root / "calendars" / "owner.ics").read_text()


def fill_folder(root: Path) -> None:
    """Calendars, contacts and notes of the bank's owner."""
    (root / "calendars").mkdir()
    for name in ("owner.ics", "dana.ics"):
        shutil.copy(bank.DATA / name, root / "calendars" / name)
    (root / "contacts").mkdir()
    cards = []
    for index, name in enumerate(bank.TOOLS["contacts"]):
        mail = f"person{index}@example.org"
        cards.append(f"BEGIN:VCARD\r\nVERSION:3.0\r\nFN:{name}\r\nN:;{name};;;\r\nEMAIL:{mail}\r\nTEL:+49 30 "
                     f"55501{index:02d}\r\nEND:VCARD\r\n")
    (root / "contacts" / "people.vcf").write_text("".join(cards), newline="")
    (root / "notes").mkdir()
    for title, text in NOTES.items():
        (root / "notes" / f"{title}.md").write_text(text)
    (root / "files").mkdir()


def world(
    root: Path, *, owner: Owner | None = None, thoughts: Thoughts | None = None, model: LocalModel | None = None,
    embedder: Any = None, journal: MemoryJournal | None = None, conversations: MemoryConversations | None = None,
    peers: Sequence[str] = ("dana", "home-pc", "priya-phone"), planner: Planner | None = None,
) -> World:
    """An agent over the folder; fill it once with fill_folder."""
    clock, reminders, postbox = FixedClock(bank.NOW), MemoryReminders(), MemoryPostbox(*peers)
    contacts = Contacts(root / "contacts")
    calendars = Calendars(root / "calendars", bank.ZONE, people=contacts.names)
    registry = builtin_tools(
        calendars=calendars, contacts=contacts, notes=NoteFolder(root / "notes"),
        files={"files": NoteFolder(root / "files", suffixes=None)}, peers=NoPeers(), clock=clock,
        reminders=reminders, postbox=postbox,
    )
    owner, thoughts = owner or Owner(), thoughts or Thoughts()
    journal, conversations = journal or MemoryJournal(), conversations or MemoryConversations()
    numbers = iter(range(1, 10_000))

    async def names() -> Sequence[str]:
        return await trio.to_thread.run_sync(contacts.names)

    skills = builtin_skills(
        calendars=calendars, notes=NoteFolder(root / "notes"), reminders=reminders, postbox=postbox, model=model,
    )
    parts = AgentParts(
        registry, skills, embedder or StaticEmbedder(), load_gate(), names, thoughts, owner, journal,
        conversations, clock, lambda: f"r{next(numbers)}", model, planner=planner,
    )
    agent = Agent(parts, AgentSettings(bank.LOCALE, "phone"))
    return World(agent, root, journal, conversations, owner, thoughts, clock, Events(), reminders, postbox)
