"""The smaller row modules: settings, peers, grants, ledger, approvals, pairing window, shares, usage."""

from dataclasses import replace

import pytest
from store_rows import memory_rows

from node.errors import NameTaken, StoreConflict
from node.store import approvals, grants, ledger, pairing, peers, settings, shares, usage
from node.store.approvals import Decision

BEA = peers.Peer("12D3bea", "bea-laptop", "friend", "friend", ("/ip4/10.0.0.2/tcp/4001",), 1000, None)
HOME = peers.Peer("12D3home", "home-pc", "home", "self", (), 2000, None)


# ---- settings

def test_settings_put_get_delete_and_prefix():
    tx = memory_rows()
    settings.put(tx, "net.port", "4001")
    settings.put(tx, "net.port", "4002")
    settings.put(tx, "net%x", "no wildcard")
    assert settings.get(tx, "net.port") == "4002"
    assert settings.items(tx, "net.") == {"net.port": "4002"}
    assert settings.delete(tx, "net.port")
    assert not settings.delete(tx, "net.port")
    assert settings.get(tx, "net.port") is None


# ---- peers

def test_peers_are_found_by_id_and_by_name_without_case():
    tx = memory_rows()
    peers.add(tx, BEA)
    peers.add(tx, HOME)
    assert peers.get(tx, "12D3bea") == BEA
    assert peers.by_name(tx, "HOME-PC") == HOME
    assert peers.get(tx, "12D3") is None
    assert peers.every(tx) == [BEA, HOME]


def test_a_name_belongs_to_one_peer_and_pairing_again_replaces_the_row():
    tx = memory_rows()
    peers.add(tx, BEA)
    with pytest.raises(NameTaken, match="bea-laptop"):
        peers.add(tx, replace(HOME, name="Bea-Laptop"))
    peers.add(tx, replace(BEA, trust="home", paired_ms=5000))
    assert [(one.trust, one.paired_ms) for one in peers.every(tx)] == [("home", 5000)]
    peers.add(tx, HOME)
    with pytest.raises(NameTaken):
        peers.rename(tx, "12D3home", "BEA-laptop")
    peers.rename(tx, "12D3bea", "Bea")
    assert peers.by_name(tx, "bea").peer_id == "12D3bea"


def test_trust_changes_only_for_paired_peers_and_to_known_levels():
    tx = memory_rows()
    peers.add(tx, BEA)
    peers.set_trust(tx, "12D3bea", "home")
    assert peers.get(tx, "12D3bea").trust == "home"
    for change in (peers.set_trust, peers.rename):
        with pytest.raises(StoreConflict):
            change(tx, "12D3nobody", "home")
    with pytest.raises(Exception, match="CHECK"):
        peers.set_trust(tx, "12D3bea", "admin")


def test_seen_puts_new_addresses_first_keeps_old_ones_to_the_limit_and_revives_nobody():
    tx = memory_rows()
    peers.add(tx, BEA)
    peers.seen(tx, "12D3bea", ["/ip4/10.0.0.9/tcp/1"], 7000)
    found = peers.get(tx, "12D3bea")
    assert (found.addresses, found.seen_ms) == (("/ip4/10.0.0.9/tcp/1", "/ip4/10.0.0.2/tcp/4001"), 7000)
    peers.seen(tx, "12D3bea", [f"/ip4/10.0.0.1/tcp/{port}" for port in range(1, 40)], 8000)
    assert len(peers.get(tx, "12D3bea").addresses) == peers.ADDRESS_LIMIT
    assert peers.remove(tx, "12D3bea")
    assert not peers.remove(tx, "12D3bea")
    peers.seen(tx, "12D3bea", ["/ip4/10.0.0.9/tcp/1"], 9000)
    assert peers.every(tx) == []


# ---- grants

def test_the_newest_grant_counts_and_a_revoked_number_never_returns():
    tx = memory_rows()
    grants.put(tx, "p", "issued", 1, b"one", 10)
    grants.put(tx, "p", "issued", 2, b"two", 20)
    assert grants.current(tx, "p", "issued").blob == b"two"
    assert [(one.epoch, one.revoked_ms) for one in grants.every(tx, "p")] == [(2, None), (1, 20)]
    assert grants.revoke(tx, "p", 30, "issued") == 1
    assert grants.current(tx, "p", "issued") is None
    with pytest.raises(StoreConflict):
        grants.put(tx, "p", "issued", 1, b"one", 40)
    grants.put(tx, "p", "issued", 2, b"two", 40)  # the same bytes again: nothing changes, it stays revoked
    assert grants.current(tx, "p", "issued") is None


def test_a_reserved_number_is_never_given_out_again():
    tx = memory_rows()
    assert [grants.reserve_epoch(tx) for _ in range(3)] == [1, 2, 3]


def test_a_peer_that_starts_anew_may_count_anew():
    tx = memory_rows()
    grants.put(tx, "p", "received", 9, b"before", 10)
    grants.put(tx, "p", "issued", 4, b"ours", 10)
    assert grants.drop_received(tx, "p") == 1
    grants.put(tx, "p", "received", 1, b"after", 20)
    assert grants.current(tx, "p", "received").blob == b"after"
    assert grants.current(tx, "p", "issued").blob == b"ours"


def test_directions_are_separate_and_revoking_all_ends_both():
    tx = memory_rows()
    grants.put(tx, "p", "issued", 1, b"ours", 10)
    grants.put(tx, "p", "received", 7, b"theirs", 10)
    grants.put(tx, "q", "issued", 1, b"other", 10)
    with pytest.raises(StoreConflict):
        grants.put(tx, "p", "received", 7, b"forged", 10)
    with pytest.raises(StoreConflict):
        grants.put(tx, "p", "received", 6, b"older", 10)
    assert grants.revoke(tx, "p", 20) == 2
    assert grants.current(tx, "p", "received") is None
    assert grants.current(tx, "q", "issued").blob == b"other"


# ---- ledger

def entry(seq: int, **changes: object) -> ledger.NewEntry:
    base = ledger.NewEntry(seq, b"digest%d" % seq, f"r{seq}", "home", "infer", seq * 10, b"entry", b"outgoing")
    return replace(base, **changes)  # type: ignore[arg-type]


def test_the_chain_grows_by_one_and_only_at_its_end():
    tx = memory_rows()
    assert ledger.head(tx) == ledger.Head(0, b"")
    ledger.append(tx, entry(1))
    ledger.append(tx, entry(2))
    assert ledger.head(tx) == ledger.Head(2, b"digest2")
    for seq in (2, 4, 1):
        with pytest.raises(StoreConflict):
            ledger.append(tx, entry(seq, digest=b"new"))
    assert [row.seq for row in ledger.rows(tx)] == [1, 2]
    assert [row.seq for row in ledger.rows(tx, after_seq=1)] == [2]


def test_an_entry_is_closed_once_and_open_ones_are_found_after_a_crash():
    tx = memory_rows()
    for seq in (1, 2, 3):
        ledger.append(tx, entry(seq))
    ledger.close(tx, 2, b"sent 17 bytes", 99)
    ledger.close(tx, 2, b"sent 17 bytes", 100)
    with pytest.raises(StoreConflict):
        ledger.close(tx, 2, b"sent 18 bytes", 100)
    with pytest.raises(StoreConflict):
        ledger.close(tx, 9, b"", 100)
    assert [row.seq for row in ledger.open_rows(tx)] == [1, 3]
    assert ledger.get(tx, 2).closed_ms == 99
    assert ledger.open_row(tx, "home", "r3").seq == 3
    assert ledger.open_row(tx, "bea", "r3") is None
    assert ledger.open_row(tx, "home", "r2") is None


def test_looking_back_by_peer_time_and_number():
    tx = memory_rows()
    for seq in range(1, 7):
        ledger.append(tx, entry(seq, peer_id="bea" if seq % 2 else "home"))
    assert [row.seq for row in ledger.rows_backward(tx, limit=3)] == [6, 5, 4]
    assert [row.seq for row in ledger.rows_backward(tx, limit=9, peer_id="bea")] == [5, 3, 1]
    assert [row.seq for row in ledger.rows_backward(tx, limit=9, since_ms=40)] == [6, 5, 4]
    assert [row.seq for row in ledger.rows_backward(tx, limit=1, before_seq=4, peer_id="bea", since_ms=0)] == [3]


def test_kept_bytes_go_entries_stay_and_running_requests_keep_theirs():
    tx = memory_rows()
    for seq in (1, 2, 3):
        ledger.append(tx, entry(seq))
    ledger.close(tx, 1, b"", 50)
    ledger.close(tx, 3, b"", 50)
    old = ledger.kept_before(tx, 30, limit=9)
    assert ledger.drop_kept(tx, [(row.seq, b"note") for row in old]) == 1
    assert [row.outgoing for row in ledger.rows(tx)] == [None, b"outgoing", b"outgoing"]
    assert [row.entry for row in ledger.rows(tx)] == [b"entry"] * 3


# ---- approvals

def test_a_question_is_decided_once_and_unanswered_ones_expire_at_start():
    tx = memory_rows()
    for one in ("a", "b"):
        approvals.ask(tx, approval_id=one, conversation_id="c", kind="egress", shown="the exact text", now_ms=10)
    decided = approvals.decide(tx, "a", Decision.APPROVED, 20)
    assert (decided.decision, decided.decided_ms, decided.shown) == (Decision.APPROVED, 20, "the exact text")
    assert approvals.decide(tx, "a", Decision.APPROVED, 30) == decided == approvals.get(tx, "a")
    with pytest.raises(StoreConflict):
        approvals.decide(tx, "a", Decision.DENIED, 30)
    with pytest.raises(StoreConflict):
        approvals.decide(tx, "nobody asked", Decision.APPROVED, 30)
    assert approvals.close_pending(tx, 40) == 1
    with pytest.raises(StoreConflict):
        approvals.decide(tx, "b", Decision.APPROVED, 50)  # too late is no
    assert [one.decision for one in approvals.newest(tx)] == [Decision.EXPIRED, Decision.APPROVED]


# ---- the pairing window

def window(**changes):
    return replace(pairing.Window("7-a-b", None, "friend", 3, 0, 600_000), **changes)


def test_a_window_has_three_tries_and_no_fourth():
    tx = memory_rows()
    assert pairing.burn_try(tx, 0, window()) is None
    pairing.open_window(tx, window())
    assert [pairing.burn_try(tx, 1, window()) for _ in range(4)] == [2, 1, 0, None]
    assert pairing.current(tx, 1) is None


def test_a_window_ends_by_time_and_by_a_clock_set_back():
    tx = memory_rows()
    opened = window(code=None, secret=bytes(16), opened_ms=1000, expires_ms=601_000)
    pairing.open_window(tx, opened)
    assert pairing.current(tx, 600_999) == opened
    assert pairing.current(tx, 601_000) is None
    assert pairing.burn_try(tx, 601_000, opened) is None
    assert pairing.current(tx, 999) is None


def test_a_new_window_replaces_the_old_secret_and_closing_erases_it():
    tx = memory_rows()
    pairing.open_window(tx, window())
    pairing.burn_try(tx, 1, window())
    pairing.open_window(tx, window(code="8-c-d"))
    assert pairing.burn_try(tx, 6, window()) is None  # an attempt that began with the old code
    assert pairing.current(tx, 6) == window(code="8-c-d")
    assert "8-c-d" not in repr(pairing.current(tx, 6))
    assert not pairing.spend(tx, window())
    assert pairing.spend(tx, window(code="8-c-d"))
    assert not pairing.spend(tx, window(code="8-c-d"))
    assert not pairing.close(tx)
    assert pairing.current(tx, 6) is None


# ---- shares

def test_folders_are_shared_with_named_peers_only():
    tx = memory_rows()
    assert shares.add(tx, "/notes", "bea", 10)
    assert not shares.add(tx, "/notes", "bea", 20)
    shares.add(tx, "/notes", "home", 30)
    shares.add(tx, "/recipes", "home", 40)
    assert shares.every(tx) == [shares.Share("/notes", ("bea", "home"), 10), shares.Share("/recipes", ("home",), 40)]
    assert shares.folders_for(tx, "home") == ["/notes", "/recipes"]
    assert shares.folders_for(tx, "stranger") == []
    assert shares.remove(tx, "/notes", "bea") == 1
    assert shares.remove_peer(tx, "home") == 2
    assert shares.every(tx) == []
    assert shares.remove(tx, "/notes") == 0


# ---- usage

def test_usage_adds_up_per_peer_and_day():
    tx = memory_rows()
    usage.add(tx, "bea", "2026-03-18", requests=1, prompt_tokens=100)
    total = usage.add(tx, "bea", "2026-03-18", output_tokens=40)
    assert (total.requests, total.prompt_tokens, total.output_tokens, total.tokens) == (1, 100, 40, 140)
    usage.add(tx, "home", "2026-03-18", requests=1)
    usage.add(tx, "bea", "2026-03-19", requests=2)
    assert usage.on_day(tx, "bea", "2026-03-17").tokens == 0
    assert [(one.day, one.peer_id) for one in usage.days(tx, "2026-03-18")] == [
        ("2026-03-19", "bea"), ("2026-03-18", "bea"), ("2026-03-18", "home"),
    ]
    assert usage.drop_before(tx, "2026-03-19") == 2


def test_usage_that_is_given_back_leaves_no_day_below_nothing():
    tx = memory_rows()
    usage.add(tx, "bea", "2026-03-18", requests=1, prompt_tokens=100, output_tokens=9)
    usage.add(tx, "bea", "2026-03-18", prompt_tokens=-30, output_tokens=-2)
    assert usage.on_day(tx, "bea", "2026-03-18") == usage.DayUsage("bea", "2026-03-18", 1, 70, 7)
    usage.add(tx, "bea", "2026-03-19", prompt_tokens=-30)      # over midnight
    assert usage.on_day(tx, "bea", "2026-03-19").tokens == 0
