"""What a parser makes of a model's output, piece by piece, and what it says about a call.

Every delta carries `raw`, the characters of the output that it accounts for: all of them joined are the output, so
nothing a model wrote is ever lost. Must not know formats, models or tools.
"""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any, Literal, TypeAlias

__all__ = [
    "CallDropped", "CallFinished", "CallStarted", "Delta", "Fault", "FaultCode", "ReasoningDelta", "Repair",
    "TextDelta", "ThoughtEnd", "ThoughtEnded", "ToolCall", "joined",
]

Repair: TypeAlias = Literal[
    "closing",              # a closing bracket, quote or tag was missing, or one too many
    "opening",              # the opening tag was missing, or came twice
    "quotes",               # wrong quotes, or quotes and line breaks that were not escaped
    "comma",                # commas missing or too many
    "shape",                # the right parts in another arrangement than the format's
    "type",                 # a value of another type that means the same
    "positional",           # arguments without names
]
FaultCode: TypeAlias = Literal["unknown_tool", "unknown_argument", "missing_argument", "bad_value"]
ThoughtEnd: TypeAlias = Literal["closed", "budget", "call", "unfinished"]


@dataclass(frozen=True, slots=True)
class Fault:
    """What a call has wrong that can't be repaired; argument is empty for the tool itself."""

    code: FaultCode
    argument: str = ""


@dataclass(frozen=True, slots=True)
class ToolCall:
    """A call the model made.

    Arguments have the schema's types where that was possible. repairs: what the parser put right; faults: what is still
    wrong, for the caller to refuse or to ask back about.
    """

    name: str
    arguments: dict[str, Any]
    repairs: tuple[Repair, ...] = ()
    faults: tuple[Fault, ...] = ()

    @property
    def repaired(self) -> bool:
        """Whether the model's own words were not quite a call."""
        return bool(self.repairs)


@dataclass(frozen=True, slots=True)
class TextDelta:
    """A piece of the answer. text lacks what only separates it from thoughts and calls."""

    text: str
    raw: str


@dataclass(frozen=True, slots=True)
class ReasoningDelta:
    """A piece of the model's thought, never of the answer."""

    text: str
    raw: str


@dataclass(frozen=True, slots=True)
class ThoughtEnded:
    """The thought is over: closed by the model, cut by the budget, by a call, or by the end of the output."""

    reason: ThoughtEnd
    tokens: int
    raw: str = ""


@dataclass(frozen=True, slots=True)
class CallStarted:
    """The name of the index-th call is known; its arguments are being written."""

    index: int
    name: str
    raw: str = ""


@dataclass(frozen=True, slots=True)
class CallFinished:
    """The index-th call is complete. Of calls written in one block the first accounts for all of it."""

    index: int
    call: ToolCall
    raw: str


@dataclass(frozen=True, slots=True)
class CallDropped:
    """The index-th call was started but is none after all: its characters follow as text."""

    index: int
    raw: str = ""


Delta: TypeAlias = TextDelta | ReasoningDelta | ThoughtEnded | CallStarted | CallFinished | CallDropped


def joined(deltas: Iterable[Delta]) -> list[Delta]:
    """The same deltas with neighbouring pieces of text, and of thought, in one."""
    found: list[Delta] = []
    for delta in deltas:
        last = found[-1] if found else None
        if isinstance(delta, (TextDelta, ReasoningDelta)) and type(last) is type(delta):
            assert isinstance(last, (TextDelta, ReasoningDelta))
            found[-1] = replace(last, text=last.text + delta.text, raw=last.raw + delta.raw)
        else:
            found.append(delta)
    return found
