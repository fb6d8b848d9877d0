"""kith audit and kith secrets on a running, paired node: everything is shown, what is wrong is found, and a stored
password is in no file, argument or reply.
"""

import json
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


def test_the_audit_of_a_sound_node(house: Household) -> None:
    done = cli(house.phone, "audit", "--json")
    view = json.loads(done.stdout)
    checks = {check["name"]: check for check in view["checks"]}
    assert done.returncode == 0, view
    assert view["ok"]
    tests = {name: check["state"] for name, check in checks.items() if name.startswith("self-test")}
    assert tests == dict.fromkeys(
        ["self-test: labelled values", "self-test: your own contacts", "self-test: secrets",
         "self-test: questions to peers"], "ok")
    assert checks["ledger"]["state"] == "ok"
    tools = {tool["name"]: tool["consequential"] for tool in view["tools"]}
    assert tools["calendar_create"]
    assert not all(tools.values())
    (peer,) = view["peers"]
    assert peer["peer"] == house.home_pc.name
    assert peer["levels"]["infer"] == "masked"
    shown = cli(house.phone, "audit").stdout
    assert "waits for your yes" in shown
    assert "self-test: labelled values: none of" in shown
    ledger = house.phone.client().get("/v1/ledger")
    assert {entry["peer"] for entry in ledger} == {"self-test"}
    assert {entry["receipt"] for entry in ledger} == {"no receipt due"}
    assert house.phone.client().post("/v1/ledger/verify")["receipts"] == {"no receipt due": len(ledger)}
    again = {check["name"]: check for check in json.loads(cli(house.phone, "audit", "--json").stdout)["checks"]}
    assert again["ledger"]["text"].endswith("; 0 signed for by their receivers, 0 not")
    assert not again["ledger"]["hint"]
    assert house.phone.client().get("/v1/status")["queued_messages"] == 0


def test_what_the_owner_decides_shows_and_an_open_file_is_a_problem(house: Household) -> None:
    name = house.home_pc.name
    assert cli(house.phone, "privacy", "set", name, "never", "--for", "query").returncode == 0
    assert cli(house.phone, "privacy", "set", name, "clear").returncode == 0
    view = json.loads(cli(house.phone, "audit", "--json").stdout)
    assert view["peers"][0]["levels"] == {
        "infer": "clear (your choice)", "query": "never (your choice)", "mail": "clear", "answer": "clear"}
    assert cli(house.phone, "trust", name, "friend").returncode == 0        # clear was for a machine of one's own
    assert json.loads(cli(house.phone, "privacy", "--json").stdout)["peers"][0]["levels"]["infer"] == "masked"
    assert cli(house.phone, "privacy", "set", name, "clear").returncode == 2
    (house.phone.home / "state" / "ledger.head").chmod(0o644)
    done = cli(house.phone, "audit")
    assert done.returncode == 1
    assert "chmod 600" in done.stdout
    (house.phone.home / "state" / "ledger.head").chmod(0o600)
    assert cli(house.phone, "audit").returncode == 0


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
