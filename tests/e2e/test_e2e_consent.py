"""Real nodes: what the owner answers is what leaves, and a no for good holds until it is taken back."""

from collections.abc import Iterator
from typing import Any

import pytest
from embedded_model import models_folder
from running_nodes import Household, cli, household

from node.cli.demo.owner import Event, Owner

pytestmark = [pytest.mark.e2e, pytest.mark.model]

NAME = "Dana Whitfield"
TEXT = f"Write one friendly sentence to {NAME}"


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
    with household() as running:
        card = f"BEGIN:VCARD\nVERSION:3.0\nUID:dana\nFN:{NAME}\nN:Whitfield;Dana;;;\nEND:VCARD\n"
        (running.phone.home / "contacts" / "dana-whitfield.vcf").write_text(card)
        assert cli(running.phone, "config", "set", "privacy.ask_first", "true").returncode == 0
        running.phone.stop()
        running.start(running.phone)
        running.wait_connected()
        yield running


def newest(house: Household) -> dict[str, Any]:
    entries = [one for one in house.phone.client().get("/v1/ledger") if one["purpose"] == "infer"]
    found: dict[str, Any] = house.phone.client().get(f"/v1/ledger/{entries[0]['entry_id']}")
    return found


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
    assert not any("Whitfield" in text for text in entry["texts"])


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
