"""The owner as the node's parts see him: gives consent, approves effects, hears events - all over the API's questions.

Fails closed: no answer, too many open questions, or an answer that names another question is a no. Must not decide
anything.
"""

from collections.abc import Awaitable, Callable, Mapping
from typing import Any, TypeVar

from node.agent.effects import DEADLINE, NO_TERMINAL
from node.agent.events import Answered, ApprovalNeeded, ConsentNeeded, Delta, Event, Status, ToolFinished, ToolStarted
from node.agent.ports import Answer, Approval, Effect
from node.api.ports import Emit
from node.api.questions import Questions, TooManyQuestions
from node.clock import Clock
from node.privacy.consent import Choice, ConsentAnswer, ConsentQuestion
from node.privacy.policy import Level

__all__ = ["ApiEventSink", "OwnerDesk", "answer_event", "consent_payload", "effect_payload"]

T = TypeVar("T")

APPROVAL_DEADLINE_S = 300.0


def effect_payload(effect: Effect) -> dict[str, Any]:
    """An effect as the API shows it: the whole text, and every value with where it came from."""
    return {
        "tool": effect.tool,
        "effect": effect.kind,
        "text": effect.text,
        "key": effect.idempotency_key,
        "cautions": list(effect.cautions),
        "values": [
            {
                "name": value.name,
                "value": value.value,
                "shown": value.shown,
                "origin": value.origin.value,
                "source": value.source,
                "alternatives": list(value.alternatives),
            }
            for value in effect.values
        ],
    }


def consent_payload(question: ConsentQuestion) -> dict[str, Any]:
    """A consent question as the API shows it: exactly what would leave, and what each placeholder stands for."""
    return {
        "peer": question.peer_name,
        "peer_id": question.peer_id,
        "purpose": question.purpose.value,
        "level": question.level.value,
        "why": question.why,
        "texts": [text.text for text in question.texts],
        "replaced": [
            {"shown_to_peer": item.token, "stands_for": item.original, "type": item.type}
            for text in question.texts
            for item in text.substitutions
        ],
        "substitutions": sum(len(text.substitutions) for text in question.texts),
        "diff": [
            {
                "role": text.role, "source": text.source, "leaves": text.text,
                "marks": [
                    {"start": item.start, "end": item.end, "stands_for": item.original, "type": item.type}
                    for item in text.substitutions
                ],
            }
            for text in question.texts
        ],
        "choices": ["once", "deny", "deny_always", *(["clear"] if question.level is Level.MASKED else [])],
        "nets": _nets(question),
        "digest": question.digest,
    }


class OwnerDesk:
    """Implements node.privacy.consent.ConsentAsker and node.agent.ports.Approver over open questions."""

    def __init__(self, questions: Questions, clock: Clock) -> None:
        self._questions = questions
        self._clock = clock

    def speak_to(self, emit: Emit) -> None:
        """Send the questions that arise in the current task to this listener."""
        self._questions.listen(emit)

    async def unattended(self, act: Callable[[], Awaitable[T]]) -> T:
        """What act() returns while nobody is there to be asked: each question counts as unanswered at once."""
        with self._questions.listening(self._nobody):
            return await act()

    async def _nobody(self, question: Mapping[str, Any]) -> None:
        self._questions.answer(question["id"], {"allow": False, "by": NO_TERMINAL})

    async def ask(self, question: ConsentQuestion) -> ConsentAnswer:
        """The owner's consent for exactly these texts; silence is no."""
        reply = await self._put("consent", consent_payload(question), question.deadline_s)
        allowed = reply.get("allow") is True and reply.get("digest") == question.digest
        chosen = reply.get("choice", Choice.ONCE.value)
        known = {choice.value: choice for choice in Choice}
        return ConsentAnswer(
            allowed=allowed and chosen in (Choice.ONCE, Choice.CLEAR), digest=question.digest, by=_by(reply),
            choice=known.get(chosen, Choice.ONCE) if isinstance(chosen, str) else Choice.ONCE,
            unanswered=reply.get("by") in (DEADLINE, NO_TERMINAL),
        )

    async def approve(self, effect: Effect) -> Approval:
        """The owner's decision on exactly this effect; silence is no."""
        reply = await self._put("approval", effect_payload(effect), APPROVAL_DEADLINE_S)
        chosen = reply.get("chosen")
        return Approval(
            idempotency_key=effect.idempotency_key,
            approved=reply.get("allow") is True and reply.get("key") == effect.idempotency_key,
            by=_by(reply),
            at=self._clock.now(),
            chosen={str(name): str(value) for name, value in chosen.items()} if isinstance(chosen, dict) else {},
        )

    async def check_pairing(self, payload: Mapping[str, Any], deadline_s: float) -> Mapping[str, Any]:
        """The owner's look at a peer that wants to pair: {"allow", "trust"}; silence is no."""
        return await self._put("pairing", payload, deadline_s)

    async def _put(self, kind: str, payload: Mapping[str, Any], deadline_s: float) -> Mapping[str, Any]:
        try:
            reply = await self._questions.ask(kind, payload, deadline_s)
        except TooManyQuestions as full:
            return {"allow": False, "by": str(full)}
        return reply if reply is not None else {"allow": False, "by": DEADLINE}


def _nets(question: ConsentQuestion) -> str:
    ran = "Checked by: " + ", ".join(question.nets_ran) + "." if question.nets_ran else "Not checked by any net."
    missing = f" Missing: {', '.join(question.nets_missing)}." if question.nets_missing else ""
    return ran + missing


def _by(reply: Mapping[str, Any]) -> str:
    by = reply.get("by", "owner")
    return by if isinstance(by, str) and len(by) <= 80 else "owner"


def answer_event(answer: Answer) -> dict[str, Any]:
    """The last event of a request."""
    return {
        "event": "answer",
        "text": answer.text,
        "kind": answer.kind.value,
        "ran_on": answer.ran_on,
        "reason": answer.reason,
        "conversation_id": answer.conversation_id,
        "tools": list(answer.tools_used),
        "sources": list(answer.sources),
        "effects": [effect_payload(effect) for effect in answer.effects],
        "choices": list(answer.choices),
        "caution": answer.caution,
        "missing": answer.missing,
        "id": answer.settles,
        "exact": answer.exact,
        "legs": [
            {"ran_on": leg.ran_on, "model": leg.model, "digest": leg.digest, "begun_at": leg.begun_at,
             "ended": leg.ended}
            for leg in answer.legs
        ],
        "intent": answer.intent_id,
    }


class ApiEventSink:
    """Implements node.agent.ports.EventSink: the agent's events as lines of the API's stream."""

    def __init__(self, emit: Emit) -> None:
        self._emit = emit

    async def emit(self, event: Event) -> None:
        """Send one event on. Questions travel by themselves, so their announcements are not repeated."""
        match event:
            case Status(text):
                await self._emit({"event": "status", "text": text})
            case Delta(text):
                await self._emit({"event": "delta", "text": text})
            case ToolStarted(tool, args):
                await self._emit(
                    {"event": "tool", "tool": tool, "text": ", ".join(f"{k}={v}" for k, v in args.items())}
                )
            case ToolFinished(tool, ok, text):
                await self._emit({"event": "tool", "tool": tool, "ok": ok, "text": text})
            case Answered(answer):
                await self._emit(answer_event(answer))
            case ApprovalNeeded() | ConsentNeeded():
                pass
