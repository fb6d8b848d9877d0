"""A chat in the words of the model's own template, and any prompt as token ids.

The template comes out of an untrusted file: it runs in Jinja's immutable sandbox. Contents come from anyone: a control
token written in one is broken up, so that no text can end its turn or forge another. Must not know requests.
"""

import json
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any, NoReturn

from jinja2 import Environment, TemplateError
from jinja2.sandbox import ImmutableSandboxedEnvironment

from offload.engine.library import Model
from offload.errors import BadPrompt
from offload.ports import ChatPrompt, Message, Prompt, TextPrompt

__all__ = ["PromptReader"]

_TEMPLATE_LIMIT_CHARS = 256 * 1024
_ZERO_WIDTH_SPACE = "\u200b"
# For a file without a template: what most small instruct models were trained with.
_PLAIN_TEMPLATE = (
    "{% for message in messages %}{{ message.role }}: {{ message.content }}\n{% endfor %}"
    "{% if add_generation_prompt %}assistant:{% endif %}"
)


class PromptReader:
    """Turns prompts into token ids of one model."""

    def __init__(self, model: Model) -> None:
        self._model = model
        self._control_texts = model.control_texts()
        self._begin_text = model.token_text(model.begin_token)
        self._end_text = model.token_text(model.end_token)
        source = model.template or _PLAIN_TEMPLATE
        if len(source) > _TEMPLATE_LIMIT_CHARS:
            raise BadPrompt("The model's chat template is too long.")
        try:
            self._template = _sandbox().from_string(source)
        except TemplateError as error:
            raise BadPrompt("The model's chat template can't be read.") from error

    def ids(self, prompt: Prompt) -> list[int]:
        """The prompt's token ids. Raises BadPrompt."""
        match prompt:
            case ChatPrompt(messages=messages):
                return self._chat_ids(messages)
            case TextPrompt(text=text):
                return self._model.tokenise(text, begin=True, control=False)
            case _:
                if any(not 0 <= token < self._model.size for token in prompt.ids):
                    raise BadPrompt("A token id is outside the model's vocabulary.")
                return list(prompt.ids)

    def render(self, messages: Sequence[Message]) -> str:
        """The chat as the model reads it, up to where its answer begins. Raises BadPrompt."""
        turns = [{"role": turn.role, "content": self._defuse(turn.content)} for turn in messages]
        try:
            return self._template.render(
                messages=turns, tools=None, add_generation_prompt=True, enable_thinking=False,
                bos_token=self._begin_text, eos_token=self._end_text,
            )
        except (TemplateError, TypeError, ValueError, LookupError, ArithmeticError) as error:
            raise BadPrompt(f"The model's chat template refuses these messages ({type(error).__name__}).") from error

    def _chat_ids(self, messages: Sequence[Message]) -> list[int]:
        text = self.render(messages)
        begins = bool(self._begin_text) and text.startswith(self._begin_text)
        return self._model.tokenise(text, begin=not begins, control=True)

    def _defuse(self, content: str) -> str:
        for text in self._control_texts:
            if text in content:
                content = content.replace(text, text[0] + _ZERO_WIDTH_SPACE + text[1:])
        return content


def _sandbox() -> Environment:
    environment = ImmutableSandboxedEnvironment(trim_blocks=True, lstrip_blocks=True)
    environment.filters["tojson"] = _to_json
    environment.globals["raise_exception"] = _refuse
    environment.globals["strftime_now"] = lambda form: datetime.now(UTC).strftime(form)
    return environment


def _to_json(value: Any, **_options: Any) -> str:
    return json.dumps(value, ensure_ascii=False)


def _refuse(message: str) -> NoReturn:
    raise TemplateError(message)
