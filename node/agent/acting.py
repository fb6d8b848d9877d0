"""Doing what was chosen: a tool with its arguments, or a skill; asking for the one thing that is missing.

Must not know how the choice was made, nor models.
"""

from collections.abc import Sequence
from dataclasses import replace

from node.agent.approve import Approvals, Result
from node.agent.calling import Call, Called, Caller, effect_key
from node.agent.checking import cautions, check_call, once_only, refusal, task_for
from node.agent.copy_grammar import Copyist
from node.agent.drafts import Draft, Given
from node.agent.events import Status
from node.agent.ports import Answer, AnswerKind, Origin
from node.agent.readers.people import People
from node.agent.readers.windows import When
from node.agent.recalling import fill_as_before, learn_from, recall
from node.agent.saying import question, who
from node.agent.skills.registry import Skill, SkillAsk, SkillCall, SkillSay
from node.agent.slots import Filled, Reading, SlotValue
from node.agent.tools.errors import AmbiguousName, BadArgument, ToolError
from node.agent.tools.registry import ReadTool, ToolSpec, WriteTool
from node.agent.turn import AgentParts, Said, Turn, asked, living_choices, personal, plain
from node.privacy.flow import Task, Verdict

__all__ = ["PEOPLE_SLOTS", "Actor"]

PEOPLE_SLOTS = frozenset({"people", "attendees", "to", "name"})


class Actor:
    """Runs tools and skills for turns."""

    def __init__(self, parts: AgentParts, approvals: Approvals) -> None:
        self._parts = parts
        self._approvals = approvals

    async def act(self, turn: Turn, name: str, reading: Reading) -> Said:
        """Run the tool, or the skill that takes its requests over. name may be a skill's."""
        skill = self._parts.skills.get(name) or self._parts.skills.taking(name, reading)
        if skill:
            return await self.run_skill(turn, skill, Draft("skill", skill.name, reading.text, reading.now, ""))
        return await self.call_tool(turn, Draft("tool", name, reading.text, reading.now, ""))

    # ------------------------------------------------------------ tools

    async def call_tool(self, turn: Turn, draft: Draft) -> Said:
        """Call the draft's tool with what its words and the answers since give; ask for the first thing missing."""
        tool = self._parts.registry.get(draft.name)
        if tool is None:
            return plain(turn, "That tool is not here any more.", AnswerKind.DECLINED, "the tool is gone")
        spec, caller = tool.spec, self._caller(turn)
        reading = turn.reader.read(draft.text, draft.said_at)
        choices = await living_choices(tool)
        filled = turn.reader.fill(spec, reading, choices)
        filled = fill_as_before(await recall(self._parts.lessons, reading.text), spec, filled, reading)
        if filled.unclear and not any(one.slot in PEOPLE_SLOTS for one in draft.given):
            slot = next((name for name in spec.params if name in PEOPLE_SLOTS), "")
            unclear = filled.unclear[0]
            if slot:
                return await asked(turn, replace(draft, slot=slot, choices=unclear.candidates), who(unclear))
        values, earlier = dict(filled.values), reading.when
        for one in draft.given:
            value = self._given(turn, spec, one, choices.get(one.slot, ()), earlier)
            answered = turn.reader.read(one.text, one.said_at).when
            earlier = answered.over(earlier) if answered.said else earlier
            if isinstance(value, People):
                return await asked(turn, replace(draft, slot=one.slot, given=draft.given[:-1]), who(value.unclear[0]))
            if value and spec.params[one.slot].reads == "moment":     # "at 8 for an hour"
                also = turn.reader.fill(spec, turn.reader.read(one.text, one.said_at), choices).values
                values |= {name: also[name] for name in also if spec.params[name].reads == "minutes"}
            if value:
                values[one.slot] = value if one.replaces else _joined(values.get(one.slot), value)
        filled = Filled(values, tuple(name for name in spec.required if name not in values), (), filled.offered)
        filled = await caller.second_reading(spec, filled, reading)
        if filled.missing:
            slot = filled.missing[0]
            offered = filled.offered.get(slot, ())
            words = question(spec, slot, offered)
            if spec.params[slot].reads in {"moment", "window"} and not draft.given and reading.when.doubt:
                words = f"{reading.when.doubt} {words}"
            return await asked(turn, replace(draft, slot=slot, choices=offered), words)
        await turn.conversation.keep_draft(None)
        return await self._run(turn, tool, caller.call_of(filled), draft, task_for(draft.name))

    async def run_planned(self, turn: Turn, tool: ReadTool | WriteTool, call: Call, draft: Draft, task: Task) -> Said:
        """Run a call that a model chose for a task that was fixed before. Nothing is learnt from it: its values are not
        all read in the draft's words."""
        return await self._run(turn, tool, call, draft, task, learn=False)

    @staticmethod
    def _given(
        turn: Turn, spec: ToolSpec, one: Given, choices: Sequence[str], earlier: When,
    ) -> SlotValue | People | None:
        if one.slot not in spec.params:
            return None
        if one.text in choices:
            return SlotValue(one.text, one.text, Origin.CHOSEN, "your answer", certain=True)
        return turn.reader.expected(spec, one.slot, one.text, one.said_at, choices, earlier=earlier)

    async def _run(
        self, turn: Turn, tool: ReadTool | WriteTool, call: Call, draft: Draft, task: Task, *, learn: bool = True,
    ) -> Said:
        name = tool.spec.name
        ruling = check_call(tool.spec, call.args, call.provenance, task, turn.conversation.label.label)
        if ruling.verdict is Verdict.REFUSE:
            why = refusal(ruling.reasons)
            return plain(turn, f"I will not use {name} for this: {why}.", AnswerKind.DECLINED, why)
        if reason := turn.steps.step(name, repr(sorted(call.args.items()))):
            return plain(turn, f"I stopped: {reason}.", AnswerKind.STOPPED, reason)
        turn.used.append(name)
        turn.called = {"draft": draft.as_json(), "key": ""}     # what was refused can be corrected, too
        caller, request = self._caller(turn), turn.request
        try:
            if isinstance(tool, WriteTool):
                if call.before:
                    await turn.events.emit(Status(call.before))
                key = effect_key(request.request_id, name, turn.steps.taken)
                called = await caller.write(
                    tool, call, key, request.request_id, turn.events, dry_run=request.dry_run,
                    cautions=cautions(ruling) + once_only(tool.spec, draft.text),
                    replaces=await self._approvals.in_place(turn.instead_of),
                )
                reading = turn.reader.read(draft.text, draft.said_at)
                lessons = self._parts.lessons if learn else None
                await learn_from(lessons, draft, reading, name, called.applied, call.provenance)
            else:
                called = await caller.read(tool, call, request.request_id, turn.events)
        except AmbiguousName as error:
            slot = next((one for one in tool.spec.params if isinstance(call.args.get(one), str)), "")
            return await asked(turn, replace(draft, kind="tool", slot=slot, choices=error.choices), f"{error}"
                f" {error.hint}")
        except BadArgument as error:
            if error.name in tool.spec.params and draft.kind == "tool":
                return await asked(turn, replace(draft, slot=error.name), str(error))
            return personal(turn, f"{error} {error.hint}", AnswerKind.STOPPED, "the tool refused an argument")
        except ToolError as error:
            return personal(turn, f"{error} {error.hint}", AnswerKind.STOPPED, f"{name} could not do it")
        said = _called(turn, called, call, name)
        turn.called = {"draft": draft.as_json(), "key": _key_of(called)}
        return await self._replaced(turn, said) if called.applied and said.answer.kind is AnswerKind.DONE else said

    async def _replaced(self, turn: Turn, said: Said) -> Said:
        """Take back the write that this one replaces, now that it is in place; say so either way."""
        if not turn.instead_of:
            return said
        try:
            sentence = await self._approvals.undo(turn.instead_of)
        except ToolError as error:
            sentence = str(error)
        text = f"{said.text.value}\n{sentence}" if sentence else said.text.value
        return replace(said, text=replace(said.text, value=text))

    # ------------------------------------------------------------ skills

    async def run_skill(self, turn: Turn, skill: Skill, draft: Draft) -> Said:
        """The skill's next outcome: a question, something to say, or one approved write."""
        if reason := turn.steps.step(skill.name, repr(draft.given)):
            return plain(turn, f"I stopped: {reason}.", AnswerKind.STOPPED, reason)
        turn.used.append(skill.name)
        reading = turn.reader.read(draft.text, draft.said_at)
        answers = {
            one.slot: turn.reader.read(one.text, one.said_at, names_expected=one.slot in PEOPLE_SLOTS)
            for one in draft.given
        }
        freed = await self._approvals.times_of(turn.instead_of) if turn.instead_of else ()
        outcome = await skill.run(SkillCall(reading, answers, turn.reader, turn.events, freed))
        if isinstance(outcome, SkillAsk):
            doubt = reading.when.doubt if outcome.slot == "when" and not draft.given else ""
            words = f"{doubt} {outcome.question}".strip()
            return await asked(turn, replace(draft, slot=outcome.slot, choices=outcome.choices), words)
        await turn.conversation.keep_draft(None)
        if isinstance(outcome, SkillSay):
            reason = outcome.reason or f"{skill.name} runs on this device"
            answer = Answer("", AnswerKind.DONE, turn.node_name, reason, "", sources=(outcome.text.source,))
            turn.called = {"draft": draft.as_json(), "key": ""}
            return Said(outcome.text, answer)
        tool = self._parts.registry.get(outcome.tool)
        if tool is None:
            return plain(turn, "I cannot do that: the tool for it is not here"
                               ".", AnswerKind.DECLINED, f"no {outcome.tool}")
        call = Call(outcome.args, outcome.provenance, outcome.options, outcome.before, outcome.after)
        return await self._run(turn, tool, call, draft, task_for(skill.name, skill))

    def _caller(self, turn: Turn) -> Caller:
        copyist = Copyist(self._parts.model) if self._parts.model else None
        return Caller(turn.reader, self._parts.clock, self._approvals, copyist)


def _key_of(called: Called) -> str:
    return called.applied.effect.idempotency_key if called.applied is not None else ""


def _joined(before: SlotValue | None, answer: SlotValue) -> SlotValue:
    """Names of an answer are added to those that were clear; anything else is replaced."""
    if before and isinstance(before.value, tuple) and isinstance(answer.value, tuple) and all(
        isinstance(name, str) for name in (*before.value, *answer.value)
    ):
        names = tuple(dict.fromkeys(str(name) for name in (*before.value, *answer.value)))
        return replace(answer, value=names, shown=", ".join(names), source=f"{before.source}; {answer.source}")
    return answer


def _called(turn: Turn, called: Called, call: Call, name: str) -> Said:
    applied, text, kind = called.applied, called.text, AnswerKind.DONE
    if applied and applied.result is Result.DENIED:
        kind = AnswerKind.DENIED
    elif applied and applied.result is Result.PROPOSED:
        kind = AnswerKind.PROPOSED
    if call.before and applied and kind is not AnswerKind.DENIED:
        text = replace(text, value=f"{call.before}\n{text.value}")
    effects = (applied.effect,) if applied and kind is not AnswerKind.DENIED else ()
    answer = Answer(
        "", kind, turn.node_name, f"{name} runs on this device", "", sources=(text.source,), effects=effects,
    )
    return Said(text, answer)
