"""What every tool format can do: tell its template, give the language of its calls, write and read them.

A format is a stateless object. The model's own template renders prompts; a format only says which shape of messages it
needs. Must not know any one format, requests or samplers.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from offload.engine.formats.scanner import BlockFactory
from offload.engine.formats.tools import Tool
from offload.language import Node, to_gbnf

__all__ = ["CALLS_LIMIT", "MessageShape", "ToolFormat", "Trigger", "WrittenCall", "grammar"]

CALLS_LIMIT = 8
"""How many parallel calls a grammar allows."""


@dataclass(frozen=True, slots=True)
class Trigger:
    """The text at which a lazy grammar begins, itself included; only_first: only as the beginning of the answer."""

    text: str
    only_first: bool = False

    @property
    def pattern(self) -> str:
        """The same for llama.cpp's lazy grammars: the grammar begins where the group does."""
        group = f"({re.escape(self.text)}[\\s\\S]*)"
        return f"^\\s*{group}" if self.only_first else f"[\\s\\S]*?{group}"


@dataclass(frozen=True, slots=True)
class MessageShape:
    """The messages that a template takes.

    - tools_by_template: it renders a list of tools itself (`tools=`); else they go into the first message as text.
    - calls_by_template: it renders tool_calls of assistant turns, arguments as a mapping; else they go in as content.
    - tool_role, system_role: it knows such turns; else they become a user's.
    - alternating: user and assistant must take turns.
    - one_call: at most one call in a turn.
    - reasoning_key: the field for an assistant's thought, None when there is none.
    - options: further arguments of the template.
    """

    tools_by_template: bool
    calls_by_template: bool
    tool_role: bool = True
    system_role: bool = True
    alternating: bool = False
    one_call: bool = False
    reasoning_key: str | None = None
    options: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class WrittenCall:
    """A call to be written into a history."""

    name: str
    arguments: Mapping[str, Any]


class ToolFormat(BlockFactory, Protocol):
    """One way in which models write calls."""

    @property
    def name(self) -> str:
        """A short id, such as "qwen-xml"."""
        ...

    @property
    def trigger(self) -> Trigger:
        """Where a lazy grammar begins."""
        ...

    @property
    def markers(self) -> tuple[str, ...]:
        """Texts of calls that are control tokens in such models: the engine must let them through and show them."""
        ...

    @property
    def reserved(self) -> tuple[str, ...]:
        """Texts that nobody else may put into a prompt: with them a content could forge a call, result or thought."""
        ...

    @property
    def call_ends_thought(self) -> bool:
        """Whether a call that begins inside a thought is meant."""
        ...

    def matches(self, template: str) -> bool:
        """Whether a chat template is of a model that writes calls this way."""
        ...

    def message_shape(self, template: str) -> MessageShape:
        """What the template needs."""
        ...

    def describe(self, tools: Sequence[Tool]) -> str:
        """The tools as text, for templates that don't render them."""
        ...

    def language(self, tools: Sequence[Tool], *, parallel: bool) -> Node:
        """All outputs that are one call, or several with parallel, of these tools with valid arguments.

        It begins with the trigger's text. Raises BadGrammar for bounds that leave no value."""
        ...

    def write(self, calls: Sequence[WrittenCall]) -> str:
        """The calls as the model would have written them."""
        ...


def grammar(source: ToolFormat, tools: Sequence[Tool], *, parallel: bool) -> str:
    """The language of a format as GBNF. Raises BadGrammar."""
    return to_gbnf(source.language(tools, parallel=parallel))
