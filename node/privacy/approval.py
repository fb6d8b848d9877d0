"""Gets the owner's word before something leaves, where the policy wants it: one question that shows the exact text.

The owner may answer once, no, never again, or "in clear, this once", which asks a second time and shows the text
without placeholders. Silence is no. Must not know how a question is shown, nor how anything is sent.
"""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

import trio

from node.privacy.consent import (
    Choice,
    ConsentAnswer,
    ConsentAsker,
    ConsentQuestion,
    OutgoingText,
    Substitution,
    digest_of,
)
from node.privacy.errors import ConsentRefused, ConsentUnanswered, DeniedAlways, GuardFailed
from node.privacy.forming import Outgoing
from node.privacy.policy import Level, PeerView, Purpose, needs_consent

__all__ = ["Approval", "Approver", "Request", "StandingDecisions"]

InClear = Callable[[], Awaitable[Outgoing]]


class StandingDecisions(Protocol):
    """What the owner decided before (node.privacy.decisions)."""

    def chosen(self, peer_id: str, purpose: Purpose, conversation: str) -> tuple[Level | None, bool]:
        """The chosen level, and whether for this very conversation."""
        ...

    def denied(self, peer_id: str, purpose: Purpose) -> bool:
        """Whether this is refused without asking."""
        ...

    async def deny_always(self, peer_id: str, purpose: Purpose) -> None:
        """Refuse from now on."""
        ...


@dataclass(frozen=True, slots=True)
class Request:
    """What should leave, to whom and why. sources: role and origin of each text. decided: the owner chose its level for
    this conversation. wants_clear: the owner asks for it in clear, this once."""

    peer: PeerView
    purpose: Purpose
    level: Level
    conversation: str
    request_id: str
    sources: Sequence[tuple[str, str]]
    why: str
    owner_typed: bool
    decided: bool = False
    wants_clear: bool = False
    mixed: bool = False
    """Other people's text and personal data leave together."""


@dataclass(frozen=True, slots=True)
class Approval:
    """Who approved it, in words for the ledger, and in which form."""

    by: str
    level: Level
    outgoing: Outgoing


class Approver:
    """Asks for one node."""

    def __init__(
        self, *, nets: Callable[[], tuple[str, ...]], new_id: Callable[[], str], deadline_s: float,
        decisions: StandingDecisions | None, ask_first: bool = False,
    ) -> None:
        """ask_first: the owner wants to see every free text for a peer's model."""
        self._ask_first = ask_first
        self._nets = nets
        self._new_id = new_id
        self._deadline_s = deadline_s
        self._decisions = decisions

    async def approve(self, request: Request, outgoing: Outgoing, ask: ConsentAsker, in_clear: InClear) -> Approval:
        """The approval. in_clear: forms the same texts without placeholders.

        Raises ConsentRefused, ConsentUnanswered, DeniedAlways, GuardFailed, and what in_clear raises.
        """
        if request.wants_clear and request.level is Level.MASKED:
            return await self._in_clear(request, ask, in_clear)
        asks = needs_consent(
            request.level, request.purpose, owner_typed=request.owner_typed,
            detectors_ran=not (outgoing.gaps or self._ask_first),
            personal=outgoing.personal_in_clear, decided=request.decided, mixed=request.mixed,
        )
        if not asks:
            return Approval(_standing(request), request.level, outgoing)
        question = self._question(request, outgoing)
        answer = await self._ask(question, ask)
        match answer.choice:
            case Choice.ONCE if answer.allowed is True:
                return Approval(f"{answer.by}, question {question.question_id}", request.level, outgoing)
            case Choice.CLEAR if answer.allowed is True and request.level is Level.MASKED:
                return await self._in_clear(request, ask, in_clear)
            case Choice.DENY_ALWAYS:
                if self._decisions is not None:
                    await self._decisions.deny_always(request.peer.peer_id, request.purpose)
                raise DeniedAlways("from now on")
        raise ConsentRefused

    async def _in_clear(self, request: Request, ask: ConsentAsker, in_clear: InClear) -> Approval:
        """The exact text is shown; only a plain yes to it counts."""
        clear = replace(request, level=Level.CLEAR)
        outgoing = await in_clear()
        question = self._question(clear, outgoing)
        answer = await self._ask(question, ask)
        if answer.allowed is not True or answer.choice is not Choice.ONCE:
            raise ConsentRefused
        return Approval(f"{answer.by}, in clear this once, question {question.question_id}", Level.CLEAR, outgoing)

    def _question(self, request: Request, outgoing: Outgoing) -> ConsentQuestion:
        texts = tuple(
            OutgoingText(role, text, source, tuple(
                Substitution(span.start, span.end, span.token, span.original, span.type) for span in spans
            ))
            for (role, source), text, spans in zip(request.sources, outgoing.texts, outgoing.replaced, strict=True)
        )
        peer = request.peer
        return ConsentQuestion(
            question_id=self._new_id(), request_id=request.request_id, conversation=request.conversation,
            peer_id=peer.peer_id, peer_name=peer.name, purpose=request.purpose, level=request.level, why=request.why,
            texts=texts, nets_ran=self._nets(), nets_missing=outgoing.gaps, deadline_s=self._deadline_s,
            digest=digest_of(request.request_id, peer.peer_id, request.purpose, request.level, texts),
        )

    async def _ask(self, question: ConsentQuestion, ask: ConsentAsker) -> ConsentAnswer:
        answer: object = None
        with trio.move_on_after(self._deadline_s) as deadline:
            answer = await ask.ask(question)
        if deadline.cancelled_caught:
            raise ConsentUnanswered(f"within {self._deadline_s:g} s")
        if not isinstance(answer, ConsentAnswer):
            raise GuardFailed("the answer to the consent question is no answer")
        if answer.unanswered:
            raise ConsentUnanswered(f"within {self._deadline_s:g} s")
        if answer.digest != question.digest:
            raise ConsentRefused("the answer was to another question")
        return answer


def _standing(request: Request) -> str:
    if request.purpose is Purpose.ANSWER:
        return "owner, by sharing the folder with this peer"
    if request.level is Level.CLEAR and request.decided:
        return "owner, set clear for this conversation"
    return "owner, typed it for this" if request.owner_typed else "policy, all nets ran"
