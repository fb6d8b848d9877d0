"""Taking back or putting right what the agent did last: "undo that", "no, Tuesday".

Must not know how a request is chosen for, nor open questions.
"""

from dataclasses import replace

from node.agent.acting import Actor
from node.agent.approve import Approvals
from node.agent.following import corrected_slot, last_call, rewritten
from node.agent.ports import AnswerKind
from node.agent.tools.errors import ToolError
from node.agent.turn import AgentParts, Said, Turn, personal, plain

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
            sentence = await self._approvals.undo_last()
        except ToolError as error:
            return personal(turn, f"{error} {error.hint}".strip(), AnswerKind.STOPPED, "it can't be taken back")
        if sentence is None:
            return plain(turn, "There is nothing to take back.", AnswerKind.DONE, "nothing was written")
        return personal(turn, sentence, AnswerKind.DONE, "you took it back")

    def nothing_open(self, turn: Turn) -> Said:
        """The answer to "never mind" where nothing waits for one."""
        text = 'No question of mine is open. To take back the last thing I wrote, say "undo".'
        return plain(turn, text, AnswerKind.DECLINED, "nothing was open")

    async def correct(self, turn: Turn, words: str) -> Said | None:
        """The last call again with what these words replace; None when they replace nothing in it."""
        last = last_call(turn.conversation.history)
        if last is None:
            return None
        now = self._parts.clock.now()
        said = turn.reader.read(words, now, names_expected=True)
        before = turn.reader.read(last.draft.text, last.draft.said_at)
        if skill := self._parts.skills.get(last.draft.name):
            text = rewritten(before, said)
            if text is None:
                return None
            turn.instead_of = last.key
            return await self._actor.run_skill(turn, skill, replace(last.draft, text=text, said_at=now))
        tool = self._parts.registry.get(last.draft.name)
        slot = corrected_slot(tool.spec, said) if tool else None
        if tool is None or slot is None:
            return None
        if turn.reader.expected(tool.spec, slot, words, now, (), earlier=before.when) is None:
            return None
        turn.instead_of = last.key
        return await self._actor.call_tool(turn, replace(last.draft, slot=slot).answered(words, now))
