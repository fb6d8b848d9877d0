"""An answer's tokens as what its reader may see: text, thoughts and calls, each apart from the others.

Text is whole characters without stop texts. Whatever a model writes comes out as one of the three; nothing raises. Must
not know samplers, requests or the pipe.
"""

import codecs
import json
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from offload.engine import deltas
from offload.engine.formats.parser import AnswerParser
from offload.engine.streaming import TextStream
from offload.ports import ToolCall

__all__ = ["Output", "Shown"]


@dataclass(frozen=True, slots=True)
class Shown:
    """What some tokens let us show."""

    text: str = ""
    thought: str = ""
    calls: tuple[ToolCall, ...] = ()

    def __add__(self, other: "Shown") -> "Shown":
        return Shown(self.text + other.text, self.thought + other.thought, self.calls + other.calls)


class Output:
    """One answer. Tokens can be read ahead of being shown, by whoever must know what they lead to."""

    def __init__(
        self, bytes_of: Callable[[int], bytes], stops: Sequence[str] = (), parser: AnswerParser | None = None, *,
        most_calls: int = 1,
    ) -> None:
        """parser: None for a model without thoughts that has no tools: all is text."""
        self._bytes_of = bytes_of
        self._stream = TextStream(stops)
        self._parser = parser
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._calls_left = most_calls
        self._ahead: deque[Shown] = deque()
        self.called = False         # whether a call was made
        self.thought_cut = False    # whether a thought was ended in the model's place

    @property
    def stopped(self) -> bool:
        """Whether nothing more may be shown: a stop text came, or the last call that is allowed is complete."""
        return not self._ahead and self.complete

    @property
    def complete(self) -> bool:
        """Whether that is so behind what was read ahead."""
        return self._stream.stopped or not self._calls_left

    @property
    def in_thought(self) -> bool:
        """Whether a thought is open behind what was read."""
        return self._parser is not None and self._parser.in_thought

    @property
    def thought_too_long(self) -> bool:
        """Whether the open thought has used up its tokens, and a whole character has just ended."""
        if self._parser is None or not self._parser.over_budget:
            return False
        half, _ = self._decoder.getstate()
        return not half

    @property
    def call_text(self) -> str | None:
        """All of the call that is being written; None outside of calls."""
        return None if self._parser is None else self._parser.call_text

    def cut_thought(self) -> str:
        """What is to be written in the model's place to end the open thought. It is then read like its own words."""
        self.thought_cut = True
        return "" if self._parser is None else self._parser.cut_thought()

    def stand_behind(self, text: str) -> None:
        """This was written and shown before."""
        if self._parser is not None:
            self._parser.feed(text)

    def read(self, token: int) -> None:
        """Read a token that will be shown later."""
        self._ahead.append(self._take(token))

    def show(self, token: int) -> Shown:
        """What the next token lets us show."""
        return self._ahead.popleft() if self._ahead else self._take(token)

    def finish(self, *, cut: bool) -> Shown:
        """What is left at the end. cut: the model did not end by itself."""
        self._ahead.clear()
        if self._parser is None:
            return Shown(self._stream.finish())
        found = self._parser.feed(self._decoder.decode(b"", final=True))
        rest = self._sorted([*found, *self._parser.end(cut=cut)])
        return rest + Shown(self._stream.finish() if self._calls_left else "")

    def _take(self, token: int) -> Shown:
        data = self._bytes_of(token)
        if self._parser is None:
            return Shown(self._stream.feed(data))
        return self._sorted(self._parser.feed(self._decoder.decode(data), tokens=1))

    def _sorted(self, found: Iterable[deltas.Delta]) -> Shown:
        text = thought = ""
        calls: list[ToolCall] = []
        for one in found:
            if self._stream.stopped or not self._calls_left:
                break
            match one:
                case deltas.TextDelta(text=more) if more:
                    text += self._stream.say(more)
                case deltas.ReasoningDelta(text=more):
                    thought += more
                case deltas.CallFinished(call=call):
                    text += self._stream.finish()       # words before a call are whole
                    calls.append(_told(call))
                    self._calls_left -= 1
                    self.called = True
                case _:
                    pass
        return Shown(text, thought, tuple(calls))


def _told(call: deltas.ToolCall) -> ToolCall:
    faults = tuple(f"{fault.code}:{fault.argument}" if fault.argument else fault.code for fault in call.faults)
    try:
        arguments = json.dumps(call.arguments, ensure_ascii=False)
        arguments.encode()
    except UnicodeEncodeError:      # half a character
        arguments = json.dumps(call.arguments)
    return ToolCall(call.name.encode(errors="replace").decode(), arguments, call.repairs, faults)
