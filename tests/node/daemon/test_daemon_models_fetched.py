"""Models that come from elsewhere, a hub or a peer: asked for openly, checked whole, in the modes that allow it."""

import hashlib

import pytest
import trio
from fake_hub import fake_hub
from gguf_files import make_gguf
from memory_channel import ALICE, BOB, memory_channels
from models_desk import Desk

from node.daemon.model_copies import CatalogueFiles
from node.errors import ModelMissing, NotPaired, PeerUnreachable, PolicyRefused, UnknownPeer, UsageError
from offload.catalogue import read_record
from offload.errors import ModelUnusable
from offload.model_errors import HubMismatch
from offload.model_server import ModelServer
from protocol.frames.link import ModelAdvert
from protocol.grants import Grant
from protocol.names import MODEL


@pytest.fixture
def desk(tmp_path):
    return Desk(tmp_path)


# -- from a hub --

async def test_a_model_of_a_hub_is_announced_before_it_is_fetched(tmp_path):
    file = make_gguf(tmp_path / "x.gguf", file_type=7).read_bytes()
    with fake_hub(files={"tiny-Q8_0.gguf": file}, licence="apache-2.0") as hub:
        desk = Desk(tmp_path, hub.url)
        (model,) = await desk.add("hf:some-owner/tiny-GGUF")
    assert (model["name"], model["quantisation"], model["licence"]) == ("tiny-q8_0", "Q8_0", "apache-2.0")
    (entry,) = desk.ledger.entries
    assert (entry.peer_id, entry.purpose, entry.level) == (hub.url.removeprefix("http://"), "hub", "announced")
    assert "some-owner/tiny-GGUF" in entry.texts[0] and desk.ledger.closed == [(1, "end")]
    assert read_record(desk.own / "tiny-Q8_0.gguf").source == f"{entry.peer_id}/some-owner/tiny-GGUF"
    assert not desk.hidden()


@pytest.mark.parametrize("mode", ["offline", "lan"])
async def test_a_hub_is_not_asked_in_another_mode(tmp_path, mode):
    with fake_hub(files={"tiny.gguf": b"x"}) as hub:
        desk = Desk(tmp_path, hub.url, mode)
        with pytest.raises(PolicyRefused, match=mode):
            await desk.add("hf:some-owner/tiny-GGUF")
        assert (hub.asked, desk.ledger.entries) == ([], [])
        desk.mode = "online"        # control: the same request is made once the mode allows it
        with pytest.raises(ModelUnusable):
            await desk.add("hf:some-owner/tiny-GGUF")
        assert hub.asked and not desk.hidden()


async def test_a_transfer_ends_when_the_mode_changes(tmp_path):
    with fake_hub(files={"tiny.gguf": bytes(3_000_000)}) as hub:
        desk = Desk(tmp_path, hub.url)

        async def emit(event):
            desk.mode = "offline"
            await trio.sleep_forever()

        with trio.fail_after(20), pytest.raises(PolicyRefused, match="mode changed"):
            await desk.shelf.add("hf:some-owner/tiny-GGUF", emit)
    assert desk.ledger.closed == [(1, "failed")]


async def test_a_ledger_that_fails_means_that_nothing_is_asked(tmp_path):
    with fake_hub() as hub:
        desk = Desk(tmp_path, hub.url)

        async def fail(draft):
            raise OSError("disk full")

        desk.ledger.append = fail
        with pytest.raises(OSError, match="disk full"):
            await desk.add("hf:some-owner/tiny-GGUF")
        assert hub.asked == []


async def test_a_file_with_a_wrong_checksum_never_becomes_a_model(tmp_path):
    with fake_hub(files={"tiny.gguf": b"GGUF" * 100}, lie="2" * 64) as hub:
        desk = Desk(tmp_path, hub.url)
        with pytest.raises(HubMismatch):
            await desk.add("hf:some-owner/tiny-GGUF")
    assert list(desk.own.iterdir()) == [] and desk.ledger.closed == [(1, "failed")]


# -- from a peer


class EveryGrant:
    """Everything may be copied."""

    def grant_for(self, peer_id):
        return Grant(
            services=("models",), models=("*",), tokens_per_day=0, max_context=0, max_concurrency=0,
            not_after_s=2**40, issued_by=BOB, issued_to=ALICE, epoch=1)

    def ran_out(self, peer_id):
        return False


async def offer(desk, nursery, file):
    """ann has this file, and a server for it."""
    files = CatalogueFiles([file.parent], desk.source / "digests.json")
    desk.peers.channel, far = memory_channels(MODEL)
    nursery.start_soon(ModelServer(files, EveryGrant()).serve, far)
    digest = hashlib.sha256(file.read_bytes()).hexdigest()
    desk.peers.models = (ModelAdvert("ann-model", digest, 2048, False),)
    return digest


@pytest.mark.parametrize("by_digest", [False, True])
async def test_a_model_of_a_peer_becomes_one_of_ours(desk, nursery, by_digest):
    file = make_gguf(desk.source / "far.Q8_0.gguf", licence="mit")
    digest = await offer(desk, nursery, file)
    (model,) = await desk.add(f"peer:ann/{digest[:8] if by_digest else 'Ann-Model'}")
    assert (model["digest"], model["name"]) == (digest, "far.q8_0")
    (kept,) = desk.own.glob("*.gguf")
    assert kept.read_bytes() == file.read_bytes() and not desk.hidden()
    record = read_record(kept)
    assert record is not None and record.source == "peer:ann" and record.licence == "mit"
    assert desk.peers.asked == [(BOB, MODEL)]


async def test_a_file_of_a_peer_that_is_no_model_is_dropped(desk, nursery):
    file = desk.source / "far.gguf"
    file.write_bytes(b"GGUF" + (3).to_bytes(4, "little") + b"\1" * 16 + b"nonsense" * 100)
    await offer(desk, nursery, file)
    with pytest.raises(ModelUnusable):
        await desk.add("peer:ann/ann-model")
    assert not list(desk.own.iterdir())


async def test_what_a_peer_can_not_be_asked_for(desk, nursery, autojump_clock):
    await offer(desk, nursery, make_gguf(desk.source / "far.gguf"))
    for source in ("peer:ann", "peer:ann/", "peer:/x"):
        with pytest.raises(UsageError):
            await desk.add(source)
    with pytest.raises(UnknownPeer):
        await desk.add("peer:bea/ann-model")
    with pytest.raises(ModelMissing, match="it offers ann-model"):
        await desk.add("peer:ann/other")
    desk.peers.services = frozenset({"infer", "mail"})
    with pytest.raises(NotPaired, match="not granted") as refused:
        await desk.add("peer:ann/ann-model")
    assert refused.value.hint == "On ann: kith grant edit phone --services infer,mail,models"    # nothing is taken away
    desk.peers.services = None
    with pytest.raises(PeerUnreachable):
        await desk.add("peer:ann/ann-model")
    assert desk.peers.asked == []


async def test_offline_ends_a_copy_at_once(desk):
    desk.peers.models = (ModelAdvert("ann-model", "ab" * 32, 2048, False),)
    desk.peers.mode = "offline"
    with pytest.raises(PeerUnreachable):
        await desk.add("peer:ann/ann-model")


async def test_only_whole_and_unchanged_files_are_given(desk):
    file = make_gguf(desk.source / "a.gguf")
    await desk.add(file)
    (kept,) = desk.own.glob("*.gguf")
    digest = hashlib.sha256(kept.read_bytes()).hexdigest()
    files = CatalogueFiles([desk.own], desk.own / "digests.json")
    found = await files.open(digest)
    assert found is not None and await found.holds(3, kept.read_bytes()[3:99]) and not await found.holds(3, b"x")
    found.close()
    found.close()
    assert await files.open("ab" * 32) is None
    kept.write_bytes(kept.read_bytes() + b"x")
    assert await files.open(digest) is None
    assert await files.open(hashlib.sha256(kept.read_bytes()).hexdigest()) is None    # not what its record says
