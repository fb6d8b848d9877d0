"""What a stop cut off and needs the owner's word: at a start it waits for nobody, and the first request asks about it.

The real guard, desk and outbox; the guard is one that sees a gap, so that an agent's message needs consent.
"""

from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
import trio
from fixed import FixedClock, SeededEntropy
from guard_bench import guard_bench
from memory_channel import BOB

from node.agent.approve import Approvals
from node.agent.effect_json import approval_to_json, effect_to_json
from node.agent.effects import Approval, Effect, EffectValue, Origin
from node.agent.records import StoredJournal
from node.agent.tools.messages import MessageSend, ReceivedMessage
from node.agent.tools.registry import Registry
from node.api.ports import AskInput
from node.api.questions import Questions
from node.daemon.asking import Asking
from node.daemon.owner import OwnerDesk
from node.mail.outbox import Outbox
from node.privacy.ledger_rows import StoredLedgerRows
from node.privacy.policy import PeerView
from node.store import journal, mail
from node.store.connection import Connection
from node.store.database import Database
from node.store.schema import KITH

KEY = "0123456789abcdef0123456789abcdef/message_send"
INVITATION = Effect(
    "message_send", "write", "Send to bob: the garden meeting is at six",
    (EffectValue("to", ["bob"], "bob", Origin.COPIED, "you"),
     EffectValue("text", "the garden meeting is at six", "these words", Origin.COMPUTED, "a skill")), KEY)


class Post:
    """A Postbox over the real outbox, as the daemon's."""

    def __init__(self, outbox: Outbox, desk: OwnerDesk) -> None:
        self.outbox = outbox
        self.desk = desk

    async def peers(self) -> Sequence[str]:
        return ["bob"]

    async def people(self) -> Sequence[str]:
        return ["bob"]

    async def send_once(self, message_id: str, to: str, text: str, *, owners_words: bool) -> None:
        await self.outbox.put(
            PeerView(BOB, "bob", "friend"), text, self.desk, message_id=message_id, owners_words=owners_words)

    async def received(self, *, limit: int, sender: str | None = None) -> Sequence[ReceivedMessage]:
        return []


class House:
    """One node after a stop between the owner's yes and the write."""

    def __init__(self, database: Database, guard: Any) -> None:
        numbers = iter(range(1000))
        self.database = database
        self.questions = Questions(lambda: f"q{next(numbers)}")
        self.desk = OwnerDesk(self.questions, FixedClock())
        post = Post(Outbox(database, guard.egress, FixedClock(), SeededEntropy(4)), self.desk)
        self.approvals = Approvals(
            self.desk, StoredJournal(database, FixedClock()), Registry([MessageSend(post)]), deadline_s=300)
        self.asked: list[str] = []
        self.events: list[dict[str, Any]] = []

        async def ask(request: Any, events: Any) -> None:
            self.asked.append(request.text)

        def scope(*_: object) -> Any:
            return trio.CancelScope()

        async def nothing(*_: object) -> None:
            return None

        self.asking = Asking(
            cast("Any", SimpleNamespace(approvals=self.approvals, ask=ask)), cast("Any", None),
            cast("Any", SimpleNamespace(storing=scope)), cast("Any", SimpleNamespace(answer_to=nothing)),
            cast("Any", SimpleNamespace(concluding=scope)), lambda: "r1", adapter_named=cast("Any", nothing))

    async def ask(self, reply: dict[str, Any]) -> None:
        """One request over a client that replies so to each question."""
        async def emit(event: Any) -> None:
            self.events.append(dict(event))
            if event["event"] == "question":
                self.questions.answer(event["id"], {**reply, "digest": event["digest"]})

        self.desk.speak_to(emit)
        await self.asking.ask(AskInput(text="what time is it"), emit)

    async def queued(self) -> list[str]:
        return [row.body for row in await self.database.read(mail.outbox)]


@pytest.fixture
async def house(tmp_path: Path) -> AsyncIterator[House]:
    database = await Database.open(tmp_path / "kith.db", b"k" * 32, KITH)

    def approved(tx: Connection) -> None:
        journal.plan(tx, key=KEY, run_id="r", step="message_send", plan=effect_to_json(INVITATION), now_ms=1)
        yes = Approval(KEY, True, "owner", FixedClock().now())
        journal.advance(tx, KEY, journal.StepState.APPROVED, 2, decision=approval_to_json(yes))

    await database.write(approved)
    yield House(database, await guard_bench(rows=StoredLedgerRows(database)))
    with trio.CancelScope(shield=True):
        await database.close()


async def test_a_start_waits_for_nobody_and_the_next_request_asks_first(house: House, autojump_clock: Any) -> None:
    began_s = trio.current_time()
    assert await house.desk.unattended(house.approvals.finish_interrupted) == []
    assert trio.current_time() - began_s < 1
    assert (house.approvals.waiting, await house.queued(), house.questions.pending()) == (1, [], [])
    await house.ask({"allow": False, "by": "no terminal"})      # a script that passes by decides nothing
    assert (house.approvals.waiting, await house.queued()) == (1, [])
    await house.ask({"allow": True})
    assert (house.approvals.waiting, await house.queued()) == (0, ["the garden meeting is at six"])
    assert [event["event"] for event in house.events if event["event"] != "request"] == [
        "status", "question", "status", "question", "status"]
    assert house.events[-2]["text"] == "done: Send to bob: the garden meeting is at six"
    await house.ask({"allow": True})
    assert len(house.asked) == 3 and len(await house.queued()) == 1
    assert await house.approvals.finish_interrupted() == []


async def test_a_no_is_final(house: House, autojump_clock: Any) -> None:
    await house.desk.unattended(house.approvals.finish_interrupted)
    await house.ask({"allow": False})
    assert (house.approvals.waiting, await house.queued(), len(house.asked)) == (0, [], 1)
    assert await house.approvals.finish_interrupted() == []


async def test_control_a_start_that_asks_waits_for_the_whole_deadline(house: House, autojump_clock: Any) -> None:
    began_s = trio.current_time()
    assert await house.approvals.finish_interrupted() == []
    assert trio.current_time() - began_s >= 120
