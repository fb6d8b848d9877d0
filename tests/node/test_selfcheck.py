"""Self checks: our packages are ours, private files are private, disk and clock can be right."""

import shutil
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path

import pytest
from fixed import FixedClock

from node import selfcheck
from node.errors import ForeignPackage
from node.paths import Paths

ROOT = Path(selfcheck.__file__).resolve().parent.parent


def test_our_own_packages_pass():
    selfcheck.assert_own_packages()


def test_another_place_is_foreign(tmp_path):
    with pytest.raises(ForeignPackage, match="Another package named 'node' shadows kith's own"):
        selfcheck.assert_own_packages(tmp_path)


@pytest.mark.parametrize("shape", ["protocol.py", "protocol/__init__.py"])
def test_a_foreign_protocol_in_the_way_ends_with_70_and_says_so(tmp_path, shape):
    shadow = tmp_path / shape
    shadow.parent.mkdir(exist_ok=True)
    shadow.write_text("")
    script = (
        f"import sys; sys.path[:0] = [{str(tmp_path)!r}, {str(ROOT)!r}]\n"
        "import importlib.util as u\n"
        "spec = u.find_spec('protocol'); assert spec.origin.startswith(sys.path[0])\n"
        "sys.path.remove(sys.path[0]); from node import selfcheck; sys.path.insert(0, sys.argv[1])\n"
        "sys.modules.pop('protocol', None)\n"
        "try: selfcheck.assert_own_packages()\n"
        "except selfcheck.ForeignPackage as e: print(e.text); sys.exit(e.exit_code)\n"
    )
    command = [sys.executable, "-P", "-c", script, str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (70, "")
    assert done.stdout.startswith(f"Another package named 'protocol' shadows kith's own: {shadow}")


def test_it_works_before_any_dependency_is_imported():
    script = (
        f"import sys; sys.path.insert(0, {str(ROOT)!r})\n"
        "from node import selfcheck; selfcheck.assert_own_packages()\n"
        "print(sorted({'trio', 'libp2p', 'msgspec', 'llama_cpp'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-P", "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


@pytest.fixture
def paths(tmp_path) -> Paths:
    found = Paths.from_env({"KITH_HOME": str(tmp_path / "k")}, tmp_path)
    found.prepare()
    return found


def test_file_modes(paths):
    assert [one.state for one in selfcheck.check_file_modes(paths)] == ["ok"]
    paths.database.write_bytes(b"")
    paths.database.chmod(0o644)
    paths.state_dir.chmod(0o755)
    found = selfcheck.check_file_modes(paths)
    assert [(one.state, one.hint) for one in found] == [
        ("problem", f"Close it: chmod 700 {paths.state_dir}"), ("problem", f"Close it: chmod 600 {paths.database}"),
    ]


@pytest.mark.parametrize(("free", "state"), [(10**11, "ok"), (5 * 10**8, "warning"), (10**7, "problem")])
def test_disk(paths, monkeypatch, free, state):
    monkeypatch.setattr(shutil, "disk_usage", lambda folder: shutil._ntuple_diskusage(10**12, 0, free))
    assert selfcheck.check_disk(paths.data_dir).state == state


@pytest.mark.parametrize(("year", "state"), [(1970, "problem"), (2025, "problem"), (2026, "ok"), (2100, "problem")])
def test_clock(year, state):
    assert selfcheck.check_clock(FixedClock(datetime(year, 6, 1, tzinfo=UTC))).state == state


def test_all_of_them_together(paths):
    assert {one.name for one in selfcheck.run(paths, FixedClock())} == {"packages", "files", "disk", "clock"}
