"""Carrying out a write: shown, decided, recorded, applied once. The only place where a tool's apply() is called.

A crash at any instant repeats nothing: the decision is durable before the write, the write goes by its idempotency key,
and what was approved but not known to be applied is finished at the next start. Must not know how the owner is asked.
"""

import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from enum import StrEnum

from node.agent.events import ApprovalNeeded, EventSink
from node.agent.ports import Approval, Approver, Effect, Interval, Journal, Json
from node.agent.tools.errors import ToolError
from node.agent.tools.registry import Registry, WriteTool
from node.errors import KithError, StorageError
from node.privacy.errors import ConsentRefused, ConsentUnanswered

__all__ = ["Applied", "Approvals", "Replan", "Result"]

_log = logging.getLogger(__name__)

Replan = Callable[[Mapping[str, str]], Awaitable[Effect]]
"""The effect again with the alternatives that the owner chose, by value name; under the same key."""


class Result(StrEnum):
    """What became of an effect."""

    APPLIED = "applied"
    ALREADY = "already"      # this very effect is in place since an earlier attempt
    DENIED = "denied"
    PROPOSED = "proposed"    # dry run


@dataclass(frozen=True, slots=True)
class Applied:
    """The effect as it ended."""

    result: Result
    effect: Effect
    approval: Approval | None


class Approvals:
    """Asks for approval, records it, applies under the journal."""

    def __init__(self, approver: Approver, journal: Journal, registry: Registry, *, deadline_s: float) -> None:
        self._approver = approver
        self._journal = journal
        self._registry = registry
        self._deadline_s = deadline_s
        self._waiting: list[Effect] = []

    @property
    def waiting(self) -> int:
        """How many writes that a crash interrupted need the owner's word again before they leave."""
        return len(self._waiting)

    async def carry_out(
        self, effect: Effect, events: EventSink, *, dry_run: bool = False, replan: Replan | None = None,
    ) -> Applied:
        """Apply effect after the owner's yes. A key that was decided before is not asked again: a denial stays one, an
        approved write is finished. Raises what the tool raises; a refusal is recorded and not tried again later."""
        if dry_run:
            return Applied(Result.PROPOSED, effect, None)
        known = await self._journal.find(effect.idempotency_key)
        if known and (known.failed or known.undone):    # not in place, asked for again: a new decision, a new key
            again = replace(effect, idempotency_key=f"{effect.idempotency_key}+")
            return await self.carry_out(again, events, replan=replan)
        if known and not known.approval.approved:
            return Applied(Result.DENIED, known.effect, known.approval)
        if known and known.applied:
            return Applied(Result.ALREADY, known.effect, known.approval)
        if known:
            await self._apply_now(known.effect)
            return Applied(Result.APPLIED, known.effect, known.approval)
        await events.emit(ApprovalNeeded(effect, self._deadline_s))
        return await self.decided(effect, await self._approver.approve(effect), replan)

    async def decided(self, effect: Effect, approval: Approval, replan: Replan | None = None) -> Applied:
        """Record the decision on a new effect, and apply it where that is a yes. Raises what the tool raises."""
        if approval.idempotency_key != effect.idempotency_key:
            raise ValueError("an approval for another effect")
        if approval.approved and approval.chosen and replan:
            effect = replace(await replan(approval.chosen), idempotency_key=effect.idempotency_key)
        await self._journal.approved(effect, approval)
        if not approval.approved:
            return Applied(Result.DENIED, effect, approval)
        await self._apply_now(effect)
        return Applied(Result.APPLIED, effect, approval)

    async def finish_interrupted(self) -> Sequence[Effect]:
        """Apply what was approved before a crash and is not known to be applied; the effects that are now in place.
        One that is refused is recorded so and logged; one that needs the owner's word waits for finish_waiting(); one
        that fails otherwise is logged and tried at the next start. Never raises: what cannot be finished must not keep
        the node from starting."""
        try:
            entries = await self._journal.unfinished()
        except Exception as error:  # damage in one row; its text may be personal, so the type only
            _log.error("interrupted writes could not be read: %s", type(error).__name__)
            return []
        return await self._finish([entry.effect for entry in entries])

    async def finish_waiting(self) -> Sequence[Effect]:
        """The same for those that need the owner's word, once he is there. What stays unanswered waits on."""
        waiting, self._waiting = self._waiting, []
        return await self._finish(waiting)

    async def _finish(self, effects: Sequence[Effect]) -> Sequence[Effect]:
        finished: list[Effect] = []
        for effect in effects:
            try:
                await self._apply(effect)
                await self._take_back_replaced(effect)
            except ConsentUnanswered:
                _log.info("an approved %s needs the owner's word before it leaves", effect.tool)
                self._waiting.append(effect)
            except Exception as error:  # a tool, its files or the disk: whatever it is, it is this write's alone
                _log.warning("an approved %s could not be finished: %s", effect.tool, type(error).__name__)
            else:
                finished.append(effect)
        return finished

    async def last_written(self) -> Effect | None:
        """The write that an undo takes back next."""
        entry = await self._journal.last_applied()
        return entry.effect if entry is not None and entry.undo is not None else None

    async def undo(self, idempotency_key: str) -> str | None:
        """Take back one write by its key; the tool's sentence, or None when it is not in place. Raises ToolError."""
        entry = await self._journal.find(idempotency_key)
        if entry is None or entry.undo is None or entry.undone:
            return None
        sentence = await self._tool(entry.effect).undo(entry.undo)
        await self._journal.undone(idempotency_key)
        return sentence

    async def in_place(self, idempotency_key: str) -> str:
        """The key again while its write is in place; empty otherwise."""
        entry = await self._journal.find(idempotency_key) if idempotency_key else None
        return idempotency_key if entry is not None and entry.applied and not entry.undone else ""

    async def replaced_by(self, effect: Effect) -> tuple[Effect | None, bool]:
        """The write that stood there before this one corrected it, under a key of its own to come back by, and whether
        there is none because it is kept no longer."""
        known = await self._journal.find(effect.replaces) if effect.replaces else None
        if known is None or not known.undone:       # what could not be taken back is in place still
            return None, bool(effect.replaces) and known is None
        key = f"{effect.replaces}+"
        while await self._journal.find(key) is not None:
            key = f"{key}+"
        caution = f"Taken back for it: {effect.text}"
        return replace(
            known.effect, idempotency_key=key, cautions=(caution,), takes_back=effect.idempotency_key), False

    async def times_of(self, idempotency_key: str) -> tuple[Interval, ...]:
        """The time that a write in place takes in the calendar; none for one that takes none."""
        entry = await self._journal.find(idempotency_key)
        if entry is None or not entry.applied or entry.undone:
            return ()
        start, end = entry.effect.value("start"), entry.effect.value("end")
        if not isinstance(start, str) or not isinstance(end, str):
            return ()
        return ((datetime.fromisoformat(start), datetime.fromisoformat(end)),)

    async def _apply_now(self, effect: Effect) -> None:
        """Apply it while the owner waits. What else than the disk stops it, such as the guard, is told to the owner as
        "not done", so it must not happen at the next start either."""
        try:
            await self._apply(effect)
        except (StorageError, ConsentRefused):      # the disk is no refusal; the owner's no is recorded already
            raise
        except KithError as error:
            await self._journal.failed(effect.idempotency_key, error.code)
            raise

    async def _take_back_replaced(self, effect: Effect) -> None:
        """After a crash: what a correction that is in place now had replaced. What cannot be taken back stays."""
        try:
            await self.undo(effect.replaces)
        except ToolError as error:
            _log.warning("what a finished %s replaces stays: %s", effect.tool, error.code)

    async def _apply(self, effect: Effect) -> Mapping[str, Json]:
        try:
            await self.undo(effect.takes_back)
            record = await self._tool(effect).apply(effect, effect.idempotency_key)
        except (ToolError, ConsentRefused) as error:
            await self._journal.failed(effect.idempotency_key, error.code)
            raise
        await self._journal.applied(effect.idempotency_key, record)
        return record

    def _tool(self, effect: Effect) -> WriteTool:
        tool = self._registry.get(effect.tool)
        if not isinstance(tool, WriteTool):
            raise LookupError(f"no tool named {effect.tool} writes here any more")
        return tool
