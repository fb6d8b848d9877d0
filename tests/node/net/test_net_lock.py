"""One node per data folder."""

import subprocess
import sys
from pathlib import Path

import pytest

from node.errors import NodeAlreadyRunning, StorageError
from node.net.lock import NodeLock

_ROOT = Path(__file__).parents[3]


def try_in_another_process(folder: Path) -> str:
    code = (
        "import sys; from pathlib import Path; from node.net.lock import NodeLock; from node.errors import KithError\n"
        "try: NodeLock(Path(sys.argv[1])); print('held')\n"
        "except KithError as error: print(error.code)"
    )
    command = [sys.executable, "-c", code, str(folder)]
    done = subprocess.run(command, cwd=_ROOT, capture_output=True, text=True, check=True)
    return done.stdout.strip()


def test_a_second_node_is_refused_with_the_first_ones_process(tmp_path: Path) -> None:
    with NodeLock(tmp_path) as lock:
        assert lock.held
        assert try_in_another_process(tmp_path) == "already_running"
        with pytest.raises(NodeAlreadyRunning, match=r"process \d+"):
            NodeLock(tmp_path)
        assert lock.held
    assert not lock.held


def test_the_folder_is_free_again_after_release_and_after_a_kill(tmp_path: Path) -> None:
    lock = NodeLock(tmp_path)
    lock.release()
    lock.release()
    assert try_in_another_process(tmp_path) == "held"
    code = "import os, sys; from pathlib import Path; from node.net.lock import NodeLock\n" \
           "lock = NodeLock(Path(sys.argv[1])); os.kill(os.getpid(), 9)"
    subprocess.run([sys.executable, "-c", code, str(tmp_path)], cwd=_ROOT, check=False)
    NodeLock(tmp_path).release()


def test_the_file_is_private_and_a_link_is_not_followed(tmp_path: Path) -> None:
    with NodeLock(tmp_path):
        assert (tmp_path / "node.lock").stat().st_mode & 0o777 == 0o600
    other = tmp_path / "other"
    other.mkdir()
    (other / "node.lock").symlink_to(tmp_path / "somewhere")
    with pytest.raises(StorageError, match="symbolic"):
        NodeLock(other)


def test_what_the_daemon_needs_early_brings_no_libp2p() -> None:
    code = (
        "import sys, node.net.lock, node.net.gate, node.net.errors, node.net.events, node.net.limits\n"
        "import node.net.addresses\n"
        "assert not {'libp2p', 'trio', 'multiaddr'} & set(sys.modules), set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], cwd=_ROOT, check=True)
