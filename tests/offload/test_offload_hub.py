"""Models from a hub: the right file, whole, checked, gone on with after a break.

Against a server of ours that speaks the hub's API, through the hub's own library.
"""

import hashlib
import os

import pytest
from fake_hub import fake_hub
from hypothesis import given
from hypothesis import strategies as st

from offload import model_folder
from offload.hub import fetch_model
from offload.hub_frames import HubFile
from offload.hub_names import HubReference, choose_file, parse_reference
from offload.model_errors import HubError, HubMismatch, HubName, HubRefused, HubUnreachable, NoRoom

CONTENT = os.urandom(900_000)
GIB = 1024**3


@pytest.mark.parametrize(("text", "wanted"), [
    ("hf:some-owner/Tiny.1-GGUF", HubReference("some-owner/Tiny.1-GGUF")),
    ("hf:a/b:Q8_0", HubReference("a/b", "Q8_0")),
    ("hf:a/b:sub/Model-Q4_K_M.gguf", HubReference("a/b", "sub/Model-Q4_K_M.gguf")),
])
def test_references(text, wanted):
    assert parse_reference(text) == wanted and str(wanted) == text


@pytest.mark.parametrize("text", [
    "hf:", "hf:a", "hf:a/b/c", "a/b", "hf:../b", "hf:a/..", "hf:a/b:../../etc/x", "hf:a/b:/etc/x", "hf:a b/c",
    "hf:a/b?x", "hf:a/b:x y.gguf", "hf:-a/b", "hf:a/b--c", "hf:a/b:\n",
])
def test_other_references_are_refused(text):
    with pytest.raises(HubName):
        parse_reference(text)


@given(st.text(max_size=60))
def test_any_text_is_a_reference_or_refused(text):
    try:
        found = parse_reference("hf:" + text)
    except HubName:
        return
    assert ".." not in str(found) and str(found).isprintable()


def files(*names, size=GIB):
    return [HubFile(name, size, "0" * 64) for name in names]


BOTPSY = [HubFile("BotPsy-0.8B-BF16.gguf", 1_600_000_000), HubFile("BotPsy-0.8B-Q8_0.gguf", 850_000_000),
          HubFile("BotPsy-0.8B-Q4_K_M.gguf", 530_000_000), HubFile("README.md", 1)]


@pytest.mark.parametrize(("memory_gib", "name"), [(16, "BotPsy-0.8B-Q8_0.gguf"), (4, "BotPsy-0.8B-Q4_K_M.gguf")])
def test_a_small_model_gets_eight_bits_where_there_is_memory(memory_gib, name):
    assert choose_file(HubReference("a/b"), BOTPSY, memory_gib * GIB).name == name


def test_which_file_is_meant():
    both = files("m-Q4_0.gguf", "m-Q4_K_M.gguf", "mmproj-m-f16.gguf", "x.safetensors")
    assert choose_file(HubReference("a/b", "q4_0"), both, GIB).name == "m-Q4_0.gguf"
    assert choose_file(HubReference("a/b", "m-Q4_K_M.gguf"), both, GIB).name == "m-Q4_K_M.gguf"
    assert choose_file(HubReference("a/b"), both, GIB).name == "m-Q4_K_M.gguf"
    assert choose_file(HubReference("a/b"), files("only.gguf"), 1).name == "only.gguf"
    below = files("sub/m.Q8_0.gguf", "sub/m.Q3_K_S.gguf")
    assert choose_file(HubReference("a/b"), below, 20 * GIB).name == "sub/m.Q8_0.gguf"


@pytest.mark.parametrize(("reference", "there", "words"), [
    (HubReference("a/b"), files("x.bin"), "no GGUF"),
    (HubReference("a/b"), files("m-Q8_0-00001-of-00002.gguf", "m-Q8_0-00002-of-00002.gguf"), "several pieces"),
    (HubReference("a/b", "Q5_K_M"), files("m-Q4_0.gguf", "m-Q8_0.gguf"), "no such file"),
    (HubReference("a/b", "Q8_0"), files("one-Q8_0.gguf", "two-Q8_0.gguf"), "several files"),
    (HubReference("a/b"), files("one.gguf", "two.gguf"), "Say which"),
])
def test_when_it_is_not_clear_the_choice_is_listed(reference, there, words):
    with pytest.raises(HubName, match=words):
        choose_file(reference, there, 8 * GIB)


class Progress(list):
    async def __call__(self, name, done, total):
        self.append((name, done, total))


async def fetch(hub, folder, reference="hf:some-owner/tiny-GGUF", progress=None):
    progress = Progress() if progress is None else progress
    return await fetch_model(parse_reference(reference), endpoint=hub.url, folder=folder, on_progress=progress)


async def test_a_file_arrives_whole_with_its_licence_and_without_any_token(tmp_path, monkeypatch):
    monkeypatch.setenv("HF_TOKEN", "hf_secret")
    progress = Progress()
    with fake_hub(files={"tiny-Q8_0.gguf": CONTENT}) as hub:
        fetched = await fetch(hub, tmp_path, progress=progress)
    assert fetched.part.read_bytes() == CONTENT and fetched.digest == hashlib.sha256(CONTENT).hexdigest()
    assert (fetched.file_name, fetched.licence) == ("tiny-Q8_0.gguf", "mit")
    assert progress[0] == ("tiny-Q8_0.gguf", 0, len(CONTENT)) and progress[-1][1:] == (len(CONTENT), len(CONTENT))
    assert [path.partition("?")[0] for _, path, _ in hub.asked] == [
        "/api/models/some-owner/tiny-GGUF", "/some-owner/tiny-GGUF/resolve/c0ffee/tiny-Q8_0.gguf"]
    assert not any("authorization" in headers for _, _, headers in hub.asked)


async def test_a_broken_transfer_goes_on_where_it_stopped(tmp_path):
    with fake_hub(files={"tiny-Q8_0.gguf": CONTENT}, cut_at=600_000) as hub:
        fetched = await fetch(hub, tmp_path)
    assert fetched.part.read_bytes() == CONTENT
    assert hub.ranges == ["", "bytes=524288-"]


async def test_a_part_left_by_an_earlier_try_is_used(tmp_path):
    (tmp_path / f".{hashlib.sha256(CONTENT).hexdigest()}.part").write_bytes(CONTENT[:123_456])
    with fake_hub(files={"tiny-Q8_0.gguf": CONTENT}) as hub:
        fetched = await fetch(hub, tmp_path)
    assert fetched.part.read_bytes() == CONTENT and hub.ranges == ["bytes=123456-"]


async def test_a_wrong_part_or_a_lying_hub_leaves_nothing(tmp_path):
    part = tmp_path / f".{hashlib.sha256(CONTENT).hexdigest()}.part"
    part.write_bytes(b"x" * 1000)
    with fake_hub(files={"tiny-Q8_0.gguf": CONTENT}) as hub:
        with pytest.raises(HubMismatch):
            await fetch(hub, tmp_path)
        hub.lie = "1" * 64
        with pytest.raises(HubMismatch):
            await fetch(hub, tmp_path)
        for no_checksum in ("", "/../" + "x" * 60, "A" * 64):  # it names the part file: nothing else gets so far
            hub.lie = no_checksum
            with pytest.raises(HubMismatch, match="no size or checksum"):
                await fetch(hub, tmp_path)
    assert list(tmp_path.iterdir()) == []


async def test_a_hub_that_sends_more_than_it_announced_fills_no_disk(tmp_path):
    with fake_hub(files={"tiny-Q8_0.gguf": CONTENT}, longer=b"y" * 5_000_000) as hub, pytest.raises(HubError):
        await fetch(hub, tmp_path)
    assert all(path.stat().st_size <= len(CONTENT) for path in tmp_path.iterdir())


@pytest.mark.parametrize(("status", "error"), [(404, HubRefused), (401, HubRefused), (403, HubRefused)])
async def test_a_no_of_the_hub_is_told_from_a_hub_that_is_away(tmp_path, status, error):
    with fake_hub(status=status) as hub, pytest.raises(error):
        await fetch(hub, tmp_path)


async def test_no_hub_and_no_room(tmp_path, monkeypatch):
    with pytest.raises(HubUnreachable):
        await fetch_model(
            HubReference("a/b"), endpoint="http://127.0.0.1:1", folder=tmp_path, on_progress=Progress())
    monkeypatch.setattr(model_folder, "SPARE_BYTES", 2**60)
    with fake_hub(files={"tiny-Q8_0.gguf": CONTENT}) as hub, pytest.raises(NoRoom, match="MB"):
        await fetch(hub, tmp_path)
    assert not hub.ranges
