"""A chat in the words of the model's own template, and any prompt as token ids.

Contents come from anyone: a control token or the markup of a call written in one is broken up, so that no text can end
its turn or forge another. Must not know requests.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from offload.engine.formats import history
from offload.engine.formats.detection import format_of
from offload.engine.formats.tools import Tool
from offload.engine.library import Model
from offload.engine.template import ChatTemplate
from offload.engine.thinking import thought_marks
from offload.errors import BadPrompt
from offload.ports import ChatPrompt, Message, Prompt, TextPrompt

__all__ = ["PromptReader", "ReadChat"]

# For a file without a template: what most small instruct models were trained with.
_PLAIN_TEMPLATE = (
    "{% for message in messages %}{{ message.role }}: {{ message.content }}\n{% endfor %}"
    "{% if add_generation_prompt %}assistant:{% endif %}"
)


@dataclass(frozen=True, slots=True)
class ReadChat:
    """A chat as text and as token ids."""

    text: str
    ids: list[int]


class PromptReader:
    """Turns prompts into token ids of one model."""

    def __init__(self, model: Model) -> None:
        """Raises BadPrompt for a template that can't be read."""
        self._model = model
        self._control_texts = model.control_texts()
        self._begin_text = model.token_text(model.begin_token)
        self._end_text = model.token_text(model.end_token)
        self.source_text = model.template or _PLAIN_TEMPLATE
        self._template = ChatTemplate(self.source_text)
        self.tool_format = format_of(model.template)
        self.marks = thought_marks(model.template)

    def ids(self, prompt: Prompt) -> list[int]:
        """The prompt's token ids. Raises BadPrompt."""
        match prompt:
            case ChatPrompt(messages=messages):
                return self.read(messages).ids
            case TextPrompt(text=text):
                return self._model.tokenise(text, begin=True, control=False)
            case _:
                if any(not 0 <= token < self._model.size for token in prompt.ids):
                    raise BadPrompt("A token id is outside the model's vocabulary.")
                return list(prompt.ids)

    def read(self, messages: Sequence[Message], tools: Sequence[Tool] = (), *, thinking: bool = False) -> ReadChat:
        """A chat, with the tools that the model may call. Raises BadPrompt."""
        text = self.render(messages, tools, thinking=thinking)
        begins = bool(self._begin_text) and text.startswith(self._begin_text)
        return ReadChat(text, self._model.tokenise(text, begin=not begins, control=True))

    def render(self, messages: Sequence[Message], tools: Sequence[Tool] = (), *, thinking: bool = False) -> str:
        """The chat as the model reads it, up to where its answer begins. Raises BadPrompt."""
        rendering = history.prepare_messages(
            map(_turn, messages), self.tool_format, self.source_text, tools, control_texts=self._control_texts,
            thinking=thinking)
        return self._template.render({
            "bos_token": self._begin_text, "eos_token": self._end_text, **rendering.options,
            "messages": list(rendering.messages), "tools": list(rendering.tools) if rendering.tools else None,
            "add_generation_prompt": True,
        })


def _turn(message: Message) -> history.Turn:
    calls = tuple(history.PastCall(call.name, call.arguments, call.call_id) for call in message.calls)
    return history.Turn(message.role, message.content, message.thought, calls, message.call_id)
