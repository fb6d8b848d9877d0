"""A node that cannot start, or that the system stops, says why in words and with the right code: no traceback."""

import errno
from pathlib import Path
from typing import Any

import pytest

from node.daemon import __main__ as starting
from node.daemon.composition import Composition
from node.errors import KeyMissing, ModelMissing, StorageError

FULL = OSError(errno.ENOSPC, "No space left on device", "/somewhere/kith.log")


@pytest.fixture
def start(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Any:
    """Runs a node whose start fails with the given error; the exit code and what was said come back."""
    monkeypatch.setenv("KITH_HOME", str(tmp_path / "h"))

    def start(failure: BaseException) -> tuple[int, list[str]]:
        def lock(folder: Path) -> None:
            raise failure

        monkeypatch.setattr(starting, "NodeLock", lock)
        code = starting.run_node([], Composition())
        return code, capsys.readouterr().err.splitlines()

    return start


def test_one_error_of_ours(start: Any) -> None:
    assert start(StorageError("It broke.", hint="Mend it.")) == (1, ["kith: It broke.", "  Mend it."])
    assert start(ExceptionGroup("a nursery", [ExceptionGroup("inside", [ModelMissing()])]))[0] == 7


def test_the_systems_own_errors_are_said_in_words(start: Any) -> None:
    said = "kith: The system refused something: No space left on device (/somewhere/kith.log)."
    for failure in (FULL, ExceptionGroup("a nursery", [FULL])):
        code, lines = start(failure)
        assert (code, lines[0], len(lines)) == (1, said, 2)


def test_several_at_once_are_said_each_and_once(start: Any) -> None:
    group = ExceptionGroup("a nursery", [
        ModelMissing("No model."), ExceptionGroup("inside", [StorageError("It broke.", hint="Mend it."), FULL]),
        StorageError("It broke.", hint="Mend it."),
    ])
    code, lines = start(group)
    assert code == 7
    assert [line for line in lines if line.startswith("kith: ")] == [
        "kith: No model.", "kith: It broke.",
        "kith: The system refused something: No space left on device (/somewhere/kith.log).",
    ]
    assert len(lines) == 6


@pytest.mark.parametrize("failure", [
    ValueError("a bug"), ExceptionGroup("a nursery", [StorageError(), ValueError("a bug")]),
])
def test_negative_control_a_fault_of_kiths_own_keeps_its_traceback(start: Any, failure: Exception) -> None:
    with pytest.raises(type(failure)):
        start(failure)


def test_a_folder_that_takes_no_lock(tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
                                     capsys: pytest.CaptureFixture[str]) -> None:
    home = tmp_path / "h"
    (home / "data").mkdir(mode=0o700, parents=True)
    (home / "data" / "node.lock").mkdir()
    monkeypatch.setenv("KITH_HOME", str(home))
    assert starting.run_node([], Composition()) == 1
    assert "node.lock cannot be written" in capsys.readouterr().err


def test_a_database_without_its_key(tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
                                    capsys: pytest.CaptureFixture[str]) -> None:
    home = tmp_path / "h"
    (home / "data").mkdir(mode=0o700, parents=True)
    (home / "data" / "kith.db").write_bytes(b"a database")
    (home / "data" / "kith.db").chmod(0o600)
    monkeypatch.setenv("KITH_HOME", str(home))
    assert starting.run_node([], Composition()) == KeyMissing.exit_code == 1
    assert "has a database but no key" in capsys.readouterr().err
    assert not (home / "data" / "identity.json").exists()
