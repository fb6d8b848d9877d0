"""The skills that come with a node, put together over their sources. Must not know the loop."""

from node.agent.ports import LocalModel
from node.agent.skills.book_meeting import BookMeeting
from node.agent.skills.daily_brief import DailyBrief
from node.agent.skills.draft_reply import DraftReply
from node.agent.skills.find_then_read import FindThenRead
from node.agent.skills.plan_errands import PlanErrands
from node.agent.skills.registry import Skill, Skills
from node.agent.skills.see_availability import SeeAvailability
from node.agent.skills.tell_everyone import TellEveryone
from node.agent.skills.work_out import WorkOut
from node.agent.tools.messages import Postbox
from node.agent.tools.reminders import ReminderBook
from node.sources.ics import Calendars
from node.sources.notes import NoteFolder

__all__ = ["builtin_skills"]


def builtin_skills(
    *, calendars: Calendars, notes: NoteFolder, reminders: ReminderBook, postbox: Postbox, model: LocalModel | None,
) -> Skills:
    """All of them, the surest first. model: words drafts; None where there is none."""
    found: tuple[Skill, ...] = (
        WorkOut(), DailyBrief(calendars, reminders, postbox), FindThenRead(notes), DraftReply(postbox, model),
        TellEveryone(notes, postbox), PlanErrands(calendars), BookMeeting(calendars), SeeAvailability(calendars),
    )
    return Skills(found)
