"""kith audit on a running, paired node: everything is shown, the guard passes, and what is wrong is found."""

import json
from collections.abc import Iterator

import pytest
from running_nodes import Household, cli, household

pytestmark = pytest.mark.e2e


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
