"""Taking back or putting right what the agent did last: "undo that", "no, Tuesday".

Must not know how a request is chosen for, nor open questions.
"""

from dataclasses import replace

from node.agent.acting import Actor
from node.agent.approve import Approvals
from node.agent.drafts import Given
from node.agent.following import corrected_slot, in_its_week, last_call, nothing_else, rewritten, when_of
from node.agent.ports import AnswerKind
from node.agent.tools.errors import ToolError
from node.agent.turn import AgentParts, Said, Turn, personal, plain
from node.agent.undoing import undo_last

__all__ = ["Amendments"]


class Amendments:
    """Undoes and corrects for turns."""

    def __init__(self, parts: AgentParts, actor: Actor, approvals: Approvals) -> None:
        self._parts = parts
        self._actor = actor
        self._approvals = approvals

    async def undo(self, turn: Turn) -> Said:
        """Take the last write back."""
        try:
            undone = await undo_last(self._approvals, self._parts.clock.now(), turn.events)
        except ToolError as error:
            return personal(turn, f"{error} {error.hint}".strip(), AnswerKind.STOPPED, "it can't be taken back")
        if undone is None:
            return plain(turn, "There is nothing to take back.", AnswerKind.DONE, "nothing was written")
        if not undone.done:
            return personal(turn, undone.text, AnswerKind.DENIED, "you did not approve it")
        return personal(turn, undone.text, AnswerKind.DONE, "you took it back")

    def nothing_open(self, turn: Turn) -> Said:
        """The answer to "never mind" where nothing waits for one."""
        text = 'No question of mine is open. To take back the last thing I wrote, say "undo".'
        return plain(turn, text, AnswerKind.DECLINED, "nothing was open")

    def wrong(self, turn: Turn, *, asked: bool) -> Said | None:
        """The answer to "no, not Dana", which does not say who else; the last call stays the one to correct. None when
        there is nothing that it can be about. asked: a question of who is meant is open."""
        last = last_call(turn.conversation.history)
        if last is None and not asked:
            return None
        if last is not None:
            turn.called = {"draft": last.draft.as_json(), "key": last.key}
        text = 'Nothing was changed. Say what is right instead, such as "no, Tuesday" or "no, Priya".'
        return plain(turn, text, AnswerKind.ASKED, "it is not said what is right")

    async def correct(self, turn: Turn, words: str) -> Said | None:
        """The last call again with what these words replace; None when they replace nothing in it."""
        last = last_call(turn.conversation.history)
        if last is None:
            return None
        reader, now, draft = turn.reader, self._parts.clock.now(), last.draft
        before = reader.read(draft.text, draft.said_at)
        words = in_its_week(words, when_of(reader, draft), now, now, reader.locale)
        said = reader.read(words, now, names_expected=True)
        if skill := self._parts.skills.get(draft.name):
            text = rewritten(before, said)
            if text is None or not (skill.claims or skill.sure(reader.read(text, now))):
                return None     # what the skill would no longer take is a request of its own
            turn.instead_of = last.key
            return await self._actor.run_skill(turn, skill, replace(draft, text=text, said_at=now))
        tool = self._parts.registry.get(draft.name)
        slot = corrected_slot(tool.spec, said) if tool else None
        if tool is None or slot is None:
            return None
        inside = rewritten(before, said, added=False) if tool.spec.params[slot].reads == "text" else None
        if inside and nothing_else(said):       # a day within the words of a note
            turn.instead_of = last.key
            return await self._actor.call_tool(turn, replace(draft, text=inside, said_at=now))
        if reader.expected(tool.spec, slot, words, now, (), earlier=before.when) is None:
            return None
        turn.instead_of = last.key
        return await self._actor.call_tool(turn, replace(draft, given=(*draft.given, Given(slot, words, now, True))))
