"""Messages between two real nodes while either side is killed with -9 again and again: each arrives once, in order.

With KITH_SOAK=full 200 messages and 20 kills of each side, a part of that otherwise. The instants are drawn from a
seed: after some message was handed in, and a few milliseconds on, while it is being delivered.
"""

import random
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass, field

import pytest
from mail_log import faults
from running_nodes import FULL, Household, household, rounds, until

from node.cli.demo.nodes import DemoNode
from node.cli.failure import CommandFailure

MESSAGES = rounds(200, 40)
KILLS_OF_EACH = rounds(20, 3)
DEADLINE_S = 1800.0 if FULL else 300.0

SENT = ["one", "two", "three", "four"]


@pytest.mark.parametrize(
    ("received", "fault"),
    [
        ([(1, "one"), (2, "two"), (3, "three"), (4, "four")], None),
        ([(1, "one"), (2, "two"), (3, "two"), (4, "three"), (5, "four")], "2 copies of 'two'"),
        ([(1, "one"), (2, "two"), (2, "two"), (3, "three"), (4, "four")], "2 copies of 'two'"),
        ([(1, "one"), (2, "three"), (3, "four")], "'two' never arrived"),
        ([(1, "one"), (3, "three"), (4, "four")], "numbered [1, 3, 4]"),
        ([(1, "one"), (2, "three"), (3, "two"), (4, "four")], "not in the order of sending"),
        ([(1, "one"), (2, "two"), (3, "three"), (4, "four"), (5, "five")], "'five' was never sent"),
        ([], "'one' never arrived"),
    ],
)
def test_the_check_sees_duplicates_holes_and_disorder(received: Sequence[tuple[int, str]], fault: str | None) -> None:
    found = faults(received, SENT)
    assert (fault in found) if fault else found == []


@dataclass
class Sender:
    """Hands messages in at one node, over its API, whatever happens to the node meanwhile."""

    node: DemoNode
    to: str
    handed_in: list[str] = field(default_factory=list)
    unsure: int = 0

    def send(self, body: str) -> None:
        """Back when the message is durably in the outbox, exactly once.

        A call that broke off may have been carried out or not: as an owner would, look before sending again.
        """
        deadline = time.monotonic() + DEADLINE_S
        while time.monotonic() < deadline:
            try:
                self.node.client().post("/v1/messages", {"to": self.to, "body": body})
                break
            except (CommandFailure, OSError):
                self.unsure += 1
                if body in until(self._outbox, "the outbox can be read", DEADLINE_S):
                    break
        else:
            raise AssertionError(f"gave up sending {body!r}")
        self.handed_in.append(body)

    def _outbox(self) -> set[str] | None:
        return {"", *(row["body"] for row in self.node.client().get("/v1/outbox", limit=10_000))}


def inbox(node: DemoNode) -> list[tuple[int, str]]:
    """(number, text) in order of arrival."""
    rows = node.client().get("/v1/inbox", limit=10_000)
    return [(row["seq"], row["body"]) for row in reversed(rows)]


def disturb(house: Household, sender: Sender, victim: DemoNode, batch: Sequence[str], chance: random.Random) -> None:
    """Hand the batch in and kill victim at some instant of that; both are there and connected afterwards."""
    before = len(sender.handed_in)
    wanted, pause_s = before + chance.randint(0, len(batch)), chance.uniform(0.0, 0.03)
    thread = threading.Thread(target=lambda: [sender.send(body) for body in batch], daemon=True)
    thread.start()
    until(lambda: len(sender.handed_in) >= wanted or None, "some messages are handed in", DEADLINE_S)
    time.sleep(pause_s)
    house.kill(victim)
    house.start(victim)
    thread.join(DEADLINE_S)
    assert len(sender.handed_in) == before + len(batch)
    # nothing that was stored is ever lost or doubled again
    so_far = inbox(house.home_pc)
    assert faults(so_far, sender.handed_in[: len(so_far)]) == []
    house.wait_connected()


@pytest.mark.e2e
@pytest.mark.soak
def test_each_message_arrives_once_and_in_order_through_kill_9_of_either_side() -> None:
    chance = random.Random("mail through kills")
    with household() as house:
        sender = Sender(house.phone, "home-pc")
        victims = [*[house.phone] * KILLS_OF_EACH, *[house.home_pc] * KILLS_OF_EACH]
        chance.shuffle(victims)
        texts = [f"message {number}: {chance.randbytes(12).hex()}" for number in range(MESSAGES)]
        per_kill = MESSAGES // len(victims)
        for number, victim in enumerate(victims):
            disturb(house, sender, victim, texts[number * per_kill : (number + 1) * per_kill], chance)
        for body in texts[len(victims) * per_kill :]:
            sender.send(body)
        until(lambda: len(inbox(house.home_pc)) >= MESSAGES or None, "every message is there")
        house.phone.wait_for(lambda status: status["queued_messages"] == 0, "every message is acknowledged", 60)
        assert faults(inbox(house.home_pc), texts) == []
        assert inbox(house.phone) == []
        outbox = house.phone.client().get("/v1/outbox", limit=10_000)
        assert [(row["body"], row["state"]) for row in reversed(outbox)] == [(text, "delivered") for text in texts]
        entries = [one for one in house.phone.client().get("/v1/ledger", limit=10_000) if one["purpose"] == "mail"]
        assert [one["outcome"] for one in entries] == ["delivered"] * MESSAGES
        house.check_data()
