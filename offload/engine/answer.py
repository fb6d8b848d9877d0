"""One answer while it is written: what is left to read, what was written, when it ends.

Must not know batches, slots, other answers or the pipe.
"""

from collections.abc import Sequence
from typing import Protocol

from offload.engine.chat import PromptReader
from offload.engine.context import Context
from offload.engine.library import Model
from offload.engine.sampling import Sampler
from offload.engine.streaming import LoopDetector, TextStream
from offload.errors import LaneUnsupported, PromptTooLong
from offload.ports import Finished, FinishReason, GenerateRequest, Piece, Usage

__all__ = ["Answer", "NextToken", "Vocabulary", "prepare_answer"]


class Vocabulary(Protocol):
    """What an answer needs to know of its model."""

    end_tokens: frozenset[int]
    control_tokens: frozenset[int]

    def piece(self, token: int) -> bytes:
        """The bytes of a token, empty for a control token."""
        ...


class NextToken(Protocol):
    """Chooses tokens (sampling.Sampler)."""

    def next(self, context: Context, row: int) -> int | None:
        """The next token after this row of the last decode."""
        ...

    def close(self) -> None:
        """Free it."""
        ...


class Answer:
    """The state of one request from admission to its last event."""

    def __init__(
        self, request: GenerateRequest, vocabulary: Vocabulary, sampler: NextToken, *,
        prompt: Sequence[int], replayed: Sequence[int], context_tokens: int,
    ) -> None:
        """prompt: all ids to read first, text so far included; replayed: those of text so far that were ids before.

        Raises PromptTooLong.
        """
        room = min(context_tokens, request.context_limit or context_tokens) - len(prompt)
        if room < 1:
            raise PromptTooLong()
        self.request_id = request.request_id
        self.principal = request.principal
        self.prompt = list(prompt)
        self.exact = request.lane == "exact"
        self.fixed_tokens = len(prompt) - len(replayed)      # read in chunks; the exact lane reads the rest one by one
        self.most_new = min(request.max_tokens, room)
        self.pending: int | None = None       # sampled, shown, not yet decoded
        self.cached_tokens = 0
        self.finish_reason: FinishReason | None = None
        self._vocabulary = vocabulary
        self._sampler = sampler
        self._stream = TextStream(request.stop)
        self._loop = LoopDetector()
        self._skip_chars = len(request.text_so_far) if replayed else 0
        self._new = 0
        self._backlog = self._replay(replayed)

    @property
    def reserved_tokens(self) -> int:
        """The memory cells that it may come to need."""
        return len(self.prompt) + self.most_new

    def sample(self, context: Context, row: int) -> Piece | None:
        """Choose the next token after this row; returns what it lets us show. May set finish_reason."""
        token = self._sampler.next(context, row)
        if token is None or token in self._vocabulary.end_tokens or token in self._vocabulary.control_tokens:
            return self._end("stop", ())
        self.pending = token
        self._new += 1
        text = self._fresh(self._stream.feed(self._vocabulary.piece(token)))
        stuck = self._loop.feed(token)
        if self._stream.stopped:
            return self._end("stop", (token,), text)
        if stuck:
            return self._end("loop", (token,), text)
        if self._new >= self.most_new:
            return self._end("length", (token,), text)
        return Piece(text, (token,))

    def backlog(self) -> Piece | None:
        """Text of the ids so far that was not shown before. Once."""
        text, self._backlog = self._backlog, ""
        return Piece(text) if text else None

    def finished(self) -> Finished:
        """The last event, once finish_reason is set."""
        usage = Usage(len(self.prompt), self.cached_tokens, self._new)
        return Finished(self.finish_reason or "cancelled", usage)

    def close(self) -> None:
        """Free the sampler."""
        self._sampler.close()

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
    sampler = Sampler(
        model, temperature=request.temperature, top_p=request.top_p, seed=request.seed, grammar=request.grammar)
    try:
        sampler.follow(so_far)
        return Answer(
            request, model, sampler, prompt=[*prompt, *so_far], replayed=replayed, context_tokens=context_tokens)
    except BaseException:
        sampler.close()
        raise


def _are_of(model: Model, ids: Sequence[int], text: str) -> bool:
    if any(not 0 <= token < model.size for token in ids):
        return False
    return model.text_of(tuple(ids)).decode("utf-8", errors="replace").startswith(text)
