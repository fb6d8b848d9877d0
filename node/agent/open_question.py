"""The agent's open question, and the owner's next message taken as its answer.

A message that is a request of its own leaves the question behind. Must not know how the ladder goes on then.
"""

from dataclasses import replace

from node.agent.acting import PEOPLE_SLOTS, Actor
from node.agent.approve import Approvals
from node.agent.choice import is_question
from node.agent.drafts import ANSWER_IN_WORDS, Draft, Given, drops, pick_choice
from node.agent.following import corrected_slot, correction, in_its_week, nothing_else, rewritten, wants_undo, when_of
from node.agent.gate import SHOWN_P
from node.agent.heavy import is_language
from node.agent.judging import Judging
from node.agent.ports import AnswerKind
from node.agent.saying import question
from node.agent.slots import Reading
from node.agent.thinking import Reasoner
from node.agent.turn import AgentParts, Said, Turn, asked, living_choices, personal, plain
from node.privacy.labels import Confidentiality, Integrity, Labeled

__all__ = ["OpenQuestion"]


class OpenQuestion:
    """Takes messages as answers to what the agent asked."""

    def __init__(
        self, parts: AgentParts, actor: Actor, approvals: Approvals, reasoner: Reasoner, judging: Judging,
    ) -> None:
        self._parts = parts
        self._approvals = approvals
        self._actor = actor
        self._reasoner = reasoner
        self._judging = judging

    async def resume(self, turn: Turn, draft: Draft) -> Said | None:
        """The draft with this message as its answer; None when the message is a new request."""
        text = turn.request.text
        labels = [self._judging.ability(name) for name in draft.choices] if draft.kind == "which" else draft.choices
        picked = pick_choice(text, labels)
        if picked == "no":
            await turn.conversation.keep_draft(None)
            return await self._dropped(turn)
        reading = turn.reader.read(draft.text, draft.said_at)
        match draft.kind:
            case "which":
                if picked is None:
                    return None
                await turn.conversation.keep_draft(None)
                if draft.choices[picked] == ANSWER_IN_WORDS:
                    return await self._reasoner.think(turn, draft.text, ())
                return await self._actor.act(turn, draft.choices[picked], reading)
            case "think":
                await turn.conversation.keep_draft(None)
                given = Labeled(text, Confidentiality.PERSONAL, Integrity.OWNER, "owner", ())
                return await self._reasoner.think(turn, draft.text, (("text", given),))
            case "tool" | "skill":
                named = correction(text) if draft.slot in PEOPLE_SLOTS else None
                answer = draft.choices[picked] if picked is not None and draft.choices else named or text
                doubtful = not self._fits(turn, draft, answer) or is_question(answer)
                if doubtful and await self._is_new(turn):
                    return None
                return await self._resume_call(turn, draft, answer)

    def corrected(self, turn: Turn, draft: Draft) -> Draft | None:
        """The draft put right by a message such as "no, Tuesday"; None for a message that replaces nothing said in it:
        that one may be the answer."""
        words = correction(turn.request.text)
        if words is None or draft.kind == "think" or drops(turn.request.text):
            return None
        reader, now = turn.reader, self._parts.clock.now()
        words = in_its_week(words, when_of(reader, draft), now, draft.said_at, reader.locale)
        said = reader.read(words, draft.said_at, names_expected=True)
        if not nothing_else(said):
            return None
        tool = self._parts.registry.get(draft.name) if draft.kind == "tool" else None
        before = reader.read(draft.text, draft.said_at)
        if tool and not (said.when.said or said.when.length):
            slot = corrected_slot(tool.spec, said)
            named = said.people.found or said.people.unclear if slot == draft.slot else before.people.found
            if slot is None or not named:       # who was asked for may be named like a correction: "no, Priya"
                return None
            return replace(draft, given=(*draft.given, Given(str(slot), words, now, True)))
        if text := rewritten(before, said, added=False):
            return self._narrowed(replace(draft, text=text), said)
        for number, one in enumerate(draft.given):
            if text := rewritten(reader.read(one.text, one.said_at), said, added=False):
                given = (*draft.given[:number], replace(one, text=text), *draft.given[number + 1 :])
                return replace(draft, given=given)
        return None

    def _narrowed(self, draft: Draft, said: Reading) -> Draft:
        """Without the choice between tools, where only one of them takes a person, and a person was corrected."""
        if draft.kind != "which" or not (said.people.found or said.people.unclear):
            return draft
        specs = [tool.spec for name in draft.choices if (tool := self._parts.registry.get(name))]
        names = [spec.name for spec in specs if PEOPLE_SLOTS.intersection(spec.params)]
        return Draft("tool", names[0], draft.text, draft.said_at, "") if len(names) == 1 else draft

    async def go_on(self, turn: Turn, draft: Draft) -> Said:
        """The draft's call again, after a correction; what is still missing is asked for, and the correction named."""
        skill = self._parts.skills.get(draft.name) if draft.kind == "skill" else None
        said = await (
            self._actor.run_skill(turn, skill, draft) if skill else self._actor.call_tool(turn, draft))
        if said.answer.kind is not AnswerKind.ASKED:
            return said
        return replace(said, text=replace(said.text, value=(
            f"All right: {correction(turn.request.text)}. {said.text.value}")))

    async def _dropped(self, turn: Turn) -> Said:
        """The question is gone. An "undo" may have been meant for what was written before: it stays, and is named."""
        text, reason = "All right, I dropped the question; nothing was done for it.", "you took it back"
        last = await self._approvals.last_written() if wants_undo(turn.request.text) else None
        if last is None:
            return plain(turn, text, AnswerKind.DECLINED, reason)
        text = f'{text} What I wrote last stays:\n{last.text}\nSay "undo" once more to take it back.'
        return personal(turn, text, AnswerKind.DECLINED, reason)

    async def _resume_call(self, turn: Turn, draft: Draft, answer: str) -> Said:
        now = self._parts.clock.now()
        if draft.kind == "skill":
            skill = self._parts.skills.get(draft.name)
            if skill is None:
                return plain(turn, "That skill is not here any more.", AnswerKind.DECLINED, "the skill is gone")
            return await self._actor.run_skill(turn, skill, draft.answered(answer, now))
        tool = self._parts.registry.get(draft.name)
        if tool and not self._fits(turn, draft, answer):
            offered = draft.choices or (await living_choices(tool)).get(draft.slot, ())
            return await asked(turn, draft, f"I did not understand that. {question(tool.spec, draft.slot, offered)}")
        return await self._actor.call_tool(turn, draft.answered(answer, now))

    def _fits(self, turn: Turn, draft: Draft, answer: str) -> bool:
        """True when the readers find the slot that was asked for in the answer."""
        if answer in draft.choices:
            return True
        reading = turn.reader.read(answer, self._parts.clock.now(), names_expected=True)
        tool = self._parts.registry.get(draft.name)
        if draft.kind == "skill" or tool is None or draft.slot not in tool.spec.params:
            people = bool(reading.people.found or reading.people.unclear)
            return reading.when.said if draft.slot == "when" else people if draft.slot == "people" else True
        return turn.reader.expected(tool.spec, draft.slot, answer, reading.now, draft.choices) is not None

    async def _is_new(self, turn: Turn) -> bool:
        """True when the message is a request of its own."""
        reading = turn.reader.read(turn.request.text, self._parts.clock.now())
        _, verdict = await self._judging.judge(turn.reader, reading)
        return verdict.p >= SHOWN_P or is_language(turn.request.text)
