"""A running node is locked and unlocked, its data gets a new key, and after a kill it comes back locked."""

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from running_nodes import Household, cli, household, until

from node.cli.demo.nodes import DemoNode

pytestmark = pytest.mark.e2e

PASSPHRASE = "seven geese fly south"
NOTE = "the password-free control message"


@pytest.fixture(scope="module")
def house() -> Iterator[Household]:
    with household() as running:
        yield running


def fed(node: DemoNode, *arguments: str, lines: str) -> subprocess.CompletedProcess[str]:
    """A command that reads these lines from standard input."""
    return subprocess.run(
        [sys.executable, "-P", "-c", "from node.cli.main import main; main()", *arguments],
        env={**os.environ, "KITH_HOME": str(node.home)}, input=lines, capture_output=True, text=True, timeout=120,
        check=False,
    )


def open_files(node: DemoNode) -> set[str]:
    """Names of the files that the node's process holds open."""
    found = set()
    for descriptor in Path(f"/proc/{node.pid}/fd").iterdir():
        try:
            found.add(Path(os.readlink(descriptor)).name)
        except OSError:
            continue
    return found


def stage(node: DemoNode) -> str:
    return str(node.client().get("/v1/status")["stage"])


def test_lock_unlock_rotate_and_a_kill(house: Household) -> None:
    node = house.phone
    peer_id = node.client().get("/v1/key")["peer_id"]
    node.client().post("/v1/messages", {"to": house.home_pc.name, "body": NOTE})

    refused = cli(node, "lock")
    assert refused.returncode == 2
    assert "kith key passphrase" in refused.stderr
    assert fed(node, "key", "passphrase", lines="short\n").returncode == 1
    assert fed(node, "key", "passphrase", lines=PASSPHRASE + "\n").returncode == 0
    assert {"kith.db", "index.db"} <= open_files(node)

    assert cli(node, "lock").returncode == 0
    assert not {name for name in open_files(node) if name.startswith(("kith.db", "index.db"))}
    assert stage(node) == "locked"
    for command in (["outbox"], ["ledger"], ["privacy"], ["secrets", "list"], ["history"], ["ask", "hello"]):
        answer = cli(node, *(["inbox", "--sent"] if command == ["outbox"] else command))
        if command != ["outbox"]:
            assert answer.returncode == 1, (command, answer)
            assert "kith unlock" in answer.stderr, (command, answer.stderr)
    house.wait_apart(house.home_pc)                 # it left the network
    assert fed(node, "unlock", lines="seven geese fly north\n").returncode == 1
    assert stage(node) == "locked"
    assert fed(node, "unlock", lines=PASSPHRASE + "\n").returncode == 0
    house.wait_connected()                          # and comes back as it was
    assert NOTE in node.client().get("/v1/ledger/1")["texts"]

    before = (node.home / "data" / "identity.json").read_bytes()
    assert fed(node, "key", "rotate", lines="seven geese fly north\n").returncode == 1
    assert fed(node, "key", "rotate", lines=PASSPHRASE + "\n").returncode == 0
    assert (node.home / "data" / "identity.json").read_bytes() != before
    house.wait_connected()
    assert NOTE in node.client().get("/v1/ledger/1")["texts"]
    assert node.client().post("/v1/ledger/verify")["ok"]

    house.kill(node)
    node.start()
    until(lambda: stage(node) == "locked" or None, "the node is back, locked")
    assert "kith unlock" in cli(node, "history").stderr
    assert fed(node, "unlock", lines=PASSPHRASE + "\n").returncode == 0
    house.wait_connected()
    assert NOTE in node.client().get("/v1/ledger/1")["texts"]
    assert node.client().get("/v1/key") == {"schema": 1, "peer_id": peer_id, "passphrase": True, "locked": False}


def test_neither_a_core_file_nor_an_argument_could_hold_anything(house: Household) -> None:
    for node in house.nodes:
        limits = Path(f"/proc/{node.pid}/limits").read_text().splitlines()
        (core,) = [line.split() for line in limits if line.startswith("Max core file size")]
        assert core[4:6] == ["0", "0"]
        for process in Path("/proc").glob("[0-9]*/cmdline"):
            try:
                arguments = process.read_bytes()
            except OSError:
                continue
            assert PASSPHRASE.encode() not in arguments
    assert not [path for path in house.phone.home.rglob("*")
                if path.is_file() and PASSPHRASE.encode() in path.read_bytes()]
