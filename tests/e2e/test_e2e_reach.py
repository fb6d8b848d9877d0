"""How a peer is reached and where work would run, as the owner of a real daemon sees it: kith ping, offload explain."""

import json
from collections.abc import Iterator

import pytest
from embedded_model import models_folder
from running_nodes import Household, cli, household, peer_of, until

pytestmark = [pytest.mark.e2e, pytest.mark.model]


@pytest.fixture(scope="module")
def house() -> Iterator[Household]:
    models_folder()
    with household() as running:
        yield running


def test_ping_shows_round_trips_and_the_way_and_stops(house: Household) -> None:
    for node, other in (house.nodes, house.nodes[::-1]):
        done = cli(node, "ping", other.name, "-n", "3", "-i", "0")
        assert done.returncode == 0, done.stderr
        lines = done.stdout.splitlines()
        assert len(lines) == 3
        assert all(line.startswith("pong ") and " ms via direct tcp 127.0.0.1:" in line for line in lines)
        assert "3 of 3 came back" in done.stderr
    view = json.loads(cli(house.phone, "ping", "home-pc", "-n", "2", "-i", "0", "--json").stdout)
    assert (view["sent"], view["received"], len(view["replies"])) == (2, 2, 2)
    assert 0 < view["min_ms"] <= view["median_ms"] <= view["max_ms"] < 5000
    assert view["replies"][0]["address"].startswith("/ip4/127.0.0.1/tcp/")


def test_ping_counts_as_nothing_that_left(house: Household) -> None:
    """A beat is a control frame of fixed shape: counted, with no entry of its own."""
    before = house.phone.client().get("/v1/ledger", limit=1000)
    cli(house.phone, "ping", "home-pc", "-n", "2", "-i", "0")
    assert house.phone.client().get("/v1/ledger", limit=1000) == before


def test_explain_names_every_place_and_runs_nothing(house: Household) -> None:
    until(lambda: peer_of(house.phone)["model"], "the home PC's model is known")
    ledger = house.phone.client().get("/v1/ledger", limit=1000)
    done = cli(house.phone, "offload", "explain", "Explain", "how", "salt", "is", "made")
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("runs on home-pc: ")
    view = json.loads(cli(house.phone, "offload", "explain", "--json", "Explain how salt is made").stdout)
    assert [line["name"] for line in view["candidates"]] == ["phone", "home-pc"]
    assert all(line["able"] and line["model"] and line["context_tokens"] > 0 for line in view["candidates"])
    assert (view["candidates"][0]["rtt_ms"], view["candidates"][1]["rtt_ms"] > 0) == (None, True)
    assert house.phone.client().get("/v1/ledger", limit=1000) == ledger
    # what explain said is what happens
    answer = house.owner.ask("Explain in one sentence how salt is made")
    assert (answer["ran_on"], answer["reason"].partition(";")[0]) == (view["runs_on"], view["reason"])


def test_what_can_run_nowhere_exits_with_the_reasons(house: Household) -> None:
    done = cli(house.phone, "offload", "explain", "--model", "gpt-4o", "Explain how salt is made")
    assert done.returncode == 1
    assert "the model gpt-4o is not on this device" in done.stdout
    assert "does not offer gpt-4o" in done.stdout


def test_an_unknown_peer_is_exit_6(house: Household) -> None:
    for arguments in (("ping", "attic"), ("offload", "explain", "--on", "attic", "x")):
        done = cli(house.phone, *arguments)
        assert (done.returncode, done.stdout) == (6, "")
        assert "attic" in done.stderr


def test_offline_is_exit_5_and_says_so(house: Household) -> None:
    house.phone.client().put("/v1/mode", {"mode": "offline"})
    try:
        done = cli(house.phone, "ping", "home-pc", "-n", "1")
        assert (done.returncode, done.stdout) == (5, "")
        assert "offline" in done.stderr
        view = json.loads(cli(house.phone, "offload", "explain", "x", "--json").stdout)
        assert (view["where"], view["mode"]) == ("here", "offline")
        assert view["candidates"][1]["reason"] == "this node is offline"
    finally:
        house.phone.client().put("/v1/mode", {"mode": "lan"})
        house.wait_connected()


def test_a_peer_that_is_gone_is_exit_5_and_one_that_returns_answers(house: Household) -> None:
    house.kill(house.home_pc)
    done = cli(house.phone, "ping", "home-pc", "-n", "2", "-i", "0", "-w", "0.5", "--json")
    assert done.returncode == 5
    assert json.loads(done.stdout)["error"]["code"] == "unreachable"
    house.start(house.home_pc)
    # ping calls the peer by itself: nothing else has to happen first
    done = cli(house.phone, "ping", "home-pc", "-n", "1", "-w", "20")
    assert done.returncode == 0, done.stderr
