"""Requests of the owner: from the API's words to the agent's, and the last write taken back. Implements
node.api.ports.Asking.

Must not know how the agent decides.
"""

import hashlib
from collections.abc import Awaitable, Callable

from node.agent.events import Answered, Event
from node.agent.loop import Agent
from node.agent.ports import AUTO, LOCAL, AskRequest
from node.api.agent_views import SkillView
from node.api.ports import AskInput, Emit
from node.api.views import UndoView
from node.daemon.answers import Answers
from node.daemon.conversations import Conversations
from node.daemon.drafting import DraftingThinker
from node.daemon.owner import ApiEventSink, answer_event
from node.daemon.queue_desk import QueueDesk
from node.errors import UsageError
from node.privacy.labels import Confidentiality, Integrity, Labeled

__all__ = ["Asking"]

SHOWN_EXAMPLES = 2


class Asking:
    """Puts requests to one agent. A request that is queued may be tried again once its draft is stored."""

    def __init__(
        self, agent: Agent, conversations: Conversations, drafting: DraftingThinker, queue: QueueDesk, answers: Answers,
        new_id: Callable[[], str], *, adapter_named: Callable[[str], Awaitable[str]],
    ) -> None:
        """adapter_named: the digest of an adapter of the model here; raises KithError for any other name."""
        self._agent = agent
        self._conversations = conversations
        self._drafting = drafting
        self._queue = queue
        self._answers = answers
        self._new_id = new_id
        self._adapter_named = adapter_named

    def skills(self) -> list[SkillView]:
        """What the agent can do in several steps."""
        return [
            SkillView(name=one.name, description=one.description, examples=list(one.examples[:SHOWN_EXAMPLES]))
            for one in self._agent.skills
        ]

    async def ask(self, request: AskInput, emit: Emit) -> None:
        """Run one request; the agent's own last event is the answer. Raises UsageError for options that exclude each
        other."""
        if request.later and (request.now or request.local):
            raise UsageError("Later goes with neither now nor local.")
        if request.adapter is not None and (request.on or request.later or request.hedge):
            raise UsageError("An adapter goes with none of on, later and hedge: it is on this device.")
        request_id = _request_id(request.key)
        known = await self._queue.answer_to(request_id) if request_id else None
        if known is not None:
            await ApiEventSink(emit).emit(Answered(known))
            return
        conversation_id = None
        if request.conversation is not None:
            conversation_id = (await self._conversations.resolve(request.conversation)).conversation_id
        # what a file holds is the owner's and may be anyone's words: personal, with no value known in advance
        attachments = tuple(
            (one.name, Labeled(one.text, Confidentiality.PERSONAL, Integrity.LOCAL, f"file:{one.name}", ()))
            for one in request.attachments
        )
        await self._finish_waiting(emit)
        adapter = None if request.adapter is None else await self._adapter_named(request.adapter)
        request_id = request_id or self._new_id()
        await emit({"event": "request", "id": request_id})
        with self._drafting.storing(), self._answers.concluding(request_id):
            await self._agent.ask(
                AskRequest(
                    text=request.text, conversation_id=conversation_id, request_id=request_id, attachments=attachments,
                    place=LOCAL if request.local or adapter else request.on or AUTO, model=request.model,
                    dry_run=request.dry_run,
                    wait="later" if request.later else "never" if request.now else "auto", exact=request.exact,
                    in_clear=request.clear, hedge=request.hedge, adapter=adapter,
                ),
                _Sink(emit, self._answers),
            )

    async def _finish_waiting(self, emit: Emit) -> None:
        """The owner is there: what a stop cut off and needs his word is asked about first."""
        approvals = self._agent.approvals
        if approvals.waiting:
            await emit({"event": "status", "text": "finishing what you approved before the last stop"})
            for effect in await approvals.finish_waiting():
                await emit({"event": "status", "text": f"done: {effect.text}"})

    async def undo(self) -> UndoView:
        """Take back the last write."""
        undone = await self._agent.undo()
        return UndoView(undone=undone is not None, text=undone.text if undone else "There is nothing to undo.")


class _Sink(ApiEventSink):
    """Also tells those who follow the answer that it is stored."""

    def __init__(self, emit: Emit, answers: Answers) -> None:
        super().__init__(emit)
        self._answers = answers

    async def emit(self, event: Event) -> None:
        if isinstance(event, Answered):
            self._answers.conclude(event.answer.settles, answer_event(event.answer))
        await super().emit(event)


def _request_id(key: str | None) -> str:
    """The same key gives the same id, of the form of any other; none gives a fresh one."""
    return hashlib.blake2b(key.encode(), digest_size=16, person=b"kith-ask-key").hexdigest() if key else ""
