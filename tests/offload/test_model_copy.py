"""A model file from one peer to another, both real drivers over a channel in memory: resumed, refused, lied to."""

import hashlib
import shutil
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import pytest
import trio
import trio.testing
from memory_channel import ALICE, MemoryChannel, memory_channels

from offload import model_copy
from offload.model_copy import Copied, copy_model
from offload.model_errors import CopyBroken, CopyMismatch, CopyRefused, NoRoom
from offload.model_server import CONCURRENT_PER_PEER, ModelServer
from protocol.errors import ChannelLost
from protocol.frames.model import ModelChunk, ModelEnd, ModelOffer, ModelRequest
from protocol.grants import Grant
from protocol.names import MODEL

FILE = bytes(number * 7 % 251 for number in range(300_000))
DIGEST = hashlib.sha256(FILE).hexdigest()
CHUNKS = 5      # of 64 KiB


@dataclass
class OpenFile:
    name: str
    licence: str
    data: bytes
    size_bytes: int
    closed: int = 0
    reads: int = 0

    async def read(self, offset: int, most_bytes: int) -> bytes:
        await trio.lowlevel.checkpoint()
        self.reads += 1
        return self.data[offset:offset + most_bytes]

    def close(self) -> None:
        self.closed += 1


@dataclass
class Shelf:
    """One model; what is read may be something else than what it is called by."""

    data: bytes = FILE
    size_bytes: int = len(FILE)
    name: str = "tiny"
    licence: str = "apache-2.0"
    opened: list[OpenFile] = field(default_factory=list)

    async def open(self, digest: str) -> OpenFile | None:
        if digest != DIGEST:
            return None
        self.opened.append(OpenFile(self.name, self.licence, self.data, self.size_bytes))
        return self.opened[-1]


@dataclass
class Book:
    """The grants: one, or none."""

    services: tuple[str, ...] = ("models",)
    models: tuple[str, ...] = ("*",)
    out_of_time: bool = False

    def grant_for(self, peer_id: str) -> Grant | None:
        if self.out_of_time:
            return None
        return Grant(
            services=self.services, models=self.models, tokens_per_day=0, max_context=0, max_concurrency=0,
            not_after_s=2**40, issued_by=ALICE, issued_to=ALICE, epoch=1)

    def ran_out(self, peer_id: str) -> bool:
        return self.out_of_time


class Pair:
    """A server, and channels to it. before(stream number, channel): what befalls a stream before it is served."""

    def __init__(self, nursery: trio.Nursery, shelf: Shelf | None = None, book: Book | None = None) -> None:
        self.shelf, self.book = shelf or Shelf(), book or Book()
        self.refusals: list[str] = []
        self.server = ModelServer(self.shelf, self.book, lambda _, code: self.refusals.append(code))
        self.before: Callable[[int, MemoryChannel], None] = lambda number, channel: None
        self.streams = 0
        self.ends: list[MemoryChannel] = []
        self._nursery = nursery

    async def open(self) -> MemoryChannel:
        self.streams += 1
        near, far = memory_channels(MODEL, capacity_frames=0)
        self.before(self.streams, far)
        self.ends.append(near)
        self._nursery.start_soon(self.server.serve, far)
        return near

    async def copy(self, folder: Path, told: list[tuple[int, int]] | None = None) -> Copied:
        async def progress(name: str, done: int, total: int) -> None:
            if told is not None:
                told.append((done, total))

        ids = iter(range(1, 10_000))
        return await copy_model(
            self.open, digest=DIGEST, folder=folder, new_id=lambda: next(ids).to_bytes(16, "big"),
            on_progress=progress)


@pytest.fixture
def jumping(autojump_clock: trio.testing.MockClock) -> trio.testing.MockClock:
    """Files are read and written in real threads, and time jumps only when they are done."""
    return autojump_clock


def requests(pair: Pair) -> list[int]:
    """Where each stream began."""
    return [end.sent[0].offset for end in pair.ends if end.sent and isinstance(end.sent[0], ModelRequest)]


async def test_a_whole_file(tmp_path, nursery) -> None:
    pair, told = Pair(nursery), []
    copied = await pair.copy(tmp_path, told)
    assert copied.part.read_bytes() == FILE
    assert (copied.digest, copied.name, copied.licence) == (DIGEST, "tiny", "apache-2.0")
    assert copied.part.name == f".{DIGEST}.part"        # no model by its name
    assert told[0] == (0, len(FILE)) and told[-1] == (len(FILE), len(FILE))
    assert [file.closed for file in pair.shelf.opened] == [1] and pair.server.active == 0


async def test_odd_names_and_unknown_licences(tmp_path, nursery) -> None:
    pair = Pair(nursery, Shelf(name="My model (v2)/über", licence="Some words of a licence"))
    copied = await pair.copy(tmp_path)
    assert (copied.name, copied.licence) == ("My-model-v2-ber", "Some-words-of-a-licence")


async def test_goes_on_where_each_stream_broke(tmp_path, nursery, jumping) -> None:
    pair = Pair(nursery)

    def breaks(number: int, channel: MemoryChannel) -> None:
        channel.cut_after = {1: 3, 2: 1, 3: 2}.get(number)      # the offer and two chunks; the offer; the offer and one

    pair.before = breaks
    copied = await pair.copy(tmp_path)
    assert copied.part.read_bytes() == FILE
    assert requests(pair) == [0, 131072, 131072, 196608]
    given = sum(file.reads for file in pair.shelf.opened)
    assert given <= CHUNKS + 3      # nothing that arrived is sent twice; each break may lose the chunk under way


async def test_a_copy_that_was_stopped_goes_on_later(tmp_path, nursery) -> None:
    (tmp_path / f".{DIGEST}.part").write_bytes(FILE[:100_000])
    pair = Pair(nursery)
    assert (await pair.copy(tmp_path)).part.read_bytes() == FILE
    assert requests(pair) == [100_000]


async def test_a_peer_that_is_away_for_a_while(tmp_path, nursery, jumping) -> None:
    pair, tries = Pair(nursery), 0
    open_now = pair.open

    async def opener() -> MemoryChannel:
        nonlocal tries
        tries += 1
        if tries < 8:
            raise ChannelLost
        return await open_now()

    pair.open = opener      # type: ignore[method-assign]
    assert (await pair.copy(tmp_path)).part.read_bytes() == FILE


async def test_a_peer_that_does_not_come_back(tmp_path, nursery, jumping) -> None:
    pair = Pair(nursery)
    (tmp_path / f".{DIGEST}.part").write_bytes(FILE[:10])

    async def opener() -> MemoryChannel:
        raise ChannelLost

    pair.open = opener      # type: ignore[method-assign]
    begun_s = trio.current_time()
    with pytest.raises(CopyBroken):
        await pair.copy(tmp_path)
    assert model_copy.PATIENCE_S <= trio.current_time() - begun_s <= model_copy.PATIENCE_S + 10
    assert (tmp_path / f".{DIGEST}.part").read_bytes() == FILE[:10]


async def test_a_silent_peer(tmp_path, nursery, jumping) -> None:
    streams = 0

    async def opener() -> MemoryChannel:
        nonlocal streams
        streams += 1
        near, _ = memory_channels(MODEL)
        return near

    with pytest.raises(CopyBroken):
        await copy_model(
            opener, digest=DIGEST, folder=tmp_path, new_id=lambda: bytes(16), on_progress=_nothing)
    assert 5 <= streams <= 10


async def _nothing(name: str, done: int, total: int) -> None:
    pass


async def test_wrong_bytes_never_become_a_model(tmp_path, nursery) -> None:
    """A lying provider: the right name and size, other bytes."""
    pair = Pair(nursery, Shelf(data=FILE[:-1] + b"!"))
    with pytest.raises(CopyMismatch):
        await pair.copy(tmp_path)
    assert list(tmp_path.iterdir()) == []


async def test_negative_control_without_the_digest_check_they_would(tmp_path, nursery, monkeypatch) -> None:
    monkeypatch.setattr(model_copy, "digest_of", lambda path: DIGEST)
    copied = await Pair(nursery, Shelf(data=FILE[:-1] + b"!")).copy(tmp_path)
    assert copied.part.read_bytes() != FILE


async def test_a_peer_that_changes_the_size_between_two_streams(tmp_path, nursery, jumping) -> None:
    pair = Pair(nursery)

    def before(number: int, channel: MemoryChannel) -> None:
        channel.cut_after = 2 if number == 1 else None
        pair.shelf.size_bytes = len(FILE) + number - 1

    pair.before = before
    with pytest.raises(CopyMismatch):
        await pair.copy(tmp_path)


@pytest.mark.parametrize("frames", [
    [ModelOffer(bytes(16), DIGEST, 10, "tiny", None), ModelChunk(bytes(16), 1, b"x")],
    [ModelOffer(bytes(16), DIGEST, 10, "tiny", None), ModelChunk(bytes(16), 0, b"x" * 11)],
    [ModelOffer(bytes(16), DIGEST, 10, "tiny", None), ModelEnd(bytes(16), 10)],
    [ModelOffer(bytes(16), "ab" * 32, 10, "tiny", None)],
    [ModelChunk(bytes(16), 0, b"x")],
])
async def test_a_peer_that_breaks_the_rules(tmp_path, frames) -> None:
    near, far = memory_channels(MODEL)
    for frame in frames:
        await far.send(frame)

    async def opener() -> MemoryChannel:
        return near

    with pytest.raises(CopyRefused, match="breaks the protocol"):
        await copy_model(opener, digest=DIGEST, folder=tmp_path, new_id=lambda: bytes(16), on_progress=_nothing)


async def test_no_room_is_noticed_before_the_first_byte(tmp_path, nursery, monkeypatch) -> None:
    pair = Pair(nursery)
    usage = shutil.disk_usage(tmp_path)
    monkeypatch.setattr(shutil, "disk_usage", lambda path: usage._replace(free=len(FILE)))
    with pytest.raises(NoRoom):
        await pair.copy(tmp_path)
    assert (tmp_path / f".{DIGEST}.part").read_bytes() == b""
    await trio.testing.wait_all_tasks_blocked()
    assert pair.server.active == 0


async def test_cancelling_ends_the_giving(tmp_path, nursery) -> None:
    pair = Pair(nursery)
    with trio.CancelScope() as scope:
        ids = iter(range(1, 99))

        async def stop(name: str, done: int, total: int) -> None:
            scope.cancel()

        await copy_model(
            pair.open, digest=DIGEST, folder=tmp_path, new_id=lambda: next(ids).to_bytes(16, "big"), on_progress=stop)
    assert scope.cancelled_caught
    with trio.fail_after(30):
        while pair.server.active:
            await trio.sleep(0.001)
    assert [file.closed for file in pair.shelf.opened] == [1]


@pytest.mark.parametrize(("book", "code"), [
    (Book(services=("infer",)), "not_granted"), (Book(out_of_time=True), "grant_expired"),
    (Book(models=()), "model_absent"), (Book(models=("another",)), "model_absent"),
])
async def test_only_what_is_granted(tmp_path, nursery, book, code) -> None:
    pair = Pair(nursery, book=book)
    with pytest.raises(CopyRefused):
        await pair.copy(tmp_path)
    assert pair.refusals == [code]
    assert all(file.reads == 0 and file.closed for file in pair.shelf.opened)


@pytest.mark.parametrize("models", [("tiny",), (DIGEST,), ("*",)])
async def test_granted_by_name_or_digest(tmp_path, nursery, models) -> None:
    assert (await Pair(nursery, book=Book(models=models)).copy(tmp_path)).digest == DIGEST


async def test_a_grant_that_is_taken_back_in_the_middle(tmp_path, nursery) -> None:
    pair = Pair(nursery)

    def before(number: int, channel: MemoryChannel) -> None:
        def sending(frame) -> None:
            if isinstance(frame, ModelChunk):
                pair.book.services = ()

        channel.before_send = sending

    pair.before = before
    with pytest.raises(CopyRefused, match="withdrawn"):
        await pair.copy(tmp_path)
    assert pair.refusals == ["revoked"]
    assert pair.shelf.opened[0].reads == 1


async def test_a_request_beyond_the_end(tmp_path, nursery) -> None:
    (tmp_path / f".{DIGEST}.part").write_bytes(FILE + b"more")
    pair = Pair(nursery)
    with pytest.raises(CopyRefused):
        await pair.copy(tmp_path)
    assert list(tmp_path.iterdir()) == []       # so that the next try starts afresh


async def test_a_file_that_was_complete_already(tmp_path, nursery) -> None:
    (tmp_path / f".{DIGEST}.part").write_bytes(FILE)
    assert (await Pair(nursery).copy(tmp_path)).part.read_bytes() == FILE


async def test_more_copies_than_one_peer_may_have(tmp_path, nursery, jumping) -> None:
    pair = Pair(nursery)
    held = [await pair.open() for _ in range(CONCURRENT_PER_PEER)]
    for number, channel in enumerate(held):
        await channel.send(ModelRequest(bytes([number]) * 16, DIGEST, 0))       # and never reads
    await trio.testing.wait_all_tasks_blocked()
    assert pair.server.active == CONCURRENT_PER_PEER
    async with trio.open_nursery() as copying:
        copied: list[Copied] = []

        async def copy() -> None:
            copied.append(await pair.copy(tmp_path))

        copying.start_soon(copy)
        await trio.sleep(1)
        assert not copied       # busy: it waits and tries again
        for channel in held:
            await channel.reset()
    assert copied[0].part.read_bytes() == FILE


async def test_a_copier_that_speaks_out_of_turn_gets_no_more_and_has_nothing_read_for_it(nursery, jumping) -> None:
    """The machine is over by its second request: without an end of the reading a whole file would be read for nobody.
    """
    pair = Pair(nursery)
    channel = await pair.open()
    request = ModelRequest(bytes(16), DIGEST, 0)
    await channel.send(request)
    assert isinstance(await channel.receive(deadline_s=5), ModelOffer)
    await channel.send(request)
    await trio.sleep(1)
    assert pair.server.active == 0
    assert pair.shelf.opened[0].reads <= 2
    assert pair.shelf.opened[0].closed == 1
    assert pair.refusals == []


async def test_a_copier_that_reads_nothing_is_given_up(nursery, jumping) -> None:
    pair = Pair(nursery)
    channel = await pair.open()
    await channel.send(ModelRequest(bytes(16), DIGEST, 0))
    await trio.sleep(60)
    assert pair.server.active == 0
