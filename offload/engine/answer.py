"""One answer while it is written: what is left to read, what was written, when it ends.

Must not know batches, slots, other answers or the pipe.
"""

from collections.abc import Sequence
from typing import Protocol

from offload.engine.chat import PromptReader
from offload.engine.context import Context
from offload.engine.drafts import DraftWriter
from offload.engine.jump import JumpWriter
from offload.engine.library import Model
from offload.engine.rules import SchemaRule, rule_for
from offload.engine.sampling import Sampler
from offload.engine.streaming import LoopDetector, TextStream
from offload.engine.writing import PlainWriter, Writer
from offload.errors import LaneUnsupported, PromptTooLong
from offload.ports import Finished, FinishReason, GenerateRequest, Piece, Usage

__all__ = ["Answer", "Vocabulary", "prepare_answer"]


class Vocabulary(Protocol):
    """What an answer needs to know of its model."""

    end_tokens: frozenset[int]
    control_tokens: frozenset[int]

    def piece(self, token: int) -> bytes:
        """The bytes of a token, empty for a control token."""
        ...


class Answer:
    """The state of one request from admission to its last event."""

    def __init__(
        self, request: GenerateRequest, vocabulary: Vocabulary, writer: Writer, *,
        prompt: Sequence[int], replayed: Sequence[int], context_tokens: int, boundaries: Sequence[int] = (),
    ) -> None:
        """prompt: all ids to read first, text so far included; replayed: those of text so far that were ids before.

        boundaries: positions of the prompt where a later one may part from it; only for a memory that can't be cut.

        Raises PromptTooLong.
        """
        room = min(context_tokens, request.context_limit or context_tokens) - len(prompt)
        if room < 1:
            raise PromptTooLong()
        self.request_id = request.request_id
        self.principal = request.principal
        self.exact = request.lane == "exact"
        self.boundaries = frozenset(boundaries)
        self.fixed_tokens = len(prompt) - len(replayed)      # read in chunks; the exact lane reads the rest one by one
        self.prompt_tokens = len(prompt)
        self.most_new = min(request.max_tokens, room)
        self.prompt = [*prompt, *writer.begin(self.most_new)]
        self.pending: list[int] | None = None     # to be decoded next; None while the prompt is read
        self.looks = writer.looks             # how many rows at the end of the prompt or of pending are wanted
        self.surplus = 0                      # tokens at the end of the last decode that must go from the memory
        self.cached_tokens = 0
        self.arrival = 0                      # its place among all that came
        self.last_position: int | None = None    # that its reader was told
        self.started_s: float | None = None
        self.rests = False                    # it has written already, and waits to go on
        self.told_s = 0.0                     # when its reader was last told how much of its prompt is read
        self._guessed = 0
        self.finish_reason: FinishReason | None = None
        self._vocabulary = vocabulary
        self._writer = writer
        self._stream = TextStream(request.stop)
        self._loop = LoopDetector()
        self._skip_chars = len(request.text_so_far) if replayed else 0
        self._new = 0
        self._backlog = self._replay(replayed)

    @property
    def space(self) -> tuple[str, str]:
        """Whose memory it may use: of this principal, read with this adapter."""
        return self.principal, ""

    @property
    def reserved_tokens(self) -> int:
        """The memory cells that it may come to need."""
        return self.prompt_tokens + self.most_new

    def guess(self, spare: int) -> None:
        """Let up to `spare` more tokens be decoded with the pending ones, where the writer has some to try."""
        if self.pending is not None:
            if self._guessed:       # the decode of the last ones did not take place
                del self.pending[-self._guessed:]
                self.looks -= self._guessed
            more = self._writer.guess(min(spare, self.most_new - self._new - 1))
            self.pending += more
            self.looks += len(more)
            self._guessed = len(more)

    def sample(self, context: Context, rows: Sequence[int]) -> Piece | None:
        """Go on behind these rows; returns what they let us show. May set finish_reason, and sets surplus."""
        self._guessed = 0
        advance = self._writer.advance(context, rows, self.most_new - self._new)
        self.pending, self.looks, self.surplus = list(advance.feed), advance.looks, advance.surplus
        text = ""
        for shown, token in enumerate(advance.tokens, 1):
            if token in self._vocabulary.end_tokens or token in self._vocabulary.control_tokens:
                return self._end("stop", advance.tokens[:shown - 1], text)
            self._new += 1
            text += self._fresh(self._stream.feed(self._vocabulary.piece(token)))
            stuck = self._loop.feed(token)
            last = advance.ended and shown == len(advance.tokens)
            if self._stream.stopped or last:
                return self._end("stop", advance.tokens[:shown], text)
            if stuck:
                return self._end("loop", advance.tokens[:shown], text)
            if self._new >= self.most_new:
                return self._end("length", advance.tokens[:shown], text)
        if advance.ended:
            return self._end("stop", (), text)
        return Piece(text, advance.tokens) if advance.tokens else None

    def read_again(self, decoded: Sequence[int]) -> None:
        """The memory lost this answer: its prompt is now everything decoded so far and what is pending.

        While its prompt was still being read, that is just begun again.
        """
        if self.pending is not None:
            self.guess(0)
            self.prompt, self.pending = [*decoded, *self.pending], None

    def stay_plain(self) -> None:
        """The memory takes nothing back: write without ever asking for that."""
        self._writer.stay_plain()

    def backlog(self) -> Piece | None:
        """Text of the ids so far that was not shown before. Once."""
        text, self._backlog = self._backlog, ""
        return Piece(text) if text else None

    def finished(self) -> Finished:
        """The last event, once finish_reason is set."""
        usage = Usage(self.prompt_tokens, self.cached_tokens, self._new)
        return Finished(self.finish_reason or "cancelled", usage)

    def close(self) -> None:
        """Free the writer."""
        self._writer.close()

    def _end(self, reason: FinishReason, tokens: tuple[int, ...], text: str = "") -> Piece | None:
        self.finish_reason = reason
        text += self._fresh(self._stream.finish())
        return Piece(text, tokens) if text or tokens else None

    def _replay(self, tokens: Sequence[int]) -> str:
        shown = ""
        for token in tokens:
            shown += self._fresh(self._stream.feed(self._vocabulary.piece(token)))
            self._loop.feed(token)
        if self._stream.stopped:
            self.finish_reason = "stop"
        return shown

    def _fresh(self, text: str) -> str:
        """What is left of released text behind the text that the reader already has."""
        skipped = min(self._skip_chars, len(text))
        self._skip_chars -= skipped
        return text[skipped:]


def prepare_answer(
    request: GenerateRequest, model: Model, reader: PromptReader, *, context_tokens: int,
) -> Answer:
    """An answer ready for the scheduler. Touches the vocabulary only, so any thread may call it.

    Raises BadPrompt, BadGrammar, PromptTooLong, LaneUnsupported.
    """
    if request.lane == "exact" and request.temperature > 0:
        raise LaneUnsupported("The exact lane is greedy: set the temperature to 0.")
    prompt = reader.ids(request.prompt)
    replayed: tuple[int, ...] = ()
    so_far: list[int] = []
    if request.token_ids_so_far or request.text_so_far:
        ids = request.token_ids_so_far
        if ids and _are_of(model, ids, request.text_so_far):
            replayed, so_far = ids, list(ids)
        elif request.lane == "exact":
            raise LaneUnsupported("The exact lane goes on from token ids of this model, and these are not.")
        else:
            so_far = model.tokenise(request.text_so_far, begin=False, control=False)
    writer = _writer(request, model, prompt=prompt, so_far=so_far)
    try:
        return Answer(
            request, model, writer, prompt=[*prompt, *so_far], replayed=replayed, context_tokens=context_tokens,
            boundaries=_turns(prompt, model) if model.keeps_state_per_sequence else ())
    except BaseException:
        writer.close()
        raise


def _writer(request: GenerateRequest, model: Model, *, prompt: Sequence[int], so_far: Sequence[int]) -> Writer:
    """The quickest way to write this answer that its lane and its model's memory allow."""
    quick = request.shortcuts and request.lane == "normal"
    can_cut = not model.keeps_state_per_sequence
    rule = rule_for(model, grammar=request.grammar, schema=request.schema, quick=quick)
    if quick and can_cut and rule is None and request.temperature <= 0:
        return DraftWriter([*prompt, *so_far], model.end_tokens | model.control_tokens)
    sampler = Sampler(model, temperature=request.temperature, top_p=request.top_p, seed=request.seed, rule=rule)
    try:
        sampler.follow(so_far)
    except BaseException:
        sampler.close()
        raise
    if isinstance(rule, SchemaRule):
        return JumpWriter(sampler, rule, model, jumps=quick, can_cut=can_cut)
    return PlainWriter(sampler)


def _are_of(model: Model, ids: Sequence[int], text: str) -> bool:
    if any(not 0 <= token < model.size for token in ids):
        return False
    return model.text_of(tuple(ids)).decode("utf-8", errors="replace").startswith(text)


def _turns(prompt: Sequence[int], model: Model) -> list[int]:
    """The end of the first turn, where the last question begins, and where the answer does.

    The next prompt of a chat parts from this one at one of them: templates rewrite older answers (without thoughts).
    """
    begins = model.control_tokens - model.end_tokens
    starts = [position for position, token in enumerate(prompt) if position and token in begins]
    return sorted({*starts[:1], *starts[-2:]})
