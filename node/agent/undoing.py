"""Going back one action of the owner: the last write out again, and what it had corrected back in its place.

Must not know requests, conversations or how the owner is asked.
"""

from dataclasses import dataclass
from datetime import datetime

from node.agent.approve import Approvals, Result
from node.agent.events import EventSink
from node.agent.ports import Approval
from node.agent.saying import denied
from node.agent.tools.errors import EffectRefused, ToolError

__all__ = ["Undone", "undo_last"]

_GONE = "What it had replaced is kept no longer, so that does not come back."


@dataclass(frozen=True, slots=True)
class Undone:
    """What became of an undo, for the owner. done: False when the owner did not approve it."""

    text: str
    done: bool = True


async def undo_last(approvals: Approvals, now: datetime, events: EventSink | None = None) -> Undone | None:
    """Take back the last write; None when there is nothing to take back. Where it was a correction, what it corrected
    is put in place again: shown and asked about over events, or at once where there are none and the order to undo is
    the approval. Nothing is changed when that is denied, or when the last write cannot be taken back.

    Raises ToolError; its text says what was done all the same.
    """
    last = await approvals.last_written()
    if last is None:
        return None
    before, gone = await approvals.replaced_by(last)
    if before is None:
        sentence = await approvals.undo(last.idempotency_key) or "It was taken back already."
        return Undone(f"{sentence}\n{_GONE}" if gone else sentence)
    try:
        if events is None:
            approval = Approval(before.idempotency_key, True, "owner, by the order to undo", now)
            applied = await approvals.decided(before, approval)
        else:
            applied = await approvals.carry_out(before, events)
    except ToolError as error:
        if await approvals.in_place(last.idempotency_key):
            raise                           # nothing was changed
        raise EffectRefused(f"{error}\nTaken back: {last.text}\nNot back in its place: {before.text}") from error
    if applied.result is Result.DENIED:
        return Undone(denied(applied.approval, "nothing was changed"), done=False)
    return Undone(f"Back as it was before the correction. Taken back: {last.text}\nBack in place: {before.text}")
