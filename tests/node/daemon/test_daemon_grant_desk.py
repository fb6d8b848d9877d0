"""What the owner sees of grants: state, use, refusals; and what a date means."""

import json
from collections.abc import AsyncIterator
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import msgspec
import pytest
from pairing_node import PairingNode, open_node

from node.api.ports import GrantChange
from node.cli.cmd_grant import render
from node.daemon.grant_desk import REFUSALS_KEPT, GrantDesk, read_until
from node.daemon.grants import Grants
from node.daemon.peers import Roster
from node.daemon.usage import StoredUsage
from node.errors import UnknownPeer, UsageError
from node.identity.keystore import Identity
from node.identity.peerbook import PeerBook
from node.net.events import LinkUp
from node.store import peers
from node.store.peers import Peer
from offload.quota import QuotaBook
from protocol.frames.link import Hello
from protocol.names import PROTOCOLS

BEA = Identity.from_seed(bytes([7]) * 32).peer_id


@dataclass
class Bench:
    node: PairingNode
    roster: Roster
    grants: Grants
    quota: QuotaBook
    desk: GrantDesk
    told: list[tuple[str, str]]

    async def disconnect(self, peer_id: str) -> None:
        self.told.append(("disconnect", peer_id))

    def regrant(self, peer_id: str) -> None:
        self.told.append(("regrant", peer_id))

    def know(self, peer_id: str, addresses: Any) -> None:
        """The roster admits a peer."""


@pytest.fixture
async def bench(tmp_path: Path) -> AsyncIterator[Bench]:
    node = await open_node(tmp_path / "n", "home-pc", 1)
    await node.database.write(peers.add, Peer(BEA, "bea", "friend", "friend", (), 1, None))

    async def style(_digest: str | None) -> str:
        return "brackets"

    def today() -> date:
        return node.clock.now().astimezone(UTC).date()

    book = PeerBook(
        node.database, node.identity, node.clock, cut=lambda peer_id: roster.cut(peer_id),
        widened=lambda peer_id: roster.widened(peer_id), narrowed=lambda peer_id: roster.narrowed(peer_id),
    )
    grants = Grants(book, node.clock)
    roster = Roster(node.database, book, grants, node.clock, style)
    quota = QuotaBook(StoredUsage(node.database), today)
    desk = GrantDesk(
        roster=roster, book=book, quota=quota, database=node.database, clock=node.clock, today=today
    )
    await roster.load()
    found = Bench(node, roster, grants, quota, desk, [])
    roster.networking = found  # type: ignore[assignment]
    yield found
    await node.database.close()


async def test_a_grant_is_made_changed_used_run_out_and_revoked(bench: Bench) -> None:
    assert (await bench.desk.show("bea")).state == "none"
    made = await bench.desk.edit("be", GrantChange(services=["infer"], tokens_per_day=100, until="2040-01-01"))
    assert (made.state, made.services, made.tokens_per_day, made.trust) == ("in force", ["infer"], 100, "friend")
    assert bench.told == [("regrant", BEA), ("disconnect", BEA)]  # a first grant
    grant = bench.grants.grant_for(BEA)
    assert grant is not None
    assert grant.epoch == made.epoch

    await bench.quota.open(BEA, grant, context_tokens=1)
    await bench.quota.spend(BEA, grant, 30)
    running = await bench.desk.show("bea")
    assert (running.tokens_today, running.requests_today, running.running) == (30, 0, 1)
    await bench.quota.charge(BEA, 10, 20)
    bench.quota.close(BEA)
    over = await bench.desk.show("bea")
    assert (over.tokens_today, over.requests_today, over.running) == (30, 1, 0)

    wider = await bench.desk.edit("bea", GrantChange(tokens_per_day=1000))
    assert wider.models == made.models
    assert bench.told[2:] == [("regrant", BEA)]
    grant = bench.grants.grant_for(BEA)
    assert grant is not None
    assert grant.tokens_per_day == 1000

    bench.node.clock.advance(20 * 365 * 86_400)
    assert (await bench.desk.show("bea")).state == "expired"
    assert bench.grants.grant_for(BEA) is None
    assert bench.grants.ran_out(BEA)
    gone = await bench.desk.revoke("bea")
    assert (gone.state, gone.services, gone.until) == ("none", [], None)
    assert not bench.grants.ran_out(BEA)


async def test_hours_are_by_the_owners_clock_and_end_what_runs(bench: Bench) -> None:
    reviewed: list[str] = []

    async def review(peer_id: str) -> None:
        reviewed.append(peer_id)

    bench.roster.review_streams = review
    await bench.desk.edit("bea", GrantChange(services=["infer"]))
    bench.told.clear()
    now = bench.node.clock.now().astimezone(ZoneInfo("Asia/Kolkata"))
    past = (now - timedelta(hours=3)).replace(minute=0)
    hours = f"{past:%H:00}-{past + timedelta(hours=1):%H:00}"
    desk = GrantDesk(
        roster=bench.roster, book=bench.node.book, quota=bench.quota, database=bench.node.database,
        clock=bench.node.clock, today=lambda: now.date(), zone="Asia/Kolkata",
    )
    desk._book = bench.desk._book
    closed = await desk.edit("bea", GrantChange(hours=hours))
    assert (closed.hours, closed.zone) == (hours, "Asia/Kolkata")
    assert bench.grants.grant_for(BEA) is None and bench.grants.blob_for(BEA)
    opens_in_s = bench.grants.reopens_in_s(BEA)
    assert opens_in_s is not None and 20 * 3600 < opens_in_s <= 22 * 3600
    assert bench.told == [("regrant", BEA)] and reviewed == [BEA]  # the connection stays
    bench.node.clock.advance(opens_in_s)
    assert bench.grants.grant_for(BEA) is not None and bench.grants.reopens_in_s(BEA) is None
    bench.node.clock.advance(3600)
    assert bench.grants.grant_for(BEA) is None
    opened = await desk.edit("bea", GrantChange(hours="all"))
    assert opened.hours == "all" and bench.grants.grant_for(BEA) is not None
    with pytest.raises(UsageError):
        await desk.edit("bea", GrantChange(hours="in the evening"))


async def test_refusals_are_shown_with_their_limit_and_bounded(bench: Bench) -> None:
    bench.desk.note_refusal("somebody else", "quota", 5)
    bench.desk.note_refusal(BEA, "busy", 2)
    (seen,) = (await bench.desk.show("bea")).refusals
    assert (seen.code, seen.limit, seen.text) == ("busy", 2, "busy: 2 requests at once")
    for _ in range(1000):
        bench.desk.note_refusal(BEA, "quota", 1)
    bench.desk.note_refusal(BEA, "not_granted", None, service="mail")
    seen, again, mail = (await bench.desk.show("bea")).refusals
    assert (again.times, again.text, mail.service) == (1000, "quota: 1 token a day", "mail")
    for number in range(3 * REFUSALS_KEPT):
        bench.desk.note_refusal(BEA, "quota", number)
    assert len((await bench.desk.show("bea")).refusals) == REFUSALS_KEPT
    shown = render(json.loads(msgspec.json.encode(await bench.desk.show("bea"))))
    assert shown.count("refused") == 5


async def test_a_peer_that_asks_without_end_does_not_fill_the_log(
    bench: Bench, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO")
    for _ in range(1000):
        bench.desk.note_refusal(BEA, "quota", 1)
    assert len([record for record in caplog.records if "refused" in record.getMessage()]) == 4  # 1, 10, 100, 1000


async def test_what_the_peer_allows_is_known_while_it_is_here_and_a_refusal_ends_with_a_new_greeting(
    bench: Bench,
) -> None:
    assert (await bench.desk.show("bea")).allows_us is None
    bench.roster.note_refusal(BEA, "used up")
    (before,) = bench.roster.candidates()
    assert before.refused_lately == "used up"
    hello = Hello("bea", "0.1.0", PROTOCOLS, ("infer",), ())
    bench.roster.link_up(LinkUp(BEA, hello, frozenset(PROTOCOLS), frozenset({"infer"}), "", 1.0))
    assert (await bench.desk.show("bea")).allows_us == ["infer"]
    view = json.loads(msgspec.json.encode(await bench.desk.show("bea")))
    held = {"hours": "all", "zone": "UTC", "tokens_per_day": 5, "max_context": 9, "max_concurrency": 1,
            "services": ["infer"], "until": "2030-01-01T00:00:00+00:00"}
    for known in (["infer"], None):     # while the peer is away, only what it said last is known
        assert render({**view, "allows_us": known, "allowed_us": held}).count("it allows us") == 1
    (after,) = bench.roster.candidates()
    assert after.refused_lately == ""


async def test_wrong_words_change_nothing(bench: Bench) -> None:
    for change in (GrantChange(), GrantChange(services=["shell"]), GrantChange(until="soon")):
        with pytest.raises(UsageError):
            await bench.desk.edit("bea", change)
    with pytest.raises(UnknownPeer):
        await bench.desk.revoke("attic")
    assert (await bench.desk.show("bea")).state == "none"
    assert bench.told == []


def test_a_date_is_the_end_of_that_day_and_a_zone_counts() -> None:
    day = read_until("2027-01-31")
    assert (day.astimezone().date(), day.astimezone().hour) == (date(2027, 1, 31), 23)
    assert read_until("2027-01-31T18:00+02:00") == datetime(2027, 1, 31, 16, tzinfo=UTC)
    for wrong in ("", "31.1.2027", "2027-02-30", "2027-13", "tomorrow"):
        with pytest.raises(UsageError):
            read_until(wrong)
