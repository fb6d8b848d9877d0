"""Where a model is computed: which layers go to a graphics card, and opening the model so.

Where the card refuses what was chosen the model is opened on the CPU, and the words say so. Must not know requests,
the pipe or the box beyond which files a driver needs.
"""

from dataclasses import dataclass, field, replace

from offload.engine.devices import can_offload, device_nodes, find_devices
from offload.engine.library import Model
from offload.errors import ModelUnusable
from offload.gguf import read_facts
from offload.gpu_layers import choose_layers, gpu_in_words
from offload.worker_frames import Serve

__all__ = ["Placement", "choose_gpu", "open_model"]


@dataclass(frozen=True, slots=True)
class Placement:
    """layers: of the model, on cards. nodes: files that the box has to leave open for that; gap: how it tells of it."""

    layers: int = 0
    words: str = ""
    nodes: tuple[str, ...] = ()
    gap: dict[str, str] = field(default_factory=dict)


def choose_gpu(setup: Serve, file_bytes: int) -> Placement:
    """What goes to cards. Comes before the box is shut: drivers are loaded by asking for cards."""
    devices = find_devices() if setup.gpu_layers else ()
    if not devices:
        nothing = gpu_in_words((), 0, 0, built_for_it=can_offload())
        return Placement(words=nothing if setup.gpu_layers else "switched off")
    try:
        with open(setup.model_path, "rb") as file:
            facts = read_facts(file, file_bytes)
    except (OSError, ModelUnusable):
        return Placement(words="none: the model's header can't be read")      # opening it says why
    layers = choose_layers(
        devices, wanted=setup.gpu_layers, file_bytes=file_bytes, layers=facts.layers, width=facts.embedding_width,
        context_tokens=setup.context_tokens)
    words = gpu_in_words(devices, layers, facts.layers, built_for_it=True)
    if not layers:
        return Placement(words=words)
    return Placement(layers, words, device_nodes(), {"devices": "open for the graphics card"})


def open_model(setup: Serve, placement: Placement) -> tuple[Model, Placement]:
    """The model, and where it really is computed. Raises ModelUnusable."""
    try:
        model = Model(setup.model_path, extra_buffers=setup.extra_buffers, gpu_layers=placement.layers)
    except ModelUnusable:
        if not placement.layers:
            raise
        model = Model(setup.model_path, extra_buffers=setup.extra_buffers)
        placement = replace(placement, layers=0, words="none: the card refused the model")
    return model, placement
