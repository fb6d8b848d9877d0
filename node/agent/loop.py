"""The agent: one request in, one answer out, by a ladder whose next rung is only climbed when the one before is unsure.

draft of the last message -> readers -> choice -> gate -> skill or tool (asking for what is missing, writes approved) ->
language work and questions to a model -> a plain no. Bounded: at most eight steps a request, none twice. Must not know
vectors, databases, peers or screens; all of them are ports.
"""

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime

from node.agent.acting import PEOPLE_SLOTS, Actor
from node.agent.amendments import Amendments
from node.agent.approve import Approvals
from node.agent.choice import Ranking, forbids, removes
from node.agent.conversation import Conversation
from node.agent.drafts import ANSWER_IN_WORDS, Draft, drops
from node.agent.errors import EmptyRequest, RequestTooLong
from node.agent.events import Answered, EventSink, Status
from node.agent.following import (
    correction,
    last_person,
    leans,
    only_refused,
    split_goals,
    wants_undo,
    with_name,
)
from node.agent.foreign import Foreign, understand
from node.agent.gate import Band, Verdict
from node.agent.heavy import Work, is_language, is_wordwork, lacks_means, needs_material, work_of
from node.agent.judging import Judging
from node.agent.material import Material
from node.agent.open_question import OpenQuestion
from node.agent.planning import MOST_TOOLS, FreePlan
from node.agent.ports import Answer, AnswerKind, AskRequest, ThinkJob, ThinkResult
from node.agent.readers.people import AddressBook
from node.agent.recalling import fill_as_before, recall
from node.agent.rehearsal import Rehearsed
from node.agent.repetition import RepeatedSteps, RepeatedText
from node.agent.saying import declined, which
from node.agent.skills.registry import Skills
from node.agent.slots import Reading, SlotReader
from node.agent.thinking import Reasoner, conclude
from node.agent.turn import AgentParts, AgentSettings, Said, Turn, asked, living_choices, plain
from node.agent.undoing import Undone, undo_last
from node.privacy.labels import Labeled, derive, owner_text

__all__ = ["REQUEST_CHARS", "Agent"]

REQUEST_CHARS = 4_000
"""What a request itself may hold; long texts come as attachments."""
_PLAUSIBLE = 0.6
"""In the middle band, what a model could answer or no node can do is only asked about from here on."""
_CERTAIN = 0.96      # where words ask for thoughts and the tool takes nothing that could be read in them: the time


class Agent:
    """The owner's agent on this node. One instance serves all conversations."""

    def __init__(self, parts: AgentParts, settings: AgentSettings) -> None:
        self._parts = parts
        self._settings = settings
        self.approvals = Approvals(
            parts.approver, parts.journal, parts.registry, deadline_s=settings.approval_deadline_s,
        )
        self._judging = Judging(parts)
        self._actor = Actor(parts, self.approvals)
        self._reasoner = Reasoner(parts)
        self._material = Material(parts)
        self._free_plan = FreePlan(parts, self._actor)
        self._open_question = OpenQuestion(
            parts, self._actor, self.approvals, self._reasoner, self._judging)
        self._amendments = Amendments(parts, self._actor, self.approvals)

    @property
    def skills(self) -> Skills:
        """What it can do in several steps."""
        return self._parts.skills

    async def start(self) -> int:
        """Finish what a crash interrupted; how many writes that were. Call once before the first ask."""
        return len(await self.approvals.finish_interrupted())

    async def ask(self, request: AskRequest, events: EventSink) -> Answer:
        """The answer; everything on the way goes to events, Answered last. Raises EmptyRequest, RequestTooLong,
        NoSuchConversation, and what the Thinker raises when a job can run nowhere."""
        text = request.text.strip()
        if not text:
            raise EmptyRequest
        if len(text) > REQUEST_CHARS and not request.attachments:
            raise RequestTooLong
        parts = self._parts
        request = replace(request, text=text, request_id=request.request_id or parts.new_id())
        conversation = await Conversation.open(request.conversation_id, parts.conversations, parts.clock)
        await conversation.heard(owner_text(text))
        reader = SlotReader(AddressBook(await parts.names()), self._settings.locale)
        steps = RepeatedSteps(self._settings.max_steps)
        turn = Turn(request, events, conversation, reader, steps, self._settings.node_name)
        said = await self._turn(turn)
        answer = replace(
            said.answer, text=said.text.value, conversation_id=conversation.conversation_id,
            tools_used=tuple(turn.used),
        )
        await conversation.said(said.text, answer, turn.called)
        await events.emit(Answered(answer))
        return answer

    async def undo(self) -> Undone | None:
        """Take back the owner's last action, at an order that is its own approval. Raises ToolError."""
        return await undo_last(self.approvals, self._parts.clock.now())

    async def finish(self, job: ThinkJob, result: ThinkResult, watch: RepeatedText) -> Answer:
        """Keep the answer of a model's job that a restart had cut off; what was asked is in its conversation already.

        Raises NoSuchConversation.
        """
        conversation = await Conversation.open(job.conversation_id, self._parts.conversations, self._parts.clock)
        said = conclude(job, result, watch)
        answer = replace(said.answer, text=said.text.value, conversation_id=conversation.conversation_id)
        await conversation.said(said.text, answer)
        return answer

    async def rehearse(self, text: str, now: datetime) -> Rehearsed | None:
        """What the ladder alone would call for this request at that moment; nothing is run. None when a skill takes
        it."""
        reader = SlotReader(AddressBook(await self._parts.names()), self._settings.locale)
        reading = reader.read(text, now)
        if self._parts.skills.sure(reading) is not None:
            return None
        _, verdict = await self._judging.judge(reader, reading)
        if verdict.band is not Band.ACT:
            return Rehearsed("", {})
        name = verdict.best[0]
        tool = self._parts.registry.get(name)
        if tool is None or self._parts.skills.taking(name, reading) is not None:
            return None
        filled = reader.fill(tool.spec, reading, await living_choices(tool))
        filled = fill_as_before(await recall(self._parts.lessons, text), tool.spec, filled, reading)
        if filled.missing or filled.unclear:
            return Rehearsed("", {})
        return Rehearsed(name, {slot: value.value for slot, value in filled.values.items()})

    # ------------------------------------------------------------ the ladder

    async def _turn(self, turn: Turn) -> Said:
        stored = turn.conversation.draft
        draft = Draft.from_json(stored) if stored else None
        refused = only_refused(turn.request.text) and not drops(turn.request.text)
        if refused and (draft is None or draft.slot in PEOPLE_SLOTS) and (
                said := self._amendments.wrong(turn, asked=draft is not None)):
            return said
        if draft and not turn.request.attachments and (changed := self._open_question.corrected(turn, draft)):
            await turn.conversation.keep_draft(None)
            if changed.kind != "which":
                return await self._open_question.go_on(turn, changed)
            return await self._goals(replace(turn, request=replace(turn.request, text=changed.text)), turn)
        if draft and not turn.request.attachments and (said := await self._open_question.resume(turn, draft)):
            return said
        await turn.conversation.keep_draft(None)
        if wants_undo(turn.request.text):
            return await self._amendments.undo(turn)
        if drops(turn.request.text) and not turn.request.attachments:
            return self._amendments.nothing_open(turn)
        if (words := correction(turn.request.text)) and (said := await self._amendments.correct(turn, words)):
            return said
        foreign = understand(text := turn.request.text, turn.reader.dates_at(self._parts.clock.now()))
        if foreign and not turn.request.attachments:
            if not foreign.english:
                return await self._not_served(turn, foreign)
            text = foreign.english
            await turn.events.emit(Status(f"Read as English: {text}"))
        text = with_name(text, last_person(turn.conversation.history, turn.reader.book))
        return await self._goals(replace(turn, request=replace(turn.request, text=text)), turn)

    async def _not_served(self, turn: Turn, foreign: Foreign) -> Said:
        """A request in another language that the agent can't read: a model's to answer, where it needs no tool."""
        if not foreign.apology:
            return await self._reasoner.think(turn, turn.request.text, ())
        return plain(turn, foreign.apology, AnswerKind.DECLINED, f"{foreign.language} is served in part only")

    async def _goals(self, turn: Turn, whole: Turn) -> Said:
        """One request after the other, when a message holds several that each stand for themselves."""
        parts = split_goals(turn.request.text)
        several = len(parts) > 1 and not turn.request.attachments
        alone = several and await self._stand_alone(turn, parts)
        if several and (not alone or any(map(leans, parts[1:]))) and (said := await self._plan_parts(turn, parts)):
            whole.called = turn.called
            return said
        if not alone:
            said = await self._fresh(turn)
            whole.called = turn.called
            return said
        done: list[Said] = []
        for number, part in enumerate(parts, 1):
            request = replace(turn.request, text=part, request_id=f"{turn.request.request_id}.{number}")
            one = replace(turn, request=request, called=None)
            done.append(await self._fresh(one))
            whole.called = one.called
            if done[-1].answer.kind is AnswerKind.ASKED:
                break   # its answer comes next; what was not begun is said
        left = parts[len(done):]
        text = "\n\n".join([*(said.text.value for said in done), *(f"Not begun yet: {part}" for part in left)])
        sources = tuple(dict.fromkeys(source for said in done for source in said.answer.sources))
        effects = tuple(effect for said in done for effect in said.answer.effects)
        answer = replace(done[-1].answer, sources=sources, effects=effects)
        return Said(derive(text, [said.text for said in done], source="kith"), answer)

    async def _stand_alone(self, turn: Turn, parts: Sequence[str]) -> bool:
        """Whether each part is a request that a tool or skill surely answers, and no skill takes them all together."""
        now = self._parts.clock.now()
        if self._parts.skills.sure(turn.reader.read(turn.request.text, now)) is not None:
            return False
        for part in parts:
            reading = turn.reader.read(part, now)
            if self._parts.skills.sure(reading) is not None:
                continue
            if (await self._judging.judge(turn.reader, reading))[1].band is not Band.ACT:
                return False
        return True

    async def _fresh(self, turn: Turn) -> Said:
        text = turn.request.text
        if turn.request.attachments:
            return await self._reasoner.think(turn, text, turn.request.attachments)
        reading = turn.reader.read(text, self._parts.clock.now())
        if (skill := self._parts.skills.sure(reading)) and not forbids(text):
            return await self._actor.run_skill(turn, skill, Draft("skill", skill.name, text, reading.now, ""))
        if told := await self._material.told(turn, reading):
            return told
        if is_language(text):
            messages = await self._material.messages(turn, reading)
            if isinstance(messages, Said):
                return messages
            if messages:
                return await self._reasoner.think(turn, text, (messages,))
            material = await self._material.named(turn, reading)
            return await self._think(turn, reading, material or ())
        ranking, verdict = await self._judging.judge(turn.reader, reading)
        work = work_of(text, has_material=False)
        best = self._parts.registry.get(ranking.tools[0].name) if ranking.tools else None
        complete = best is not None and (
            ranking.tools[0].evidence >= 1.0 or (not best.spec.required and verdict.p >= _CERTAIN))
        if verdict.band is Band.ACT and (complete or not is_wordwork(text)):
            return await self._actor.act(turn, verdict.best[0], reading)
        if verdict.band is Band.ASK and (said := await self._plan_one(turn, reading, ranking)):
            return said
        if verdict.band is Band.ASK and verdict.p >= (_PLAUSIBLE if work is Work.THINK or lacks_means(text) else 0.0):
            return await self._ask_which(turn, reading, verdict, work)
        if work is Work.THINK and not ranking.vetoed:
            return await self._think(turn, reading, ())
        abilities = [self._judging.ability(tool.name) for tool in ranking.tools[:3]]
        text = declined(work, abilities, vetoed=ranking.vetoed, forbidden=forbids(text))
        return plain(turn, text, AnswerKind.DECLINED, f"no tool fits (p {verdict.p:.2f})")

    async def _plan_one(self, turn: Turn, reading: Reading, ranking: Ranking) -> Said | None:
        """A model's plan for a request that may mean several things; None when a skill takes it, or none may plan."""
        names = [tool.name for tool in ranking.tools[:MOST_TOOLS]]
        if self._parts.planner is None or ranking.vetoed or self._parts.skills.taking(names[0], reading):
            return None
        return await self._free_plan.plan(turn, [reading], names)

    async def _plan_parts(self, turn: Turn, parts: Sequence[str]) -> Said | None:
        """A model's plan for several requests that do not each stand for themselves; None when a skill surely takes
        them, one removes something or is language work, or none may plan."""
        now = self._parts.clock.now()
        if self._parts.planner is None or self._parts.skills.sure(turn.reader.read(turn.request.text, now)):
            return None
        if any(removes(part) or is_language(part) for part in parts):
            return None
        names: list[str] = []
        readings: list[Reading] = []
        beyond: list[str] = []
        for part in parts:
            reading = turn.reader.read(part, now)
            ranking, verdict = await self._judging.judge(turn.reader, reading)
            if verdict.band is Band.DECLINE:
                beyond.append(part)
                continue
            readings.append(reading)
            names.insert(len(readings) - 1, verdict.best[0])
            names += [tool.name for tool in ranking.tools[1:MOST_TOOLS]]
        if not readings:
            return None
        return await self._free_plan.plan(turn, readings, list(dict.fromkeys(names)), beyond=beyond)

    async def _think(self, turn: Turn, reading: Reading, material: Sequence[tuple[str, Labeled]]) -> Said:
        if not material and needs_material(reading.text) and not turn.conversation.history:
            draft = Draft("think", "", reading.text, reading.now, "material")
            text = "Which text? Paste it as your answer, or give a file along: kith ask '...' FILE"
            return await asked(turn, draft, text)
        return await self._reasoner.think(turn, reading.text, material)

    async def _ask_which(self, turn: Turn, reading: Reading, verdict: Verdict, work: Work) -> Said:
        names = (*verdict.best, ANSWER_IN_WORDS) if work is Work.THINK else verdict.best
        draft = Draft("which", "", reading.text, reading.now, "tool", names)
        said = await asked(turn, draft, which([self._judging.ability(name) for name in names]))
        return Said(said.text, replace(said.answer, reason=f"more than one thing could be meant (p {verdict.p:.2f})"))
