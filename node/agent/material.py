"""What language work is about where the owner only names it: a note, a file, the messages that came in.

It is read by its tool, here, and goes along with its label. Must not know models, nor where the work is done.
"""

import re
from collections.abc import Mapping
from datetime import datetime

from node.agent.events import ToolFinished, ToolStarted
from node.agent.heavy import is_language
from node.agent.ports import Answer, AnswerKind
from node.agent.readers.closed import pick
from node.agent.readers.numbers import fold
from node.agent.readers.past_times import past_periods
from node.agent.readers.senders import Written, written
from node.agent.slots import Reading
from node.agent.tools.errors import ToolError
from node.agent.tools.registry import Args, ReadTool, ToolAnswer, ToolContext
from node.agent.tools.wording import moment
from node.agent.turn import AgentParts, Said, Turn, living_choices, personal
from node.privacy.labels import Labeled

__all__ = ["Material"]

_READERS_OF = {"note_read": ("note", "notes"), "file_read": ("file", "document")}
"""Tools whose result can be material, and the words that must be said for it."""
_MESSAGES = "message_read"
_READING = re.compile(r"\b(?:summar\w*|sum\s+up|tl;?dr|translate|explain|simplify|shorten)\b")
_OF_MESSAGES = re.compile(
    r"\b(?:my|all|recent|new|unread|last|latest|newest)\s+(?:\w+\s+)?(?:messages?|inbox)\b|\bmessages?\s+(?:from|by|of|i\s+got|that\s+came)\b|\b(?:the|my)\s+inbox\b")
_LAST = re.compile(r"\b(?:last|latest|newest)\s+message\b")


class Material:
    """Reads what a request for language work names."""

    def __init__(self, parts: AgentParts) -> None:
        self._parts = parts

    async def named(self, turn: Turn, reading: Reading) -> tuple[tuple[str, Labeled], ...] | None:
        """The note or file that language work names ("summarise the note Roof repair"), read; None when it names
        none."""
        if not is_language(reading.text):
            return None
        words = set(fold(reading.text).replace(".", " ").replace(",", " ").split())
        for name, nouns in _READERS_OF.items():
            tool = self._parts.registry.get(name)
            if not isinstance(tool, ReadTool) or not words.intersection(nouns):
                continue
            slot = tool.spec.required[0]
            found = pick(reading.text, (await living_choices(tool)).get(slot, ()))
            if not found or found.others or turn.steps.step(name, found.value):
                continue
            answer = await self._read(turn, tool, {slot: found.value})
            if isinstance(answer, ToolError):
                continue
            return ((found.value, answer.text),)
        return None

    async def messages(self, turn: Turn, reading: Reading) -> tuple[str, Labeled] | Said | None:
        """The messages that language work is about ("summarise my messages"), the newest, of the one sender or the time
        that is named; what to say where there are none; None when it is about something else, or they stand in it."""
        low = fold(reading.text)
        inside = ":" in low or '"' in low or "\n" in low
        if inside or not _READING.search(low):
            return None
        by = None if _OF_MESSAGES.search(low) else written(low, work=True)
        if by is None and not _OF_MESSAGES.search(low):
            return None
        return await self._messages(turn, reading, by)

    async def told(self, turn: Turn, reading: Reading) -> Said | None:
        """The messages of somebody as they are, where the request asks what he wrote; None when it asks something
        else."""
        by = written(fold(reading.text), work=False)
        found = await self._messages(turn, reading, by) if by else None
        if found is None or isinstance(found, Said):
            return found
        source, text = found
        reason = f"{_MESSAGES} runs on this device"
        return Said(text, Answer("", AnswerKind.DONE, turn.node_name, reason, "", sources=(source,)))

    async def _messages(self, turn: Turn, reading: Reading, by: Written | None) -> tuple[str, Labeled] | Said | None:
        """by: who wrote them, where only what somebody wrote was spoken of; None when that is nobody here."""
        low, tool = fold(reading.text), self._parts.registry.get(_MESSAGES)
        if not isinstance(tool, ReadTool):
            return None
        filled = turn.reader.fill(tool.spec, reading, await living_choices(tool))
        sender = filled.values.get("sender")
        people = [*reading.people.names, *(one.said for one in reading.people.unclear)]
        if by is not None:
            if sender is not None and by.who not in fold(f"{sender.value} {' '.join(people)}"):
                sender = None
            people = [name for name in people if by.who in fold(name)] or [by.who.title()] * by.to_me
            if sender is None and not people:
                return None
        if sender is None and people:
            person = people[0]
            text = f"No paired device goes by {person}, so there is nothing to read. kith peers lists who is paired."
            return personal(turn, text, AnswerKind.DECLINED, "no messages")
        answer = await self._read(turn, tool, {"sender": str(sender.value)} if sender else {})
        if isinstance(answer, ToolError):
            return personal(turn, f"{answer} {answer.hint}", AnswerKind.STOPPED, "the messages could not be read")
        periods = past_periods(low, reading.when, reading.now)
        found = [one for one in (answer.data if isinstance(answer.data, list) else []) if isinstance(one, Mapping)]
        kept = [one for one in found if periods is None or any(
            begin <= datetime.fromisoformat(str(one["received"])) < end for begin, end in periods)]
        if _LAST.search(low):
            kept = kept[:1]
        if not kept:
            text = "There are no messages to read for that: none came in" + (" then." if found else ".")
            return personal(turn, text, AnswerKind.DONE, "no messages")
        zone = turn.reader.locale.zone
        lines = [f"{one['from']}, {moment(datetime.fromisoformat(str(one['received'])), zone)}: {one['text']}"
                 for one in kept]
        label = answer.text
        return "messages", Labeled("\n".join(lines), label.confidentiality, label.integrity, label.source, label.values)

    async def _read(self, turn: Turn, tool: ReadTool, args: Args) -> ToolAnswer | ToolError:
        name = tool.spec.name
        turn.used.append(name)
        await turn.events.emit(ToolStarted(name, {slot: str(value) for slot, value in args.items()}))
        try:
            answer = await tool.run(args, ToolContext(
                self._parts.clock, turn.reader.locale.zone, turn.request.request_id))
        except ToolError as error:
            await turn.events.emit(ToolFinished(name, False, str(error)))
            return error
        await turn.events.emit(ToolFinished(name, True, ""))
        return answer
