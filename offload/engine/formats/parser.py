"""A model's output as it streams: thoughts, text and calls. Must not know samplers, requests or templates."""

from collections.abc import Sequence

from offload.engine.deltas import CallFinished, Delta, TextDelta, joined
from offload.engine.formats.format import ToolFormat
from offload.engine.formats.scanner import CallScanner
from offload.engine.formats.tools import Tool
from offload.engine.thinking import ThoughtMarks, ThoughtSplitter

__all__ = ["AnswerParser"]


class AnswerParser:
    """Reads one output. Never raises, whatever the output is; however it is cut, the joined deltas are the same."""

    def __init__(
        self, source: ToolFormat, tools: Sequence[Tool] = (), *, marks: ThoughtMarks | None = None,
        inside_thought: bool = False, thought_budget_tokens: int | None = None,
    ) -> None:
        """Without tools nothing is a call. marks None: the model doesn't think aloud."""
        openings = [source.trigger.text] if tools and source.call_ends_thought else []
        self._source = source
        self._tools = tuple(tools)
        self._scanner = CallScanner(source, tools)
        self._thoughts = ThoughtSplitter(
            marks, inside=inside_thought, budget_tokens=thought_budget_tokens, call_openings=openings)

    @property
    def call_text(self) -> str | None:
        """All of the call that is being written, from its opening on; None outside of calls."""
        return self._scanner.call_text

    @property
    def in_thought(self) -> bool:
        """Whether a thought is open."""
        return self._thoughts.inside

    @property
    def over_budget(self) -> bool:
        """Whether the open thought has used up its tokens."""
        return self._thoughts.over_budget

    def cut_thought(self) -> str:
        """The text that the engine writes in the model's place to end the thought; it is then fed like any other."""
        return self._thoughts.cut()

    def feed(self, text: str, *, tokens: int = 0) -> list[Delta]:
        """What this piece leads to. tokens: how many it took, counted for thoughts."""
        self._thoughts.count(tokens)
        found: list[Delta] = []
        for char in text:
            self._step(char, found)
        return joined(found)

    def end(self, *, cut: bool = False) -> list[Delta]:
        """What is left. cut: the output did not end by the model's will (length, loop, cancel): then a call of which
        more than the closing tags may be missing is text, else it is completed and flagged."""
        found, answer, suspected = self._thoughts.end(cut=cut)
        if suspected:
            found += self._suspected(suspected)
        found += self._scanner.feed(answer)
        found += self._scanner.end(cut=cut)
        return joined(found)

    def _step(self, char: str, found: list[Delta]) -> None:
        if self._scanner.in_call and not self._thoughts.inside:
            self._thoughts.skip(char)
            found += self._scanner.feed(char)
            return
        deltas, answer = self._thoughts.step(char)
        if deltas:                  # what was held back of the answer stands before them
            found += self._scanner.flush()
            found += deltas
        found += self._feed_answer(answer)

    def _feed_answer(self, answer: str) -> list[Delta]:
        return self._scanner.feed(answer) if answer else []

    def _suspected(self, text: str) -> list[Delta]:
        """A call at the end of a thought that never closed: meant, when nothing but calls is there."""
        trial = CallScanner(self._source, self._tools)
        deltas = [*trial.feed(text), *trial.end(cut=False)]
        words = any(isinstance(delta, TextDelta) and delta.text.strip() for delta in deltas)
        if words or not any(isinstance(delta, CallFinished) for delta in deltas):
            return self._thoughts.keep(text)
        self._scanner = trial
        return [*self._thoughts.call_meant(), *deltas]
