"""Two real nodes: each signs for what it got from the other, and both ledgers can be compared."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from embedded_model import models_folder
from running_nodes import Household, cli, household, until

from node.cli.demo.nodes import DemoNode

pytestmark = [pytest.mark.e2e, pytest.mark.model]


@pytest.fixture(scope="module")
def house() -> Iterator[Household]:
    models_folder()
    with household() as running:
        yield running


def standings(node: DemoNode) -> dict[str, int]:
    """How the node's entries stand with its peer."""
    report = node.client().post("/v1/ledger/verify")
    assert report["ok"], report
    found: dict[str, int] = report["receipts"]
    return found


def test_messages_and_delegated_answers_are_signed_for_by_both_sides(house: Household, tmp_path: Path) -> None:
    house.phone.client().post("/v1/messages", {"to": house.home_pc.name, "body": "See you at six"})
    answer = house.owner.ask("Explain in one sentence what salt is", on=house.home_pc.name)
    assert answer["ran_on"] == house.home_pc.name
    until(lambda: standings(house.phone) == {"receipted": 2}, "the home PC signed for message and request")
    until(lambda: standings(house.home_pc) == {"receipted": 1}, "the phone signed for the answer")
    sent = house.phone.client().get("/v1/ledger", limit=9)
    assert [entry["receipt"] for entry in sent] == ["receipted", "receipted"]

    done = cli(house.phone, "ledger", "verify", "--with", house.home_pc.name)
    assert done.returncode == 0
    assert "the peers' side: 2 receipted" in done.stdout
    file = tmp_path / "ledger.jsonl"
    assert cli(house.phone, "ledger", "export", str(file)).returncode == 0
    lines = [json.loads(line) for line in file.read_text().splitlines()]
    assert [line["entry_id"] for line in lines] == [1, 2]
    assert [len(line["receipts"]) for line in lines] == [1, 1]
    assert file.stat().st_mode & 0o077 == 0
    assert "six" not in file.read_text()
    shown = cli(house.phone, "ledger", "show", "1", "--bytes")
    assert "See you at six" in shown.stdout
    assert b"See you at six".hex() in shown.stdout
    assert cli(house.phone, "ledger", "export", str(file)).returncode == 2     # nothing is overwritten
