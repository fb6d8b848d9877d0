"""The port through which an evaluation asks something to choose a tool.

Must not know what chooses, or what is right.
"""

from typing import Any, Literal, Protocol

import msgspec

from offload.evaluation.cases import Case

__all__ = ["Choice", "ChoiceKind", "Chooser"]

ChoiceKind = Literal["call", "none", "ask", "broken"]


class Choice(msgspec.Struct, frozen=True, kw_only=True):
    """What was chosen: a call, nothing fitting, a question back, or nothing that can be read.

    text: the question back, or what could not be read. prompt_tokens, output_tokens and tries: of all tries together.
    """

    kind: ChoiceKind
    name: str = ""
    arguments: dict[str, Any] = {}
    text: str = ""
    prompt_tokens: int = 0
    output_tokens: int = 0
    tries: int = 1


class Chooser(Protocol):
    """Chooses a tool, or none."""

    async def choose(self, case: Case) -> Choice:
        """One choice. Looks at messages and tools only, never at what is right. Raises EngineError when the model
        can't answer at all."""
        ...
