"""What a request's tool choice means for one model: which tools it sees, which grammar holds it and from when.

Must not know samplers, templates' rendering or who runs a tool.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

from offload.engine.formats.errors import BadTools
from offload.engine.formats.format import ToolFormat
from offload.engine.formats.parser import AnswerParser
from offload.engine.formats.tools import Tool
from offload.engine.thinking import starts_inside, thought_marks
from offload.language import Node, to_gbnf

__all__ = ["SMALL_MODEL_PARAMETERS", "CallPlan", "NamedTool", "ToolChoice", "plan_calls"]

SMALL_MODEL_PARAMETERS = 500_000_000
"""Models below never write a call by themselves: they are always held to one, and whether to call is decided before."""


@dataclass(frozen=True, slots=True)
class NamedTool:
    """This tool and no other is to be called."""

    name: str


ToolChoice: TypeAlias = Literal["auto", "required", "none"] | NamedTool
Starts: TypeAlias = Literal["never", "at_call", "at_once"]
Forced: TypeAlias = Literal["", "required", "named", "small_model"]


@dataclass(frozen=True, slots=True)
class CallPlan:
    """How one answer is held.

    - tools: what the prompt offers and the parser knows; empty when nothing may be called.
    - language, grammar: one whole call, or several, for an automaton or as GBNF; None when nothing may be called.
    - starts: from when the grammar holds. at_once: from the first token that is not of a thought. at_call: from where
      AnswerParser.call_text is not None, that text included.
    - forced: why a call must come; thinking is then best switched off in the template.
    """

    source: ToolFormat
    tools: tuple[Tool, ...] = ()
    language: Node | None = None
    grammar: str | None = None
    starts: Starts = "never"
    forced: Forced = ""

    def parser(self, template: str | None, prompt: str, *, thought_budget_tokens: int | None = None) -> AnswerParser:
        """A parser for the output behind this rendered prompt."""
        marks = thought_marks(template)
        inside = marks is not None and starts_inside(prompt, marks)
        return AnswerParser(
            self.source, self.tools, marks=marks, inside_thought=inside, thought_budget_tokens=thought_budget_tokens)


def plan_calls(
    source: ToolFormat, tools: Sequence[Tool], *, choice: ToolChoice = "auto", parallel: bool = False,
    model_parameters: int | None = None,
) -> CallPlan:
    """The plan for one request. model_parameters: the model's size, None for unknown (not small).

    Raises BadTools: a named tool is not offered, or a call is required of no tools. BadGrammar: a parameter's bounds
    leave no value.
    """
    offered = tuple(tools)
    forced: Forced = ""
    if choice == "none":
        return CallPlan(source)
    if isinstance(choice, NamedTool):
        offered = tuple(tool for tool in offered if tool.name == choice.name)
        forced = "named"
        if not offered:
            raise BadTools(f"The tool {choice.name} is not among those offered.")
    elif choice == "required":
        forced = "required"
        if not offered:
            raise BadTools("A call is required, and no tool is offered.")
    elif model_parameters is not None and model_parameters < SMALL_MODEL_PARAMETERS:
        forced = "small_model"
    if not offered:
        return CallPlan(source)
    language = source.language(offered, parallel=parallel)
    return CallPlan(source, offered, language, to_gbnf(language), "at_once" if forced else "at_call", forced)
