"""Finds calls in a stream of answer text, character by character: so any cut into chunks gives the same deltas.

What may become a call is held back until it is one or can't be. Must not know one format from another, nor thoughts.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from offload.engine.deltas import CallDropped, CallFinished, CallStarted, Delta, TextDelta
from offload.engine.formats.coercion import RawCall, finish_call
from offload.engine.formats.tools import Tool

__all__ = ["NOT_A_CALL", "Block", "BlockFactory", "CallScanner", "Opening"]

NOT_A_CALL = -1
BLOCK_LIMIT_CHARS = 64 * 1024
RECOVERIES_LIMIT = 8
"""How often in one answer a broken call may be cut off to look for good ones behind it."""
_SPACE_LIMIT_CHARS = 256


class Block(Protocol):
    """Reads one block of calls from behind its opening text on."""

    def step(self, char: str) -> int | None:
        """None: more to come; 0: it ended with this character; n: it had ended n characters ago, this one included;
        NOT_A_CALL: it is none."""
        ...

    @property
    def name(self) -> str:
        """The first call's tool, once it is known; empty before."""
        ...

    def calls(self, *, cut: bool) -> tuple[RawCall, ...]:
        """The calls of what was read; none when it can't be read. cut: the output did not end by the model's will, so
        nothing may be missing but the closing tags."""
        ...


@dataclass(frozen=True, slots=True)
class Opening:
    """A text that begins a block. only_first: only where nothing of the answer stands before it."""

    text: str
    only_first: bool = False


class BlockFactory(Protocol):
    """What the scanner asks a format for."""

    @property
    def closing(self) -> str:
        """The text at which a block that can't be read is cut off; empty for none. Right behind a call it is a slip."""
        ...

    def openings(self, tools: Sequence[Tool]) -> tuple[Opening, ...]:
        """The texts that begin a block."""
        ...

    def block(self, opening: str, tools: Sequence[Tool]) -> Block:
        """A reader for a block with this opening."""
        ...


class CallScanner:
    """The answer of one model turn as text and calls."""

    def __init__(self, source: BlockFactory, tools: Sequence[Tool]) -> None:
        self._source = source
        self._tools = tuple(tools)
        self._openings = source.openings(tools) if tools else ()
        self._block: Block | None = None
        self._opening = ""
        self._raw: list[str] = []       # of the block, its opening included
        self._started = False
        self._parted = ""               # the space before a call that has started
        self._held = ""                 # what may still become an opening
        self._space = ""                # white space whose meaning shows later
        self._any_text = False          # whether the answer holds anything but space
        self._behind_call = False       # with nothing but space in between
        self._index = 0                 # of the next call
        self._recoveries = 0

    @property
    def call_text(self) -> str | None:
        """All of the call that is being written, from its opening on; None outside of calls."""
        return "".join(self._raw) if self._block is not None else None

    @property
    def in_call(self) -> bool:
        """Whether a call is being written."""
        return self._block is not None

    def feed(self, text: str) -> list[Delta]:
        """What these characters lead to."""
        found: list[Delta] = []
        self._run(text, found)
        return found

    def flush(self) -> list[Delta]:
        """What is held back outside of calls: something that is no answer comes in between."""
        found: list[Delta] = []
        self._release(found)
        if self._space:
            quiet = self._behind_call or not self._any_text
            found.append(TextDelta("" if quiet else self._space, self._space))
            self._space = ""
        return found

    def end(self, *, cut: bool) -> list[Delta]:
        """What is left at the end of the output."""
        found: list[Delta] = []
        while self._block is not None:
            self._give_up(found, cut=cut)
        self._release(found)
        if self._space:
            found.append(TextDelta("" if self._behind_call else self._space, self._space))
            self._space = ""
        return found

    def _release(self, found: list[Delta]) -> None:
        for char in self._held:
            self._text(char, found)
        self._held = ""

    def _run(self, text: str, found: list[Delta]) -> None:
        waiting = list(reversed(text))
        while waiting:
            char = waiting.pop()
            again = self._in_block(char, found) if self._block is not None else self._outside(char, found)
            waiting.extend(reversed(again))

    # -- outside of calls

    def _outside(self, char: str, found: list[Delta]) -> str:
        self._held += char
        while self._held:
            possible = self._possible()
            if self._held in possible:
                self._open(self._held, found)
                return ""
            if any(one.startswith(self._held) for one in possible):
                return ""
            self._text(self._held[0], found)
            self._held = self._held[1:]
        return ""

    def _possible(self) -> Sequence[str]:
        first = not (self._any_text or self._index)
        texts = [one.text for one in self._openings if first or not one.only_first]
        return [*texts, self._source.closing] if self._behind_call and self._source.closing else texts

    def _open(self, opening: str, found: list[Delta]) -> None:
        self._held = ""
        if opening == self._source.closing:
            found.append(TextDelta("", self._space + opening))
            self._space = ""
        else:
            self._block = self._source.block(opening, self._tools)
            self._opening, self._raw, self._started = opening, [opening], False

    def _start(self, name: str, found: list[Delta]) -> None:
        if not self._started and self._space:       # space around calls is no text
            found.append(TextDelta("", self._space))
            self._parted, self._space = self._space, ""
        self._started = True
        found.append(CallStarted(self._index, name))

    def _text(self, text: str, found: list[Delta]) -> None:
        if text.isspace() and self._openings and len(self._space) < _SPACE_LIMIT_CHARS:
            self._space += text
            return
        # The first text behind a call begins on a line of its own anyway.
        lead = self._space if self._any_text or not self._index else ""
        found.append(TextDelta(lead + text, self._space + text))
        self._space = ""
        self._any_text, self._behind_call = True, False

    # -- in a call

    def _in_block(self, char: str, found: list[Delta]) -> str:
        assert self._block is not None
        self._raw.append(char)
        ended = self._block.step(char)
        if ended is None:
            if not self._started and self._block.name:
                self._start(self._block.name, found)
            if len(self._raw) > BLOCK_LIMIT_CHARS:
                self._give_up(found, cut=True)
            return ""
        raw = "".join(self._raw)
        kept = len(raw) - (1 if ended == NOT_A_CALL else ended)
        raw, again = raw[:kept], raw[kept:]
        if ended == NOT_A_CALL:
            self._drop(raw, found)
            return again
        calls = self._block.calls(cut=False)
        if calls:
            self._finish(calls, raw, found)
        else:
            self._drop(raw, found)
        return again

    def _finish(self, calls: Sequence[RawCall], text: str, found: list[Delta]) -> None:
        for number, raw in enumerate(calls):
            if number or not self._started:
                self._start(raw.name, found)
            found.append(CallFinished(self._index, finish_call(raw, self._tools), "" if number else text))
            self._index += 1
        self._block, self._raw, self._behind_call, self._parted = None, [], True, ""

    def _drop(self, text: str, found: list[Delta]) -> None:
        """The block is text after all."""
        if self._started:
            found.append(CallDropped(self._index))
            if self._parted and self._any_text:     # it has been accounted for, but was not shown
                found.append(TextDelta(self._parted, ""))
        self._block, self._raw, self._parted = None, [], ""
        for char in text:
            self._text(char, found)

    def _give_up(self, found: list[Delta], *, cut: bool) -> None:
        """The block does not end: take what can be read of it, and look at what follows its broken part."""
        assert self._block is not None
        raw = "".join(self._raw)
        calls = self._block.calls(cut=cut)
        if calls:
            self._finish(calls, raw, found)
            return
        closing = self._source.closing
        at = raw.find(closing, len(self._opening)) if closing else -1
        if at < 0 or at + len(closing) == len(raw) or self._recoveries >= RECOVERIES_LIMIT:
            self._drop(raw, found)
            return
        self._recoveries += 1
        head, rest = raw[:at + len(closing)], raw[at + len(closing):]
        calls = self._read_again(head)
        if calls:
            self._finish(calls, head, found)
        else:
            self._drop(head, found)
        self._run(rest, found)

    def _read_again(self, head: str) -> tuple[RawCall, ...]:
        """The calls in the part of a broken block up to the first closing text."""
        block = self._source.block(self._opening, self._tools)
        for char in head[len(self._opening):]:
            if block.step(char) is not None:
                break
        return block.calls(cut=False)
