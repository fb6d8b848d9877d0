"""The paired peers as this node sees them: here while the link beats, allowed what they greet with, cut when told."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any, Literal, cast

import pytest
from fixed import FixedClock
from pairing_node import PairingNode, open_node

from node.daemon.grants import Grants
from node.daemon.peer_work import REFUSAL_REMEMBERED_S
from node.daemon.peers import Roster
from node.daemon.serving import Serving
from node.errors import UnknownPeer, UsageError
from node.identity import granting
from node.identity.keystore import Identity
from node.identity.peerbook import PeerBook
from node.identity.trust import DEFAULT_TERMS, Trust
from node.net.events import LinkDown, LinkUp, ModelsAdvertised
from node.store import grants as grant_rows
from node.store import mail, peers
from node.store.peers import Peer
from protocol.frames.link import Hello, ModelAdvert
from protocol.names import PROTOCOLS

BEA = Identity.from_seed(bytes([7]) * 32).peer_id
CARA = Identity.from_seed(bytes([8]) * 32).peer_id
MODEL = ModelAdvert("smollm2", "ab" * 32, 2048, True)
Told = Literal["home", "friend"] | None
ADDRESS = "/ip4/10.0.0.7/tcp/4001"


class Net:
    """What the roster tells the network."""

    def __init__(self) -> None:
        self.told: list[tuple[str, ...]] = []

    def know(self, peer_id: str, addresses: Any) -> None:
        self.told.append(("know", peer_id, *addresses))

    async def forget(self, peer_id: str) -> None:
        self.told.append(("forget", peer_id))

    async def disconnect(self, peer_id: str) -> None:
        self.told.append(("disconnect", peer_id))

    def regrant(self, peer_id: str) -> None:
        self.told.append(("regrant", peer_id))

    def regreet(self, peer_id: str, *, only_outdated: bool = False) -> None:
        self.told.append(("regreet", peer_id, "if outdated") if only_outdated else ("regreet", peer_id))

    def wake(self, peer_id: str) -> None:
        self.told.append(("wake", peer_id))


class House:
    def __init__(self, node: PairingNode) -> None:
        self.node = node
        self.clock: FixedClock = node.clock
        book = PeerBook(node.database, node.identity, node.clock, lambda peer_id: self.roster.cut(peer_id))
        self.book = book
        self.grants = Grants(book, node.clock)
        self.roster = Roster(node.database, book, self.grants, node.clock, self._style)
        self.net = Net()
        self.ended: list[str] = []
        self.roster.networking = self.net  # type: ignore[assignment]
        self.roster.end_streams = self._end

    async def _style(self, digest: str | None) -> str:
        return "surrogates" if digest == MODEL.digest else "brackets"

    async def _end(self, peer_id: str) -> None:
        self.ended.append(peer_id)

    def up(
        self, peer_id: str = BEA, *capabilities: str, rtt_ms: float = 2.0, trust: Told = None,
    ) -> None:
        hello = Hello("bea", "0.1.0", PROTOCOLS, capabilities, (MODEL,), trust=trust)
        self.roster.link_up(LinkUp(peer_id, hello, frozenset(PROTOCOLS), frozenset(capabilities), ADDRESS, rtt_ms))

    def candidate(self, peer_id: str = BEA) -> Any:
        return next(one for one in self.roster.candidates() if one.peer_id == peer_id)


@pytest.fixture
async def house(tmp_path: Path) -> AsyncIterator[House]:
    node = await open_node(tmp_path / "n", "phone", 1)

    def fill(tx: Any) -> None:
        for peer_id, name, trust in ((BEA, "bea", "home"), (CARA, "cara", "friend")):
            peers.add(tx, Peer(peer_id, name, trust, "self", ("/ip4/10.0.0.9/tcp/1",), 1, None))
            blob = granting.issue(node.identity, peer_id, DEFAULT_TERMS[Trust(trust)], 1, node.clock.now())
            grant_rows.put(tx, peer_id, "issued", 1, blob, 1)
        grant_rows.reserve_epoch(tx)

    await node.database.write(fill)
    found = House(node)
    await found.roster.load()
    yield found
    await node.database.close()


async def test_loading_admits_every_paired_peer_and_its_grant(house: House) -> None:
    assert house.net.told == [("know", peer_id, "/ip4/10.0.0.9/tcp/1") for peer_id in (BEA, CARA)]
    assert [peer_id for peer_id, _ in house.roster.known()] == [BEA, CARA]
    grant = house.grants.grant_for(BEA)
    assert grant is not None
    assert "infer" in grant.services
    friend = house.grants.grant_for(CARA)
    assert friend is not None
    assert friend.services == ("mail",)
    assert house.grants.grant_for("12D3KooWnobody") is None


async def test_a_peer_is_here_while_its_link_beats(house: House) -> None:
    seen: list[tuple[str, bool]] = []
    house.roster.on_change = lambda peer_id, present: seen.append((peer_id, present))
    assert not house.roster.is_present(BEA)
    assert not house.candidate().connected
    house.up(BEA, "infer", "search")
    assert house.roster.is_present(BEA)
    one = house.candidate()
    assert (one.connected, one.grants_infer, [(m.name, m.digest, m.context_tokens) for m in one.models]) == (
        True, True, [("smollm2", MODEL.digest, 2048)])
    assert house.roster.granting("search") == [BEA]
    assert house.roster.granting("mail") == []
    house.roster.models_changed(ModelsAdvertised(BEA, ()))
    assert house.candidate().models == ()
    house.roster.link_down(LinkDown(BEA, "silent"))
    assert not house.roster.is_present(BEA)
    assert house.roster.granting("search") == []
    assert seen == [(BEA, True), (BEA, False)]


async def test_what_this_node_is_to_a_peer_is_as_the_peer_greets(house: House) -> None:
    async def told(trust: Told) -> str:
        house.up(BEA, trust=trust)
        await house.roster.note_contact(BEA)
        return {one.peer_id: one.their_trust for one in await house.roster.all()}[BEA]

    assert await told(None) == "self"          # as it was paired
    assert [await told("friend"), await told(None), await told("home")] == ["friend", "friend", "home"]
    again = Roster(house.node.database, house.book, house.grants, house.clock, house._style)
    await again.load()
    assert {one.peer_id: one.their_trust for one in await again.all()} == {BEA: "home", CARA: "self"}


async def test_a_changed_trust_is_what_the_very_next_greeting_tells(house: House) -> None:
    serving = Serving("phone", cast("Any", None), house.grants, house.roster)
    told: list[tuple[str, str | None]] = []

    async def disconnect(peer_id: str) -> None:
        """The peer comes back before anything else happens here."""
        told.append((peer_id, serving.hello(peer_id).trust))

    house.net.disconnect = disconnect  # type: ignore[method-assign]
    assert serving.hello(BEA).trust == "home"
    await house.roster.trust("bea", "friend")
    assert told == [(BEA, "friend")]
    assert serving.hello(BEA).grant != b""
    await house.roster.trust("bea", "none")
    assert serving.hello(BEA).trust is serving.hello("12D3KooWnobody").trust is None


async def test_events_of_a_peer_that_is_not_paired_change_nothing(house: House) -> None:
    house.up("12D3KooWnobody", "infer")
    house.roster.link_down(LinkDown("12D3KooWnobody", "lost"))
    house.roster.models_changed(ModelsAdvertised("12D3KooWnobody", (MODEL,)))
    house.roster.note_refusal("12D3KooWnobody", "busy")
    house.roster.started("12D3KooWnobody")
    house.roster.ended("12D3KooWnobody")
    await house.roster.note_contact("12D3KooWnobody")
    assert len(house.roster.candidates()) == 2
    assert await house.roster.view("12D3KooWnobody") is None
    assert house.roster.name_of("12D3KooWnobody") == "...nobody"


async def test_without_the_grant_it_is_here_and_no_candidate(house: House) -> None:
    house.up(BEA, "mail")
    assert (house.candidate().connected, house.candidate().grants_infer) == (True, False)


async def test_a_refusal_is_remembered_for_a_moment_or_until_the_next_greeting(house: House) -> None:
    house.up(BEA, "infer")
    house.roster.note_refusal(BEA, "quota")
    assert house.candidate().refused_lately == "quota"
    house.clock.advance(REFUSAL_REMEMBERED_S - 0.1)
    assert house.candidate().refused_lately == "quota"
    house.clock.advance(0.2)
    assert house.candidate().refused_lately == ""
    house.roster.note_refusal(BEA, "quota")
    house.up(BEA, "infer")
    assert house.candidate().refused_lately == ""


async def test_work_there_is_counted(house: House) -> None:
    house.roster.started(BEA)
    house.roster.started(BEA)
    house.roster.ended(BEA)
    assert (house.candidate().in_flight, house.candidate(CARA).in_flight) == (1, 0)


async def test_the_guard_sees_trust_and_the_style_of_the_model(house: House) -> None:
    view = await house.roster.view(BEA, MODEL.digest)
    assert view is not None
    assert (view.peer_id, view.name, view.trust, view.style) == (BEA, "bea", "home", "surrogates")


async def test_what_was_tried_here_says_nothing_of_a_model_whose_name_is_all_that_is_the_same(house: House) -> None:
    house.roster.work.doubt(BEA, "its answers are not those of smollm2, which it names")
    view = await house.roster.view(BEA, MODEL.digest)
    assert view is not None
    assert view.style == "brackets"


async def test_a_contact_is_noted_where_and_when(house: House) -> None:
    await house.roster.note_contact(BEA)        # not here: nothing to note
    assert (await house.roster.all())[0].last_contact is None
    house.up(BEA)
    await house.roster.note_contact(BEA)
    (bea, cara) = await house.roster.all()
    assert bea.last_contact == house.clock.now().isoformat(timespec="seconds")
    assert cara.last_contact is None
    assert house.roster.known()[0] == (BEA, (ADDRESS, "/ip4/10.0.0.9/tcp/1"))


async def test_the_screen_says_how_a_peer_is_reached(house: House) -> None:
    def queue(tx: Any) -> None:
        mail.enqueue(tx, peer_id=CARA, message_id="m1", kind="chat.msg", body="x", now_ms=1, expires_ms=2**40)

    await house.node.database.write(queue)
    house.up(BEA, "infer", rtt_ms=3.14)
    (bea, cara) = await house.roster.all()
    assert (bea.connected, bea.route, bea.model) == (True, f"lan {ADDRESS} 3.1 ms", "smollm2")
    assert (cara.connected, cara.route, cara.waiting_messages) == (False, "offline; 1 message waits", 1)
    entries = await house.roster.peers()
    assert [(one.name, one.trust) for one in entries] == [("bea", "home"), ("cara", "friend")]


async def test_less_trust_cuts_and_takes_the_grant_back(house: House) -> None:
    house.net.told.clear()
    screen = await house.roster.trust("bea", "friend")
    assert (screen.name, screen.trust) == ("bea", "friend")
    grant = house.grants.grant_for(BEA)
    assert grant is not None
    assert grant.services == ("mail",)
    assert house.ended == [BEA]
    assert ("disconnect", BEA) in house.net.told
    with pytest.raises(UsageError) as refused:
        await house.roster.trust("bea", "admin")
    assert "self" in refused.value.hint
    with pytest.raises(UnknownPeer):
        await house.roster.trust("nobody", "friend")


async def test_trust_none_admits_the_peer_no_more(house: House) -> None:
    house.net.told.clear()
    await house.roster.trust("bea", "none")
    assert house.grants.grant_for(BEA) is None or house.grants.grant_for(BEA).services == ()  # type: ignore[union-attr]
    assert ("forget", BEA) in house.net.told
    assert ("know", BEA, "/ip4/10.0.0.9/tcp/1") not in house.net.told
    assert [peer_id for peer_id, _ in house.roster.known()] == [CARA]


async def test_forgetting_leaves_nothing_of_the_peer(house: House) -> None:
    house.up(BEA, "infer")
    assert await house.roster.forget("bea") == "bea"
    assert house.grants.grant_for(BEA) is None
    assert house.grants.granted_by(BEA) is None
    assert house.ended == [BEA]
    assert ("forget", BEA) in house.net.told
    assert [one.peer_id for one in house.roster.candidates()] == [CARA]
    with pytest.raises(UnknownPeer):
        house.roster.find("bea")


async def test_a_grant_whose_time_is_over_is_none_and_said_to_have_run_out(house: House) -> None:
    assert not house.grants.ran_out(BEA)
    house.clock.advance(DEFAULT_TERMS[Trust.HOME].days * 86_400 + 86_400)
    assert house.grants.grant_for(BEA) is None
    assert house.grants.ran_out(BEA)
    assert not house.grants.ran_out("12D3KooWnobody")


async def test_a_new_pairing_ends_what_the_old_one_allowed(house: House) -> None:
    house.up(BEA, "infer", "mail", "search")
    house.net.told.clear()
    bea = Identity.from_seed(bytes([7]) * 32)
    blob = granting.issue(bea, house.node.identity.peer_id, DEFAULT_TERMS[Trust.FRIEND], 5, house.node.clock.now())
    row = Peer(BEA, "bea", "friend", "friend", (ADDRESS,), 2, 2)

    def store(tx: Any) -> None:
        peers.add(tx, row)
        grant_rows.put(tx, BEA, "received", 5, blob, 2)

    await house.node.database.write(store)
    await house.roster.welcome(row)
    assert house.roster.allows_us(BEA) == {"mail"}
    assert house.roster.granting("search") == []
    assert not house.candidate().grants_infer
    assert house.net.told == [("know", BEA, ADDRESS), ("regreet", BEA, "if outdated"), ("wake", BEA)]
    house.up(BEA, "mail", "search")     # what it greets with from now on counts
    assert house.roster.allows_us(BEA) == {"mail", "search"}


async def test_a_newly_paired_peer_that_is_not_here_is_called(house: House) -> None:
    house.net.told.clear()
    await house.roster.welcome(Peer(BEA, "bea", "home", "self", (ADDRESS,), 2, 2))
    assert house.roster.allows_us(BEA) is None
    assert house.net.told[-1] == ("wake", BEA)


async def test_a_peer_that_no_prompt_may_leave_for_is_no_candidate(house: House) -> None:
    house.up(BEA, "infer")
    assert house.candidate().hindrance == ""
    house.roster.work.kept_back = lambda peer_id: "its level for prompts is never" if peer_id == BEA else ""
    assert house.candidate().hindrance == "its level for prompts is never"
