"""The shelf: models added from files, folders and a hub, shown, chosen and removed; real folders and a real box."""

import hashlib
import os

import pytest
from gguf_files import make_adapter, make_gguf
from models_desk import Desk

from node.daemon.style_tasks import TRIAL_VERSION
from node.daemon.style_trial import Verdict
from node.errors import ModelMissing, UsageError
from offload.catalogue import read_record
from offload.errors import ModelUnusable
from offload.model_errors import AdapterAlone, NoSuchPackage, NotKept


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
