"""The first run makes a device; a later one never makes another in its place."""

from pathlib import Path

import pytest
from fixed import SeededEntropy

from node import first_run
from node.errors import KeyMissing, WrongPassphrase
from node.paths import Paths


@pytest.fixture
def paths(tmp_path: Path) -> Paths:
    found = Paths.from_env({"KITH_HOME": str(tmp_path / "h")}, tmp_path)
    found.prepare()
    return found


def test_a_second_run_finds_the_first_ones_identity(paths: Paths) -> None:
    first = first_run.prepare(paths, SeededEntropy(1))
    paths.database.write_bytes(b"a database")
    assert first_run.prepare(paths, SeededEntropy(2)).peer_id == first.peer_id


def test_a_database_without_its_key_gets_no_new_identity(paths: Paths) -> None:
    first_run.prepare(paths, SeededEntropy(1))
    paths.database.write_bytes(b"a database")
    paths.identity_file.unlink()
    with pytest.raises(KeyMissing, match="This data folder has a database but no key") as refused:
        first_run.prepare(paths, SeededEntropy(2))
    assert "backup" in refused.value.hint
    assert not paths.identity_file.exists()
    assert paths.database.read_bytes() == b"a database"


def test_a_passphrase_that_is_too_short_leaves_no_key_in_clear_behind(paths: Paths) -> None:
    with pytest.raises(WrongPassphrase):
        first_run.prepare(paths, SeededEntropy(1), passphrase="short")
    assert not paths.identity_file.exists()
    first_run.prepare(paths, SeededEntropy(1), passphrase="long enough")
    assert first_run.is_locked(paths)


def test_negative_control_without_a_database_a_new_identity_is_made(paths: Paths) -> None:
    paths.database.touch()      # empty: there is nothing in it that a new key could not open
    first_run.prepare(paths, SeededEntropy(2))
    assert paths.identity_file.exists()
