"""Engines outside that were used before are still known as such: their entries lack no receipt."""

from pathlib import Path

from node.daemon.outside import outside_id
from node.daemon.outside_ids import outside_ids

ONE, TWO = outside_id("http://127.0.0.1:1/v1"), outside_id("http://127.0.0.1:2/v1")


def test_an_earlier_address_stays_known(tmp_path: Path) -> None:
    path = tmp_path / "state" / "outside.json"
    assert outside_ids(path, None) == frozenset()
    assert not path.exists()
    assert outside_ids(path, ONE) == {ONE}
    assert outside_ids(path, TWO) == {ONE, TWO}
    assert outside_ids(path, None) == {ONE, TWO}
    assert outside_ids(path, ONE) == {ONE, TWO}
    assert path.stat().st_mode & 0o777 == 0o600
    assert "127.0.0.1" not in path.read_text()


def test_a_damaged_file_costs_only_what_it_held(tmp_path: Path) -> None:
    path = tmp_path / "outside.json"
    for damaged in (b"\xff", b"{}", b"[1]", b""):
        path.write_bytes(damaged)
        assert outside_ids(path, None) == frozenset()
        assert outside_ids(path, ONE) == {ONE}


def test_the_file_stays_small(tmp_path: Path) -> None:
    path = tmp_path / "outside.json"
    for number in range(300):
        outside_ids(path, f"id-{number}")
    assert len(outside_ids(path, None)) == 256
    assert "id-299" in outside_ids(path, None)


def test_where_nothing_can_be_kept_the_present_one_is_known(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    assert outside_ids(tmp_path / "file" / "outside.json", ONE) == {ONE}
