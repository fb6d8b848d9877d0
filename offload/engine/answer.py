"""One answer while it is written: what is left to read, what was written, when it ends.

Must not know batches, slots, other answers or the pipe.
"""

from collections.abc import Sequence
from typing import Protocol

from offload.engine.context import Context
from offload.engine.output import Output, Shown
from offload.engine.streaming import LoopDetector
from offload.engine.writing import Writer
from offload.errors import PromptTooLong
from offload.ports import Finished, FinishReason, GenerateRequest, Piece, ToolCall, Usage

__all__ = ["Answer", "Vocabulary"]


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
        output: Output | None = None,
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
        self.adapter = request.adapter or ""
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
        self._output = output or Output(vocabulary.piece, request.stop)
        self._loop = LoopDetector()
        self._skipped = (len(request.text_so_far), len(request.thought_so_far), request.calls_so_far) if replayed \
            else (0, 0, 0)
        self._new = 0
        self._backlog = self._replay(replayed)

    @property
    def space(self) -> tuple[str, str]:
        """Whose memory it may use: of this principal, read with this adapter."""
        return self.principal, self.adapter

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

    def sample(self, context: Context, rows: Sequence[int]) -> list[Piece | ToolCall]:
        """Go on behind these rows; returns what they let us show. May set finish_reason, and sets surplus."""
        self._guessed = 0
        advance = self._writer.advance(context, rows, self.most_new - self._new)
        self.pending, self.looks, self.surplus = list(advance.feed), advance.looks, advance.surplus
        shown = Shown()
        for place, token in enumerate(advance.tokens, 1):
            if token in self._vocabulary.end_tokens or token in self._vocabulary.control_tokens:
                return self._end("stop", advance.tokens[:place - 1], shown)
            self._new += 1
            shown += self._fresh(self._output.show(token))
            stuck = self._loop.feed(token)
            last = advance.ended and place == len(advance.tokens)
            if self._output.stopped or last:
                return self._end("length" if advance.hurried else "stop", advance.tokens[:place], shown)
            if stuck:
                return self._end_loop(advance.tokens, place, shown)
            if self._new >= self.most_new:
                return self._end("length", advance.tokens[:place], shown)
        if advance.ended:
            return self._end("length" if advance.hurried else "stop", (), shown)
        return _events(shown, advance.tokens)

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

    def backlog(self) -> list[Piece | ToolCall]:
        """What the ids so far show that was not shown before. Once."""
        shown, self._backlog = self._backlog, Shown()
        return _events(shown, ())

    def finished(self) -> Finished:
        """The last event, once finish_reason is set."""
        usage = Usage(self.prompt_tokens, self.cached_tokens, self._new)
        return Finished(self.finish_reason or "cancelled", usage)

    def close(self) -> None:
        """Free the writer."""
        self._writer.close()

    def _end_loop(self, tokens: tuple[int, ...], place: int, shown: Shown) -> list[Piece | ToolCall]:
        """Got stuck at this place. What must have an end gets its shortest one, where there is room for that."""
        rest = (*tokens[place:], *self._writer.ending())
        if len(rest) == len(tokens) - place or len(rest) > self.most_new - self._new:
            return self._end("loop", tokens[:place], shown)
        for token in rest:
            shown += self._fresh(self._output.show(token))
        self._new += len(rest)
        return self._end("loop", (*tokens[:place], *rest), shown)

    def _end(self, reason: FinishReason, tokens: tuple[int, ...], shown: Shown) -> list[Piece | ToolCall]:
        shown += self._fresh(self._output.finish(cut=reason != "stop"))
        self.finish_reason = "tool_calls" if reason == "stop" and self._output.called else reason
        return _events(shown, tokens)

    def _replay(self, tokens: Sequence[int]) -> Shown:
        shown = Shown()
        for token in tokens:
            shown += self._fresh(self._output.show(token))
            self._loop.feed(token)
        if self._output.stopped:
            self.finish_reason = "tool_calls" if self._output.called else "stop"
        return shown

    def _fresh(self, shown: Shown) -> Shown:
        """What is left of this behind what the reader already has."""
        text, thought, calls = self._skipped
        if not (text or thought or calls):
            return shown
        self._skipped = (
            text - min(text, len(shown.text)), thought - min(thought, len(shown.thought)),
            calls - min(calls, len(shown.calls)))
        return Shown(shown.text[text:], shown.thought[thought:], shown.calls[calls:])


def _events(shown: Shown, tokens: tuple[int, ...]) -> list[Piece | ToolCall]:
    piece = [Piece(shown.text, tokens, shown.thought)] if shown.text or shown.thought or tokens else []
    return [*piece, *shown.calls]
