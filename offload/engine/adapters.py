"""The LoRA adapters of one model, each opened when it is first asked for. Belongs to the thread that decodes.

A context computes with one at a time: the scheduler keeps answers with different ones out of each other's decodes. Must
not know requests or where adapters are kept.
"""

from collections.abc import Mapping
from typing import Any

from offload.engine.library import C, Model
from offload.errors import BadAdapter

__all__ = ["Adapters"]


class Adapters:
    """By digest. They are freed with the model."""

    def __init__(self, model: Model, paths: Mapping[str, str]) -> None:
        self._model = model
        self._paths = paths
        self._open: dict[str, Any] = {}

    def open(self, digest: str) -> None:
        """Make sure that this one can be used; "" is none and always can. Raises BadAdapter."""
        if not digest or digest in self._open:
            return
        path = self._paths.get(digest)
        handle = C.llama_adapter_lora_init(self._model.handle, path.encode()) if path is not None else None
        if not handle:
            raise BadAdapter()
        self._open[digest] = handle

    def handle(self, digest: str) -> Any:
        """What llama.cpp knows it by; None for "" and for one that is not open."""
        return self._open.get(digest)
