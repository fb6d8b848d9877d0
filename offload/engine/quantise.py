"""One model file written again in another quantisation. Must not know where models live or who asked."""

import ctypes
import os

from offload.engine.library import C, open_library
from offload.errors import ModelUnusable

__all__ = ["FILE_TYPES", "quantise"]

FILE_TYPES = {"Q4_0": 2, "Q8_0": 7}     # LLAMA_FTYPE_MOSTLY_*


def quantise(source: str, target: str, quantisation: str, *, threads: int = 1) -> None:
    """Write target, whole or not at all: a temporary file beside it is renamed once it is complete and on disk.

    Raises ModelUnusable when llama.cpp refuses the source, OSError when the target can't be written.
    """
    open_library()
    parameters = C.llama_model_quantize_default_params()
    parameters.ftype = FILE_TYPES[quantisation]
    parameters.allow_requantize = True
    parameters.nthread = threads
    unfinished = f"{target}.unfinished"
    try:
        if C.llama_model_quantize(source.encode(), unfinished.encode(), ctypes.byref(parameters)) != 0:
            raise ModelUnusable("The model file could not be converted.")
        fd = os.open(unfinished, os.O_RDWR)
        try:
            os.fsync(fd)
        finally:
            os.close(fd)
        os.replace(unfinished, target)
    finally:
        if os.path.exists(unfinished):
            os.unlink(unfinished)
