"""Where the tests find the small embedded model, and the skip when set-up has not put it there."""

import sys
from pathlib import Path

import pytest

__all__ = ["MODEL_NAME", "model_path", "models_folder"]

MODEL_NAME = "smollm2-135m-instruct"
_FILE = "SmolLM2-135M-Instruct.Q4_0.gguf"


def models_folder() -> Path:
    """The folder with the embedded model; skips the test when it is not installed."""
    checkout = Path(__file__).resolve().parents[2] / ".venv" / "share" / "kith" / "models"
    for folder in (checkout, Path(sys.prefix) / "share" / "kith" / "models"):
        if (folder / _FILE).is_file():
            return folder
    pytest.skip(f"the embedded model {_FILE} is not installed below .venv/share/kith/models (set-up does that)")


def model_path() -> Path:
    """The embedded model's file; skips the test when it is not installed."""
    return models_folder() / _FILE
