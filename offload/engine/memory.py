"""What the context remembers: a sequence of tokens per slot, kept for the next prompt that begins like it.

Only sequences of one space (a principal, and the adapter they were read with) are ever looked at for a prompt of that
space: a shared memory would tell one principal, by timing, what another one asked. Cells that two sequences share count
once. A model whose state can't be cut (recurrent, hybrid) goes back to checkpoints instead. What was not needed lately
is parked outside the context, where no decode looks past it. Must not know batches, text or the pipe.
"""

from collections.abc import Iterator, Mapping, Sequence
from itertools import count
from typing import Protocol, TypeVar

from offload.engine.answer import Answer
from offload.engine.context import Context
from offload.engine.kvfiles import Contents, KvFiles, Record, Space
from offload.engine.parking import Parked, Parking
from offload.engine.prefix import PrefixTree
from offload.engine.slot import NOBODY, Checkpoint, Slot
from offload.ports import OWNER

__all__ = ["Memory"]

_MOST_CHECKPOINTS = 4       # of one sequence; each holds the whole recurrent state
_WORTH_TOKENS = 50          # reading so many anew costs more than a file
_WORTH_PARKED_TOKENS = 8
_PARK_AFTER_DECODES = 24    # of others; a turn of the same conversation often comes sooner
# An answer that may get so long is worth it at once: out and back take what a cell in the way costs 45 decodes of one
# answer, or 11 of eight (measured).
_LONG_ANSWER_TOKENS = 32
_CHECKPOINT_BUDGET_BYTES = 256 * 1024 * 1024

Holder = TypeVar("Holder", Parked, Record)
Held_co = TypeVar("Held_co", covariant=True)


class _Store(Protocol[Held_co]):
    """A place outside the context that holds sequences."""

    def matches(self, space: Space, tokens: Sequence[int]) -> Iterator[tuple[Held_co, int]]:
        """Those that begin like this, with how many tokens are the same, most first."""
        ...


class Memory:
    """The sequences of one context."""

    def __init__(
        self, context: Context, *, sequences: int, can_cut: bool, remember: bool = True, files: KvFiles | None = None,
        parking_bytes: int = 0,
    ) -> None:
        """files: where sequences go that are worth keeping and have to leave, and come back from.

        parking_bytes: how much may be kept in this process's memory outside the context; those that leave go there
        first. 0: nothing.
        """
        self.slots = [Slot(sequence) for sequence in range(sequences)]
        self._context = context
        self._can_cut = can_cut
        self._remember = remember
        self._files = files
        self._parking = Parking(parking_bytes if remember else 0)
        self._trees: dict[Space, PrefixTree[Slot]] = {}
        self._origins = count(1)
        self._clock = count(1)
        self._token_bytes = 0.0     # of a copy, the most so far
        for slot in self.slots:
            slot.origin = next(self._origins)

    # -- looking

    def busy(self) -> Iterator[tuple[Slot, Answer]]:
        """The slots with an answer at work."""
        return ((slot, slot.answer) for slot in self.slots if slot.answer is not None)

    def idle(self) -> list[Slot]:
        """The other slots, those that lose least first: empty ones, guests', longest unused."""
        idle = (slot for slot in self.slots if slot.answer is None)
        return sorted(idle, key=lambda slot: (bool(slot.tokens), slot.space[0] == OWNER, slot.used))

    def best(self, space: Space, prompt: list[int], anew: int = 1) -> tuple[Slot | None, int]:
        """Who remembers most of this prompt, and how much of it can be used.

        anew: how many tokens must be read for their logits. Of equals it is one that may be used in place.
        """
        best: Slot | None = None
        most, rank = 0, (False, 0)
        tree = self._trees.get(space)
        if tree is not None:
            for slot, same in tree.matches(prompt):
                limit = min(same, len(prompt) - anew)
                if limit < most:
                    break
                keep = self._usable(len(slot.tokens), [known.position for known in slot.checkpoints], limit)
                standing = (slot.answer is None, -len(slot.tokens))
                if keep and (best is None or (keep, standing) > (most, rank)):
                    best, most, rank = slot, keep, standing
        return best, most

    def used_cells(self, lengths: Mapping[Slot, int] = {}) -> int:
        """Cells in use, shared ones once, as if some slots held only so many tokens."""
        ends: dict[int, tuple[int, int]] = {}
        for slot in self.slots:
            for origin, begin, end in slot.spans(lengths.get(slot)):
                ends[origin] = begin, max(end, ends.get(origin, (0, 0))[1])
        return sum(end - begin for begin, end in ends.values())

    # -- taking and leaving

    def claim(self, answer: Answer, *, committed_cells: int) -> Slot | None:
        """A slot for this answer that holds what is remembered of its prompt; None when there is no room now.

        committed_cells: what the answers at work may still come to need. Makes room where that helps.
        """
        donor, keep = self.best(answer.space, answer.prompt, answer.looks)
        if self._recall(answer, keep, committed_cells):
            donor, keep = self.best(answer.space, answer.prompt, answer.looks)
        self._tidy(answer, donor)
        slot = self._claim(answer, donor, keep, committed_cells)
        if slot is None and donor is not None and donor.answer is None:
            slot = self._claim(answer, donor, keep, committed_cells, cut=True)
        if slot is None and donor is not None:
            slot = self._claim(answer, None, 0, committed_cells)
        if slot is not None:
            slot.space, slot.answer = answer.space, answer
            self.note(slot)
        return slot

    def note(self, slot: Slot) -> None:
        """Let later prompts find what this slot holds now."""
        if self._remember and slot.tokens and slot.space != NOBODY:
            self._trees.setdefault(slot.space, PrefixTree()).put(slot, slot.tokens)
            slot.noted = len(slot.tokens)

    def checkpoint(self, slot: Slot) -> None:
        """Make this position one to come back to, for a model whose state can't be cut."""
        if self._can_cut or not self._remember or any(len(slot.tokens) == known.position for known in slot.checkpoints):
            return
        state = self._context.checkpoint(slot.sequence)
        idle = (other for other in self.idle() if other.checkpoints)
        while self._checkpoint_bytes() + len(state) > _CHECKPOINT_BUDGET_BYTES:
            other = next(idle, None)
            if other is None:
                return
            other.checkpoints.clear()
        if state:
            slot.checkpoints.append(Checkpoint(len(slot.tokens), state))
        if len(slot.checkpoints) > _MOST_CHECKPOINTS:
            del slot.checkpoints[1]     # the first one is the end of the system prompt

    def release(self, slot: Slot) -> None:
        """The answer is over or rests; what was read stays for the next prompt of its space."""
        slot.used, slot.idle_from = next(self._clock), self._context.decodes
        slot.answer = None
        if not self._remember or slot.space == NOBODY:
            self.forget(slot)
        else:
            self.note(slot)

    def forget(self, slot: Slot) -> None:
        """Empty a slot."""
        self._context.forget(slot.sequence)
        self._unknow(slot)
        slot.tokens.clear()
        slot.checkpoints.clear()
        slot.origins.clear()
        slot.origin = next(self._origins)
        slot.space = NOBODY

    def forget_idle(self) -> bool:
        """Empty all idle slots; False when there was nothing in them."""
        idle = [slot for slot in self.idle() if slot.tokens]
        for slot in idle:
            self._let_go(slot)
        return bool(idle)

    def forget_principal(self, principal: str) -> None:
        """Empty the slots of a principal; those with an answer at work once it is over."""
        self._parking.forget(principal)
        for slot in self.slots:
            if slot.space[0] != principal:
                continue
            if slot.answer is None:
                self.forget(slot)
            else:
                self._unknow(slot)
                slot.space = NOBODY

    def put_away(self) -> bool:
        """Write one idle sequence to disk that is not there yet; False when nothing is left to write."""
        return any(self._save(slot) for slot in reversed(self.idle())) or any(map(self._save_parked, self._parking))

    def copy_ahead(self) -> bool:
        """Copy one idle sequence to where it would be parked, while there is time: then it leaves at once when it is in
        the way. False when none is left that has room there."""
        for slot in reversed(self.idle()):
            fits = len(slot.tokens) * self._token_bytes <= self._parking.room_bytes
            if fits and self._is_in_the_way(slot) and not self._is_parked(slot):
                parked = self._copied(slot)
                if parked is not None and parked.size_bytes <= self._parking.room_bytes:
                    self._parking.put(parked)
                    return True
        return False

    # -- inside

    def _tidy(self, answer: Answer, spared: Slot | None) -> None:
        """Park the idle sequences that would be in an answer's way, but for the one that it is about to begin with.

        While others are at work only those that were not needed for a while. Tokens go into the first free cells and
        cells are added up in their order, so that cells which become free in front of an answer change the last bits of
        what it writes later: only now, when the newcomer's prompt changes the shape of its decodes anyway.
        """
        at_once = answer.most_new >= _LONG_ANSWER_TOKENS and not any(self.busy())
        for slot in self.idle():
            if slot is spared or not (at_once or self._context.decodes - slot.idle_from >= _PARK_AFTER_DECODES):
                continue
            if self._is_in_the_way(slot):
                self._park(slot)

    def _is_in_the_way(self, slot: Slot) -> bool:
        """Whether it has enough cells of its own; parked, shared ones would take room twice."""
        alone = self.used_cells() - self.used_cells({slot: 0}) if slot.tokens else 0
        return alone >= max(_WORTH_PARKED_TOKENS, len(slot.tokens) - alone)

    def _save(self, slot: Slot) -> bool:
        if self._files is None or self._files.missing(slot.space, slot.tokens) < _WORTH_TOKENS:
            return False
        state = self._context.save(slot.sequence)
        checkpoints = [(known.position, known.state) for known in slot.checkpoints]
        return bool(state) and self._files.save(slot.space, slot.tokens, Contents(state, checkpoints))

    def _save_parked(self, parked: Parked) -> bool:
        if self._files is None or self._files.missing(parked.space, parked.tokens) < _WORTH_TOKENS:
            return False
        return self._files.save(parked.space, parked.tokens, parked.contents)

    def _park(self, slot: Slot) -> bool:
        """Move an idle slot's sequence out of the context. False: it may not be parked and is where it was."""
        if not self._is_parked(slot):
            parked = self._copied(slot)
            left = self._parking.put(parked) if parked is not None else []
            for other in left:
                if other is not parked:
                    self._save_parked(other)
            if parked is None or parked in left:
                return False
        self.forget(slot)
        return True

    def _is_parked(self, slot: Slot) -> bool:
        return self._parking.holds(slot.space, slot.tokens, tuple(known.position for known in slot.checkpoints))

    def _copied(self, slot: Slot) -> Parked | None:
        """Its sequence as one to be parked. None: it may not be, or can't."""
        if not self._parking.limit_bytes or slot.space == NOBODY:
            return None
        checkpoints = [(known.position, known.state) for known in slot.checkpoints]
        state = self._context.save(slot.sequence)
        if not state:
            return None
        parked = Parked(slot.space, list(slot.tokens), Contents(state, checkpoints))
        self._token_bytes = max(self._token_bytes, parked.size_bytes / len(slot.tokens))
        return parked

    def _recall(self, answer: Answer, keep: int, committed_cells: int) -> bool:
        """Bring back, parked or from disk, what saves enough reading. True: there is more in memory than before."""
        parked, near = self._stored(answer, self._parking)
        record, usable = self._stored(answer, self._files) if self._files is not None else (None, 0)
        found: Parked | Record | None = record if usable - near >= _WORTH_TOKENS else parked
        worth = _WORTH_PARKED_TOKENS if found is parked else _WORTH_TOKENS
        if found is None or max(near, usable) - keep < worth:
            return False
        slot = next(iter(self.idle()), None)
        if slot is None or not self._make_room({slot: 0}, (), len(found.tokens) + committed_cells):
            return False
        contents = self._fetch(found)
        if contents is None or not self._context.load(slot.sequence, contents.state):
            return False
        slot.tokens = list(found.tokens)
        slot.space, slot.used, slot.idle_from = found.space, next(self._clock), self._context.decodes
        slot.checkpoints = [Checkpoint(position, state) for position, state in contents.checkpoints]
        self.note(slot)
        return True

    def _fetch(self, found: Parked | Record) -> Contents | None:
        if isinstance(found, Parked):
            self._parking.drop(found)
            return found.contents
        return self._files.load(found) if self._files is not None else None

    def _stored(self, answer: Answer, where: "_Store[Holder]") -> tuple[Holder | None, int]:
        """What is there that has most of an answer's prompt, and how much of that can be used."""
        best: Holder | None = None
        most = 0
        if self._remember:
            for record, same in where.matches(answer.space, answer.prompt):
                limit = min(same, len(answer.prompt) - answer.looks)
                if limit <= most:
                    break
                keep = self._usable(len(record.tokens), record.positions, limit)
                if keep > most:
                    best, most = record, keep
        return best, most

    def _checkpoint_bytes(self) -> int:
        return sum(len(known.state) for known in {known for slot in self.slots for known in slot.checkpoints})

    def _usable(self, length: int, positions: Sequence[int], limit: int) -> int:
        """How much of a sequence can be used where at most `limit` tokens are the same."""
        if self._can_cut or length <= limit:
            return limit
        return max((position for position in positions if position <= limit), default=0)

    def _claim(
        self, answer: Answer, donor: Slot | None, keep: int, committed_cells: int, *, cut: bool = False,
    ) -> Slot | None:
        """cut: use an idle donor in place though most of what it holds is lost by that: there is no room for both."""
        idle = self.idle()
        if not idle:
            return None
        in_place = donor is not None and donor.answer is None and (
            keep * 2 >= len(donor.tokens) or idle == [donor] or cut)
        slot = donor if in_place and donor is not None else next((one for one in idle if one is not donor), None)
        if slot is None:
            return None
        wanted = committed_cells + answer.reserved_tokens - keep
        if not self._make_room({slot: keep if in_place else 0}, (donor,), wanted):
            return None
        if donor is not None:
            if cut:
                self._save(donor)
            self._begin_with(slot, donor, keep)
        return slot

    def _make_room(self, lengths: dict[Slot, int], spared: Sequence[Slot | None], wanted_cells: int) -> bool:
        """Let idle sequences go, least missed first, until so many more cells fit. False: they don't, all stays.

        lengths: what is to be left of some slots anyway.
        """
        free = self._context.context_tokens - wanted_cells
        for other in self.idle():
            if self.used_cells(lengths) <= free:
                break
            if other not in lengths and other not in spared and other.tokens:
                lengths[other] = 0
        if self.used_cells(lengths) > free:
            return False
        for other, length in lengths.items():
            if length == 0 and other.tokens:
                self._let_go(other)
        return True

    def _begin_with(self, slot: Slot, donor: Slot, keep: int) -> None:
        """Fill an empty slot with the beginning of another one, or cut a slot back to its own."""
        if slot is not donor:
            self._context.copy(donor.sequence, slot.sequence, keep if self._can_cut else len(donor.tokens))
            slot.tokens = donor.tokens[:keep if self._can_cut else None]
            slot.origins = donor.origins_up_to(len(slot.tokens))
            slot.origin = next(self._origins)
            slot.checkpoints = [known for known in donor.checkpoints if known.position <= keep]
        if keep < len(slot.tokens) and not self._go_back(slot, keep):
            self.forget(slot)

    def _go_back(self, slot: Slot, keep: int) -> bool:
        """Forget a slot's tokens from `keep` on. False: its memory is not to be used."""
        if not self._can_cut:
            known = next((known for known in slot.checkpoints if known.position == keep), None)
            if known is None or not self._context.restore(slot.sequence, known.state):
                return False
        if not self._context.cut(slot.sequence, keep):
            return False
        slot.origins = slot.origins_up_to(keep)
        slot.origin = next(self._origins)
        slot.checkpoints = [known for known in slot.checkpoints if known.position <= keep]
        del slot.tokens[keep:]
        self._unknow(slot)
        return True

    def _let_go(self, slot: Slot) -> None:
        if not self._park(slot):
            self._save(slot)
            self.forget(slot)

    def _unknow(self, slot: Slot) -> None:
        tree = self._trees.get(slot.space)
        slot.noted = 0
        if tree is not None:
            tree.drop(slot)
            if not tree:
                del self._trees[slot.space]
