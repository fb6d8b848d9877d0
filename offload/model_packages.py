"""Model files inside installed Python packages, found by the package's own list of files. Nothing of it is imported.

Must not know what is done with a file.
"""

import importlib.metadata
from pathlib import Path

from offload.model_errors import NoSuchPackage

__all__ = ["PREFIX", "models_of_package"]

PREFIX = "package:"
_FILES_LIMIT = 64


def models_of_package(name: str) -> list[Path]:
    """The GGUF files of one installed distribution, by path. Raises NoSuchPackage."""
    try:
        distribution = importlib.metadata.distribution(name)
    except (importlib.metadata.PackageNotFoundError, ValueError):
        raise NoSuchPackage(f"The package {name!r} is not installed beside kith.") from None
    listed = [Path(str(distribution.locate_file(file))) for file in distribution.files or () if file.suffix == ".gguf"]
    found = sorted(path for path in listed if path.is_file())
    if not found:
        raise NoSuchPackage(f"The package {name!r} holds no GGUF model.")
    return found[:_FILES_LIMIT]
