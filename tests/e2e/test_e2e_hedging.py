"""A request that its owner has put to two machines at once: one answer, the other machine stops, both say what it cost.

Real processes. Each machine counts what its model's process decodes.
"""

import contextlib
import json
import time
from collections.abc import Iterator
from typing import Any

import psutil
import pytest
from embedded_model import model_path
from running_nodes import composed, until, workers_of
from three_nodes import ThreeNodes, three_nodes

from node.cli.demo.nodes import DemoNode
from node.cli.demo.owner import Event, Owner

pytestmark = [pytest.mark.e2e, pytest.mark.model]

LONG = "Explain how a sailing boat works in detail"
SHORT = "Explain in one sentence what salt is"
STILL_S = 0.5
MAY_DECODE = 2      # the one at work when it is told, and one that was on its way


@pytest.fixture(scope="module")
def three() -> Iterator[ThreeNodes]:
    model_path()
    counting = composed("daemon_counting_decodes.py")
    with three_nodes(home_pc=counting, attic=counting) as nodes:
        for provider in nodes.providers:
            Owner(nodes.phone.client()).ask(SHORT, on=provider.name)    # both models are loaded
        yield nodes


def noted(node: DemoNode) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (node.home / "decodes.jsonl").read_text().splitlines()]


def decodes(node: DemoNode) -> int:
    """How many decodes its worker has made, as last told."""
    return max(line["decodes"] for line in noted(node))


def at_rest(node: DemoNode) -> None:
    """Wait until it decodes nothing and has nothing to decode, as told by itself."""
    def still() -> bool:
        seen = noted(node)
        time.sleep(STILL_S)
        told = [line for line in seen if line["what"] == "pong"]
        return told[-1]["running"] == 0 and noted(node) == seen

    until(still, "nothing is decoded any more")


def used(node: DemoNode) -> tuple[int, int]:
    """(tokens, requests) of the phone today, as this machine's owner reads it."""
    grant = node.client().get("/v1/peers/phone/grant")
    return grant["tokens_today"], grant["requests_today"]


def infer_entries(node: DemoNode, limit: int) -> list[dict[str, Any]]:
    return [one for one in node.client().get("/v1/ledger", limit=20) if one["purpose"] == "infer"][:limit]


def hedged(three: ThreeNodes, text: str) -> tuple[str, Event]:
    """What the reader saw, and the last event."""
    shown, answers = "", []
    with contextlib.closing(Owner(three.phone.client()).follow(text, hedge=True)) as events:
        for event in events:
            shown += event["text"] if event["event"] == "delta" else ""
            answers += [event] if event["event"] == "answer" else []
    (answer,) = answers
    return shown, answer


def test_one_answer_is_read_and_the_other_machine_stops(three: ThreeNodes) -> None:
    """Until the other one had begun to compute as well and counts that, which depends on who is a moment earlier."""
    for _ in range(8):
        if hedge_once(three):
            return
    raise AssertionError("the loser never computed anything that it counts")


def hedge_once(three: ThreeNodes) -> bool:
    """Ask, and check everything; whether the loser had computed something, and counts it."""
    for node in three.providers:
        at_rest(node)
    before = {node.name: (decodes(node), len(noted(node)), used(node)) for node in three.providers}
    shown, answer = hedged(three, LONG)
    winner, loser = sorted(three.providers, key=lambda node: node.name != answer["ran_on"])
    assert winner.name == answer["ran_on"] != loser.name
    assert shown == answer["text"]
    assert f"; {winner.name} wrote first" in answer["reason"]

    # one entry for each machine that got the text, and none is open
    entries = until(
        lambda: (found := infer_entries(three.phone, 2)) and all(one["outcome"] != "open" for one in found) and found,
        "both entries are closed")
    assert {one["peer"] for one in entries} == {"home-pc", "attic"}
    assert [one["outcome"] for one in entries if one["peer"] == winner.name] == ["answered"]
    assert [one["outcome"] for one in entries if one["peer"] == loser.name] != ["answered"]

    # the loser was told, and decoded nothing more
    until(lambda: used(winner)[1] > before[winner.name][2][1], "the winner has booked it")
    at_rest(loser)
    if used(loser)[1] == before[loser.name][2][1]:      # the other one wrote before this one was asked
        assert decodes(loser) == before[loser.name][0]
        return False
    stopped = decodes(loser)
    lines = noted(loser)[before[loser.name][1]:]
    told = [at for at, line in enumerate(lines) if line["what"] == "cancel"]
    if told:
        then = [line["decodes"] for line in lines[told[0]:] if line["what"] == "pong"]
        assert not then or stopped <= then[0] + MAY_DECODE
    made = {node.name: decodes(node) - before[node.name][0] for node in three.providers}
    assert made[loser.name] < made[winner.name] / 2, made

    # both count what they did and no more: the one a whole answer, the other what it read and wrote until it was told
    assert all(used(node)[1] == before[node.name][2][1] + 1 for node in three.providers)
    cost = {node.name: used(node)[0] - before[node.name][2][0] for node in three.providers}
    assert cost[loser.name] < cost[winner.name], cost
    # a machine that its own models starve may hear of the cancel when it hears that its model began: then a few decodes
    # are for nothing
    assert cost[loser.name] > 0 or made[loser.name] <= made[winner.name] / 10, (cost, made, lines)
    read = cost[winner.name] - len(answer["text"].split())      # the prompt, and more: a word is a token or two
    assert cost[loser.name] <= read + made[loser.name] + MAY_DECODE, (cost, made)
    return made[loser.name] > 0 and cost[loser.name] > 0


def test_one_that_cannot_move_costs_no_answer_and_starts_nothing_when_it_can_again(three: ThreeNodes) -> None:
    (worker,) = workers_of(three.attic)
    at_rest(three.attic)
    before = decodes(three.attic)
    process = psutil.Process(worker.pid)
    process.suspend()
    try:
        shown, answer = hedged(three, SHORT)
    finally:
        process.resume()
    assert (answer["ran_on"], shown) == ("home-pc", answer["text"])
    time.sleep(STILL_S)
    assert decodes(three.attic) <= before + MAY_DECODE
    assert Owner(three.phone.client()).ask(SHORT, on="attic")["ran_on"] == "attic"


def test_control_nobody_else_computes_unless_it_was_asked_for(three: ThreeNodes) -> None:
    before = {node.name: used(node)[1] for node in three.providers}
    answer = Owner(three.phone.client()).ask(SHORT)
    until(lambda: used(three.home_pc)[1] + used(three.attic)[1] > sum(before.values()), "it is booked")
    assert {node.name for node in three.providers if used(node)[1] > before[node.name]} == {answer["ran_on"]}
