"""Sealed files of remembered sequences: what opens them, what does not, and who goes first."""

import os
import tempfile
from pathlib import Path
from typing import Any, cast

import pytest
from fake_context import FakeContext, FakeVocabulary, ScriptedSampler
from hypothesis import given
from hypothesis import strategies as st

from offload.engine.answer import Answer
from offload.engine.context import Context
from offload.engine.kvfiles import Contents, KvFiles
from offload.engine.scheduler import Events, Scheduler
from offload.ports import GenerateRequest, Started, TextPrompt
from offload.worker_frames import FileKey

OWNER = ("owner", "")
TOKENS = list(range(200))
STATE = os.urandom(3 * 1024 * 1024 + 17)        # several blocks
CONTENTS = Contents(STATE, ((40, b"forty"), (90, b"")))


def key(number: int, name: str = "") -> FileKey:
    return FileKey(name or f"{number:064x}.kv", bytes([number]) * 32)


def files(folder: Path, *, binding: str = "model context", limit_bytes: int = 10**9) -> KvFiles:
    return KvFiles(str(folder), binding=binding, limit_bytes=limit_bytes)


def saved(folder: Path) -> Path:
    one = files(folder)
    one.spare("owner", key(1))
    assert one.save(OWNER, TOKENS, CONTENTS)
    (path,) = folder.iterdir()
    return path


def found(one: KvFiles, space: tuple[str, str] = OWNER) -> Any:
    return next(one.matches(space, TOKENS), (None, 0))


def test_what_was_saved_comes_back_in_another_process(tmp_path: Path) -> None:
    saved(tmp_path)
    again = files(tmp_path)
    assert found(again) == (None, 0)        # before the key is there
    again.unlock("owner", [key(1)])
    record, same = found(again)
    assert (same, record.tokens, record.positions) == (200, TOKENS, (40, 90))
    contents = again.load(record)
    assert contents is not None
    assert contents.state == STATE
    assert list(contents.checkpoints) == [(40, b"forty"), (90, b"")]


def test_nothing_of_it_is_readable_on_disk(tmp_path: Path) -> None:
    """Negative control: the same search finds the tokens in what goes into the seal."""
    text = b"a secret text " * 100
    one = files(tmp_path)
    one.spare("owner", key(1))
    tokens = [0x61626364] * 60
    one.save(OWNER, tokens, Contents(text))
    (path,) = tmp_path.iterdir()
    data = path.read_bytes()
    assert b"secret" not in data
    assert b"dcba" not in data
    assert b"owner" not in data
    assert path.stat().st_mode & 0o077 == 0
    record, _ = next(one.matches(OWNER, tokens))
    assert b"secret" in one.load(record).state      # type: ignore[union-attr]
    assert b"dcba" in record.index.tokens


@pytest.mark.parametrize("change", ["key", "principal", "binding", "name"])
def test_with_anything_different_it_does_not_open_and_is_removed(tmp_path: Path, change: str) -> None:
    path = saved(tmp_path)
    given, principal, binding = key(1), "owner", "model context"
    if change == "key":
        given = FileKey(given.name, bytes(32))
    elif change == "principal":
        principal = "peer-1"
    elif change == "binding":
        binding = "another model"
    else:
        given = key(1, "f" * 64 + ".kv")
        path.rename(tmp_path / given.name)
    again = files(tmp_path, binding=binding)
    again.unlock(principal, [given])
    assert found(again, (principal, "")) == (None, 0)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("place", [0, 9, 30, 500, 5_000, 2_000_000, -1])
def test_a_flipped_byte_anywhere_is_refused_and_the_file_removed(tmp_path: Path, place: int) -> None:
    path = saved(tmp_path)
    data = bytearray(path.read_bytes())
    data[place] ^= 1
    path.write_bytes(data)
    again = files(tmp_path)
    again.unlock("owner", [key(1)])
    record, _ = found(again)
    if record is not None:      # the index is whole, the data is not
        assert again.load(record) is None
    assert list(tmp_path.iterdir()) == []
    assert found(again) == (None, 0)


@given(st.integers(0, 3_200_000))
def test_a_torn_file_is_refused(length: int) -> None:
    with tempfile.TemporaryDirectory() as name:
        path = saved(Path(name))
        with path.open("r+b") as file:
            file.truncate(min(length, path.stat().st_size - 1))
        again = files(Path(name))
        again.unlock("owner", [key(1)])
        record, _ = found(again)
        assert record is None or again.load(record) is None
        assert list(Path(name).iterdir()) == []


def test_swapped_blocks_do_not_open(tmp_path: Path) -> None:
    path = saved(tmp_path)
    data = path.read_bytes()
    block = 1024 * 1024 + 16
    tail = data[-(3 * block + 17 + 16):]
    assert len(tail) == 3 * block + 33
    path.write_bytes(data[:-len(tail)] + tail[block:2 * block] + tail[:block] + tail[2 * block:])
    again = files(tmp_path)
    again.unlock("owner", [key(1)])
    assert again.load(found(again)[0]) is None


def test_a_key_opens_no_path_outside_the_folder(tmp_path: Path) -> None:
    outside = tmp_path / "outside.kv"
    outside.write_bytes(b"x")
    folder = tmp_path / "folder"
    folder.mkdir()
    one = files(folder)
    one.unlock("owner", [FileKey("../outside.kv", bytes(32))])
    one.spare("owner", FileKey("../new.kv", bytes(32)))
    assert not one.save(OWNER, TOKENS, CONTENTS)
    assert outside.read_bytes() == b"x"
    assert not (tmp_path / "new.kv").exists()


def test_a_longer_file_takes_the_place_of_its_beginning_and_one_key_makes_one_file(tmp_path: Path) -> None:
    one = files(tmp_path)
    for number, length in enumerate((100, 150, 200), 1):
        assert one.missing(OWNER, TOKENS[:length]) == 0        # no key, so nothing to do
        one.spare("owner", key(number))
        assert one.missing(OWNER, TOKENS[:length]) == (100 if number == 1 else 50)
        assert one.save(OWNER, TOKENS[:length], Contents(b"s"))
        assert not one.save(OWNER, TOKENS[:length], Contents(b"s"))
    assert [path.name for path in tmp_path.iterdir()] == [key(3).name]


def test_the_folder_has_a_size_and_the_longest_unused_goes(tmp_path: Path) -> None:
    one = files(tmp_path, limit_bytes=3_500)
    for number in (1, 2, 3):
        one.spare("owner", key(number))
        assert one.save(OWNER, [number] * 60, Contents(bytes(400)))
        os.utime(tmp_path / key(number).name, (number, number))
    record, _ = next(one.matches(OWNER, [1] * 60))
    assert one.load(record) is not None         # used: no longer the oldest
    one.spare("owner", key(4))
    assert one.save(OWNER, [4] * 60, Contents(bytes(1_200)))
    assert {path.name for path in tmp_path.iterdir()} == {key(1).name, key(3).name, key(4).name}
    one.spare("owner", key(5))
    assert not one.save(OWNER, [5] * 60, Contents(bytes(5_000)))


def put(one: KvFiles, number: int, who: str, size_bytes: int = 1_000) -> bool:
    """Save one of the principal's, used later than all with a lower number."""
    one.spare(who, key(number, f"{who}-{number}.kv"))
    done = one.save((who, ""), [number] * 60, Contents(bytes(size_bytes)))
    path = Path(one._path(f"{who}-{number}.kv"))
    if done:
        os.utime(path, (number, number))
    return done


def names(folder: Path) -> set[str]:
    return {path.name.removesuffix(".kv") for path in folder.iterdir()}


def test_guests_drive_out_each_other_and_none_of_the_owners(tmp_path: Path) -> None:
    """A file is 1,000 bytes and less than 700 of tokens, index and seals."""
    one = files(tmp_path, limit_bytes=10_000)
    assert put(one, 1, "owner") and put(one, 2, "owner")
    for number in range(3, 40):
        assert put(one, number, f"peer-{number % 3}")
        assert sum(path.stat().st_size for path in tmp_path.iterdir() if "peer" in path.name) <= 5_000
    left = names(tmp_path)
    assert {"owner-1", "owner-2", "peer-0-39", "peer-2-38"} <= left
    assert not put(one, 40, "peer-1", 6_000)         # more than all guests' part
    assert names(tmp_path) == left                   # and nobody left for it


def test_a_guest_gets_what_the_owner_leaves_and_the_owner_gets_all(tmp_path: Path) -> None:
    one = files(tmp_path, limit_bytes=10_000)
    assert put(one, 1, "peer-1") and put(one, 2, "peer-2")
    assert put(one, 3, "owner", 7_000)
    assert names(tmp_path) == {"peer-2-2", "owner-3"}       # a guest's leaves first
    assert put(one, 4, "owner", 7_500)
    assert names(tmp_path) == {"owner-4"}
    assert not put(one, 5, "peer-1", 2_500)
    assert put(one, 6, "peer-1", 500)
    assert names(tmp_path) == {"owner-4", "peer-1-6"}


@pytest.mark.parametrize("told", [True, False])
def test_what_the_owner_has_is_kept_before_the_first_request_of_a_new_process(tmp_path: Path, told: bool) -> None:
    """Negative control: a process that does not know how the owner's names begin takes closed ones for guests'."""
    first = files(tmp_path, limit_bytes=4_000)
    assert put(first, 1, "owner")
    again = KvFiles(str(tmp_path), binding="model context", limit_bytes=4_000, owners="owner-" if told else "")
    assert put(again, 2, "peer-1") and put(again, 3, "peer-1")
    assert ("owner-1" in names(tmp_path)) == told
    third = KvFiles(str(tmp_path), binding="model context", limit_bytes=4_000, owners="owner-")
    assert put(third, 4, "peer-2")          # closed ones of guests leave like others
    assert "peer-1-2" not in names(tmp_path)


def test_without_the_rule_a_guest_drives_out_the_owner(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The negative control."""
    monkeypatch.setattr(KvFiles, "_is_owners", lambda self, name: False)
    one = files(tmp_path, limit_bytes=10_000)
    put(one, 1, "owner")
    for number in range(3, 20):
        put(one, number, "peer-1")
    assert "owner-1" not in names(tmp_path)


def test_what_belongs_to_one_principal_is_removed_alone(tmp_path: Path) -> None:
    one = files(tmp_path)
    for number, who in enumerate(("owner", "peer-1"), 1):
        one.spare(who, key(number))
        one.save((who, ""), TOKENS, Contents(b"s"))
    one.spare("owner", key(3))
    one.forget("owner")
    assert found(one) == (None, 0)
    assert found(one, ("peer-1", ""))[1] == 200
    assert [path.name for path in tmp_path.iterdir()] == [key(2).name]
    assert not one.save(OWNER, TOKENS, Contents(b"s"))


def test_a_folder_that_can_not_be_written_stops_the_writing_only(tmp_path: Path) -> None:
    one = files(tmp_path / "absent")
    one.spare("owner", key(1))
    assert not one.save(OWNER, TOKENS, CONTENTS)
    assert found(one) == (None, 0)


def test_what_a_process_left_half_written_is_removed_at_the_next_start(tmp_path: Path) -> None:
    path = saved(tmp_path)
    (tmp_path / (key(2).name + ".part")).write_bytes(b"half")
    files(tmp_path)
    assert list(tmp_path.iterdir()) == [path]


# -- through the scheduler


def scheduler(context: FakeContext, store: KvFiles, **more: Any) -> Scheduler:
    return Scheduler(cast("Context", context), **({
        "slots": 2, "queue_limit": 16, "now_s": lambda: 0.0, "files": store} | more))


def ask(machine: Scheduler, name: str, prompt: list[int], who: str = "owner", **more: Any) -> Events:
    request = GenerateRequest(request_id=name, principal=who, prompt=TextPrompt("x"), max_tokens=5)
    events = machine.submit(Answer(
        request, FakeVocabulary(), ScriptedSampler([2]), prompt=prompt, replayed=(), context_tokens=1000, **more))
    for _ in range(99):
        events += machine.step()
    return events


def cached(events: Events) -> list[int]:
    return [event.cached_tokens for _, event in events if isinstance(event, Started)]


@pytest.mark.parametrize("can_cut", [True, False])
def test_idle_time_writes_what_is_worth_it_and_a_restart_reads_it(tmp_path: Path, can_cut: bool) -> None:
    store = files(tmp_path)
    machine = scheduler(FakeContext(can_cut=can_cut), store, can_cut=can_cut)
    for number in (1, 2, 3):
        store.spare("owner", key(number))
    ask(machine, "short", [7] * 20)
    ask(machine, "long", TOKENS, boundaries=(150,))
    assert machine.put_away()
    assert not machine.put_away()       # the short one is cheaper to read anew
    assert len(list(tmp_path.iterdir())) == 1

    again = files(tmp_path)
    again.unlock("owner", [key(1), key(2), key(3)])
    context = FakeContext(can_cut=can_cut)
    machine = scheduler(context, again, can_cut=can_cut)
    assert cached(ask(machine, "peer", [*TOKENS[:180], 999], "peer-1")) == [0]
    expected = 180 if can_cut else 150
    assert cached(ask(machine, "next", [*TOKENS[:180], 999])) == [expected]
    assert sum(count for batch in context.batches for _, count in batch) == 181 + 1 + 181 - expected + 1


def test_what_has_to_leave_is_written_first_and_comes_back(tmp_path: Path) -> None:
    store = files(tmp_path)
    context = FakeContext(context_tokens=300)
    machine = scheduler(context, store)
    for number in range(1, 5):
        store.spare("owner", key(number))
    ask(machine, "a", TOKENS)
    ask(machine, "b", [7] * 200)
    assert len(list(tmp_path.iterdir())) == 1
    assert cached(ask(machine, "c", [*TOKENS, 999])) == [200]
    assert context.memory[0][:3] == TOKENS[:3] or context.memory[1][:3] == TOKENS[:3]


def test_a_file_that_does_not_open_costs_nothing_but_the_reading(tmp_path: Path) -> None:
    path = saved(tmp_path)
    data = bytearray(path.read_bytes())
    data[-1] ^= 1
    path.write_bytes(data)
    store = files(tmp_path)
    store.unlock("owner", [key(1)])
    machine = scheduler(FakeContext(), store)
    assert cached(ask(machine, "a", [*TOKENS, 5])) == [0]
    assert list(tmp_path.iterdir()) == []
