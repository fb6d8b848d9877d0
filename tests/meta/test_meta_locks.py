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


@pytest.mark.parametrize("group", ["dependencies", "build", "dev", "guard"])
def test_every_requirement_is_locked_in_a_version_that_fits(locks: ModuleType, group: str) -> None:
    declared = {
        **project()["dependency-groups"], "dependencies": project()["project"]["dependencies"],
        "guard": project()["project"]["optional-dependencies"]["guard"],
    }[group]
    named = f"requirements-{group}.lock" if group in ("dev", "guard") else "requirements.lock"
    locked = versions(locks, named)
    for text in declared:
        requirement = Requirement(text)
        found = locked.get(canonicalize_name(requirement.name))
        assert found, f"{requirement.name} is not locked: regenerate the lock (CONTRIBUTING.md)"
        assert all(requirement.specifier.contains(version) for version in found), text


@pytest.mark.parametrize("other", ["dev", "guard"])
def test_the_locks_agree(locks: ModuleType, other: str) -> None:
    run, more = versions(locks, "requirements.lock"), versions(locks, f"requirements-{other}.lock")
    shared = run.keys() & more.keys()
    assert shared
    assert {name: (run[name], more[name]) for name in shared if run[name] != more[name]} == {}


def test_an_extra_is_listed_as_the_project_declares_it(locks: ModuleType) -> None:
    text = '[project.optional-dependencies]\nmore = ["left>=1", "right<2"]\n'
    assert locks.extra(text, "more") == "left>=1\nright<2\n"
    with pytest.raises(LookupError):
        locks.extra(text, "less")


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
