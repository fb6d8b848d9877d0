"""Which answers are at work and what the next decode does: continuous batching over a fixed number of slots.

Each step fills a batch (batches.py), decodes it and samples. The owner's answers come first, and take a guest's slot
when there is no other; a guest's answer then rests and goes on later. What was read stays in memory.py for the
principal's next one.

The exact lane is a scheduler of its own with one slot on a context of its own: the last bits of a logit depend on the
shape of a decode and on the order of the cells in the memory, so there both are always the same (measured: then the ids
are too, on one model, build and kind of CPU). One thread only. Must not know llama.cpp, text or the pipe.
"""

from collections import Counter
from collections.abc import Callable, Iterator

from offload.engine.answer import Answer
from offload.engine.batches import Batches, Part
from offload.engine.context import Context
from offload.engine.fair import Company, Pace, Turns
from offload.engine.kvfiles import KvFiles
from offload.engine.memory import Memory
from offload.engine.slot import Slot
from offload.engine.waiting import Forecast, Line
from offload.errors import EngineBusy, EngineError
from offload.ports import OWNER, Event, Failed, Queued, Reading, Started

__all__ = ["Events", "Scheduler", "failed"]

Events = list[tuple[str, Event]]

_READING_EVERY_S = 0.25


class Scheduler:
    """Runs answers on one context."""

    def __init__(
        self, context: Context, *, slots: int, queue_limit: int, now_s: Callable[[], float], model_digest: str = "",
        kept: int = 0, can_cut: bool = True, exact: bool = False, files: KvFiles | None = None,
        use_adapter: Callable[[str], None] = lambda _name: None, parking_bytes: int = 0,
    ) -> None:
        """queue_limit: how many may wait, of the owner's and of all peers' each.

        kept: sequences that are remembered beside those of `slots` answers at once.
        can_cut: the model's memory can drop the end of a sequence.
        exact: fixed shapes and nothing remembered; takes one slot.
        files: where what is remembered goes and comes back from.
        parking_bytes: how much of it may stand in this process's memory, out of the way of the decodes.
        use_adapter: lets the context compute with this one from the next decode on. Answers with different ones never
        share a decode; they take turns.
        """
        self._context = context
        self._most = slots
        self._memory = Memory(
            context, sequences=slots + kept, can_cut=can_cut, remember=not exact, files=files,
            parking_bytes=parking_bytes)
        self._line = Line(queue_limit)
        self._pace = Pace()
        self._batches = Batches(context, self._pace, exact=exact)
        self._forecast = Forecast()
        self._tight = False     # the cells did not suffice for those at work: nobody comes in until one of them is over
        self._now_s = now_s
        self._digest = model_digest
        self._use_adapter = use_adapter
        self._turns = Turns()

    @property
    def running(self) -> int:
        """How many answers have a slot."""
        return sum(1 for _ in self._busy())

    @property
    def queued(self) -> int:
        """How many answers wait."""
        return len(self._line)

    @property
    def request_ids(self) -> list[str]:
        """All that are at work or wait."""
        return [answer.request_id for answer in (*(answer for _, answer in self._busy()), *self._line.answers)]

    @property
    def has_work(self) -> bool:
        """Whether a step would do something."""
        return bool(self.queued or self.running)

    def submit(self, answer: Answer) -> Events:
        """Take an answer in, or refuse it when its queue is full. Peers can't fill the owner's."""
        if not self._line.put(answer, free=max(0, self._most - self.running)):
            answer.close()
            return [(answer.request_id, failed(EngineBusy()))]
        return self._positions(answer)

    def cancel(self, request_id: str) -> Events:
        """Drop an answer now; it is decoded no further. Unknown ids are ignored: it may just have ended."""
        waiting = self._line.find(request_id)
        if waiting is not None:
            self._line.take(waiting)
            return [self._ended(waiting)]
        for slot, answer in self._busy():
            if answer.request_id == request_id:
                return [self._leave(slot, answer)]
        return []

    def forget(self, principal: str) -> None:
        """Remember nothing of this principal any more."""
        self._memory.forget_principal(principal)

    def copy_ahead(self) -> bool:
        """Copy something that is remembered to where it is in nobody's way, while there is time; False when all is."""
        return self._memory.copy_ahead()

    def put_away(self) -> bool:
        """Write something that is remembered to disk, while there is time; False when nothing is left to write."""
        return self._memory.put_away()

    def admit(self) -> Events:
        """Begin with who fits, as step() would, and decode nothing yet: that somebody was begun with is told before
        anything is computed for it, so that whoever leaves during the first decode is charged."""
        return self._admit()

    def step(self) -> Events:
        """Admit who fits, decode once, sample. Returns the events in order."""
        events = self._admit()
        self._context.begin_batch()
        adapter, company = self._next_adapter(), self._company()
        batch, read = self._batches.fill([pair for pair in self._busy() if pair[1].adapter == adapter], company)
        if not batch:
            return events
        self._use_adapter(adapter)
        begun_s = self._now_s()
        result = self._decode()
        if result == 1 and self._shed():
            return [*events, *self._positions()]    # the next step is smaller
        if result != 0:
            return [*events, *self._drop(batch)]
        for slot, added in batch:
            slot.tokens += added
            if slot.answer is not None and len(slot.tokens) in slot.answer.boundaries:
                self._memory.checkpoint(slot)
            if slot.answer is not None and slot.noted < len(slot.tokens) == len(slot.answer.prompt):
                self._memory.note(slot)     # others may begin like it while it is being answered
        events += self._reading()
        for slot, added in batch:
            if slot.row >= 0 and slot.answer is not None:
                events += self._sample(slot, slot.answer, len(added))
        if read:
            beside = sum(len(added) for _, added in batch) - read
            self._pace.learn(company, read, self._now_s() - begun_s, beside)
        return events

    # -- admission

    def _admit(self) -> Events:
        events: Events = []
        left = False
        while self._line and (answer := self._line.next(self._at_work())) is not None:
            if answer.finish_reason is not None:
                self._line.take(answer)
                events += [*self._shown(answer), self._ended(answer)]
                continue
            if self._tight and self.running:
                break
            slot = self._claim(answer)
            if slot is None:
                break
            self._line.take(answer)
            left = True
            answer.rests, answer.told_s = False, self._now_s()
            if answer.started_s is None:        # else it goes on after a rest
                answer.started_s, answer.cached_tokens = self._now_s(), len(slot.tokens)
                started = Started(answer.prompt_tokens, answer.cached_tokens, self._digest)
                events += [(answer.request_id, started), *self._shown(answer)]
        return [*events, *self._positions()] if left else events

    def _reading(self) -> Events:
        """How far those are whose prompt is being read, also while it is the turn of others: whoever waits for them at
        a distance wants to see that it moves."""
        events: Events = []
        now_s = self._now_s()
        for slot, answer in self._busy():
            if answer.pending is not None:
                continue
            if slot.unread and now_s >= answer.told_s + _READING_EVERY_S:
                answer.told_s = now_s
                events.append((answer.request_id, Reading(len(slot.tokens), len(answer.prompt))))
        return events

    def _claim(self, answer: Answer) -> Slot | None:
        """A slot for this answer; for the owner's also one that a guest's answer has to leave. None: not now."""
        while True:
            if self.running < self._most:
                slot = self._memory.claim(answer, committed_cells=self._committed())
                if slot is not None:
                    return slot
            if answer.principal != OWNER or not self._rest_one(lambda other: other.principal != OWNER):
                return None

    def _rest_one(self, may: Callable[[Answer], bool], *, forget: bool = False) -> bool:
        """Send an answer back to wait, of those that may the one that came last; False when there is none."""
        slots = [(slot, answer) for slot, answer in self._busy() if may(answer)]
        if not slots:
            return False
        slot, answer = max(slots, key=lambda pair: (pair[1].principal != OWNER, pair[1].arrival))
        answer.read_again(slot.tokens)
        if forget:
            self._memory.forget(slot)
            slot.answer = None
        else:
            self._memory.release(slot)
        answer.rests, answer.last_position = True, None
        self._line.put_back(answer)
        return True

    def _shed(self) -> bool:
        """There are not enough cells for what is at work: let the least important one wait. False when it is alone."""
        self._tight = self.running > 1 and self._rest_one(lambda _answer: True, forget=True)
        return self._tight

    def _at_work(self) -> Counter[str]:
        return Counter(answer.principal for _, answer in self._busy())

    def _positions(self, only: Answer | None = None) -> Events:
        """Tell those who wait and moved up or had to leave, or one that is new, when their turn may come."""
        events: Events = []
        now_s = self._now_s()
        at_work_s = [now_s - (answer.started_s or now_s) for _, answer in self._busy()]
        for position, answer in enumerate(self._line.order(self._at_work())):
            moved = answer.last_position is None or position < answer.last_position
            if moved and (answer.started_s is None or answer.rests) and (only is None or answer is only):
                answer.last_position = position
                expected_s = self._forecast.expected_s(position, at_work_s, self._most)
                events.append((answer.request_id, Queued(position, expected_s)))
        return events

    # -- one decode

    def _decode(self) -> int:
        result = self._context.decode()
        if result == 1 and self._memory.forget_idle():
            result = self._context.decode()
        return result

    def _sample(self, slot: Slot, answer: Answer, added: int) -> Events:
        end = slot.row + 1
        shown = answer.sample(self._context, range(end - min(answer.looks, added), end))
        events: Events = [(answer.request_id, event) for event in shown]
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

    def _drop(self, batch: list[Part]) -> Events:
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

    def _company(self) -> Company:
        """For whom the next decode must not take long."""
        busy = list(self._busy())
        owners = [answer for _, answer in busy if answer.principal == OWNER]
        written = sum(answer.pending is not None for answer in owners)
        if not written:
            return "guests" if len(owners) < len(busy) else "alone"
        unread = sum(slot.unread for slot, answer in busy if answer.pending is None)
        crowded = len(owners) - written > written and self._pace.all_at_once("burst", unread)
        return "burst" if crowded else "watched"

    # -- ends

    def _leave(self, slot: Slot, answer: Answer) -> tuple[str, Event]:
        """Free the slot; its memory stays for the principal's next prompt."""
        self._memory.release(slot)
        self._tight = False
        if answer.started_s is not None and answer.finish_reason is not None:
            self._forecast.learn(self._now_s() - answer.started_s)
        return self._ended(answer)

    def _ended(self, answer: Answer) -> tuple[str, Event]:
        answer.close()
        return answer.request_id, answer.finished()

    def _busy(self) -> Iterator[tuple[Slot, Answer]]:
        return self._memory.busy()

    def _next_adapter(self) -> str:
        groups: dict[str, set[str]] = {}
        for _, answer in self._busy():
            groups.setdefault(answer.adapter, set()).add(answer.principal)
        return self._turns.next(groups) or ""

    def _committed(self) -> int:
        """The cells that answers at work may still come to need."""
        return sum(answer.reserved_tokens - len(slot.tokens) for slot, answer in self._busy())

    @staticmethod
    def _shown(answer: Answer) -> Events:
        return [(answer.request_id, event) for event in answer.backlog()]


def failed(error: EngineError) -> Failed:
    """The event that tells of an error."""
    return Failed(error.code, str(error), error.hint)
