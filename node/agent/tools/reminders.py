"""The tools that set, list and cancel reminders. Must not know how a reminder is kept or told."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Protocol

from node.agent.ports import Effect, EffectValue, Origin
from node.agent.tools.errors import BadArgument, EffectRefused, NothingFound
from node.agent.tools.examples import examples_of
from node.agent.tools.registry import (
    Args,
    Param,
    Provenance,
    ToolAnswer,
    ToolContext,
    ToolSpec,
    UndoRecord,
    check_args,
    effect_value,
)
from node.agent.tools.wording import moment
from node.counting import counted
from node.privacy.labels import Confidentiality, Integrity, Labeled, Value

__all__ = ["KeptReminder", "ReminderBook", "ReminderCancel", "ReminderList", "ReminderSet"]

_SET = ToolSpec(
    name="reminder_set",
    description="Set a reminder to do something at a time",
    params={
        "text": Param("what to be reminded of", "text"),
        "when": Param("when to remind", "moment"),
    },
    required=("text", "when"),
    examples=(
        "remind me to water the plants at six", "set a reminder for Sunday at ten to phone grandma",
        "don't let me forget the parcel this evening", "give me a nudge in twenty minutes to check the oven",
        "I need a reminder about the rent on the first", "make sure I remember to take my pills at nine",
        "wake me with a reminder to pack at 7", "ping me in two hours about the laundry",
        "can you remind me on Thursday morning that the bins go out",
        *examples_of("reminder_set"),
    ),
    kind="write",
    cues=("remind", "reminder", "forget", "nudge", "ping me", "remember to"),
)
_LIST = ToolSpec(
    name="reminder_list",
    description="Show the reminders that are set",
    params={},
    required=(),
    examples=(
        "what reminders do I have", "show me my reminders", "list everything you will remind me of",
        "which reminders are still open", "are there any reminders for me", "what did I ask to be reminded about",
        "read out my reminders", "do I have a reminder set",
        *examples_of("reminder_list"),
    ),
    kind="read",
    cues=("reminders", "remind me of", "reminded"),
)
_CANCEL = ToolSpec(
    name="reminder_cancel",
    description="Cancel a reminder that is set",
    params={"text": Param("the reminder's words", "choice")},
    required=("text",),
    examples=(
        "cancel the reminder about the rent", "delete my reminder to phone grandma",
        "you need not remind me of the parcel any more", "take away the laundry reminder",
        "remove the reminder for the pills", "forget the reminder about the bins",
        "drop the reminder to water the plants", "turn off the oven reminder",
        *examples_of("reminder_cancel"),
    ),
    kind="destructive",
    cues=("cancel", "delete", "remove", "reminder"),
    objects=("reminder", "reminders", "remind", "reminding"),
)


@dataclass(frozen=True, slots=True)
class KeptReminder:
    """One reminder that waits. due: aware, UTC."""

    reminder_id: str
    text: str
    due: datetime


class ReminderBook(Protocol):
    """Where reminders are kept."""

    async def waiting(self) -> Sequence[KeptReminder]:
        """Those that wait, by their time."""
        ...

    async def put(self, reminder: KeptReminder) -> None:
        """Keep one. The same id again changes nothing."""
        ...

    async def take_out(self, reminder_id: str) -> bool:
        """Whether a waiting one was there to take out."""
        ...

    async def cancel(self, reminder_id: str) -> bool:
        """Whether a waiting one was there to cancel."""
        ...

    async def restore(self, reminder_id: str) -> bool:
        """Whether a cancelled one waits again."""
        ...


class ReminderSet:
    """A new reminder."""

    spec = _SET

    def __init__(self, book: ReminderBook) -> None:
        self._book = book

    async def choices(self, param: str) -> tuple[str, ...]:
        """Anything can be reminded of."""
        return ()

    async def plan(self, args: Args, ctx: ToolContext, *, idempotency_key: str) -> Effect:
        """The reminder in full. Raises BadArgument for a time that is past."""
        check_args(self.spec, args)
        text, when = str(args["text"]).strip(), args["when"]
        assert isinstance(when, datetime)
        when = when.astimezone(UTC)
        if when <= ctx.clock.now():
            raise BadArgument("when", f"{moment(when, ctx.zone)} is past. When should I remind you?")
        values = (
            effect_value("text", text, text, ctx),
            effect_value("when", when.isoformat(), moment(when, ctx.zone), ctx),
        )
        return Effect(self.spec.name, "write", f"Remind you on {moment(when, ctx.zone)}: {text}", values,
                      idempotency_key)

    async def apply(self, effect: Effect, idempotency_key: str) -> UndoRecord:
        """Keep it under the key."""
        due = datetime.fromisoformat(str(effect.value("when")))
        await self._book.put(KeptReminder(idempotency_key, str(effect.value("text")), due))
        return {"reminder_id": idempotency_key, "text": str(effect.value("text"))}

    async def undo(self, record: UndoRecord) -> str:
        """Take it out while it still waits."""
        if await self._book.take_out(str(record["reminder_id"])):
            return f"I will not remind you: {record['text']}"
        return f"That reminder is over already: {record['text']}"


class ReminderList:
    """All reminders that wait."""

    spec = _LIST

    def __init__(self, book: ReminderBook) -> None:
        self._book = book

    async def choices(self, param: str) -> tuple[str, ...]:
        """It takes nothing."""
        return ()

    async def run(self, args: Args, ctx: ToolContext) -> ToolAnswer:
        """A line each, by time."""
        check_args(self.spec, args)
        found = await self._book.waiting()
        if not found:
            text = "No reminder is set."
        else:
            lines = [f"- {moment(one.due, ctx.zone)}: {one.text}" for one in found]
            text = "\n".join([f"{counted(len(found), 'reminder')}:", *lines])
        values = tuple(Value(one.text, "PRIVATE") for one in found)
        label = Labeled(text, Confidentiality.PERSONAL, Integrity.LOCAL, "reminders", values)
        return ToolAnswer(label, [{"text": one.text, "due": one.due.isoformat()} for one in found])


class ReminderCancel:
    """One reminder less."""

    spec = _CANCEL

    def __init__(self, book: ReminderBook) -> None:
        self._book = book

    async def choices(self, param: str) -> tuple[str, ...]:
        """The words of those that wait."""
        return tuple(dict.fromkeys(one.text for one in await self._book.waiting())) if param == "text" else ()

    async def plan(self, args: Args, ctx: ToolContext, *, idempotency_key: str) -> Effect:
        """The one reminder with these words, the next one where several have them. Raises NothingFound."""
        check_args(self.spec, args)
        wanted = str(args["text"])
        found = next((one for one in await self._book.waiting() if one.text == wanted), None)
        if found is None:
            raise NothingFound(f"There is no reminder \"{wanted}\".")
        shown = moment(found.due, ctx.zone)
        source = Provenance(Origin.SOURCE, "your reminders")
        values = (
            effect_value("text", found.text, found.text, ctx, default=source),
            EffectValue("when", found.due.isoformat(), shown, Origin.SOURCE, "your reminders"),
            EffectValue("reminder_id", found.reminder_id, found.reminder_id, Origin.SOURCE, "your reminders"),
        )
        return Effect(self.spec.name, "destructive", f"Cancel the reminder for {shown}: {found.text}", values,
                      idempotency_key)

    async def apply(self, effect: Effect, idempotency_key: str) -> UndoRecord:
        """Cancel exactly this one. Raises EffectRefused when it was told meanwhile."""
        reminder_id, text = str(effect.value("reminder_id")), str(effect.value("text"))
        if not await self._book.cancel(reminder_id):
            raise EffectRefused(f"That reminder does not wait any more: {text}")
        return {"reminder_id": reminder_id, "text": text}

    async def undo(self, record: UndoRecord) -> str:
        """Let it wait again."""
        if await self._book.restore(str(record["reminder_id"])):
            return f"The reminder is back: {record['text']}"
        return f"That reminder is gone: {record['text']}"
