"""Giving language work and questions to a model, here or at a peer, with everything it reads labelled.

A note or file that the request names is read by its tool first and goes along as material. Must not know where the job
runs or how it is guarded.
"""

from collections.abc import Sequence
from dataclasses import replace

from node.agent.domains import caution_for, own_words
from node.agent.events import Status, ToolFinished, ToolStarted
from node.agent.heavy import answer_label, build_job, is_language, streaming
from node.agent.ports import Answer, AnswerKind, ThinkJob, ThinkResult
from node.agent.readers.closed import pick
from node.agent.readers.numbers import fold
from node.agent.repetition import RepeatedText
from node.agent.slots import Reading
from node.agent.tools.errors import ToolError
from node.agent.tools.registry import ReadTool, ToolContext
from node.agent.turn import AgentParts, Said, Turn, living_choices, plain
from node.privacy.labels import Labeled

__all__ = ["Reasoner", "conclude"]

_READERS_OF = {"note_read": ("note", "notes"), "file_read": ("file", "document")}
"""Tools whose result can be material, and the words that must be said for it."""
_NOT_MATERIAL = frozenset({"instruction", "history", "request"})


def conclude(job: ThinkJob, result: ThinkResult, watch: RepeatedText) -> Said:
    """How a turn ends whose work a model did: its text with its label, and why it ended."""
    reason, kind = result.reason, AnswerKind.DONE
    if watch.reason or result.finish_reason == "loop":
        reason, kind = f"{reason}; stopped: {watch.reason or 'the model went in circles'}", AnswerKind.STOPPED
    elif result.finish_reason == "broken":
        kind = AnswerKind.STOPPED
    elif result.finish_reason == "length":
        reason = f"{reason}; cut at the length limit"
    if job.exact and not result.exact:
        reason = f"{reason}; not all of it in the exact lane"
    if result.intent_id:
        kind = AnswerKind.DRAFT
    sources = tuple(dict.fromkeys(part.text.source for part in job.parts if part.name not in _NOT_MATERIAL))
    return Said(answer_label(result, job), Answer(
        "", kind, result.ran_on, reason, "", sources=sources, intent_id=result.intent_id, legs=result.legs,
        exact=result.exact, settles=job.job_id, missing=result.waits_for or None))


class Reasoner:
    """Builds jobs for turns and streams their answers."""

    def __init__(self, parts: AgentParts) -> None:
        self._parts = parts

    async def think(self, turn: Turn, text: str, material: Sequence[tuple[str, Labeled]]) -> Said:
        """A model's answer to text over history and material. Raises what the Thinker raises."""
        if reason := turn.steps.step("think", text):
            return plain(turn, f"I stopped: {reason}.", AnswerKind.STOPPED, reason)
        watch = RepeatedText()
        for _, labeled in material:
            turn.conversation.label.absorb(labeled)
        job = build_job(
            job_id=turn.request.request_id, conversation_id=turn.conversation.conversation_id, text=text,
            history=turn.conversation.parts(), material=material, on_text=streaming(turn.events, watch),
            place=turn.request.place, model=turn.request.model,
        )

        async def on_note(text: str) -> None:
            await turn.events.emit(Status(text))

        job = replace(
            job, wait=turn.request.wait, exact=turn.request.exact, in_clear=turn.request.in_clear, keep=True,
            on_note=on_note, hedge=turn.request.hedge, adapter=turn.request.adapter)
        result = await self._parts.thinker.think(job)
        if watch.reason or result.finish_reason == "loop":
            await turn.events.emit(Status(f"Stopped: {watch.reason or 'the model went in circles'}."))
        said = conclude(job, result, watch)
        told = [str(one.detail["caution"]) for one in turn.conversation.history if "caution" in one.detail]
        domain, caution = caution_for(text, told) or ("", "")
        reason = said.answer.reason if is_language(text) else own_words(said.answer.reason, said.answer.sources)
        return replace(said, answer=replace(said.answer, domain=domain, caution=caution, reason=reason))

    async def material_named(self, turn: Turn, reading: Reading) -> tuple[tuple[str, Labeled], ...] | None:
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
            turn.used.append(name)
            await turn.events.emit(ToolStarted(name, {slot: found.value}))
            try:
                context = ToolContext(self._parts.clock, turn.reader.locale.zone, turn.request.request_id)
                answer = await tool.run({slot: found.value}, context)
            except ToolError as error:
                await turn.events.emit(ToolFinished(name, False, str(error)))
                continue
            await turn.events.emit(ToolFinished(name, True, ""))
            return ((found.value, answer.text),)
        return None
