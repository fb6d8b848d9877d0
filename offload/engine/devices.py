"""The graphics cards that this build of llama.cpp can compute on, with their free memory.

Asks ggml's device registry, which the Python package does not bind. Must not know models or how layers are chosen.
"""

import ctypes
from pathlib import Path

from offload.engine.library import C, ggml
from offload.gpu_layers import Device

__all__ = ["can_offload", "device_nodes", "find_devices"]

_CARDS = frozenset({1, 2})      # enum ggml_backend_dev_type: GPU, IGPU
_MOST_DEVICES = 16
_NODES = ("dri", "kfd", "nvidiactl", "nvidia-uvm", "nvidia-uvm-tools", "nvidia-modeset")


def can_offload() -> bool:
    """Whether this build has a backend for cards at all."""
    return bool(C.llama_supports_gpu_offload())


def find_devices() -> tuple[Device, ...]:
    """The cards that are there. Initialises the backends, so it comes before the box is shut."""
    if not can_offload():
        return ()
    library = ggml.libggml
    library.ggml_backend_dev_count.restype = ctypes.c_size_t
    library.ggml_backend_dev_get.restype = ctypes.c_void_p
    library.ggml_backend_dev_get.argtypes = [ctypes.c_size_t]
    for name in ("name", "description"):
        ask = getattr(library, f"ggml_backend_dev_{name}")
        ask.restype, ask.argtypes = ctypes.c_char_p, [ctypes.c_void_p]
    library.ggml_backend_dev_type.argtypes = [ctypes.c_void_p]
    size = ctypes.POINTER(ctypes.c_size_t)
    library.ggml_backend_dev_memory.argtypes = [ctypes.c_void_p, size, size]
    library.ggml_backend_dev_memory.restype = None
    found = []
    for place in range(min(_MOST_DEVICES, library.ggml_backend_dev_count())):
        handle = library.ggml_backend_dev_get(place)
        if library.ggml_backend_dev_type(handle) in _CARDS:
            free, total = ctypes.c_size_t(), ctypes.c_size_t()
            library.ggml_backend_dev_memory(handle, ctypes.byref(free), ctypes.byref(total))
            found.append(Device(
                _text(library.ggml_backend_dev_name(handle)), _text(library.ggml_backend_dev_description(handle)),
                free.value, total.value))
    return tuple(found)


def device_nodes() -> tuple[str, ...]:
    """The files through which a driver reaches cards, as far as they exist. The box leaves them open when one is used.
    """
    fixed = (f"/dev/{name}" for name in _NODES)
    cards = (str(path) for path in Path("/dev").glob("nvidia[0-9]*"))
    return tuple(path for path in (*fixed, *cards) if Path(path).exists())


def _text(raw: bytes | None) -> str:
    return raw.decode("utf-8", errors="replace") if raw else ""
