"""How many of a model's layers go to a graphics card, chosen by the memory that is free there. Pure.

Must not know llama.cpp, files or how free memory is found out.
"""

from dataclasses import dataclass

__all__ = ["AUTOMATIC", "Device", "choose_layers", "gpu_in_words"]

AUTOMATIC = -1
_SPARE_BYTES = 512 * 1024 * 1024        # for the card's own buffers and whatever else uses it
_SPARE_SHARE = 0.1
_CACHE_BYTES_PER_WIDTH = 4              # keys and values, two bytes each; models that share heads need less


@dataclass(frozen=True, slots=True)
class Device:
    """One graphics card as the inference library sees it."""

    name: str
    description: str
    free_bytes: int
    total_bytes: int


def choose_layers(
    devices: tuple[Device, ...], *, wanted: int, file_bytes: int, layers: int, width: int, context_tokens: int,
) -> int:
    """How many layers to compute on cards; layers + 1 is all of them with the output.

    wanted: AUTOMATIC, or the owner's number, taken as it is but for more than there are. The cards' free memory counts
    together, less a spare on each. A layer costs its share of the file and its part of the cache.
    """
    if not devices or wanted == 0 or layers <= 0:
        return 0
    if wanted != AUTOMATIC:
        return min(wanted, layers + 1)
    room = sum(max(0, one.free_bytes - max(_SPARE_BYTES, int(one.free_bytes * _SPARE_SHARE))) for one in devices)
    per_layer = file_bytes // (layers + 1) + _CACHE_BYTES_PER_WIDTH * width * context_tokens
    return min(layers + 1, room // max(1, per_layer))


def gpu_in_words(devices: tuple[Device, ...], used_layers: int, layers: int, *, built_for_it: bool) -> str:
    """What doctor shows."""
    if not built_for_it:
        return "none: this build of llama.cpp computes on the CPU only"
    if not devices:
        return "none: no card was found"
    cards = ", ".join(
        f"{one.description or one.name} ({one.free_bytes / 1e9:.1f} of {one.total_bytes / 1e9:.1f} GB free)"
        for one in devices)
    return f"{min(used_layers, layers)} of {layers} layers on {cards}"
