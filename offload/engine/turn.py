"""Writing one turn of a chat: a thought within its budget, free words, and a call or an answer held to a rule.

The rule holds from the end of the thought (a call is wanted, or a schema), or from where the model itself begins a call
(it may choose). What ends a thought that has gone on for too long is written in the model's place. Must not know
requests, batches, templates or schemas.
"""

from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Literal, Protocol

from offload.engine.context import Context
from offload.engine.output import Output
from offload.engine.writing import Advance, Writer

__all__ = ["BEHIND_THOUGHT", "HeldWriter", "Starts", "TurnWriter"]

Starts = Literal["never", "at_call", "at_once"]

BEHIND_THOUGHT = "\n\n"
"""What templates put between a thought and the answer."""


class HeldWriter(Writer, Protocol):
    """A writer under a rule, such as JumpWriter."""

    def stand_behind(self, data: bytes) -> bool:
        """Go on behind these first bytes of the language; False, and nothing changes, when it does not begin so."""
        ...

    def follow(self, tokens: Sequence[int]) -> None:
        """These were written before. Raises BadGrammar when that breaks the rule."""
        ...


class TurnWriter:
    """Writes with `free` until the rule of `held` begins."""

    def __init__(
        self, output: Output, free: Writer, held: HeldWriter | None, *, starts: Starts, trigger: bytes,
        coded: Callable[[str], bytes], ids_of: Callable[[str], list[int]], one_by_one: bool,
    ) -> None:
        """trigger: how a call must begin for its rule to hold. coded, ids_of: a text as a rule sees it, and as tokens.

        one_by_one: never more than one token in a decode.
        """
        self.looks = 1
        self._output = output
        self._free = free
        self._held = held
        self._starts: Starts = starts if held is not None else "never"
        self._trigger = trigger
        self._coded = coded
        self._ids_of = ids_of
        self._one_by_one = one_by_one
        self._holds = False
        self._must: deque[int] = deque()    # written in the model's place, next
        self._beside: tuple[int, ...] = ()  # so too, already in the last feed
        self._begun = False

    def begin(self, left: int) -> tuple[int, ...]:
        """What can be read together with the prompt."""
        if not self._begun:
            self._begun = True
            if self._starts == "at_once" and not self._output.in_thought:
                self._holds = True
        if not self._holds or self._held is None or self._must:
            return ()
        with_prompt = self._held.begin(left)
        self.looks = self._held.looks
        return with_prompt

    def advance(self, context: Context, rows: Sequence[int], left: int) -> Advance:
        """Go on; what was written in the model's place is a part of it."""
        if not self._holds and not self._must and self._output.thought_too_long:
            self._must.extend(self._ids_of(self._output.cut_thought()))
        if self._must:
            return self._say(left)
        beside, self._beside = self._beside, ()
        if self._holds and self._held is not None:
            advance = self._held.advance(context, rows, left - len(beside))
            return replace(advance, tokens=(*beside, *advance.tokens))
        return self._watch(self._free.advance(context, rows, left), left)

    def guess(self, spare: int) -> tuple[int, ...]:
        """What may follow free words."""
        if self._holds or self._must or self._output.thought_too_long:
            return ()
        return self._free.guess(spare)

    def skip(self, tokens: Sequence[int]) -> None:
        """Written in its place."""
        self._free.skip(tokens)

    def follow(self, tokens: Sequence[int]) -> None:
        """These were written before. Raises BadGrammar when they break the rule from where it holds."""
        self._begun = True
        self._holds = self._starts == "at_once" and not self._output.in_thought
        for token in tokens:
            if self._holds and self._held is not None and not self._must:
                self._output.read(token)
                self._held.follow([token])
                continue
            self._output.read(token)
            if self._must:
                self._must = deque(list(self._must)[1:] if token == self._must[0] else ())
            if not self._must and not self._holds:
                self._look_up()

    def ending(self) -> tuple[int, ...]:
        """What completes a call or an answer under the rule."""
        if not self._holds or self._held is None or self._must:
            return ()
        return (*self._beside, *self._held.ending())

    def stay_plain(self) -> None:
        """The memory takes nothing back."""
        self._free.stay_plain()
        if self._held is not None:
            self._held.stay_plain()

    def close(self) -> None:
        """Free the writers."""
        self._free.close()
        if self._held is not None:
            self._held.close()

    # -- inside

    def _watch(self, advance: Advance, left: int) -> Advance:
        """Read the free words, up to where something else has to follow."""
        for place, token in enumerate(advance.tokens, 1):
            self._output.read(token)
            if self._output.complete:
                break
            if self._look_up():
                tokens = advance.tokens[:place]
                surplus = advance.surplus + len(advance.tokens) - place
                return self._turn(tokens, tokens[-1:], left - place, surplus)
        return advance

    def _look_up(self) -> bool:
        """Whether something else has to follow what was read: a rule, or words in the model's place."""
        if self._output.thought_too_long:
            self._must.extend(self._ids_of(self._output.cut_thought()))
            return True
        if self._held is None or self._output.in_thought:
            return False
        if self._starts == "at_once":
            self._holds = True
            if not self._output.thought_cut:
                self._must.extend(self._ids_of(BEHIND_THOUGHT))
            return True
        call = self._output.call_text if self._starts == "at_call" else None
        if call is None:
            return False
        self._holds = (data := self._coded(call)).startswith(self._trigger) and self._held.stand_behind(data)
        return self._holds

    def _turn(self, tokens: tuple[int, ...], feed: tuple[int, ...], left: int, surplus: int = 0) -> Advance:
        """Put what is known to follow behind this feed."""
        if not self._holds or self._held is None or (self._must and self._one_by_one):
            return Advance(tokens, feed, surplus=surplus)
        self._beside = tuple(self._must)
        self._must.clear()
        forced = self._held.begin(left - len(self._beside))
        feed = (*feed, *self._beside, *forced)
        return Advance(tokens, feed, looks=min(self._held.looks, len(feed)), surplus=surplus)

    def _say(self, left: int) -> Advance:
        """Write what must be written in the model's place."""
        count = 1 if self._one_by_one else len(self._must)
        tokens = tuple(self._must.popleft() for _ in range(count))
        for token in tokens:
            self._output.read(token)
        self._free.skip(tokens)
        if not self._must and not self._holds and self._held is not None and not self._output.in_thought:
            self._holds = self._starts == "at_once"
        return self._turn(tokens, tokens, left - len(tokens))
