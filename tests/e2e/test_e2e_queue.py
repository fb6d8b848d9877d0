"""Requests that wait for a better answer, between two real nodes: drafted at once, upgraded once, whatever dies.

The home PC is away when the request is made and comes back later. Nobody sits at the phone then, so what may leave is
decided from the queue.
"""

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from typing import Any

import pytest
from embedded_model import models_folder
from running_nodes import FULL, Household, cli, composed, failing, household, until
from typing_owner import read_until

from node.cli.demo.nodes import DemoNode

pytestmark = [pytest.mark.e2e, pytest.mark.model]

SHORT = "Explain in one sentence what salt is"
PERSONAL = "Explain to Dana Whitfield in one sentence what salt is"


@pytest.fixture(scope="module")
def both() -> Iterator[Household]:
    models_folder()
    with household() as running:
        yield running


@pytest.fixture
def house(both: Household) -> Household:
    """Both nodes, the home PC stopped, the queue empty."""
    both.home_pc.stop()
    both.wait_apart(both.phone)
    for item in queue(both.phone):
        if item["state"] in ("waiting", "needs_consent", "running"):
            both.phone.client().delete(f"/v1/queue/{item['intent_id']}")
    both.phone.client().delete("/v1/queue")
    return both


def queue(node: DemoNode) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = node.client().get("/v1/queue")
    return found


def one(node: DemoNode, intent_id: str) -> dict[str, Any]:
    view: dict[str, Any] = node.client().get(f"/v1/queue/{intent_id}")
    return view


def state(node: DemoNode, intent_id: str) -> str:
    return str(next(item["state"] for item in queue(node) if item["intent_id"] == intent_id))


def reach(node: DemoNode, intent_id: str, wanted: str) -> dict[str, Any]:
    try:
        until(lambda: state(node, intent_id) == wanted, f"the request is {wanted}")
    except AssertionError as late:
        raise AssertionError(f"{late}: {one(node, intent_id)} {node.status()['peers']}") from None
    return one(node, intent_id)


def allow(node: DemoNode, intent_id: str) -> None:
    question = reach(node, intent_id, "needs_consent")["question"]
    node.client().post(f"/v1/queue/{intent_id}/decision", {"allow": True, "digest": question["digest"]})


def turns(node: DemoNode, conversation_id: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = node.client().get(f"/v1/conversations/{conversation_id}")["turns"]
    return found


def inferences(node: DemoNode) -> list[dict[str, Any]]:
    return [entry for entry in node.client().get("/v1/ledger", limit=1000) if entry["purpose"] == "infer"]


def test_drafted_at_once_decided_later_answered_once(house: Household) -> None:
    phone, before = house.phone, len(inferences(house.phone))
    asked = cli(phone, "ask", "--on", "home-pc", SHORT)
    assert asked.returncode == 5                        # a script must notice that the peer did not answer
    assert asked.stdout.strip()                         # and a person has something to read
    assert "kith queue show" in asked.stderr
    (item,) = queue(phone)
    assert (item["state"], item["wants"], item["text"]) == ("waiting", "home-pc", SHORT)
    draft = one(phone, item["intent_id"])["draft"]
    assert draft.strip() == asked.stdout.strip()
    assert len(inferences(phone)) == before             # nothing left, nothing was tried

    house.start(house.home_pc)
    view = reach(phone, item["intent_id"], "needs_consent")
    question = view["question"]
    assert any(SHORT in text for text in question["texts"])
    assert question["peer"] == "home-pc"
    assert len(inferences(phone)) == before
    shown = cli(phone, "queue", "show", item["intent_id"][:8])
    assert "kith queue answer" in shown.stdout
    until(lambda: "1 request waits for a better answer, 1 of them for your word" in cli(phone, "status").stdout, "told")
    assert cli(phone, "queue", "answer", item["intent_id"]).returncode == 4      # nobody is asked without a terminal
    other = failing(lambda: phone.client().post(
        f"/v1/queue/{item['intent_id']}/decision", {"allow": True, "digest": "of another question"}))
    assert other.code == "nothing_to_decide"
    allow(phone, item["intent_id"])
    view = reach(phone, item["intent_id"], "done")
    assert (view["queued"]["ran_on"], view["queued"]["new"]) == ("home-pc", True)
    assert view["draft"] == draft
    assert view["answer"].strip()
    said = turns(phone, item["conversation_id"])
    assert [turn["text"] for turn in said] == [SHORT, view["answer"]]
    assert said[-1]["ran_on"] == "home-pc"
    assert len(inferences(phone)) == before + 1
    assert not one(phone, item["intent_id"])["queued"]["new"]
    assert failing(lambda: phone.client().delete(f"/v1/queue/{item['intent_id']}")).code == "intent_settled"
    assert cli(phone, "queue", "clear").stdout.strip() == "1 removed"
    assert cli(phone, "queue").stdout.strip() == "Nothing is queued."


def test_the_upgrade_is_masked_like_any_other_request(house: Household) -> None:
    answer = house.owner.ask(PERSONAL, later=True, on="home-pc")
    assert answer["kind"] == "draft"
    house.start(house.home_pc)
    question = reach(house.phone, answer["intent"], "needs_consent")["question"]
    assert not any("Dana" in text or "Whitfield" in text for text in question["texts"])
    assert question["substitutions"] >= 1
    allow(house.phone, answer["intent"])
    reach(house.phone, answer["intent"], "done")
    entry = house.phone.client().get(f"/v1/ledger/{inferences(house.phone)[0]['entry_id']}")
    assert not any("Dana" in text or "Whitfield" in text for text in entry["texts"])
    assert "from the queue" in entry["approved_by"]


def test_a_no_ends_it_and_a_cancelled_one_never_runs(house: Household) -> None:
    before = len(inferences(house.phone))
    first = house.owner.ask(SHORT, on="home-pc")
    second = house.owner.ask(SHORT, later=True)
    house.phone.client().delete(f"/v1/queue/{second['intent']}")
    house.start(house.home_pc)
    question = reach(house.phone, first["intent"], "needs_consent")["question"]
    house.phone.client().post(f"/v1/queue/{first['intent']}/decision", {"allow": False, "digest": question["digest"]})
    assert state(house.phone, first["intent"]) == "refused"
    time.sleep(2)
    assert state(house.phone, second["intent"]) == "cancelled"
    assert len(inferences(house.phone)) == before
    for answer in (first, second):
        assert [turn["text"] for turn in turns(house.phone, answer["conversation_id"])] == [SHORT, answer["text"]]


def test_the_owner_decides_at_a_terminal(house: Household) -> None:
    answer = house.owner.ask(SHORT, on="home-pc")
    house.start(house.home_pc)
    reach(house.phone, answer["intent"], "needs_consent")
    controller, terminal = os.openpty()
    kith = [sys.executable, "-P", "-c", "from node.cli.main import main; main()"]
    with subprocess.Popen(
        [*kith, "queue", "answer", answer["intent"]], env={**os.environ, "KITH_HOME": str(house.phone.home)},
        stdin=terminal, stdout=terminal, stderr=terminal, start_new_session=True,
    ) as asking:
        os.close(terminal)
        shown = read_until(controller, "[y/N] ")
        os.write(controller, b"y\n")
        rest = read_until(controller, "\x00")
        assert asking.wait(60) == 0
    os.close(controller)
    assert "This would leave this device for home-pc" in shown
    assert SHORT in shown
    assert "waiting (you allowed it)" in rest
    reach(house.phone, answer["intent"], "done")


def test_now_fails_rather_than_queue_and_a_key_asks_once(house: Household) -> None:
    failed = cli(house.phone, "ask", "--on", "home-pc", "--now", SHORT)
    assert failed.returncode == 5
    assert not failed.stdout.strip()
    assert queue(house.phone) == []
    first = house.owner.ask(SHORT, on="home-pc", key="shopping-17")
    again = house.owner.ask(SHORT, on="home-pc", key="shopping-17")
    assert (again["intent"], again["text"]) == (first["intent"], first["text"])
    assert len(queue(house.phone)) == 1
    assert len(turns(house.phone, first["conversation_id"])) == 2


def test_a_forgotten_conversation_takes_its_request_along(house: Household) -> None:
    answer = house.owner.ask(SHORT, on="home-pc")
    house.phone.client().delete(f"/v1/conversations/{answer['conversation_id']}")
    assert queue(house.phone) == []


# ------------------------------------------------------------ kill -9

# with KITH_SOAK=full at every instant; the rows' own walk at random (test_store_intents) crashes between all of them
INSTANTS = ["added", "running", "before-settled", "settled"] if FULL else ["before-settled"]


@pytest.mark.parametrize("instant", INSTANTS)
def test_killed_at_any_instant_it_is_answered_once(house: Household, instant: str) -> None:
    world, intent_id = house.world, ""
    house.phone.stop()
    dying = DemoNode("phone", world.phone, composed("daemon_dying_in_queue.py", instant))
    with dying, DemoNode("phone", world.phone) as phone:
        if instant == "added":
            dying.start()
            failing(lambda: Household(world, dying, house.home_pc).owner.ask(SHORT, on="home-pc"))
            assert dying.stop() == -9
            phone.start()
            (item,) = queue(phone)
            intent_id = item["intent_id"]
            assert one(phone, intent_id)["draft"] == ""
        else:
            phone.start()
            intent_id = Household(world, phone, house.home_pc).owner.ask(SHORT, on="home-pc")["intent"]
            assert phone.stop() == 0
            dying.start()
            house.start(house.home_pc)
            if instant != "running":
                allow(dying, intent_id)
            until(lambda: dying._process is not None and dying._process.poll() == -9, "the node has died")
            dying.stop()
            phone.start()
        if instant == "added":
            house.start(house.home_pc)
        if instant in ("added", "running"):
            allow(phone, intent_id)
        view = reach(phone, intent_id, "done")
        time.sleep(1)
        said = turns(phone, view["queued"]["conversation_id"])
        assert [turn["text"] for turn in said] == [SHORT, view["answer"]]
        assert (view["draft"] == "") is (instant == "added")
        assert phone.client().post("/v1/ledger/verify")["ok"]
        assert phone.stop() == 0
    house.start(house.phone)
    house.wait_connected()
