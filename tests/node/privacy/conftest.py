"""Fixtures of the privacy tests."""

from pathlib import Path

import pytest


@pytest.fixture
def shared_privacy() -> Path:
    """The folder of third-party development texts beside the checkout; tests skip where it is absent."""
    folder = Path(__file__).resolve().parents[4] / "shared" / "data" / "privacy"
    if not folder.is_dir():
        pytest.skip("the shared privacy data is not beside this checkout")
    return folder
