"""What goes into the next decode: one token of every answer that is being written, then as much waiting prompt as a
time budget allows, so that a long prompt does not freeze the others. In the exact lane always the same shapes.

Must not know who is admitted, what is remembered, or llama.cpp.
"""

from collections import Counter
from collections.abc import Sequence
from typing import TypeAlias

from offload.engine.answer import Answer
from offload.engine.context import Context
from offload.engine.drafts import LONGEST_DRAFT
from offload.engine.fair import Company, Pace, Shares
from offload.engine.slot import Slot

__all__ = ["Batches", "Part"]

Part: TypeAlias = tuple[Slot, list[int]]

_EXACT_CHUNK = 64
_SMALL_BATCH = 8        # tokens; up to here one more costs less than a decode of its own


class Batches:
    """Fills one context's batches, with a share for each principal that has a prompt waiting."""

    def __init__(self, context: Context, pace: Pace, *, exact: bool) -> None:
        """pace: how much prompt fits into a step; whoever decodes teaches it."""
        self._context = context
        self._pace = pace
        self._exact = exact
        self._shares = Shares()

    def fill(self, busy: Sequence[tuple[Slot, Answer]], company: Company) -> tuple[list[Part], int]:
        """Fill the context's batch for those who may share it: answers that are written, then prompts. Who has what in
        it comes back, and how many tokens of it are prompts (0 in the exact lane, which is not paced)."""
        if self._exact:
            return self._fill_exact(busy), 0
        batch = self._fill_pending(busy)
        reading = sorted(
            ((slot, answer) for slot, answer in busy if answer.pending is None), key=lambda pair: pair[1].arrival)
        wanted: Counter[str] = Counter()
        for slot, answer in reading:
            wanted[answer.principal] += slot.unread
        beside = sum(len(added) for _, added in batch)
        budget = wanted.total() if company == "burst" else self._pace.tokens(company, beside)
        shares = self._shares.split(wanted, min(self._context.room, budget))
        read = 0
        for slot, answer in reading:
            count = min(slot.unread, shares[answer.principal])
            if count < slot.unread:     # the rows that are wanted at its end must come in one decode
                count = min(count, slot.unread - answer.looks)
            if count > 0:
                begin = len(slot.tokens)
                stops = (position - begin for position in answer.boundaries if position > begin)
                count = min(count, *stops, count)
                chunk = answer.prompt[begin:begin + count]
                last = begin + count == len(answer.prompt)
                row = self._context.add(slot.sequence, begin, chunk, want_last=answer.looks if last else 0)
                slot.row = row if last else -1
                batch.append((slot, chunk))
                shares[answer.principal] -= count
                read += count
        return batch, read

    def _fill_exact(self, busy: Sequence[tuple[Slot, Answer]]) -> list[Part]:
        """One token or a fixed chunk of the prompt; ids so far are read one by one."""
        if not busy:
            return []
        ((slot, answer),) = busy        # the lane has one slot
        begin = len(slot.tokens)
        if answer.pending is not None:
            tokens = answer.pending
        elif begin < answer.fixed_tokens:
            tokens = answer.prompt[begin:min(begin + _EXACT_CHUNK, answer.fixed_tokens)]
        else:
            tokens = answer.prompt[begin:begin + 1]
        last = begin + len(tokens) >= len(answer.prompt)
        row = self._context.add(slot.sequence, begin, tokens, want_last=last)
        slot.row = row if last else -1
        return [(slot, tokens)]

    def _fill_pending(self, busy: Sequence[tuple[Slot, Answer]]) -> list[Part]:
        """What the answers at work go on with: a token each, or a few, where a schema forces or a prompt suggests them.

        Suggested ones only while the batch is small: the more is in it, the less a wrong guess is for nothing.
        """
        batch: list[Part] = []
        pending = [len(answer.pending) for _, answer in busy if answer.pending is not None]
        spare = (LONGEST_DRAFT if len(busy) == 1 else _SMALL_BATCH - sum(pending)) if len(pending) == len(busy) else 0
        for slot, answer in busy:
            slot.row = -1
            if answer.pending is None or len(answer.pending) > self._context.room:
                continue        # without room it comes with the next decode
            known = len(answer.pending)
            answer.guess(max(0, spare))
            spare -= len(answer.pending) - known
            slot.row = self._context.add(slot.sequence, len(slot.tokens), answer.pending, want_last=answer.looks)
            batch.append((slot, answer.pending))
        return batch
