"""Requests of the owner: from the API's words to the agent's, and the last write taken back. Implements
node.api.ports.Asking.

Must not know how the agent decides.
"""

from node.agent.loop import Agent
from node.agent.ports import AUTO, LOCAL, AskRequest
from node.api.ports import AskInput, Emit
from node.api.views import UndoView
from node.daemon.conversations import Conversations
from node.daemon.owner import ApiEventSink
from node.privacy.labels import Confidentiality, Integrity, Labeled

__all__ = ["Asking"]


class Asking:
    """Puts requests to one agent."""

    def __init__(self, agent: Agent, conversations: Conversations) -> None:
        self._agent = agent
        self._conversations = conversations

    async def ask(self, request: AskInput, emit: Emit) -> None:
        """Run one request; the agent's own last event is the answer."""
        conversation_id = None
        if request.conversation is not None:
            conversation_id = (await self._conversations.resolve(request.conversation)).conversation_id
        # what a file holds is the owner's and may be anyone's words: personal, with no value known in advance
        attachments = tuple(
            (one.name, Labeled(one.text, Confidentiality.PERSONAL, Integrity.LOCAL, f"file:{one.name}", ()))
            for one in request.attachments
        )
        await self._agent.ask(
            AskRequest(
                text=request.text, conversation_id=conversation_id, attachments=attachments,
                place=LOCAL if request.local else request.on or AUTO, model=request.model, dry_run=request.dry_run,
            ),
            ApiEventSink(emit),
        )

    async def undo(self) -> UndoView:
        """Take back the last write."""
        text = await self._agent.approvals.undo_last()
        return UndoView(undone=text is not None, text=text or "There is nothing to undo.")
