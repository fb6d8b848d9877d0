"""The locks answer pyproject.toml, and the set-up's own reader of locks refuses what is not pinned by digest."""

from __future__ import annotations

import sys
import tomllib
from types import ModuleType

import pytest
from checkout import ROOT
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name


@pytest.fixture(scope="module")
def locks() -> ModuleType:
    sys.path.insert(0, str(ROOT / "scripts"))
    try:
        import locks
    finally:
        sys.path.remove(str(ROOT / "scripts"))
    return locks


def project() -> dict:
    return tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))


def versions(locks: ModuleType, name: str) -> dict[str, set[str]]:
    found: dict[str, set[str]] = {}
    for entry in locks.read((ROOT / name).read_text(encoding="utf-8")):
        found.setdefault(canonicalize_name(entry.name), set()).add(entry.version)
    return found


@pytest.mark.parametrize("group", ["dependencies", "build", "dev"])
def test_every_requirement_is_locked_in_a_version_that_fits(locks: ModuleType, group: str) -> None:
    declared = (
        project()["project"]["dependencies"] if group == "dependencies" else project()["dependency-groups"][group]
    )
    locked = versions(locks, "requirements-dev.lock" if group == "dev" else "requirements.lock")
    for text in declared:
        requirement = Requirement(text)
        found = locked.get(canonicalize_name(requirement.name))
        assert found, f"{requirement.name} is not locked: regenerate the lock (CONTRIBUTING.md)"
        assert all(requirement.specifier.contains(version) for version in found), text


def test_both_locks_agree(locks: ModuleType) -> None:
    run, dev = versions(locks, "requirements.lock"), versions(locks, "requirements-dev.lock")
    shared = run.keys() & dev.keys()
    assert shared
    assert {name: (run[name], dev[name]) for name in shared if run[name] != dev[name]} == {}


ONE = "left==1.0 \\\n    --hash=sha256:" + "a" * 64 + "\n    # via x\n"
TWO = 'right==2.0 ; os_name == "nt" \\\n    --hash=sha256:' + "b" * 64 + " \\\n    --hash=sha256:" + "c" * 64 + "\n"


def test_one_requirement_is_taken_out_whole(locks: ModuleType) -> None:
    assert locks.without(ONE + TWO, frozenset({"left"})) == TWO
    assert locks.without(ONE + TWO, frozenset({"right"})) == ONE


def test_one_requirement_is_found(locks: ModuleType) -> None:
    found = locks.find(ONE + TWO, "right")
    assert (found.version, found.digests, found.text) == ("2.0", frozenset({"b" * 64, "c" * 64}), TWO)


@pytest.mark.parametrize("text", ["bare==1.0\n", ONE + "bare==1.0\n", "bare==1.0\n" + ONE])
def test_a_requirement_without_a_digest_is_refused(locks: ModuleType, text: str) -> None:
    with pytest.raises(ValueError, match="bare has no sha256 digest"):
        locks.read(text)


def test_an_unknown_name_is_refused(locks: ModuleType) -> None:
    with pytest.raises(LookupError, match="middle"):
        locks.without(ONE + TWO, frozenset({"middle"}))
    with pytest.raises(LookupError, match="middle"):
        locks.find(ONE + TWO, "middle")
