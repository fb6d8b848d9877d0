"""Giving language work and questions to a model, here or at a peer, with everything it reads labelled.

What goes along as material was read before (material.py). Must not know where the job runs or how it is guarded.
"""

from collections.abc import Sequence
from dataclasses import replace

from node.agent.domains import caution_for, own_words
from node.agent.events import Status
from node.agent.heavy import answer_label, build_job, is_language, streaming
from node.agent.ports import AUTO, LOCAL, Answer, AnswerKind, ThinkJob, ThinkResult
from node.agent.repetition import RepeatedText
from node.agent.turn import AgentParts, Said, Turn, plain
from node.privacy.labels import Labeled

__all__ = ["Reasoner", "conclude"]

_NOT_MATERIAL = frozenset({"instruction", "history", "request"})
_MESSAGES = "messages"
"""The source of what others wrote to the owner. It is theirs, too: it stays on this device unless the owner names
another place, also as the history of what is asked next."""


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
        read = any(labeled.source == _MESSAGES for _, labeled in material)
        told = any(_MESSAGES in one.sources for one in turn.conversation.history)
        place = LOCAL if turn.request.place == AUTO and (read or told) else turn.request.place
        for _, labeled in material:
            turn.conversation.label.absorb(labeled)
        job = build_job(
            job_id=turn.request.request_id, conversation_id=turn.conversation.conversation_id, text=text,
            history=turn.conversation.parts(), material=material, on_text=streaming(turn.events, watch),
            place=place, model=turn.request.model,
        )

        async def on_note(text: str) -> None:
            await turn.events.emit(Status(text))

        job = replace(
            job, wait=turn.request.wait, exact=turn.request.exact, in_clear=turn.request.in_clear, keep=True,
            on_note=on_note, hedge=turn.request.hedge, adapter=turn.request.adapter)
        result = await self._parts.thinker.think(job)
        if place != turn.request.place:
            result = replace(result, reason="your messages stay on this device unless you name a peer: --on NAME")
        if watch.reason or result.finish_reason == "loop":
            await turn.events.emit(Status(f"Stopped: {watch.reason or 'the model went in circles'}."))
        said = conclude(job, result, watch)
        cautions = [str(one.detail["caution"]) for one in turn.conversation.history if "caution" in one.detail]
        domain, caution = caution_for(text, cautions) or ("", "")
        sources = (*said.answer.sources, _MESSAGES) if told and not read else said.answer.sources
        reason = said.answer.reason if is_language(text) else own_words(said.answer.reason, sources)
        return replace(said, answer=replace(
            said.answer, domain=domain, caution=caution, reason=reason, sources=sources))
