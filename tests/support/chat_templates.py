"""Chat templates of published models, as they lie in the source archive of llama-cpp-python; skips where it is absent.

They are read where the package manager keeps them, never copied.
"""

import os
from pathlib import Path

import pytest

__all__ = ["chat_template", "chat_templates"]

_BELOW = "sdists-v*/pypi/llama-cpp-python/*/*/src/vendor/llama.cpp/models/templates"


def chat_templates() -> dict[str, str]:
    """All of them by name; skips the test when there are none."""
    cache = Path(os.environ.get("UV_CACHE_DIR") or Path.home() / ".cache" / "uv")
    folders = sorted(cache.glob(_BELOW))
    if not folders:
        pytest.skip("the source archive of llama-cpp-python is not unpacked here")
    return {path.stem: path.read_text(encoding="utf-8") for path in sorted(folders[0].glob("*.jinja"))}


def chat_template(name: str) -> str:
    """One of them."""
    found = chat_templates()
    if name not in found:
        pytest.skip(f"this archive has no template {name}")
    return found[name]
