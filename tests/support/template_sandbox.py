"""Renders a chat template as the engine does, in the same sandbox."""

from typing import Any

from offload.engine.formats.history import Rendering
from offload.engine.template import ChatTemplate

__all__ = ["render"]


def render(template: str, rendering: Rendering, **more: Any) -> str:
    """The prompt, its generation part included."""
    return ChatTemplate(template).render({
        "bos_token": "", "eos_token": "", **rendering.options, **more, "messages": list(rendering.messages),
        "tools": list(rendering.tools) if rendering.tools else None, "add_generation_prompt": True})
