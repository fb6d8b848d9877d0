"""Pairing, trust and forgetting between two real nodes in processes of their own."""

import contextlib
import socket
import threading
import time
from collections.abc import Iterator
from typing import Any

import pytest
from running_nodes import Household, cli, failing, household, peer_of, until

from node.cli.client import NodeClient
from node.cli.demo.nodes import DemoNode
from node.cli.failure import CommandFailure

pytestmark = [pytest.mark.e2e]

Event = dict[str, Any]
WRONG = "7-crossover-clockwork"


class Window:
    """A pairing window that a node holds open, its owner saying yes to the first question."""

    def __init__(self, node: DemoNode, *, trust: str = "self", path: str = "/v1/pair/open", **body: str) -> None:
        self.events: list[Event] = []
        self._client = node.client()
        self._stream = self._client.stream(path, {"trust": trust, **body})
        self._thread = threading.Thread(target=self._follow, daemon=True)
        self._thread.start()

    def _follow(self) -> None:
        with contextlib.suppress(CommandFailure, OSError, ValueError):
            for event in self._stream:
                self.events.append(event)
                if event["event"] == "question":
                    self._client.post(f"/v1/questions/{event['id']}", {"allow": True, "by": "test owner"})

    def first(self, kind: str) -> Event:
        """The first event of this kind, waited for."""
        return until(
            lambda: next((one for one in self.events if one["event"] == kind), None), f"the window says {kind}"
        )


def join(client: NodeClient, code: str, at: str | None = None, trust: str = "home") -> list[Event]:
    """The events of joining, the owner saying yes. Raises CommandFailure for an error."""
    events = []
    for event in client.stream("/v1/pair/join", {"code": code, "at": at, "trust": trust}):
        events.append(event)
        if event["event"] == "question":
            client.post(f"/v1/questions/{event['id']}", {"allow": True, "by": "test owner"})
        if event["event"] == "error":
            raise CommandFailure(event["message"], hint=event["hint"], exit_code=event["exit_code"], code=event["code"])
    return events


@pytest.fixture(scope="module")
def house() -> Iterator[Household]:
    """Two nodes that start unpaired; each test leaves them unpaired."""
    with household(paired=False) as running:
        yield running


def forget(house: Household) -> None:
    house.phone.client().delete("/v1/peers/home-pc")
    house.home_pc.client().delete("/v1/peers/phone")
    assert house.phone.status()["peers"] == house.home_pc.status()["peers"] == []


def other(house: Household, node: DemoNode) -> DemoNode:
    return house.home_pc if node is house.phone else house.phone


def send(node: DemoNode, to: str, body: str) -> Event:
    sent = node.client().post("/v1/messages", {"to": to, "body": body})
    assert isinstance(sent, dict)
    return sent


def inbox(node: DemoNode) -> list[str]:
    return [item["body"] for item in node.client().get("/v1/inbox", limit=1000)]


def allowed_by(node: DemoNode, peer: str) -> list[str] | None:
    """What the peer lets this node use, as the node shows it; None while it is not here."""
    allows: list[str] | None = node.client().get(f"/v1/peers/{peer}/grant")["allows_us"]
    return allows


def test_a_code_pairs_and_each_names_its_trust(house: Household) -> None:
    shown, typed, pictures = house.pair()
    assert (shown["name"], shown["trust"], shown["their_trust"]) == ("phone", "self", "home")
    assert (typed["name"], typed["trust"], typed["their_trust"]) == ("home-pc", "home", "self")
    assert len(pictures) >= 3
    assert peer_of(house.phone)["trust"] == "home"
    assert peer_of(house.home_pc)["trust"] == "self"
    forget(house)


def test_a_link_pairs_without_an_address_or_pictures(house: Household) -> None:
    window = Window(house.home_pc)
    events = join(house.phone.client(), window.first("waiting")["link"])
    assert events[-1]["event"] == "paired"
    assert window.first("paired")["name"] == "phone"
    questions = [event for event in (*events, *window.events) if event["event"] == "question"]
    assert [question["emoji"] for question in questions] == [[], []]
    house.wait_connected()
    forget(house)


def test_a_link_serves_once(house: Household) -> None:
    window = Window(house.home_pc)
    link = window.first("waiting")["link"]
    join(house.phone.client(), link)
    house.wait_connected()
    forget(house)
    refused = failing(lambda: join(house.phone.client(), link))
    assert refused.exit_code in (5, 6)
    assert house.phone.status()["peers"] == []


def test_a_wrong_code_is_said_plainly_and_the_fourth_try_is_refused(house: Household) -> None:
    window = Window(house.home_pc)
    waiting = window.first("waiting")
    wrong = WRONG if waiting["code"] != WRONG else "8-crossover-clockwork"
    said = cli(house.phone, "pair", wrong, "--at", waiting["at"])      # nobody to ask: no try is used up for it
    assert (said.returncode, "no terminal" in said.stderr) == (4, True)
    for _ in range(3):
        refused = failing(lambda: join(house.phone.client(), wrong, waiting["at"]))
        assert (refused.exit_code, refused.code) == (6, "pairing_refused")
        assert "do not match" in str(refused)
        assert "used up" not in str(refused)
        assert "kith pair" in refused.hint
        assert house.phone.status()["peers"] == []  # nothing was stored, and nothing tries again by itself

    def tries_left() -> list[str]:
        said = [event["text"] for event in window.events if event["event"] == "status"]
        return [text for text in said if "tries are left" in text]

    told = until(lambda: tries_left() if len(tries_left()) > 1 else None, "the window has said it twice")
    assert [text.rpartition(": ")[2] for text in told] == ["2 of 3 tries are left.", "1 of 3 tries are left."]
    # the right code comes too late: the three tries are used up
    refused = failing(lambda: join(house.phone.client(), waiting["code"], waiting["at"]))
    assert refused.exit_code in (5, 6)
    assert refused.hint
    expired = window.first("expired")
    assert "wrong tries" in expired["text"]
    assert house.phone.status()["peers"] == house.home_pc.status()["peers"] == []


def test_after_a_wrong_code_the_right_one_still_pairs(house: Household) -> None:
    window = Window(house.home_pc)
    waiting = window.first("waiting")
    wrong = WRONG if waiting["code"] != WRONG else "8-crossover-clockwork"
    failing(lambda: join(house.phone.client(), wrong, waiting["at"]))
    assert join(house.phone.client(), waiting["code"], waiting["at"])[-1]["event"] == "paired"
    window.first("paired")
    house.wait_connected()
    forget(house)


def test_a_code_needs_an_address_and_a_window(house: Household) -> None:
    no_address = failing(lambda: join(house.phone.client(), WRONG))
    assert (no_address.exit_code, "--at" in no_address.hint) == (2, True)
    nonsense = failing(lambda: join(house.phone.client(), "open sesame", "127.0.0.1:1"))
    assert nonsense.exit_code == 2
    port = house.home_pc.status()["addresses"][0].split("/")[4]
    closed = failing(lambda: join(house.phone.client(), WRONG, f"127.0.0.1:{port}"))
    assert closed.exit_code in (5, 6)
    assert closed.hint


def test_forgetting_cuts_and_only_a_new_pairing_helps(house: Household) -> None:
    house.pair()
    send(house.phone, "home-pc", "while paired")
    until(lambda: "while paired" in inbox(house.home_pc), "the message is there")
    house.home_pc.client().delete("/v1/peers/phone")
    assert house.home_pc.status()["peers"] == []
    house.wait_apart(house.phone)
    send(house.phone, "home-pc", "after forgetting")
    unknown = failing(lambda: send(house.home_pc, "phone", "to nobody"))
    assert (unknown.exit_code, unknown.code) == (6, "unknown_peer")
    house.phone.client().delete("/v1/peers/home-pc")
    house.pair()
    send(house.phone, "home-pc", "paired again")
    until(lambda: "paired again" in inbox(house.home_pc), "the message is there")
    assert "after forgetting" not in inbox(house.home_pc)
    forget(house)


@pytest.mark.parametrize("shows", ["home-pc", "phone"])
def test_pairing_again_after_one_side_forgot_tells_the_new_grants_only(house: Household, shows: str) -> None:
    house.pair()
    until(lambda: "search" in (allowed_by(house.phone, "home-pc") or ()), "home-pc's first greeting is known")
    house.phone.client().delete("/v1/peers/home-pc")
    house.wait_apart(house.home_pc)  # it has not forgotten, and goes on calling
    showing = house.home_pc if shows == "home-pc" else house.phone
    window = Window(showing, trust="friend")
    join(other(house, showing).client(), window.first("waiting")["link"], trust="friend")
    window.first("paired")
    house.wait_connected()
    for _ in range(20):  # neither now nor a moment later
        for node, peer in ((house.phone, "home-pc"), (house.home_pc, "phone")):
            assert allowed_by(node, peer) in (["mail"], None)
        time.sleep(0.1)
    until(lambda: allowed_by(house.phone, "home-pc") == allowed_by(house.home_pc, "phone") == ["mail"],
          "each knows what the other one grants")
    forget(house)


def test_joining_another_node_leaves_the_own_window_open(house: Household) -> None:
    """The phone tries to join where nothing answers, and opens a window of its own meanwhile."""
    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))
        silent.listen()
        at = f"127.0.0.1:{silent.getsockname()[1]}"
        refusals: list[CommandFailure] = []
        joining = threading.Thread(
            target=lambda: refusals.append(failing(lambda: join(house.phone.client(), WRONG, at))), daemon=True
        )
        joining.start()
        window = Window(house.phone)
        link = window.first("waiting")["link"]
        joining.join(60)
    assert len(refusals) == 1
    assert join(house.home_pc.client(), link)[-1]["event"] == "paired"
    window.first("paired")
    forget(house)


def test_trust_none_refuses_and_home_admits_again(house: Household) -> None:
    house.pair()
    view = house.home_pc.client().post("/v1/peers/phone/trust", {"trust": "none"})
    assert view["trust"] == "none"
    house.wait_apart(house.phone)
    send(house.phone, "home-pc", "it waits")
    answer = failing(lambda: house.owner.ask("Explain how a sailing boat works in detail", on="home-pc", now=True))
    assert answer.exit_code in (1, 5)
    assert "home-pc" in str(answer)
    assert inbox(house.home_pc).count("it waits") == 0
    house.home_pc.client().post("/v1/peers/phone/trust", {"trust": "self"})
    house.wait_connected()
    until(lambda: inbox(house.home_pc).count("it waits") == 1, "the waiting message arrives once it may")
    forget(house)


def test_either_side_comes_back_without_pairing_again(house: Household) -> None:
    house.pair()
    port = house.home_pc.status()["addresses"]
    for node in house.nodes:
        window = Window(node).first("waiting")
        assert node.stop() == 0
        house.start(node)
        house.wait_connected()
        # a window does not outlive the node: its code opens nothing any more
        client = other(house, node).client()
        refused = failing(lambda client=client, window=window: join(client, window["code"], window["at"]))
        assert refused.exit_code in (5, 6)
    assert house.home_pc.status()["addresses"] == port
    for node, to in ((house.phone, "home-pc"), (house.home_pc, "phone")):
        send(node, to, f"hello again from {node.name}")
    until(lambda: "hello again from phone" in inbox(house.home_pc), "home-pc has it")
    until(lambda: "hello again from home-pc" in inbox(house.phone), "the phone has it")
    house.check_data()
    forget(house)
