"""What is under version control: no place of anyone's machine, no registry's address, no test that hides another."""

from __future__ import annotations

import re
from collections import Counter

import pytest
from checkout import ROOT, tracked_files

# put together here so that this file does not contain what it looks for
REGISTRY_HOSTS = [".".join(parts) for parts in (
    ("pypi", "org"), ("files", "pythonhosted", "org"), ("registry", "npmjs", "org"), ("deb", "debian", "org"),
    ("proxy", "golang", "org"), ("index", "crates", "io"),
)]  # fmt: skip
HOME_PATHS = re.compile("/" + r"(?:root|home/\w+|Users/\w+)/\S")
LOCKS = (
    "requirements.lock", "requirements-dev.lock", "requirements-guard.lock", "requirements-data.txt",
    "requirements-agentdojo.lock", "requirements-timelibs.lock",
)


def texts() -> dict[str, str]:
    found = {}
    for path in tracked_files():
        try:
            found[path.relative_to(ROOT).as_posix()] = path.read_text(encoding="utf-8")
        except UnicodeDecodeError:
            continue
    assert found
    return found


def test_no_registry_is_named() -> None:
    named = [(name, host) for name, text in texts().items() for host in REGISTRY_HOSTS if host in text]
    assert named == []


def test_no_path_of_a_machine() -> None:
    # tests may make up homes of people; nobody may write down where this checkout lies
    here = f"{ROOT.parent}/"
    telling = here != "/tmp/" and len(ROOT.parent.parts) > 1
    found = []
    for name, text in texts().items():
        if (HOME_PATHS.search(text) and not name.startswith("tests/")) or (telling and here in text):
            found.append(name)
    assert found == []


@pytest.mark.parametrize("lock", LOCKS)
def test_locks_carry_digests_and_no_address(lock: str) -> None:
    text = (ROOT / lock).read_text(encoding="utf-8")
    assert "://" not in text
    assert "--index-url" not in text
    assert "--find-links" not in text
    requirements = re.findall(r"^[a-z0-9][^\s=]*==", text, re.MULTILINE)
    assert requirements
    assert len(re.findall(r"--hash=sha256:[0-9a-f]{64}", text)) >= len(requirements)


def test_licence_is_there() -> None:
    text = (ROOT / "LICENSE").read_text(encoding="utf-8")
    assert "Apache License" in text
    assert "Version 2.0" in text


def test_test_files_have_names_of_their_own() -> None:
    names = Counter(path.name for path in tracked_files() if "tests" in path.parts and path.name.startswith("test_"))
    assert [name for name, count in names.items() if count > 1] == []
    assert [path for path in tracked_files() if "tests" in path.parts and path.name == "__init__.py"] == []


def test_no_lock_of_another_tool() -> None:
    # these record where each file was downloaded from
    unwanted = {"uv.lock", "poetry.lock", "pylock.toml", "Pipfile.lock"}
    assert [path.name for path in tracked_files() if path.name in unwanted] == []
