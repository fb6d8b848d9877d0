"""Two nodes pair over a channel in memory: both stored or neither, tries durable, nothing told to a stranger."""

import contextlib
import os
import signal
import subprocess
import sys
from collections.abc import AsyncIterator
from typing import Any

import msgspec
import pytest
import trio
import trio.testing
from pairing_node import PairingNode, channels, open_node

from node.errors import KithError, PairingClosed, PairingError, PairingInterrupted, PairingRefused, UsageError
from node.identity.trust import Trust
from node.store import grants, pairing
from node.store.connection import open_connection
from node.store.database import Database
from node.store.peers import Peer
from node.store.schema import KITH
from protocol import canonical
from protocol import pairing as machine
from protocol.frames.pairing import PairConfirm, PairRefused, StartCode, StartSecret
from protocol.pairlink import parse_link

Outcome = Peer | KithError


@pytest.fixture
async def phone(tmp_path) -> AsyncIterator[PairingNode]:
    node = await open_node(tmp_path / "phone", "amber-otter-41", 1)
    yield node
    await node.database.close()


@pytest.fixture
async def home(tmp_path) -> AsyncIterator[PairingNode]:
    node = await open_node(tmp_path / "home", "home-pc", 2)
    yield node
    await node.database.close()


async def pair(phone: PairingNode, home: PairingNode, *, meddle: Any = None, **proof: Any) -> tuple[Outcome, Outcome]:
    """(what the phone got, what home got) when the phone dials with this proof."""
    near, far = channels(phone, home)
    if meddle is not None:
        meddle(near, far)
    got: dict[str, Outcome] = {}

    async def note(side: str, call: Any) -> None:
        try:
            got[side] = await call
        except KithError as error:
            got[side] = error

    async with trio.open_nursery() as nursery:
        nursery.start_soon(note, "phone", phone.driver.initiate(near, phone.owner, Trust.HOME, **proof))
        nursery.start_soon(note, "home", home.driver.respond(far, home.owner))
    return got["phone"], got["home"]


async def nothing_stored(*nodes: PairingNode) -> bool:
    for node in nodes:
        if await node.book.every():
            return False
        if (await node.database.read(lambda tx: tx.execute("SELECT count(*) FROM grants").fetchone())) != (0,):
            return False
    return True


async def test_by_code_both_store_each_other_with_trust_and_grants(phone, home):
    window = await home.driver.open_window(Trust.SELF)
    at_phone, at_home = await pair(phone, home, code=window.code)
    assert isinstance(at_phone, Peer)
    assert isinstance(at_home, Peer)
    assert (at_phone.name, at_phone.trust, at_phone.their_trust) == ("home-pc", "home", "self")
    assert (at_home.name, at_home.trust, at_home.their_trust) == ("amber-otter-41", "self", "home")
    assert at_phone.addresses == ("/ip4/10.0.0.2/tcp/4001",)
    assert await phone.book.every() == [at_phone]
    for near, far in ((phone, home), (home, phone)):
        given = await near.book.grant_for(far.identity.peer_id)
        assert given is not None
        assert given == await far.book.grant_from(near.identity.peer_id)
        assert given.services == ("infer", "mail", "models", "relay", "search")
    assert await home.driver.window() is None  # the code is spent


async def test_after_a_code_both_owners_compare_the_same_pictures(phone, home):
    window = await home.driver.open_window(Trust.FRIEND)
    await pair(phone, home, code=window.code)
    (seen_phone,), (seen_home,) = phone.owner.asked, home.owner.asked
    assert len(seen_phone.emoji) == 3
    assert seen_phone.emoji == seen_home.emoji
    assert (seen_phone.name, seen_phone.our_trust, seen_phone.their_trust) == ("home-pc", Trust.HOME, Trust.FRIEND)
    assert seen_home.peer_id == phone.identity.peer_id
    assert len(seen_home.fingerprint) == 6


async def test_by_link_there_is_nothing_to_compare(phone, home):
    window = await home.driver.open_window(Trust.SELF)
    link = parse_link(window.link)
    assert link is not None
    assert (link.peer_id, link.addresses) == (home.identity.peer_id, ("/ip4/10.0.0.2/tcp/4001",))
    at_phone, at_home = await pair(phone, home, secret=link.secret)
    assert isinstance(at_phone, Peer)
    assert isinstance(at_home, Peer)
    assert phone.owner.asked[0].emoji == ()


async def test_a_friend_may_send_messages_and_nothing_else(phone, home):
    window = await home.driver.open_window(Trust.FRIEND)
    await pair(phone, home, code=window.code)
    grant = await home.book.grant_for(phone.identity.peer_id)
    assert grant is not None
    assert (grant.services, grant.models, grant.tokens_per_day) == (("mail",), (), 0)


async def test_a_wrong_code_costs_a_try_and_stores_nothing_and_the_fourth_attempt_gets_no_answer(
    phone, home,
):
    window = await home.driver.open_window(Trust.SELF)
    for left in (2, 1, 0):
        at_phone, at_home = await pair(phone, home, code="1-wrong-code")
        assert isinstance(at_phone, PairingRefused)
        assert isinstance(at_home, PairingRefused)
        open_window = await home.driver.window()
        assert (0 if open_window is None else open_window.tries_left) == left
    _, far = channels(phone, home)
    with pytest.raises(PairingClosed):
        await home.driver.respond(far, home.owner)
    assert far.sent == []
    at_phone, at_home = await pair(phone, home, code=window.code)  # even the right one
    assert isinstance(at_phone, PairingError)
    assert isinstance(at_home, PairingClosed)
    assert await nothing_stored(phone, home)
    assert (phone.owner.asked, home.owner.asked) == ([], [])


async def test_a_try_is_durable_before_the_first_byte_of_an_answer(phone, home):
    await home.driver.open_window(Trust.SELF)
    left_at_send = []

    def meddle(near: Any, far: Any) -> None:
        def before_send(frame: Any) -> None:
            with home_rows(home) as tx:
                left_at_send.append(tx.execute("SELECT tries_left FROM pairing_window").fetchone()[0])

        far.before_send = before_send

    await pair(phone, home, meddle=meddle, code="1-wrong-code")
    assert left_at_send[0] == 2
    assert len(left_at_send) == 2  # its share, then the refusal


def home_rows(node: PairingNode) -> Any:
    """A second connection to a node's database: it sees committed rows only."""
    return contextlib.closing(open_connection(node.database.path, node.identity.subkey("database"), "FULL"))


@pytest.mark.parametrize("refuser", ["phone", "home"])
async def test_one_no_is_enough_and_nothing_usable_is_left(phone, home, refuser):
    {"phone": phone, "home": home}[refuser].owner.answer = False
    window = await home.driver.open_window(Trust.SELF)
    at_phone, at_home = await pair(phone, home, code=window.code)
    for outcome in (at_phone, at_home):
        assert isinstance(outcome, PairingRefused)
        assert "declined" in outcome.text
    assert await nothing_stored(phone, home)
    assert await home.driver.window() is None


async def test_a_question_that_cannot_be_shown_is_a_no(phone, home):
    async def fail(question: Any) -> bool:
        raise ZeroDivisionError

    home.owner.confirm = fail
    window = await home.driver.open_window(Trust.SELF)
    at_phone, at_home = await pair(phone, home, code=window.code)
    assert isinstance(at_phone, PairingRefused)
    assert isinstance(at_home, PairingRefused)
    assert await nothing_stored(phone, home)


async def test_an_owner_who_does_not_answer_said_no(phone, home, autojump_clock):
    home.owner.silent = True
    window = await home.driver.open_window(Trust.SELF)
    started = trio.current_time()
    at_phone, at_home = await pair(phone, home, code=window.code)
    assert isinstance(at_phone, PairingError)
    assert isinstance(at_home, PairingError)
    assert trio.current_time() - started == pytest.approx(179, abs=2)
    assert await nothing_stored(phone, home)


@pytest.mark.parametrize("side", ["phone", "home"])
@pytest.mark.parametrize("after", range(4))
async def test_a_link_that_breaks_after_any_frame_leaves_nothing_at_either_side(phone, home, side, after):
    window = await home.driver.open_window(Trust.SELF)

    def meddle(near: Any, far: Any) -> None:
        (near if side == "phone" else far).cut_after = after

    at_phone, at_home = await pair(phone, home, meddle=meddle, code=window.code)
    assert isinstance(at_phone, PairingInterrupted)
    assert isinstance(at_home, PairingInterrupted)
    assert await nothing_stored(phone, home)


async def test_control_the_breaks_above_cover_every_frame(phone, home):
    window = await home.driver.open_window(Trust.SELF)
    ends: list[Any] = []
    at_phone, _ = await pair(phone, home, meddle=lambda near, far: ends.extend((near, far)), code=window.code)
    assert isinstance(at_phone, Peer)
    assert [len(end.sent) for end in ends] == [4, 4]


async def test_a_grant_signed_for_a_failed_pairing_is_below_every_later_one(phone, home):
    kept: list[Any] = []
    phone.owner.answer = False
    window = await home.driver.open_window(Trust.SELF)
    await pair(phone, home, meddle=lambda near, far: kept.append(far), code=window.code)
    (card,) = [frame for frame in kept[0].sent if isinstance(frame, machine.PairCard)]
    assert card.body.grant  # the phone holds a signed grant with everything in it ...
    phone.owner.answer = True
    window = await home.driver.open_window(Trust.FRIEND)
    await pair(phone, home, code=window.code)
    grant = await home.book.grant_for(phone.identity.peer_id)  # ... and what counts is the newer one
    assert grant is not None
    assert grant.services == ("mail",)
    stored = await home.database.read(grants.current, phone.identity.peer_id, "issued")
    assert stored is not None
    assert stored.blob != card.body.grant
    assert stored.epoch == 2


async def test_a_code_is_good_for_one_peer_even_when_two_prove_it_at_once(tmp_path, phone, home):
    other = await open_node(tmp_path / "other", "other-phone", 3)
    window = await home.driver.open_window(Trust.SELF)
    outcomes: list[Any] = []

    async def one(node: PairingNode) -> None:
        outcomes.extend(await pair(node, home, code=window.code))

    async with trio.open_nursery() as nursery:
        nursery.start_soon(one, phone)
        nursery.start_soon(one, other)
    await other.database.close()
    assert sorted(isinstance(one, Peer) for one in outcomes) == [False, False, True, True]
    assert len(await home.book.every()) == 1


async def test_at_most_three_exchanges_run_at_once(phone, home, autojump_clock):
    await home.driver.open_window(Trust.SELF)
    async with trio.open_nursery() as nursery:
        for _ in range(3):
            _, far = channels(phone, home)

            async def idle(channel: Any = far) -> None:
                with pytest.raises(PairingInterrupted):  # silent: given up without having cost a try
                    await home.driver.respond(channel, home.owner)

            nursery.start_soon(idle)
        while home.driver._running < 3:  # each reads the window in a database thread first
            await trio.sleep(0.01)
        _, far = channels(phone, home)
        with pytest.raises(PairingClosed):
            await home.driver.respond(far, home.owner)
        assert far.sent == []
    assert (await home.driver.window()).tries_left == 3


@pytest.mark.parametrize("first", [
    b"\x00\x00\x00\x01\xc1", b"\x00\x00\x00\x02\x91\x01", b"\xff\xff\xff\xff", StartCode(b"A" * 33),
    StartCode(b"B" * 33), StartSecret(bytes(32)), PairConfirm(bytes(32)), PairRefused("declined"),
])
async def test_whatever_a_stranger_sends_first_costs_a_try_and_the_node_goes_on(phone, home, first):
    window = await home.driver.open_window(Trust.SELF)
    near, far = channels(phone, home)
    await (near.send_raw(first) if isinstance(first, bytes) else near.send(first))
    await near.finish()
    with pytest.raises(PairingError):
        await home.driver.respond(far, home.owner)
    assert (await home.driver.window()).tries_left == 2
    at_phone, at_home = await pair(phone, home, code=window.code)
    assert isinstance(at_phone, Peer)
    assert isinstance(at_home, Peer)


async def test_pairing_again_replaces_trust_and_grants(phone, home):
    for trust in (Trust.SELF, Trust.FRIEND):
        window = await home.driver.open_window(trust)
        await pair(phone, home, code=window.code)
    assert [peer.trust for peer in await home.book.every()] == ["friend"]
    grant = await home.book.grant_for(phone.identity.peer_id)
    assert grant is not None
    assert grant.services == ("mail",)
    assert await phone.book.grant_from(home.identity.peer_id) == grant


async def test_two_peers_of_one_name_get_two_names(tmp_path, phone, home):
    twin = await open_node(tmp_path / "twin", "amber-otter-41", 4)
    for node in (phone, twin):
        window = await home.driver.open_window(Trust.FRIEND)
        await pair(node, home, code=window.code)
    await twin.database.close()
    assert [peer.name for peer in await home.book.every()] == ["amber-otter-41", "amber-otter-41-2"]


async def test_a_stranger_cannot_be_paired_as_nobody(home):
    with pytest.raises(UsageError):
        await home.driver.open_window(Trust.NONE)


async def test_an_error_of_the_store_comes_out_plain_and_resets_the_channel(phone, home):
    window = await home.driver.open_window(Trust.SELF)

    async def broken(*_: Any) -> Any:
        raise KithError("no room")

    home.driver.store = broken
    _, at_home = await pair(phone, home, code=window.code)
    assert isinstance(at_home, KithError)
    assert at_home.text == "no room"


CHILD = """
import sys, trio
from pathlib import Path
from node.store import pairing
from node.store.database import Database
from node.store.schema import KITH

async def main():
    db = await Database.open(Path(sys.argv[1]), bytes(range(32)), KITH)
    window = await db.read(pairing.current, 5)
    left = await db.write(pairing.burn_try, 5, window) if window else None
    print(left, flush=True)      # only now would the first byte of an answer leave
    await trio.sleep_forever()

trio.run(main)
"""


def burn_in_a_child_and_kill(path: Any) -> str:
    with subprocess.Popen([sys.executable, "-c", CHILD, str(path)], stdout=subprocess.PIPE, text=True) as child:
        assert child.stdout is not None
        line = child.stdout.readline().strip()
        os.kill(child.pid, signal.SIGKILL)
        return line


async def test_tries_survive_kill_9(tmp_path):
    path = tmp_path / "kith.db"
    db = await Database.open(path, bytes(range(32)), KITH)
    await db.write(pairing.open_window, pairing.Window("7-a-b", None, "friend", 3, 0, 10))
    await db.close()
    told = [await trio.to_thread.run_sync(burn_in_a_child_and_kill, path) for _ in range(4)]
    assert told == ["2", "1", "0", "None"]


HOSTILE = [
    "", " ", "\x1b[2J", "home\npc", "home\x00pc", "home\u202epc", "Home-PC", "-home", "h\u00f6me", "a" * 33, "home pc",
]


def let_anything_out(monkeypatch: pytest.MonkeyPatch) -> None:
    """The sender's own check is off, as in a peer that was built to be hostile."""
    monkeypatch.setattr(canonical, "encode", msgspec.msgpack.Encoder(order="sorted").encode)


@pytest.mark.parametrize("name", HOSTILE)
@pytest.mark.parametrize("shows", [True, False])
async def test_a_card_with_a_name_that_is_none_is_refused_before_the_owner_sees_it(
    tmp_path, home, monkeypatch, name, shows,
):
    let_anything_out(monkeypatch)
    hostile = await open_node(tmp_path / "hostile", name, 5)
    near, far = (home, hostile) if shows else (hostile, home)
    window = await far.driver.open_window(Trust.HOME)
    outcomes = await pair(near, far, code=window.code)
    await hostile.database.close()
    assert [type(outcome) for outcome in outcomes] == [PairingRefused, PairingRefused]
    assert "did not follow the pairing protocol" in outcomes[0 if shows else 1].text
    assert home.owner.asked == []
    assert await nothing_stored(home)


async def test_control_the_same_way_with_a_good_name_pairs(tmp_path, home, monkeypatch):
    let_anything_out(monkeypatch)
    other = await open_node(tmp_path / "other", "good-name", 5)
    window = await home.driver.open_window(Trust.HOME)
    outcomes = await pair(other, home, code=window.code)
    await other.database.close()
    assert all(isinstance(outcome, Peer) for outcome in outcomes)
    assert [question.name for question in home.owner.asked] == ["good-name"]
