"""The tools of version 1, put together over their sources. Must not know the loop."""

from collections.abc import Mapping

from node.agent.ports import Clock
from node.agent.tools.calendar import CalendarFree, CalendarList
from node.agent.tools.calendar_create import CalendarCreate
from node.agent.tools.clock import ClockNow
from node.agent.tools.contacts import ContactLookup
from node.agent.tools.files import FileRead, FileSearch
from node.agent.tools.messages import MessageRead, MessageSend, Postbox
from node.agent.tools.notes import NoteRead, NoteSearch, NoteWrite
from node.agent.tools.peers import PeerDirectory, PeersList
from node.agent.tools.registry import ReadTool, Registry, WriteTool
from node.agent.tools.reminders import ReminderBook, ReminderCancel, ReminderList, ReminderSet
from node.sources.ics import Calendars
from node.sources.notes import NoteFolder
from node.sources.vcf import Contacts

__all__ = ["builtin_tools"]


def builtin_tools(
    *, calendars: Calendars, contacts: Contacts, notes: NoteFolder, files: Mapping[str, NoteFolder],
    peers: PeerDirectory, clock: Clock, reminders: ReminderBook | None = None, postbox: Postbox | None = None,
) -> Registry:
    """All tools. files: folders of plain text by the name the owner calls them, made with suffixes=None. reminders,
    postbox: None on a node that has none."""
    reminding: tuple[ReadTool | WriteTool, ...] = () if reminders is None else (
        ReminderSet(reminders), ReminderList(reminders), ReminderCancel(reminders),
    )
    messaging: tuple[ReadTool | WriteTool, ...] = () if postbox is None else (
        MessageSend(postbox), MessageRead(postbox),
    )
    return Registry((
        ClockNow(),
        CalendarList(calendars), CalendarFree(calendars), CalendarCreate(calendars, contacts, clock),
        ContactLookup(contacts),
        NoteRead(notes), NoteSearch(notes), NoteWrite(notes),
        FileRead(files), FileSearch(files),
        PeersList(peers),
        *reminding, *messaging,
    ))
