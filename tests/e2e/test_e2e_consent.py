"""Two real nodes at the most talkative log level: what the owner answers is what leaves, each side signs for it,
a no for good holds until it is taken back, and no trace of it is left in logs, arguments or files out of home.
"""

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest
from canary import Canary
from embedded_model import models_folder
from running_nodes import Household, cli, household, until

from node.cli.demo.nodes import DemoNode
from node.cli.demo.owner import Event, Owner

pytestmark = [pytest.mark.e2e, pytest.mark.model]

NAME = "Quillon Hasselbring"
ADDRESS = "quillon.hasselbring@meadowmail.test"
TEXT = f"Write one friendly sentence to {NAME}"
MESSAGE = "Ostrich Fandango"


class Choosing(Owner):
    """Answers every question about consent the same way, and keeps what it was shown."""

    choice = "once"
    allow = True

    def _decide(self, event: Event, expect: Any) -> dict[str, Any]:
        self.shown = [*getattr(self, "shown", []), event]
        first = len(self.shown) == 1
        return {
            "allow": self.allow, "choice": self.choice if first else "once", "digest": event["digest"], "by": "test",
        }


@pytest.fixture(scope="module")
def house() -> Iterator[Household]:
    models_folder()
    with household(started=False) as running:
        card = f"BEGIN:VCARD\nVERSION:3.0\nUID:q\nFN:{NAME}\nN:Hasselbring;Quillon;;;\nEMAIL:{ADDRESS}\nEND:VCARD\n"
        (running.phone.home / "contacts" / "quillon.vcf").write_text(card)
        assert cli(running.phone, "config", "set", "privacy.ask_first", "true").returncode == 0
        for node in running.nodes:
            assert cli(node, "config", "set", "log.level", "debug").returncode == 0
        running.start()
        running.pair()
        yield running


def newest(house: Household) -> dict[str, Any]:
    entries = [one for one in house.phone.client().get("/v1/ledger") if one["purpose"] == "infer"]
    found: dict[str, Any] = house.phone.client().get(f"/v1/ledger/{entries[0]['entry_id']}")
    return found


def standings(node: DemoNode) -> dict[str, int]:
    """How the node's entries stand with its peer."""
    report = node.client().post("/v1/ledger/verify")
    assert report["ok"], report
    found: dict[str, int] = report["receipts"]
    return found


def processes(node: DemoNode) -> list[psutil.Process]:
    return [psutil.Process(node.pid), *psutil.Process(node.pid).children(recursive=True)]


def files_out_of_home(node: DemoNode) -> list[str]:
    """Regular files that the node's processes hold open for writing, other than below its own home."""
    found = []
    for process in processes(node):
        for one in process.open_files():
            outside = not one.path.startswith((str(node.home), "/memfd:", "/dev/"))
            if outside and ("w" in one.mode or "a" in one.mode or "+" in one.mode):
                found.append(one.path)
    return found


def test_messages_and_delegated_answers_are_signed_for_by_both_sides(house: Household, tmp_path: Path) -> None:
    house.phone.client().post("/v1/messages", {"to": house.home_pc.name, "body": MESSAGE})
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
    assert MESSAGE not in file.read_text()
    shown = cli(house.phone, "ledger", "show", "1", "--bytes")
    assert MESSAGE in shown.stdout
    assert MESSAGE.encode().hex() in shown.stdout
    assert cli(house.phone, "ledger", "export", str(file)).returncode == 2     # nothing is overwritten


def test_in_clear_this_once(house: Household) -> None:
    owner = Choosing(house.phone.client())
    answer = owner.ask(TEXT, on=house.home_pc.name, clear=True)
    assert answer["ran_on"] == house.home_pc.name
    (shown,) = owner.shown                                      # type: ignore[attr-defined]
    assert (shown["level"], shown["choices"]) == ("clear", ["once", "deny", "deny_always"])
    entry = newest(house)
    assert entry["level"] == "clear"
    assert any(NAME in text for text in entry["texts"])
    assert any(NAME in text for text in shown["texts"])

    owner = Choosing(house.phone.client())                      # and it was this once
    owner.ask(TEXT, on=house.home_pc.name)
    (shown,) = owner.shown                                      # type: ignore[attr-defined]
    assert shown["level"] == "masked"
    assert any(mark["stands_for"] == NAME for text in shown["diff"] for mark in text["marks"])
    entry = newest(house)
    assert entry["level"] == "masked"
    assert not any("Hasselbring" in text for text in entry["texts"])


def test_never_again_holds_until_it_is_taken_back(house: Household) -> None:
    before = len(house.phone.client().get("/v1/ledger"))
    owner = Choosing(house.phone.client())
    owner.choice, owner.allow = "deny_always", False
    assert owner.ask(TEXT)["ran_on"] == house.phone.name        # it is answered here instead
    asked_again = Choosing(house.phone.client())
    assert asked_again.ask(TEXT)["ran_on"] == house.phone.name
    assert not hasattr(asked_again, "shown")                    # nothing was asked
    assert len(house.phone.client().get("/v1/ledger")) == before
    listed = cli(house.phone, "privacy", "denials")
    assert f"infer to {house.home_pc.name} never leaves" in listed.stdout
    number = house.phone.client().get("/v1/privacy")["denials"][0]["number"]
    assert cli(house.phone, "privacy", "undeny", str(number)).returncode == 0
    willing = Choosing(house.phone.client())
    assert willing.ask(TEXT)["ran_on"] == house.home_pc.name
    assert len(willing.shown) == 1                              # type: ignore[attr-defined]


def test_no_trace_of_all_this_is_left(house: Household) -> None:
    phone = house.phone
    assert cli(phone, "ledger", "show", "999").returncode != 0      # an error has its lines, too

    canary = Canary([NAME, ADDRESS, MESSAGE])
    for node in house.nodes:
        log = node.home / "state" / "kith.log"
        text = log.read_bytes()
        assert b'"debug"' in text, "the log was not at its most talkative"
        assert canary.scan([text, (node.home / "output.log").read_bytes()]) == []
        arguments = [Path(f"/proc/{process.pid}/cmdline").read_bytes() for process in processes(node)]
        assert len(arguments) >= 2
        assert canary.scan(arguments) == []
        environments = [Path(f"/proc/{process.pid}/environ").read_bytes() for process in processes(node)]
        assert canary.scan(environments) == []
        assert files_out_of_home(node) == []
    # the negative controls: the same scan finds them where they are meant to be, and a careless line would be found
    assert canary.scan([(phone.home / "contacts" / "quillon.vcf").read_bytes()])
    assert canary.scan([f"debug: sending to {NAME}".encode()])
    with open(house.world.root / "stray", "w") as stray:
        assert stray.name in [one.path for one in psutil.Process(os.getpid()).open_files()]
