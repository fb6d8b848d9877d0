"""Writing under a schema without sampling what is forced: `", "arguments": {"city": "` goes into the batch as it is.

Three seams keep the tokens as a model would choose them:
- head: the last sampled token is not decoded yet when the forced text behind it becomes known, so both are split into
  tokens together and the sampled one may be replaced;
- tail: a longer token might cover the end of the forced text and the start of the value, so the row before the last
  forced token is looked at too, and that token replaced when the choice there is a longer one;
- end: forced text up to the end of the language is not decoded at all, and no end token is ever sampled.

An answer always comes to an end of its language if there is one within its room: before a choice would make even the
shortest end too long, that one is written.

Must not know requests, batches or schemas.
"""

import re
from collections.abc import Sequence
from typing import Protocol

from offload.engine.automaton import State
from offload.engine.context import Context
from offload.engine.rules import SchemaRule
from offload.engine.writing import Advance
from offload.errors import BadPrompt

__all__ = ["JumpWriter", "TokenChooser", "Words"]

_LONGEST_JUMP = 48      # tokens in one decode; the rest follows in the next ones
_SPARE_TOKENS = 4       # forced text may become more tokens in two parts than in one
_PART_OF_A_CHARACTER = re.compile("[\udc80-\udcf7]")      # bytes above are markers (formats/marker_tokens.py)


class Words(Protocol):
    """What it needs to know of the vocabulary."""

    end_tokens: frozenset[int]

    def piece(self, token: int) -> bytes:
        """The bytes of a token."""
        ...

    def tokenise(self, text: str, *, begin: bool, control: bool) -> list[int]:
        """Token ids of a text."""
        ...


class TokenChooser(Protocol):
    """Chooses a token that the rule allows, as the rule stands (sampling.Sampler)."""

    def choose(self, context: Context, row: int) -> int | None:
        """The token; the rule does not go on."""
        ...

    def close(self) -> None:
        """Free it."""
        ...


class JumpWriter:
    """Writes one answer under an automaton."""

    def __init__(self, sampler: TokenChooser, rule: SchemaRule, words: Words, *, jumps: bool, can_cut: bool) -> None:
        """rule: the one that the sampler asks. jumps: False writes one token per decode, but still ends at the end.

        can_cut: False for a memory that can't drop the last token again; then the tail is left as it is.
        """
        self.looks = 1
        self._sampler = sampler
        self._rule = rule
        self._words = words
        self._jumps = jumps
        self._can_cut = can_cut
        self._forced: list[int] = []        # at the end of the last feed, not yet part of the answer
        self._before: State = rule.state    # where they begin

    def begin(self, left: int) -> tuple[int, ...]:
        """What is forced before anything was chosen."""
        ids = self._split(b"", self._must(self._rule.state))
        self._force(ids or [], self._rule.state, left)
        return tuple(self._forced)

    def advance(self, context: Context, rows: Sequence[int], left: int) -> Advance:
        """Choose one token behind what was forced, and see what that forces."""
        shown, self._forced = self._forced, []
        token = self._longer_tail(context, rows, shown)
        surplus = 0 if token is None else 1
        if token is not None:
            del shown[-1]
        elif self._rule.done or len(shown) >= left:
            return Advance(tuple(shown), ended=self._rule.done)
        else:
            token = self._sampler.choose(context, rows[-1])
        if token is None or token in self._words.end_tokens:
            return Advance(tuple(shown), surplus=surplus, ended=True)
        before = self._rule.state
        self._rule.accept(token)
        after = self._rule.state
        if self._rule.done:
            return Advance((*shown, token), surplus=surplus, ended=True)
        must = self._must(after)
        ids = self._split(self._words.piece(token), must)
        if ids and len(shown) + len(ids) <= left and self._rule.automaton.done(self._rule.behind(after, must)):
            return Advance((*shown, *ids), surplus=surplus, ended=True)
        if not self._fits(after, left - len(shown) - 1) and self._fits(before, left - len(shown), spare=0):
            self._rule.state = before
            return Advance((*shown, *self.ending()), surplus=surplus, ended=True, hurried=True)
        if not ids:
            return Advance((*shown, token), (token,), surplus=surplus)
        return self._jump(shown, token, ids, before, after, left, surplus)

    def guess(self, _spare: int) -> tuple[int, ...]:
        """Nothing: guessing inside of values costs more than it saves (measured)."""
        return ()

    def stand_behind(self, data: bytes) -> bool:
        """Go on behind these first bytes of the language; False, and nothing changes, when it does not begin so."""
        following = self._rule.automaton.walk(self._rule.automaton.start, data)
        if following is not None:
            self._rule.state = following
        return following is not None

    def follow(self, tokens: Sequence[int]) -> None:
        """These were written before. Raises BadGrammar when they break the rule."""
        for token in tokens:
            self._rule.accept(token)

    def skip(self, tokens: Sequence[int]) -> None:
        """Nothing is written in its place."""

    def ending(self) -> tuple[int, ...]:
        """What is forced already and the shortest end behind it."""
        return (*self._forced, *(self._shortest(self._rule.state) or ()))

    def stay_plain(self) -> None:
        """Leave tails as they are from now on."""
        self._can_cut = False

    def close(self) -> None:
        """Free the sampler."""
        self._sampler.close()

    # -- the seams

    def _jump(
        self, shown: list[int], token: int, ids: list[int], before: State, after: State, left: int, surplus: int,
    ) -> Advance:
        if ids[0] == token:
            shown = [*shown, token]
            self._force(ids[1:], after, left - len(shown))
            feed = (token, *self._forced)
        else:
            self._force(ids, before, left - len(shown))
            feed = tuple(self._forced)
        if not feed:        # the answer is as long as it may become
            return Advance((*shown, token), (token,), surplus=surplus)
        return Advance(tuple(shown), feed, looks=min(self.looks, len(feed)), surplus=surplus)

    def _longer_tail(self, context: Context, rows: Sequence[int], forced: list[int]) -> int | None:
        """The token that should stand in the place of the last forced one, if any; the rule then stands before it."""
        if not forced or len(rows) < 2 or not self._can_cut:
            return None
        stand = self._rule.state
        self._rule.state = self._rule.behind(self._before, self._bytes(forced[:-1]))
        token = self._sampler.choose(context, rows[-2])
        last = self._words.piece(forced[-1])
        if token is not None and token != forced[-1] and len(piece := self._words.piece(token)) > len(last) \
                and piece.startswith(last):
            return token
        self._rule.state = stand
        return None

    def _fits(self, state: State, left: int, spare: int = _SPARE_TOKENS) -> bool:
        """Whether the shortest end fits in so many tokens. spare: so many fewer."""
        fewest = self._rule.automaton.fewest(state)
        if fewest == 0 or fewest <= left - spare:       # it may end here, or: no token is shorter than a byte
            return True
        ids = self._shortest(state)
        return ids is not None and len(ids) <= left - spare

    def _shortest(self, state: State) -> list[int] | None:
        return self._split(b"", self._rule.automaton.ending(state))

    def _must(self, state: State) -> bytes:
        return self._rule.automaton.forced(state) if self._jumps else b""

    def _split(self, head: bytes, must: bytes) -> list[int] | None:
        """Head and what must follow as tokens; None where nothing must, or they would not give the same bytes."""
        text = (head + must).decode(errors="surrogateescape")
        # the forced text may end within a character; a head that begins within one stays alone
        broken = _PART_OF_A_CHARACTER.search(text)
        text = text[:broken.start()] if broken else text
        data = text.encode(errors="surrogateescape")
        if not must or len(data) <= len(head):
            return None
        try:
            ids = self._words.tokenise(text, begin=False, control=False)
        except BadPrompt:
            return None
        return ids if self._bytes(ids) == data else None

    def _force(self, ids: list[int], before: State, left: int) -> None:
        """Let these follow, as far as there is room. Before: the state where they begin."""
        self._forced, self._before = ids[:min(_LONGEST_JUMP, max(0, left))], before
        self._rule.state = self._rule.behind(before, self._bytes(self._forced))
        self.looks = 2 if self._forced and self._can_cut else 1

    def _bytes(self, tokens: Sequence[int]) -> bytes:
        return b"".join(map(self._words.piece, tokens))
