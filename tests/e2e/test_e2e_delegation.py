"""A request answered by the other node: streamed, cancelled, refused, and cut off at any instant. Real processes.

Two nodes serve the whole file. The home PC counts what its engine worker decodes: all statements on stopping are about
that count, never about time.
"""

import contextlib
import json
import random
import signal
import threading
import time
from collections.abc import Iterator
from typing import Any

import psutil
import pytest
from embedded_model import models_folder
from running_nodes import (
    Household,
    cli,
    composed,
    failing,
    household,
    rounds,
    until,
    workers_of,
)

from node.cli.demo.nodes import DemoNode
from node.cli.demo.owner import Event, Owner
from node.cli.failure import CommandFailure
from node.net.lock import NodeLock

pytestmark = [pytest.mark.e2e, pytest.mark.model]

LONG = "Explain how a sailing boat works in detail"
"""The embedded model writes several hundred tokens about it, with the same words each time."""
MEDIUM = "Write a paragraph about bread"
"""About a hundred tokens."""
SHORT = "Explain in one sentence what salt is"
CANCEL_AFTER = 5
HANDFUL = 64
"""Tokens that may be on the way through two nodes and four sockets when the reader leaves; LONG has many more."""


class Denying(Owner):
    """Reads what would leave, and says no."""

    def _decide(self, event: Event, expect: Any) -> dict[str, Any]:
        self.decisions.append(f"denied {event['kind']}")
        return {"allow": False, "by": "test owner"}


@pytest.fixture(scope="module")
def house() -> Iterator[Household]:
    """Two paired nodes; the home PC counts decodes. Tests leave both running and connected."""
    models_folder()
    with household(home_pc=composed("daemon_counting_decodes.py")) as running:
        yield running


def deltas(events: list[Event]) -> list[str]:
    return [event["text"] for event in events if event["event"] == "delta"]


def infer_entries(node: DemoNode) -> list[Event]:
    entries = node.client().get("/v1/ledger", limit=1000)
    return [entry for entry in entries if entry["purpose"] == "infer"]


def counts(house: Household) -> list[dict[str, Any]]:
    """What the home PC noted of its worker so far."""
    path = house.home_pc.home / "decodes.jsonl"
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


def settled_count(house: Household) -> int:
    """Decodes of the worker's life once nothing is at work there."""
    def look() -> int | None:
        noted = [line for line in counts(house) if line["what"] == "pong"]
        return noted[-1]["decodes"] if noted and noted[-1]["running"] == 0 else None

    try:
        return until(look, "the home PC's engine rests")
    except AssertionError:
        print("last counts of the home PC:", *counts(house)[-10:], sep="\n")
        raise


def went_on_here(events: list[Event]) -> bool:
    """The phone finished what the home PC had begun: one continuous text, and the reason names who stopped."""
    answer = events[-1]
    assert answer["event"] == "answer"
    assert answer["ran_on"] == "phone"
    assert "home-pc" in answer["reason"]
    assert "".join(deltas(events)) == answer["text"]
    return len(deltas(events)) > 10


def nothing_under_way(house: Household) -> None:
    """Answers that a restart of the phone cut off have been gone on with to their end."""
    until(lambda: not house.phone.client().get("/v1/answers"), "no answer is under way", 120)


def ask_short(house: Household) -> Event:
    """A short request that the home PC answers."""
    answer = house.owner.ask(SHORT)
    assert answer["ran_on"] == "home-pc", answer
    return answer


# ------------------------------------------------------------ where it runs

def test_a_delegated_answer_streams(house: Household) -> None:
    owner = house.owner
    answer = owner.ask(LONG)
    kinds = [event["event"] for event in owner.events]
    assert answer["ran_on"] == "home-pc"
    assert "home-pc" in answer["reason"]
    assert kinds[-1] == "answer"
    assert kinds.count("delta") > 50
    assert "".join(deltas(owner.events)) == answer["text"]
    assert infer_entries(house.phone)[0]["outcome"] == "answered"
    # the control of the cancel test: left alone, this request keeps the engine at work for many more tokens
    assert settled_count(house) > CANCEL_AFTER + 2 * HANDFUL


def test_the_owner_says_where(house: Household) -> None:
    there = house.owner.ask(SHORT, on="home-pc")
    assert there["ran_on"] == "home-pc"
    assert there["reason"].startswith("you named it")
    before = len(infer_entries(house.phone))
    here = house.owner.ask(SHORT, local=True)
    assert here["ran_on"] == "phone"
    assert "this device only" in here["reason"]
    assert len(infer_entries(house.phone)) == before
    unknown = cli(house.phone, "ask", "--on", "attic", SHORT)
    assert unknown.returncode == 6
    assert "attic" in unknown.stderr
    assert "kith peers" in unknown.stderr
    # without a terminal nobody can consent: nothing is sent, this device drafts, and the request waits for the owner
    named = cli(house.phone, "ask", "--on", "home-pc", SHORT)
    assert named.returncode == 4
    assert len(infer_entries(house.phone)) == before


def test_offline_answers_here_and_says_so(house: Household) -> None:
    house.phone.client().put("/v1/mode", {"mode": "offline"})
    try:
        answer = house.owner.ask(SHORT)
        assert answer["ran_on"] == "phone"
        assert "offline" in answer["reason"]
        named = cli(house.phone, "ask", "--on", "home-pc", SHORT)
        assert named.returncode == 5
        assert "offline" in named.stderr
        here = cli(house.phone, "ask", "--local", SHORT)
        assert (here.returncode, bool(here.stdout.strip())) == (0, True)
    finally:
        house.phone.client().put("/v1/mode", {"mode": "lan"})
        house.wait_connected()


# ------------------------------------------------------------ what may leave

def test_a_denied_consent_keeps_it_here_and_says_so(house: Household) -> None:
    before = len(infer_entries(house.phone))
    owner = Denying(house.phone.client())
    answer = owner.ask(SHORT)
    assert owner.decisions == ["denied consent"]
    assert answer["ran_on"] == "phone"
    assert "home-pc" in answer["reason"]
    assert "said no" in answer["reason"]
    assert answer["text"].strip()
    refused = failing(lambda: Denying(house.phone.client()).ask(SHORT, on="home-pc"))
    assert (refused.exit_code, refused.code) == (4, "consent_refused")
    assert len(infer_entries(house.phone)) == before


def test_a_secret_stays_here_and_is_never_even_shown(house: Household) -> None:
    before = len(infer_entries(house.phone))
    text = "Explain in one sentence why AKIAIOSFODNN7EXAMPLE is a bad thing to publish"
    owner = house.owner
    answer = owner.ask(text)
    assert answer["ran_on"] == "phone"
    assert "secret" in answer["reason"].lower()
    assert [event for event in owner.events if event["event"] == "question"] == []
    refused = failing(lambda: house.owner.ask(text, on="home-pc"))
    assert (refused.exit_code, refused.code) == (4, "holds_secret")
    assert len(infer_entries(house.phone)) == before


# ------------------------------------------------------------ cut off by the reader

def test_a_cancel_stops_the_engine_within_one_decode(house: Household) -> None:
    ask_short(house)        # a model is loaded there when it is first asked for
    begun = settled_count(house)
    noted = len(counts(house))
    with contextlib.closing(house.owner.follow(LONG)) as events:
        seen = 0
        for event in events:
            seen += event["event"] == "delta"
            if seen == CANCEL_AFTER:
                break
    until(lambda: any(line["what"] == "cancel" for line in counts(house)[noted:]), "the cancel reaches the engine")
    ended = settled_count(house)
    lines = counts(house)[noted:]
    at = next(place for place, line in enumerate(lines) if line["what"] == "cancel")
    told = next(line["decodes"] for line in lines[at:] if line["what"] == "pong")
    # one decode may be running when the order comes, and one may begin before the order is read
    assert ended - told <= 2, lines[at - 2 : at + 5]
    assert ended - begun <= CANCEL_AFTER + HANDFUL
    # the two machines end it each for itself, in either order
    until(lambda: infer_entries(house.phone)[0]["outcome"] == "cancelled", "the phone's entry says so")
    ask_short(house)


def test_forgetting_cuts_the_answer_that_streams(house: Household) -> None:
    owner = house.owner
    for event in owner.follow(MEDIUM):
        if event["event"] == "delta" and len(deltas(owner.events)) == 3:
            assert house.home_pc.client().delete("/v1/peers/phone")["forgotten"] == "phone"
    assert went_on_here(owner.events)
    settled_count(house)
    assert infer_entries(house.phone)[0]["outcome"].startswith("broken")
    named = failing(lambda: house.owner.ask(SHORT, on="home-pc", now=True))
    assert named.exit_code == 5
    house.phone.client().delete("/v1/peers/home-pc")
    house.pair()
    ask_short(house)


# ------------------------------------------------------------ the worker dies

@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGILL], ids=["SIGKILL", "SIGILL"])
@pytest.mark.parametrize("where", ["home-pc", "phone"])
def test_a_worker_that_dies_costs_nobody_the_answer(house: Household, where: str, how: signal.Signals) -> None:
    node = house.home_pc if where == "home-pc" else house.phone
    house.owner.ask(SHORT, on="home-pc") if where == "home-pc" else house.owner.ask(SHORT, local=True)
    pid = node.pid
    owner = house.owner
    options = {"on": "home-pc"} if where == "home-pc" else {"local": True}
    killed: set[int] = set()
    answer: Event | None = None
    with contextlib.closing(owner.follow(MEDIUM, **options)) as events:
        for event in events:
            if event["event"] == "delta" and not killed and len(deltas(owner.events)) >= 3:
                (worker,) = workers_of(node)
                killed.add(worker.pid)
                worker.send_signal(how)
            if event["event"] == "answer":
                answer = event
    assert killed
    assert answer is not None
    assert "".join(deltas(owner.events)) == answer["text"]
    assert len(deltas(owner.events)) > 10, "the answer went on"
    assert node.pid == pid
    assert psutil.pid_exists(pid)
    assert {worker.pid for worker in workers_of(node)}.isdisjoint(killed)
    house.wait_connected()


# ------------------------------------------------------------ kill -9 of a node

@pytest.mark.soak
@pytest.mark.parametrize("number", range(rounds(20, 2)))
def test_kill_9_in_mid_answer(house: Household, number: int) -> None:
    """Either side, at a random instant: the other one survives and says what happened; after a restart all is well."""
    chance = random.Random(f"mid-answer {number}")
    victim = house.nodes[number % 2]
    survivor = house.nodes[1 - number % 2]
    survivor_pid = survivor.pid
    instant, pause_s = chance.randint(1, 60), chance.uniform(0, 0.05)
    owner = house.owner
    answer: Event | None = None
    failure: CommandFailure | None = None
    dead = False
    try:
        with contextlib.closing(owner.follow(MEDIUM)) as events:
            for event in events:
                if not dead and len(owner.events) >= instant:
                    time.sleep(pause_s)
                    house.kill(victim)
                    dead = True
                if event["event"] == "answer":
                    answer = event
    except CommandFailure as caught:
        failure = caught
    assert dead
    if victim is house.home_pc:
        # the phone goes on by itself from the very text already shown
        assert failure is None
        assert went_on_here(owner.events)
    else:
        # whoever asked lost the node he asked; the command says so and names the next one
        assert answer is None
        assert failure is not None
        assert failure.hint
        house.wait_apart(house.home_pc)
        settled_count(house)
    assert survivor.pid == survivor_pid
    assert survivor.status()["stage"] == "ready"
    house.start(victim)
    house.wait_connected()
    nothing_under_way(house)
    assert all(entry["outcome"] != "open" for entry in infer_entries(house.phone))
    ask_short(house)
    house.check_data()


# ------------------------------------------------------------ an ordered end

def end_in_order(node: DemoNode, how: signal.Signals) -> None:
    """The node ends with exit code 0 and leaves neither children nor socket nor lock behind."""
    children = psutil.Process(node.pid).children(recursive=True)
    assert node.stop(how) == 0
    assert not node.paths.socket.exists()
    with NodeLock(node.paths.data_dir):
        pass
    _, alive = psutil.wait_procs(children, timeout=60)
    assert not alive


def test_sigterm_ends_a_node_in_order_while_its_requests_hang(house: Household) -> None:
    """The phone waits for its owner's consent while an answer streams: neither of them holds it up."""
    node = house.phone
    waiting = threading.Event()
    flowing = threading.Event()
    ends: list[str] = []

    def hang() -> None:
        with contextlib.suppress(CommandFailure):
            for event in node.client().stream("/v1/ask", {"text": SHORT}):
                if event["event"] == "question":
                    waiting.set()
        ends.append("question")

    def stream() -> None:
        with contextlib.suppress(CommandFailure):
            for event in house.owner.follow(LONG, on="home-pc"):
                if event["event"] == "delta":
                    flowing.set()
        ends.append("stream")

    threads = [threading.Thread(target=one, daemon=True) for one in (hang, stream)]
    for thread in threads:
        thread.start()
    assert waiting.wait(60)
    assert flowing.wait(60)
    end_in_order(node, signal.SIGTERM)
    for thread in threads:
        thread.join(60)
    assert sorted(ends) == ["question", "stream"]
    house.wait_apart(house.home_pc)
    settled_count(house)
    house.start(node)
    house.wait_connected()
    nothing_under_way(house)
    assert all(entry["outcome"] != "open" for entry in infer_entries(node))
    house.check_data()


def test_ctrl_c_ends_a_provider_in_order_and_the_answer_goes_on(house: Household) -> None:
    """The home PC serves an answer and holds a pairing window open when its owner presses Ctrl-C."""
    window = house.home_pc.client().stream("/v1/pair/open", {"trust": "friend"})
    assert next(window)["event"] == "waiting"
    owner = house.owner
    events = []
    for event in owner.follow(MEDIUM):
        events.append(event)
        if len(deltas(events)) == 3 and event["event"] == "delta":
            end_in_order(house.home_pc, signal.SIGINT)
    assert went_on_here(events)
    window.close()
    house.start(house.home_pc)
    house.wait_connected()
    ask_short(house)
    house.check_data()
