"""A stored password in a running node: typed in, used by its connector alone, found in no file, argument or reply."""

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest
from running_nodes import Household, cli, failing, household

pytestmark = pytest.mark.e2e

VALUE = "green-Kestrel 77 glides"
CANARIES = [VALUE.encode(), b"Kestrel 77", VALUE.encode().hex().encode()]


@pytest.fixture(scope="module")
def house() -> Iterator[Household]:
    with household() as running:
        yield running


def everything_written(home: Path) -> Iterator[tuple[Path, bytes]]:
    """Every file below the node's home, the write-ahead logs too."""
    for path in home.rglob("*"):
        if path.is_file():
            yield path, path.read_bytes()


def test_a_password_stays_in_its_store(house: Household) -> None:
    done = subprocess.run(
        [sys.executable, "-P", "-c", "from node.cli.main import main; main()",
         "secrets", "add", "imap", "--for", "mail"],
        env={**os.environ, "KITH_HOME": str(house.phone.home)}, input=VALUE + "\n", capture_output=True, text=True,
        timeout=60, check=True,
    )
    assert VALUE not in done.stdout + done.stderr
    listed = cli(house.phone, "secrets", "list")
    assert "imap" in listed.stdout
    assert VALUE not in listed.stdout
    client = house.phone.client()
    refused = failing(lambda: client.post("/v1/messages", {"to": house.home_pc.name, "body": f"use {VALUE}"}))
    assert (refused.code, refused.exit_code) == ("holds_secret", 4)
    assert VALUE not in str(refused)
    client.post("/v1/messages", {"to": house.home_pc.name, "body": "the control: a message without it leaves"})

    for process in [psutil.Process(house.phone.pid), *psutil.Process(house.phone.pid).children(recursive=True)]:
        arguments = Path(f"/proc/{process.pid}/cmdline").read_bytes()
        assert arguments
        assert not any(canary in arguments for canary in CANARIES)
    written = list(everything_written(house.phone.home))
    assert {path.name for path, _ in written} >= {"kith.db", "kith.log"}
    found = [path for path, data in written if any(canary in data for canary in CANARIES)]
    assert found == []
    planted = house.phone.home / "state" / "control"        # the negative control: this scan does find it
    planted.write_text(VALUE)
    assert [path for path, data in everything_written(house.phone.home) if VALUE.encode() in data] == [planted]
    planted.unlink()
    assert cli(house.phone, "secrets", "remove", "imap").returncode == 0
    assert cli(house.phone, "secrets", "remove", "imap").returncode == 1
    client.post("/v1/messages", {"to": house.home_pc.name, "body": f"no longer a secret: {VALUE}"})
