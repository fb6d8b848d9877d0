"""Renders a chat template as the engine does: the same sandbox, plus the tag that only trainers need."""

from collections.abc import Mapping
from typing import Any

from jinja2 import nodes
from jinja2.ext import Extension, loopcontrols
from jinja2.parser import Parser

from offload.engine.chat import _sandbox
from offload.engine.formats.history import Rendering

__all__ = ["render"]


class _Generation(Extension):
    """{% generation %} marks what is trained on; for a prompt it means nothing."""

    tags = {"generation"}      # noqa: RUF012

    def parse(self, parser: Parser) -> list[nodes.Node]:
        next(parser.stream)
        return parser.parse_statements(("name:endgeneration",), drop_needle=True)


def render(template: str, rendering: Rendering, **more: Any) -> str:
    """The prompt, its generation part included."""
    environment = _sandbox()
    environment.add_extension(_Generation)
    environment.add_extension(loopcontrols)
    options: Mapping[str, Any] = {"bos_token": "", "eos_token": "", **rendering.options, **more}
    return environment.from_string(template).render(
        messages=list(rendering.messages), tools=list(rendering.tools) if rendering.tools else None,
        add_generation_prompt=True, **options)
