"""A chat template that runs in Jinja's immutable sandbox: it comes out of an untrusted file.

Must not know messages, tools or models.
"""

import json
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any, NoReturn

from jinja2 import Environment, TemplateError, nodes
from jinja2.ext import Extension, loopcontrols
from jinja2.parser import Parser
from jinja2.sandbox import ImmutableSandboxedEnvironment

from offload.errors import BadPrompt

__all__ = ["ChatTemplate", "sandbox"]

_LIMIT_CHARS = 256 * 1024


class ChatTemplate:
    """One template."""

    def __init__(self, source: str) -> None:
        """Raises BadPrompt when it can't be read."""
        if len(source) > _LIMIT_CHARS:
            raise BadPrompt("The model's chat template is too long.")
        try:
            self._template = sandbox().from_string(source)
        except (TemplateError, RecursionError) as error:
            raise BadPrompt("The model's chat template can't be read.") from error

    def render(self, values: Mapping[str, Any]) -> str:
        """The text. Raises BadPrompt when the template refuses these values or fails at them."""
        try:
            return self._template.render(values)
        except (TemplateError, TypeError, ValueError, LookupError, ArithmeticError, RecursionError) as error:
            raise BadPrompt(f"The model's chat template refuses these messages ({type(error).__name__}).") from error


class _Generation(Extension):
    """{% generation %} marks what is trained on; for a prompt it means nothing."""

    tags = {"generation"}      # noqa: RUF012

    def parse(self, parser: Parser) -> list[nodes.Node]:
        next(parser.stream)
        return parser.parse_statements(("name:endgeneration",), drop_needle=True)


def sandbox() -> Environment:
    """Where templates run, with the helpers that published ones expect."""
    environment = ImmutableSandboxedEnvironment(
        trim_blocks=True, lstrip_blocks=True, extensions=[_Generation, loopcontrols])
    environment.filters["tojson"] = _to_json
    environment.globals["raise_exception"] = _refuse
    environment.globals["strftime_now"] = lambda form: datetime.now(UTC).strftime(form)
    return environment


def _to_json(value: Any, **_options: Any) -> str:
    return json.dumps(value, ensure_ascii=False)


def _refuse(message: str) -> NoReturn:
    raise TemplateError(message)
