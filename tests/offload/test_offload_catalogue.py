"""Models on disk: found, hashed once, compared with their record; conversion is whole or not at all."""

import hashlib
import os
import subprocess
import sys
from pathlib import Path

import pytest
import trio
from embedded_model import model_path

from offload import catalogue as catalogue_module
from offload.catalogue import Catalogue, Record, digest_of, read_record, record_path, write_record
from offload.errors import ModelUnusable
from offload.requantise import requantise


def put(folder: Path, name: str, content: bytes) -> Path:
    folder.mkdir(exist_ok=True)
    path = folder / name
    path.write_bytes(content)
    return path


def test_models_are_found_in_order_and_each_content_once(tmp_path: Path) -> None:
    mine, shared = tmp_path / "mine", tmp_path / "shared"
    put(mine, "b.Q8_0.gguf", b"bb")
    put(mine, "a.gguf", b"aa")
    put(mine, "notes.txt", b"zz")
    put(shared, "again.gguf", b"bb")
    put(shared, "c.gguf", b"cc")
    found = Catalogue([mine, shared, tmp_path / "absent"]).scan()
    assert [model.path.name for model in found] == ["a.gguf", "b.Q8_0.gguf", "c.gguf"]
    assert found[0].digest == hashlib.sha256(b"aa").hexdigest()
    assert (found[1].record.quantisation, found[1].size_bytes, found[1].changed) == ("Q8_0", 2, False)


def test_a_file_is_hashed_again_only_when_it_changed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    hashed: list[str] = []

    def counting(path: Path) -> str:
        hashed.append(path.name)
        return digest_of(path)

    monkeypatch.setattr(catalogue_module, "digest_of", counting)
    path = put(tmp_path, "a.gguf", b"aa")
    cache = tmp_path / "cache" / "digests.json"
    first = Catalogue([tmp_path], cache)
    first.scan()
    first.scan()
    Catalogue([tmp_path], cache).scan()
    assert hashed == ["a.gguf"]
    path.write_bytes(b"changed")
    (model,) = Catalogue([tmp_path], cache).scan()
    assert hashed == ["a.gguf", "a.gguf"]
    assert model.digest == hashlib.sha256(b"changed").hexdigest()
    cache.write_text("[broken")
    Catalogue([tmp_path], cache).scan()
    assert len(hashed) == 3


def test_a_disk_that_keeps_no_digests_takes_no_model_away(tmp_path: Path) -> None:
    mine = tmp_path / "mine"
    put(mine, "a.gguf", b"aa")
    in_the_way = put(tmp_path, "cache", b"a file where the folder should be")
    catalogue = Catalogue([mine], in_the_way / "digests.json")
    assert [model.path.name for model in catalogue.scan()] == ["a.gguf"]
    put(mine, "b.gguf", b"bb")
    assert [model.path.name for model in catalogue.scan()] == ["a.gguf", "b.gguf"]


def test_a_record_names_the_model_and_tells_when_the_file_changed(tmp_path: Path) -> None:
    path = put(tmp_path, "a.gguf", b"aa")
    record = Record(
        name="anna", digest=digest_of(path), licence="MIT", context_tokens=99, placeholder_style="surrogates")
    write_record(path, record)
    assert read_record(path) == record
    (model,) = Catalogue([tmp_path]).scan()
    assert (model.record, model.changed) == (record, False)
    path.write_bytes(b"ab")
    os.utime(path, ns=(1, 1))
    (model,) = Catalogue([tmp_path]).scan()
    assert model.changed


@pytest.mark.parametrize("text", ["name = 3\ndigest = 'x'", "not toml [", "", "name = 'only'", "\udcff"])
def test_a_record_that_can_not_be_read_is_none(tmp_path: Path, text: str) -> None:
    path = put(tmp_path, "a.gguf", b"aa")
    record_path(path).write_bytes(text.encode("utf-8", errors="surrogateescape"))
    assert read_record(path) is None
    (model,) = Catalogue([tmp_path]).scan()
    assert model.record.name == "a"


@pytest.mark.model
async def test_a_conversion_is_boxed_recorded_and_done_once(tmp_path: Path) -> None:
    source = model_path()
    with trio.fail_after(120):
        made = await requantise(source, tmp_path / "models", "Q8_0")
        assert made.path.name == "SmolLM2-135M-Instruct.Q8_0.gguf"
        assert made.box["landlock"]
        assert (made.digest, made.done_before) == (digest_of(made.path), False)
        record = read_record(made.path)
        assert record is not None
        assert (record.digest, record.quantisation, record.source_digest) == (made.digest, "Q8_0", digest_of(source))
        before = made.path.stat().st_mtime_ns
        again = await requantise(source, tmp_path / "models", "Q8_0")
        assert (again.done_before, again.path.stat().st_mtime_ns) == (True, before)
        made.path.write_bytes(b"damaged")
        mended = await requantise(source, tmp_path / "models", "Q8_0")
        assert (mended.done_before, mended.digest) == (False, made.digest)
    assert sorted(path.name for path in (tmp_path / "models").iterdir()) == [
        "SmolLM2-135M-Instruct.Q8_0.gguf", "SmolLM2-135M-Instruct.Q8_0.gguf.toml"]


@pytest.mark.model
def test_the_command_tells_what_it_did_and_fails_with_a_status(tmp_path: Path) -> None:
    """As set-up runs it: from anywhere, with nothing in the environment but where the packages are."""
    def run(source: Path) -> subprocess.CompletedProcess[str]:
        root = str(Path(__file__).resolve().parents[2])
        return subprocess.run(
            [sys.executable, "-P", "-m", "offload.requantise", str(source), str(tmp_path / "out"), "--to", "Q8_0"],
            capture_output=True, text=True, timeout=120, check=False, cwd=tmp_path, env={"PYTHONPATH": root})

    done = run(model_path())
    assert done.returncode == 0, done.stderr
    assert "Q8_0.gguf written, sha256 " in done.stdout
    assert "already there" in run(model_path()).stdout
    failed = run(tmp_path / "absent.gguf")
    assert failed.returncode == 1
    assert "absent.gguf" in failed.stderr
    assert "Traceback" not in failed.stderr


async def test_what_is_no_model_is_not_converted_and_leaves_nothing(tmp_path: Path) -> None:
    source = put(tmp_path, "broken.gguf", b"GGUF" + b"\1" * 100)
    with trio.fail_after(60), pytest.raises(ModelUnusable):
        await requantise(source, tmp_path / "models")
    assert list((tmp_path / "models").iterdir()) == []
    with pytest.raises(FileNotFoundError):
        await requantise(tmp_path / "absent.gguf", tmp_path / "models")
