"""Which answers are at work and what the next decode does: continuous batching over a fixed number of slots.

Each step decodes one token of every answer that is being written, then as much waiting prompt as a time budget allows,
so that a long prompt does not freeze the others. Waiting answers come in order, the owner's first. A slot keeps what it
has read for the next prompt of the same principal; nobody else's timing can tell what it was.

The exact lane is a scheduler of its own with one slot on a context of its own: the last bits of a logit depend on the
shape of a decode and on the order of the cells in the memory, so there both are always the same (measured: then the ids
are too, on one model, build and kind of CPU). One thread only. Must not know llama.cpp, text or the pipe.
"""

from collections import deque
from collections.abc import Callable, Iterator

from offload.engine.answer import Answer
from offload.engine.context import BATCH_TOKENS, Context
from offload.engine.drafts import LONGEST_DRAFT
from offload.engine.kvfiles import KvFiles
from offload.engine.memory import Memory, Slot
from offload.errors import EngineBusy, EngineError
from offload.ports import Event, Failed, Queued, Started

__all__ = ["Events", "Scheduler", "failed"]

Events = list[tuple[str, Event]]

_OWNER = "owner"
_LEAST_CHUNK = 32       # below, reading a prompt costs 1.6 times more
_EXACT_CHUNK = 64
_SMALL_BATCH = 8        # tokens; up to here one more costs less than a decode of its own
_WATCHED_STEP_S = 0.25   # while somebody is being answered
_READING_STEP_S = 1.0    # while nobody is: also how long a cancel can take


class Scheduler:
    """Runs answers on one context."""

    def __init__(
        self, context: Context, *, slots: int, queue_limit: int, now_s: Callable[[], float], model_digest: str = "",
        kept: int = 0, can_cut: bool = True, exact: bool = False, files: KvFiles | None = None,
    ) -> None:
        """queue_limit: how many may wait, of the owner's and of all peers' each.

        kept: sequences that are remembered beside those of `slots` answers at once.
        can_cut: the model's memory can drop the end of a sequence.
        exact: fixed shapes and nothing remembered; takes one slot.
        files: where what is remembered goes and comes back from.
        """
        self._context = context
        self._most = slots
        self._memory = Memory(context, sequences=slots + kept, can_cut=can_cut, remember=not exact, files=files)
        self._queue_limit = queue_limit
        self._now_s = now_s
        self._digest = model_digest
        self._owners: deque[Answer] = deque()
        self._peers: deque[Answer] = deque()
        self._chunk = 128
        self._exact = exact

    @property
    def running(self) -> int:
        """How many answers have a slot."""
        return sum(1 for _ in self._busy())

    @property
    def queued(self) -> int:
        """How many answers wait."""
        return len(self._owners) + len(self._peers)

    @property
    def request_ids(self) -> list[str]:
        """All that are at work or wait."""
        return [answer.request_id for answer in (*(answer for _, answer in self._busy()), *self._owners, *self._peers)]

    @property
    def has_work(self) -> bool:
        """Whether a step would do something."""
        return bool(self.queued or self.running)

    def submit(self, answer: Answer) -> Events:
        """Take an answer in, or refuse it when its queue is full. Peers can't fill the owner's."""
        waiting = self._owners if answer.principal == _OWNER else self._peers
        if len(waiting) >= self._queue_limit + max(0, self._most - self.running):
            answer.close()
            return [(answer.request_id, failed(EngineBusy()))]
        waiting.append(answer)
        ahead = self.queued if waiting is self._peers else len(waiting)
        return [(answer.request_id, Queued(ahead - 1))]

    def cancel(self, request_id: str) -> Events:
        """Drop an answer now; it is decoded no further. Unknown ids are ignored: it may just have ended."""
        for waiting in (self._owners, self._peers):
            for answer in waiting:
                if answer.request_id == request_id:
                    waiting.remove(answer)
                    return [self._ended(answer)]
        for slot, answer in self._busy():
            if answer.request_id == request_id:
                return [self._leave(slot, answer)]
        return []

    def forget(self, principal: str) -> None:
        """Remember nothing of this principal any more."""
        self._memory.forget_principal(principal)

    def put_away(self) -> bool:
        """Write something that is remembered to disk, while there is time; False when nothing is left to write."""
        return self._memory.put_away()

    def step(self) -> Events:
        """Admit who fits, decode once, sample. Returns the events in order."""
        events = self._admit()
        self._context.begin_batch()
        batch, read = self._fill_exact() if self._exact else self._fill()
        if not batch:
            return events
        begun_s = self._now_s()
        if not self._decode():
            return [*events, *self._drop(batch)]
        for slot, added in batch:
            slot.tokens += added
            if slot.answer is not None and len(slot.tokens) in slot.answer.boundaries:
                self._memory.checkpoint(slot)
            if slot.answer is not None and slot.noted < len(slot.tokens) == len(slot.answer.prompt):
                self._memory.note(slot)     # others may begin like it while it is being answered
        for slot, added in batch:
            if slot.row >= 0 and slot.answer is not None:
                events += self._sample(slot, slot.answer, len(added))
        if read:
            self._adapt(self._now_s() - begun_s)
        return events

    # -- admission

    def _admit(self) -> Events:
        events: Events = []
        while self.queued:
            waiting = self._owners or self._peers
            answer = waiting[0]
            if answer.finish_reason is not None:
                waiting.popleft()
                events += [*self._shown(answer), self._ended(answer)]
                continue
            slot = self._memory.claim(answer, committed_cells=self._committed()) if self.running < self._most else None
            if slot is None:
                break
            waiting.popleft()
            answer.cached_tokens = len(slot.tokens)
            started = Started(answer.prompt_tokens, answer.cached_tokens, self._digest)
            events += [(answer.request_id, started), *self._shown(answer)]
        return events

    # -- one decode

    def _fill_exact(self) -> tuple[list[tuple[Slot, list[int]]], bool]:
        """Fill the batch with one token or a fixed chunk of the prompt; ids so far are read one by one."""
        for slot, answer in self._busy():
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
            return [(slot, tokens)], False
        return [], False

    def _fill(self) -> tuple[list[tuple[Slot, list[int]]], bool]:
        """Fill the batch: answers at work, then prompts. Returns who has what in it; True with prompts."""
        batch = self._fill_pending()
        budget = min(self._context.room, self._chunk)
        read = False
        for slot, answer in sorted(self._busy(), key=lambda pair: pair[1].principal != _OWNER):
            count = min(slot.unread, budget) if answer.pending is None else 0
            if count > 0:
                begin = len(slot.tokens)
                stops = (position - begin for position in answer.boundaries if position > begin)
                count = min(count, *stops, count)
                chunk = answer.prompt[begin:begin + count]
                last = begin + count == len(answer.prompt)
                row = self._context.add(slot.sequence, begin, chunk, want_last=answer.looks if last else 0)
                slot.row = row if last else -1
                batch.append((slot, chunk))
                budget -= count
                read = True
        return batch, read

    def _fill_pending(self) -> list[tuple[Slot, list[int]]]:
        """What the answers at work go on with: a token each, or a few, where a schema forces or a prompt suggests them.

        Suggested ones only while the batch is small: the more is in it, the less a wrong guess is for nothing.
        """
        batch: list[tuple[Slot, list[int]]] = []
        busy = list(self._busy())
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

    def _decode(self) -> bool:
        result = self._context.decode()
        if result == 1 and self._memory.forget_idle():
            result = self._context.decode()
        return result == 0

    def _sample(self, slot: Slot, answer: Answer, added: int) -> Events:
        end = slot.row + 1
        piece = answer.sample(self._context, range(end - min(answer.looks, added), end))
        events: Events = [(answer.request_id, piece)] if piece is not None else []
        if answer.surplus:
            self._take_back(slot, answer)
        if answer.finish_reason is not None:
            events.append(self._leave(slot, answer))
        return events

    def _take_back(self, slot: Slot, answer: Answer) -> None:
        """Take what was decoded in vain out of the memory. Where that is refused, all of the answer is read again."""
        keep = len(slot.tokens) - answer.surplus
        if self._context.cut(slot.sequence, keep):
            del slot.tokens[keep:]
            if slot.noted > keep:
                self._memory.note(slot)
            return
        kept, space = slot.tokens[:keep], slot.space
        self._memory.forget(slot)
        slot.space = space
        answer.read_again(kept)
        answer.stay_plain()

    def _drop(self, batch: list[tuple[Slot, list[int]]]) -> Events:
        """The decode failed: the memory of its sequences is not to be trusted."""
        events: Events = []
        for slot, _ in batch:
            answer = slot.answer
            if answer is not None:
                answer.close()
                slot.answer = None
                events.append((answer.request_id, failed(EngineError("The model failed at this text."))))
            self._memory.forget(slot)
        return events

    def _adapt(self, elapsed_s: float) -> None:
        writing = any(answer.pending is not None for _, answer in self._busy())
        target_s = _WATCHED_STEP_S if writing else _READING_STEP_S
        factor = min(2.0, max(0.5, target_s / max(elapsed_s, 1e-6)))
        self._chunk = max(_LEAST_CHUNK, min(BATCH_TOKENS, int(self._chunk * factor)))

    # -- ends

    def _leave(self, slot: Slot, answer: Answer) -> tuple[str, Event]:
        """Free the slot; its memory stays for the principal's next prompt."""
        self._memory.release(slot)
        return self._ended(answer)

    def _ended(self, answer: Answer) -> tuple[str, Event]:
        answer.close()
        return answer.request_id, answer.finished()

    def _busy(self) -> Iterator[tuple[Slot, Answer]]:
        return self._memory.busy()

    def _committed(self) -> int:
        """The cells that answers at work may still come to need."""
        return sum(answer.reserved_tokens - len(slot.tokens) for slot, answer in self._busy())

    @staticmethod
    def _shown(answer: Answer) -> Events:
        piece = answer.backlog()
        return [(answer.request_id, piece)] if piece is not None else []


def failed(error: EngineError) -> Failed:
    """The event that tells of an error."""
    return Failed(error.code, str(error), error.hint)
