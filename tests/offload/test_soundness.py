"""Broken model files: seen by the first bytes, by a boxed look at the header, by a worker; others are taken first."""

import os
from pathlib import Path

import pytest
from embedded_model import MODEL_NAME, model_path, models_folder
from engine_asks import asked, collect, running_engine
from gguf_files import make_gguf

from offload.catalogue import Catalogue, Record, digest_of, write_record
from offload.errors import ModelUnusable
from offload.gguf import ModelFacts
from offload.local_engine import LocalEngine
from offload.model_host import HostLimits
from offload.ports import Failed, Finished
from offload.soundness import Soundness

FACTS = ModelFacts(architecture="llama", version=3)


def start(version: int = 3, tensors: int = 1, facts: int = 1, magic: bytes = b"GGUF") -> bytes:
    return magic + version.to_bytes(4, "little") + tensors.to_bytes(8, "little") + facts.to_bytes(8, "little")


@pytest.mark.parametrize(("content", "sound"), [
    (start(), True), (start(version=2), True), (b"", False), (b"GGUF", False), (start()[:-1], False),
    (start(magic=b"GGML"), False), (start(version=0x01010101), False), (start(facts=0), False),
    (start(tensors=0), False),
])
def test_the_first_bytes_are_looked_at(tmp_path: Path, content: bytes, sound: bool) -> None:
    (tmp_path / "a.gguf").write_bytes(content)
    (model,) = Catalogue([tmp_path]).scan()
    assert (not model.damage) is sound


def test_digests_are_remembered_for_the_owners_eyes_only(tmp_path: Path) -> None:
    (tmp_path / "a.gguf").write_bytes(start())
    cache = tmp_path / "cache" / "digests.json"
    cache.parent.mkdir()
    cache.with_name("digests.json.unfinished").touch(mode=0o666)
    before = os.umask(0)
    try:
        Catalogue([tmp_path], cache).scan()
    finally:
        os.umask(before)
    assert cache.stat().st_mode & 0o777 == 0o600
    assert [path.name for path in cache.parent.iterdir()] == ["digests.json"]


async def test_each_header_is_looked_at_once_and_only_where_no_record_vouches(tmp_path: Path) -> None:
    for name in ("a", "b", "c", "d"):
        (tmp_path / f"{name}.gguf").write_bytes(start() + name.encode())
    (tmp_path / "e.gguf").write_bytes(b"no model")
    write_record(tmp_path / "d.gguf", Record(name="d", digest=digest_of(tmp_path / "d.gguf")))
    looked: list[str] = []

    async def look(path: Path) -> ModelFacts:
        looked.append(path.name)
        if path.name == "b.gguf":
            raise ModelUnusable("The model file is cut off.\x1b[2J")
        return FACTS if path.name == "a.gguf" else ModelFacts(architecture="llama", version=3, adapter="lora")

    soundness = Soundness(look)
    models = Catalogue([tmp_path]).scan()
    await soundness.examine(models)
    await soundness.examine(models)
    assert looked == ["a.gguf", "b.gguf", "c.gguf"]
    found = {model.path.stem: soundness.damage(model.digest) for model in models}
    assert found == {
        "a": "", "b": "The model file is cut off.[2J", "c": "It is an adapter for a model, not a model.", "d": "",
        "e": "It is no GGUF model file."}
    soundness.note(models[0].digest, "it did not load")
    await soundness.examine(models)
    assert soundness.damage(models[0].digest) == "it did not load"


async def test_a_damaged_file_is_listed_last_and_not_the_default(tmp_path: Path) -> None:
    """As found in review: a small damaged file whose name comes first."""
    make_gguf(tmp_path / "b.gguf")
    whole = (tmp_path / "b.gguf").read_bytes()
    (tmp_path / "a.gguf").write_bytes(whole[: len(whole) // 2])
    engine = LocalEngine([tmp_path], default_model="a")
    assert [(one.name, bool(one.broken)) for one in await engine.models()] == [("b", False), ("a", True)]
    (tmp_path / "b.gguf").unlink()
    engine.rescan()
    assert [one.name for one in await engine.models()] == ["a"]


@pytest.mark.model
async def test_what_a_worker_can_not_load_gives_way_to_another_model(tmp_path: Path) -> None:
    """A header that reads well, and nothing behind it; its record vouches for it."""
    limits = HostLimits(context_tokens=1024)
    broken = tmp_path / "aaa.gguf"
    broken.write_bytes(model_path().read_bytes()[:8_000_000])
    write_record(broken, Record(name="aaa", digest=digest_of(broken)))
    async with running_engine([tmp_path, models_folder()], limits=limits) as engine:
        assert [one.name for one in await engine.models()] == ["aaa", MODEL_NAME]
        (first,) = await collect(engine, asked("Hi", max_tokens=2))
        assert isinstance(first, Failed) and first.code == "model_unusable"
        sound, damaged = await engine.models()
        assert (sound.name, sound.broken, damaged.name, bool(damaged.broken)) == (MODEL_NAME, "", "aaa", True)
        assert isinstance((await collect(engine, asked("Hi", max_tokens=2)))[-1], Finished)
        health = await engine.health()
        assert health.model is not None and health.model.name == MODEL_NAME


@pytest.mark.model
async def test_with_broken_models_only_the_engine_says_so(tmp_path: Path) -> None:
    (tmp_path / "broken.gguf").write_bytes(b"GGUF" + b"\1" * 4000)
    async with running_engine([tmp_path]) as engine:
        await engine.models()
        health = await engine.health()
        assert (health.state, health.detail) == ("no_model", "broken is broken: GGUF version 16843009 is not known.")
        (event,) = await collect(engine, asked("Hi"))
        assert isinstance(event, Failed) and event.code == "model_unusable"
