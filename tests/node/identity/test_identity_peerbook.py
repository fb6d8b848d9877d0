"""The peer book: finding whom the owner means, trust that takes effect at once, forgetting that leaves nothing."""

from datetime import UTC, datetime, timedelta

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pairing_node import open_node

from node.errors import AmbiguousPeer, NameTaken, UnknownPeer, UsageError
from node.identity import granting
from node.identity.granting import TermsChange
from node.identity.keystore import Identity
from node.identity.peerbook import free_name, pick
from node.identity.trust import DEFAULT_TERMS, DESCRIPTIONS, GUEST_TERMS, Terms, Trust
from node.store import grants, mail, peers, shares
from node.store.peers import Peer
from protocol.grants import attenuate, covers

BEA = Identity.from_seed(bytes([7]) * 32).peer_id
CARA = Identity.from_seed(bytes([8]) * 32).peer_id


def peer(peer_id: str, name: str) -> Peer:
    return Peer(peer_id, name, "friend", "friend", (), 1, None)


@pytest.fixture
async def node(tmp_path):
    node = await open_node(tmp_path / "n", "home-pc", 1)

    def fill(tx):
        for peer_id, name in ((BEA, "bea-laptop"), (CARA, "cara-phone")):
            peers.add(tx, peer(peer_id, name))
            blob = granting.issue(node.identity, peer_id, DEFAULT_TERMS[Trust.FRIEND], 1, node.clock.now())
            grants.put(tx, peer_id, "issued", 1, blob, 1)
        grants.reserve_epoch(tx)

    await node.database.write(fill)
    yield node
    await node.database.close()


PAIRED = [peer(BEA, "bea"), peer(CARA, "bea-laptop"), peer("12D3KooWzzzz1111", "cara")]


@pytest.mark.parametrize(("who", "found"), [
    ("bea", "bea"), ("BEA", "bea"), (" bea-l", "bea-laptop"), ("car", "cara"), (BEA, "bea"), (BEA[:16], "bea"),
    (BEA[8:14], "bea"), ("zzzz", "cara"),
])
def test_a_peer_is_found_by_name_start_or_id(who, found):
    assert pick(PAIRED, who).name == found


@pytest.mark.parametrize(("who", "error"), [
    ("be", AmbiguousPeer), ("nobody", UnknownPeer), ("", UnknownPeer), ("12D3KooW", UnknownPeer), ("zzz", UnknownPeer),
])
def test_a_peer_that_is_not_clear_is_asked_for(who, error):
    with pytest.raises(error):
        pick(PAIRED, who)


async def test_trust_changes_the_grant_and_cuts(node):
    before = await node.book.grant_for(BEA)
    assert before.services == ("mail",)
    changed = await node.book.set_trust("bea", Trust.HOME)
    assert (changed.trust, node.cut) == ("home", [BEA])
    now = await node.book.grant_for(BEA)
    assert now.services == ("infer", "mail", "models", "relay", "search")
    assert now.epoch > before.epoch
    await node.book.set_trust("bea", Trust.FRIEND, Terms(("infer",), ("smollm2",), 1000, 2048, 1, days=1))
    narrow = await node.book.grant_for(BEA)
    assert (narrow.services, narrow.models, narrow.tokens_per_day) == (("infer",), ("smollm2",), 1000)
    node.clock.advance(86_400 + 1)
    assert await node.book.grant_for(BEA) is None
    await node.book.set_trust("bea", Trust.NONE)
    assert (await node.book.get(BEA)).trust == "none"
    assert await node.book.grant_for(BEA) is None


async def test_the_trust_that_it_has_already_changes_nothing_while_the_grant_holds(node):
    await node.book.set_trust("bea", Trust.HOME)
    edited = await node.book.edit_grant("bea", TermsChange(tokens_per_day=7))
    before, cuts = await node.book.grant_for(BEA), list(node.cut)
    assert await node.book.set_trust("bea", Trust.HOME) == edited
    assert (await node.book.grant_for(BEA), node.cut) == (before, cuts)
    await node.book.revoke_grant("bea")     # control: without a grant that holds, the word is a new grant
    await node.book.set_trust("bea", Trust.HOME)
    assert (await node.book.grant_for(BEA)).tokens_per_day > 7
    assert len(node.cut) == len(cuts) + 2


async def test_forgetting_ends_grants_shares_and_waiting_messages_then_cuts(node):
    await node.database.write(shares.add, "/notes", BEA, 1)
    await node.database.write(shares.add, "/notes", CARA, 1)
    for number, peer_id in enumerate((BEA, CARA)):
        await node.database.write(
            mail.enqueue, peer_id=peer_id, message_id=f"m{number}", kind="chat.msg", body="x", now_ms=1, expires_ms=9,
        )
    at_cut = []
    real_cut = node.book._cut

    async def watch(peer_id):
        at_cut.append(await node.book.get(peer_id))
        await real_cut(peer_id)

    node.book._cut = watch
    assert (await node.book.forget("bea-laptop")).peer_id == BEA
    assert (at_cut, node.cut) == ([None], [BEA])  # durable first: a cut peer that dials again finds nothing
    assert await node.book.grant_for(BEA) is None
    assert [one.name for one in await node.book.every()] == ["cara-phone"]
    assert await node.database.read(shares.every) == [shares.Share("/notes", (CARA,), 1)]
    assert await node.database.read(mail.waiting) == {CARA: 1}
    assert (await node.book.grant_for(CARA)).services == ("mail",)
    with pytest.raises(UnknownPeer):
        await node.book.forget("bea-laptop")


async def test_a_grant_of_someone_else_or_out_of_time_is_no_grant(node):
    stranger = Identity.from_seed(bytes([9]) * 32)
    now = node.clock.now()
    forged = granting.issue(stranger, BEA, DEFAULT_TERMS[Trust.SELF], 50, now)
    await node.database.write(grants.put, BEA, "issued", 50, forged, 1)
    assert await node.book.grant_for(BEA) is None
    own = node.identity.peer_id
    mine = granting.issue(stranger, own, DEFAULT_TERMS[Trust.SELF], 1, now)
    await node.database.write(grants.put, CARA, "received", 1, mine, 1)
    assert await node.book.grant_from(CARA) is None
    assert granting.read(mine, issuer=stranger.peer_id, holder=own, now=now) is not None
    assert granting.read(mine, issuer=stranger.peer_id, holder=BEA, now=now) is None
    assert granting.read(mine[:-1], issuer=stranger.peer_id, holder=own, now=now) is None
    assert await node.book.grant_from(BEA) is None


async def test_names_are_unique_and_well_formed(node):
    assert (await node.book.rename("bea", "bea-work")).name == "bea-work"
    with pytest.raises(NameTaken):
        await node.book.rename("bea-work", "Cara-phone".lower())
    for wrong in ("", "-a", "a-", "Bea", "a b", "x" * 33, "ä"):
        with pytest.raises(UsageError):
            await node.book.rename("bea-work", wrong)
    assert await node.database.read(free_name, "bea-work", BEA) == "bea-work"
    assert await node.database.read(free_name, "bea-work", CARA) == "bea-work-2"


def test_no_level_grants_more_than_the_design_says():
    everything = ("infer", "mail", "models", "relay", "search")
    assert DEFAULT_TERMS[Trust.SELF].services == DEFAULT_TERMS[Trust.HOME].services == everything
    assert DEFAULT_TERMS[Trust.FRIEND] == Terms(("mail",))
    assert DEFAULT_TERMS[Trust.NONE] == Terms()
    assert set(DESCRIPTIONS) == set(DEFAULT_TERMS) == set(Trust)


async def test_an_edited_grant_replaces_the_old_one_under_a_new_epoch(node):
    before = await node.book.grant_for(BEA)
    until = node.clock.now() + timedelta(days=3)
    await node.book.edit_grant("bea", TermsChange(services=("infer", "mail"), models=("smollm2",), tokens_per_day=500,
                                                  until=until))
    now = await node.book.grant_for(BEA)
    assert (now.services, now.models, now.tokens_per_day) == (("infer", "mail"), ("smollm2",), 500)
    assert (now.max_context, now.max_concurrency) == (GUEST_TERMS.max_context_tokens, GUEST_TERMS.max_concurrency)
    assert now.epoch > before.epoch and now.not_after_s == int(until.timestamp())
    stored = await node.database.read(grants.every, BEA)
    assert [one.revoked_ms is None for one in stored if one.direction == "issued"] == [True, False]
    node.clock.advance(3 * 86_400 + 1)
    assert await node.book.grant_for(BEA) is None
    assert (await node.book.issued_to(BEA)).epoch == now.epoch  # still shown, as one that ran out


async def test_what_is_not_said_stays_and_only_narrowing_cuts(node):
    widened = []

    async def note(peer_id):
        widened.append(peer_id)

    node.book._widened = note
    await node.book.set_trust("bea", Trust.HOME)
    node.cut.clear()
    before = await node.book.grant_for(BEA)
    await node.book.edit_grant("bea", TermsChange(tokens_per_day=before.tokens_per_day * 2))
    assert (node.cut, widened) == ([], [BEA])
    wider = await node.book.grant_for(BEA)
    assert covers(wider, before) and wider.services == before.services and wider.not_after_s == before.not_after_s
    await node.book.edit_grant("bea", TermsChange(max_concurrency=1))
    assert (node.cut, widened) == ([BEA], [BEA])
    narrow = await node.book.grant_for(BEA)
    assert msgspec.structs.replace(narrow, epoch=wider.epoch) == attenuate(wider, max_concurrency=1)


async def test_revoking_leaves_the_pairing_and_takes_everything_else(node):
    await node.book.set_trust("bea", Trust.HOME)
    node.cut.clear()
    await node.book.revoke_grant("bea")
    assert await node.book.grant_for(BEA) is None and node.cut == [BEA]
    assert (await node.book.get(BEA)).trust == "home"
    assert (await node.book.grant_for(CARA)).services == ("mail",)  # nobody else's
    await node.book.edit_grant("bea", TermsChange(services=("mail",)))
    again = await node.book.grant_for(BEA)
    assert (again.services, again.models, again.tokens_per_day) == (("mail",), (), 0)  # from nothing, not from before


@pytest.mark.parametrize("change", [
    TermsChange(services=("infer", "shell")), TermsChange(tokens_per_day=-1), TermsChange(max_concurrency=10_000),
    TermsChange(max_context_tokens=10**9), TermsChange(models=("no such name!",)), TermsChange(models=("",)),
    TermsChange(models=tuple(f"m{n}" for n in range(1000))),
    TermsChange(until=datetime(2000, 1, 1, tzinfo=UTC)),
])
async def test_a_change_that_no_grant_can_carry_changes_nothing(node, change):
    before = await node.database.read(grants.current, BEA, "issued")
    with pytest.raises(UsageError):
        await node.book.edit_grant("bea", change)
    assert await node.database.read(grants.current, BEA, "issued") == before and node.cut == []


async def test_nothing_is_granted_to_a_peer_that_is_trusted_with_nothing(node):
    await node.book.set_trust("bea", Trust.NONE)
    with pytest.raises(UsageError):
        await node.book.edit_grant("bea", TermsChange(services=("infer",)))
    assert await node.book.grant_for(BEA) is None


NUMBERS = st.integers(0, 1000)
ALL_SERVICES = ["infer", "search", "mail", "models", "relay"]
SERVICES = st.lists(st.sampled_from(ALL_SERVICES), unique=True).map(lambda found: tuple(sorted(found)))
MODELS = st.lists(st.sampled_from(["*", "a", "b"]), unique=True).map(tuple)


@given(services=SERVICES, models=MODELS, numbers=st.tuples(NUMBERS, NUMBERS, st.integers(0, 60)),
       wanted=SERVICES, wanted_models=MODELS)
def test_what_a_change_names_is_exactly_what_the_grant_says(services, models, numbers, wanted, wanted_models):
    """Whatever was granted before: a named value is the new one, and an unnamed one is the old one."""
    terms = Terms(services, models, *numbers)
    now = datetime(2026, 1, 1, tzinfo=UTC)
    named = granting.changed(terms, TermsChange(services=wanted, models=wanted_models), now)
    assert set(named.services) == set(wanted)
    assert named.models == (("*",) if "*" in wanted_models else tuple(sorted(wanted_models)))
    if "infer" in services or "infer" not in wanted:
        assert (named.tokens_per_day, named.max_context_tokens, named.max_concurrency) == numbers
    assert granting.changed(terms, TermsChange(), now) == terms
