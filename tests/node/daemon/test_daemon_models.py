"""The shelf: models added from files, folders and a hub, shown, chosen and removed; real folders and a real box."""

import hashlib
import os
from pathlib import Path

import pytest
import trio
from fake_hub import fake_hub
from gguf_files import make_adapter, make_gguf
from memory_channel import ALICE, BOB, memory_channels

from node.clock import SystemEntropy
from node.daemon.hub import HubDesk
from node.daemon.model_copies import CatalogueFiles, CopyDesk
from node.daemon.models import ModelShelf
from node.daemon.style_tasks import TRIAL_VERSION
from node.daemon.style_trial import Verdict
from node.errors import ModelMissing, NotPaired, PeerUnreachable, PolicyRefused, UnknownPeer, UsageError
from offload.catalogue import read_record
from offload.errors import ModelUnusable
from offload.joined_engine import JoinedEngine
from offload.local_engine import LocalEngine
from offload.model_errors import AdapterAlone, HubMismatch, NoSuchPackage, NotKept
from offload.model_server import ModelServer
from protocol.frames.link import ModelAdvert
from protocol.grants import Grant
from protocol.names import MODEL


class MemoryLedger:
    """Entries in the order in which they became durable, and how they ended."""

    def __init__(self):
        self.entries, self.closed = [], []

    async def append(self, draft):
        self.entries.append(draft)
        return len(self.entries)

    async def close(self, place, *, sent_bytes, digest, outcome):
        self.closed.append((place, outcome))


class FakePeers:
    """One peer, ann, as roster and network at once; channel is what a stream to her is."""

    mode = "lan"

    def __init__(self):
        self.services, self.models, self.channel, self.asked = frozenset({"models"}), (), None, []

    def find(self, name):
        if name != "ann":
            raise UnknownPeer()
        return BOB

    def name_of(self, peer_id):
        return "ann"

    async def wait_for(self, peer_id):
        if self.services is None:
            await trio.sleep_forever()

    def allows_us(self, peer_id):
        return self.services

    def adverts(self, peer_id):
        return self.models

    async def open_channel(self, peer_id, protocol):
        self.asked.append((peer_id, protocol))
        if self.channel is None:
            raise PeerUnreachable()
        return self.channel


class Desk:
    """A shelf with its folders, and what it said."""

    def __init__(self, root: Path, hub_url: str = "http://127.0.0.1:1", mode: str = "online"):
        self.own, self.other, self.source = root / "own", root / "other", root / "source"
        for folder in (self.own, self.other, self.source):
            folder.mkdir()
        self.mode, self.kept, self.events, self.ledger = mode, [], [], MemoryLedger()
        self.engine = JoinedEngine(LocalEngine([self.own, self.other], cache_dir=root), None)
        hub = HubDesk(hub_url, self.ledger, lambda: self.mode, lambda: "id")
        self.peers = FakePeers()
        self.shelf = ModelShelf(
            self.engine, [self.own, self.other], root / "digests.json", hub,
            CopyDesk(self.peers, self.peers, SystemEntropy(), "phone"), self.kept.append)

    async def emit(self, event):
        self.events.append(event)

    async def add(self, source):
        await self.shelf.add(str(source), self.emit)
        return [event["model"] for event in self.events if event["event"] == "added"]

    def hidden(self):
        return [path.name for path in self.own.iterdir() if path.name.startswith(".")]


@pytest.fixture
def desk(tmp_path):
    return Desk(tmp_path)


async def test_a_file_is_added_with_what_its_header_says(desk):
    file = make_gguf(desk.source / "Tiny Model.Q4_0.gguf", template="{{ tools }}", licence="mit")
    (model,) = await desk.add(file)
    assert (model["name"], model["quantisation"], model["licence"]) == ("tiny-model.q4_0", "Q4_0", "mit")
    assert model["digest"] == hashlib.sha256(file.read_bytes()).hexdigest()
    progress = [event for event in desk.events if event["event"] == "progress"]
    assert progress[-1]["done_bytes"] == progress[-1]["total_bytes"] == file.stat().st_size
    assert sorted(path.name for path in desk.own.iterdir()) == [
        "Tiny-Model.Q4_0.gguf", "Tiny-Model.Q4_0.gguf.toml"]
    assert file.exists() and desk.ledger.entries == []


async def test_info_shows_the_file_and_the_headers_words(desk):
    await desk.add(make_gguf(desk.source / "a.gguf", template="{{ messages }}"))
    for name in ("a", (await desk.shelf.all())[0].digest, (await desk.shelf.all())[0].digest[:8]):
        detail = await desk.shelf.info(name)
        assert (detail.architecture, detail.title, detail.parameters) == ("llama", "Tiny Test", 36)
        assert (detail.trained_context_tokens, detail.chat_template, detail.template_knows_tools) == (2048, True, False)
        assert detail.file == str(desk.own / "a.gguf")
    with pytest.raises(ModelMissing):
        await desk.shelf.info("b")


async def test_the_same_file_twice_is_one_model_and_another_of_its_name_gets_its_own(desk):
    first = make_gguf(desk.source / "a.gguf")
    await desk.add(first)
    await desk.add(first)
    assert len(await desk.shelf.all()) == 1 and not desk.hidden()
    make_gguf(first, vocabulary=41)
    await desk.add(first)
    names = [view.name for view in await desk.shelf.all()]
    assert len(names) == 2 and "a" in names and len(set(names)) == 2


async def test_every_model_of_a_folder(desk):
    make_gguf(desk.source / "a.gguf")
    make_gguf(desk.source / "b.gguf", vocabulary=50)
    (desk.source / "notes.txt").write_text("x")
    assert [model["name"] for model in await desk.add(desk.source)] == ["a", "b"]
    with pytest.raises(UsageError, match="no model in"):
        await desk.add(desk.other)


async def test_a_broken_file_of_a_folder_is_told_and_keeps_no_other_one_out(desk):
    make_gguf(desk.source / "b.gguf")
    (desk.source / "a.gguf").write_bytes(b"not a model at all")
    (desk.source / "c.gguf").write_bytes(b"GGUF")
    assert [model["name"] for model in await desk.add(desk.source)] == ["b"]
    skipped = {event["file"]: event["text"] for event in desk.events if event["event"] == "skipped"}
    assert list(skipped) == ["a.gguf", "c.gguf"] and "no GGUF" in skipped["a.gguf"] and "cut off" in skipped["c.gguf"]
    assert not desk.hidden()
    (desk.source / "b.gguf").unlink()
    with pytest.raises(ModelUnusable):      # nothing in it is one
        await desk.add(desk.source)


async def test_the_models_of_an_installed_package_are_found_without_importing_it(desk, tmp_path, monkeypatch):
    site = tmp_path / "site"
    (site / "tiny_pack").mkdir(parents=True)
    (site / "tiny_pack" / "__init__.py").write_text("raise SystemExit('imported')")
    make_gguf(site / "tiny_pack" / "tiny.gguf")
    info = site / "tiny_pack-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: tiny-pack\nVersion: 1.0\n")
    (info / "RECORD").write_text("tiny_pack/__init__.py,,\ntiny_pack/tiny.gguf,,\ntiny_pack/gone.gguf,,\n")
    monkeypatch.syspath_prepend(site)
    assert [model["name"] for model in await desk.add("package:tiny-pack")] == ["tiny"]
    for name in ("not-installed-at-all", "pytest", "", "../x"):
        with pytest.raises(NoSuchPackage):
            await desk.add(f"package:{name}")


@pytest.mark.parametrize("content", [b"", b"GGUF", b"not a model at all", b"GGUF\x03\x00\x00\x00" + bytes(16)])
async def test_what_is_no_model_is_refused_and_leaves_nothing(desk, content):
    wrong = desk.source / "x.gguf"
    wrong.write_bytes(content)
    with pytest.raises(ModelUnusable):
        await desk.add(wrong)
    assert list(desk.own.iterdir()) == []
    with pytest.raises(ModelUnusable):
        await desk.add(desk.source / "absent.gguf")


async def test_choosing_a_model_ends_its_quarantine(desk, monkeypatch):
    await desk.add(make_gguf(desk.source / "a.gguf"))
    released = []
    monkeypatch.setattr(desk.engine, "release", lambda: released.append(desk.kept[:]))
    await desk.shelf.use("a")
    assert released == [[]] and desk.kept == ["a"]


async def test_a_broken_model_is_shown_and_removed_but_never_chosen(desk):
    await desk.add(make_gguf(desk.source / "good.gguf"))
    (desk.own / "a.gguf").write_bytes(b"GGUF\x09\x00\x00\x00" + b"\1" * 100)
    desk.engine.rescan()
    good, broken = await desk.shelf.all()
    assert (good.name, good.default, good.broken) == ("good", True, "")
    assert (broken.name, broken.default, broken.broken) == ("a", False, "GGUF version 9 is not known.")
    detail = await desk.shelf.info("a")
    assert (detail.model.broken, detail.file) == (broken.broken, str(desk.own / "a.gguf"))
    with pytest.raises(ModelUnusable):
        await desk.shelf.use("a")
    await desk.shelf.remove("a")
    assert [view.name for view in await desk.shelf.all()] == ["good"]


async def test_a_copy_that_is_cut_off_leaves_nothing(desk):
    file = make_gguf(desk.source / "a.gguf")

    async def leave(event):
        raise RuntimeError("the client left")

    with pytest.raises(RuntimeError):
        await desk.shelf.add(str(file), leave)
    assert list(desk.own.iterdir()) == []


async def test_what_broken_off_copies_left_is_swept_and_a_young_transfer_is_kept(desk):
    for name, age_days in ((".x.gguf.copy.part", 0), (f".{'a' * 64}.part", 15), (f".{'b' * 64}.part", 13)):
        part = desk.own / name
        part.write_bytes(b"x")
        when_s = part.stat().st_mtime - age_days * 24 * 3600
        os.utime(part, (when_s, when_s))
    await desk.add(make_gguf(desk.source / "a.gguf"))
    assert desk.hidden() == [f".{'b' * 64}.part"]


async def test_removing_forgets_the_file_its_record_and_the_default(desk):
    await desk.add(make_gguf(desk.source / "a.gguf"))
    await desk.shelf.use("a")
    removed = await desk.shelf.remove("a")
    assert removed.name == "a" and list(desk.own.iterdir()) == []
    assert desk.kept == ["a", ""] and await desk.shelf.all() == []
    with pytest.raises(ModelMissing):
        await desk.shelf.remove("a")


async def test_a_model_in_another_folder_is_left_alone(desk):
    file = make_gguf(desk.other / "theirs.gguf")
    with pytest.raises(NotKept, match="theirs"):
        await desk.shelf.remove("theirs")
    assert file.exists()


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


async def test_an_adapter_is_kept_beside_its_model_and_is_none_itself(desk):
    make_gguf(desk.source / "base.gguf", name="Tiny Test")
    make_gguf(desk.source / "other.gguf", name="Another")
    fits = make_adapter(desk.source / "a-style.gguf", width=64, layers=3, base_name="tiny test")
    strange = make_adapter(desk.source / "wide.gguf", width=128, layers=3)
    with pytest.raises(AdapterAlone):       # before its model
        await desk.add(fits)
    assert not list(desk.own.iterdir())

    added = await desk.add(desk.source)     # the folder: models first, whatever their names
    assert sorted(model["name"] for model in added) == ["a-style", "base", "other"]
    assert [event["file"] for event in desk.events if event["event"] == "skipped"] == [strange.name]
    views = {view.name: view for view in await desk.shelf.all()}
    assert {name: view.base for name, view in views.items()} == {"base": "", "other": "", "a-style": "base"}
    assert [model.name for model in await desk.engine.models()] == ["base", "other"]
    assert read_record(desk.own / "a-style.gguf").base == views["base"].digest
    # a question may name it, while its model is the one that answers
    digest = views["a-style"].digest
    assert await desk.shelf.adapter_named("A-Style") == await desk.shelf.adapter_named(digest) == digest
    with pytest.raises(ModelMissing, match=r"no adapter called b-style .* there is: a-style"):
        await desk.shelf.adapter_named("b-style")
    await desk.shelf.use("other")
    with pytest.raises(ModelMissing, match="a-style is an adapter for base") as refused:
        await desk.shelf.adapter_named("a-style")
    assert refused.value.hint == "Let that one answer: kith models use base"
    await desk.shelf.use("base")
    detail = await desk.shelf.info("a-style")
    assert (detail.model.base, detail.architecture) == ("base", "llama")

    # the owner's own requests use it from now on; its removal leaves its model the default
    assert (await desk.shelf.use("a-style")).default
    assert desk.kept[-1] == "a-style"
    assert {view.name: view.default for view in await desk.shelf.all()} == {
        "base": True, "other": False, "a-style": True}
    await desk.shelf.use("other")
    assert [view.name for view in await desk.shelf.all() if view.default] == ["other"]
    await desk.shelf.use("a-style")

    # an adapter without a name for its model takes the default one that fits
    plain = make_adapter(desk.source / "plain.gguf", width=64, layers=3, seed=2)
    await desk.shelf.use("other")
    await desk.add(plain)
    assert {view.name: view.base for view in await desk.shelf.all()}["plain"] == "other"
    await desk.shelf.use("a-style")
    await desk.shelf.remove("a-style")
    assert desk.kept[-1] == "base"
    assert [view.name for view in await desk.shelf.all() if view.default] == ["base"]
    assert [view.name for view in await desk.shelf.all() if view.base] == ["plain"]
    await desk.shelf.remove("other")
    assert [view.base for view in await desk.shelf.all() if view.base] == ["a model that is gone"]
    with pytest.raises(ModelUnusable):
        await desk.shelf.use("plain")


async def test_a_new_model_is_tried_for_placeholders_and_its_record_keeps_the_outcome(desk):
    asked = []

    async def trial(digest):
        asked.append(digest)
        return outcome

    desk.shelf._trial = trial
    outcomes = {"a": Verdict(32, 20, 21), "b": Verdict(32, 20, 20), "c": None}
    for name, outcome in outcomes.items():
        kept = outcome.style if outcome else "brackets"
        added = await desk.add(make_gguf(desk.source / f"{name}.gguf", template=name))
        assert (added[-1]["name"], added[-1]["placeholder_style"]) == (name, kept)
        record = read_record(desk.own / f"{name}.gguf")
        assert (record.trial_tasks, record.well_in_brackets) == ((32, 20) if outcome else (0, 0))
        assert record.trial_version == (TRIAL_VERSION if outcome else 0)
        assert asked[-1] == added[-1]["digest"]
    assert [event["event"] for event in desk.events].count("trying") == 3
    await desk.add(desk.source / "a.gguf")      # known already: not tried again
    assert len(asked) == 3
