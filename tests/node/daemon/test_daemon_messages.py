"""The owner's outbox: what was not delivered says why, in words, and what to do next."""

from types import SimpleNamespace
from typing import Any, cast

import pytest
from fixed import FixedClock

from node.api.views import OutboxMessage
from node.clock import to_ms
from node.daemon.messages import Messages
from node.store import mail
from node.store.connection import Connection
from node.store.database import Database
from node.store.schema import KITH

CLOCK = FixedClock()


@pytest.fixture
async def outbox(tmp_path: Any) -> Any:
    """Messages of every end, as the owner sees them after a restart, by their ids."""
    now_ms = to_ms(CLOCK.now())

    def fill(tx: Connection) -> None:
        for number, peer in enumerate(["bea"] * 6 + ["cara"]):
            mail.enqueue(
                tx, peer_id=peer, message_id=f"m{number}", kind="chat.msg", body=f"text {number}",
                now_ms=now_ms, expires_ms=now_ms + (1 if number == 3 else 10**9))
        mail.acknowledge(tx, "bea", 1, now_ms)
        mail.withhold(tx, "bea", 2, now_ms, "holds_secret")
        mail.withhold(tx, "bea", 3, now_ms, "holds_personal")
        mail.expire(tx, now_ms + 1)
        mail.withhold(tx, "bea", 5, now_ms, "from_a_later_version")
        mail.give_up(tx, "cara", now_ms)

    path = tmp_path / "kith.db"
    first = await Database.open(path, b"k" * 32, KITH)
    await first.write(fill)
    await first.close()
    database = await Database.open(path, b"k" * 32, KITH)
    nobody = cast("Any", None)
    roster = cast("Any", SimpleNamespace(name_of=lambda peer_id: f"{peer_id}-laptop"))
    messages = Messages(database, nobody, nobody, roster, nobody, CLOCK)
    yield {one.message_id: one for one in await messages.outbox(20)}
    await database.close()


@pytest.mark.parametrize(("message_id", "state", "reason", "hint"), [
    ("m0", "delivered", "", ""),
    ("m1", "withheld", "The text holds a password, key, PIN or code.", "kith send bea-laptop TEXT"),
    ("m2", "withheld", "The text holds personal data and would go out readable", "kith send bea-laptop TEXT"),
    ("m3", "expired", "It was not delivered in time.", "kith send bea-laptop TEXT"),
    ("m4", "withheld", "The guard stopped this, so nothing was sent.", "kith send bea-laptop TEXT"),
    ("m5", "queued", "", ""),
    ("m6", "given up", "You forgot this peer before it was delivered.", "kith pair"),
])
async def test_each_end_in_words(
    outbox: dict[str, OutboxMessage], message_id: str, state: str, reason: str, hint: str,
) -> None:
    found = outbox[message_id]
    assert found.state == state
    assert found.reason.startswith(reason) and bool(found.reason) is bool(reason)
    assert hint in found.hint and bool(found.hint) is bool(hint)
    assert bool(found.body) is (state in ("delivered", "queued"))
