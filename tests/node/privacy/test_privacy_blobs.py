"""Opaque frames: only bytes of a catalogue file that the peer asked for pass, and each request stands in the ledger."""

import hashlib

import pytest
from frame_samples import DIGEST, ID, OTHER_ID, PEER_B
from guard_bench import GuardBench, MemoryStream, guard_bench

from node.privacy.accounting import ACCOUNTED_LEVEL
from node.privacy.blobs import BlobCheck
from node.privacy.channel import GuardedChannel
from node.privacy.errors import LedgerFailed, NotCleared
from protocol import canonical, names
from protocol.frames.model import ModelChunk, ModelEnd, ModelRefused, ModelRequest
from protocol.framing import encode_frame

FILE = bytes(range(256)) * 4


class File:
    """A file in memory."""

    def __init__(self) -> None:
        self.closed = 0

    async def holds(self, offset: int, data: bytes) -> bool:
        return FILE[offset:offset + len(data)] == data

    def close(self) -> None:
        self.closed += 1


class Files:
    """A catalogue with one file."""

    def __init__(self) -> None:
        self.opened: list[File] = []

    async def open(self, digest: str) -> File | None:
        if digest != DIGEST:
            return None
        self.opened.append(File())
        return self.opened[-1]


class Blind(BlobCheck):
    """The negative control: a check that looks at nothing."""

    async def check(self, request_id: bytes, offset: int, data: bytes) -> None:
        return


async def serving(
    guard: GuardBench, files: Files | None, *, digest: str = DIGEST, asked: bool = True,
) -> tuple[GuardedChannel, MemoryStream]:
    stream = MemoryStream(PEER_B, names.MODEL)
    guard.egress._blobs = files
    channel = guard.egress.channel(stream)
    if asked:
        stream.push(encode_frame(canonical.encode(ModelRequest(ID, digest, 0))))
        await channel.receive(deadline_s=5)
    return channel, stream


async def test_bytes_of_the_file_pass_and_stand_in_the_ledger_as_one_entry() -> None:
    guard, files = await guard_bench(), Files()
    channel, stream = await serving(guard, files)
    for offset in (0, 300):
        await channel.send(ModelChunk(ID, offset, FILE[offset:offset + 300]))
    await channel.send(ModelEnd(ID, len(FILE)))
    await channel.finish()
    (row,) = await guard.ledger.newest(limit=9)
    assert (row.entry.purpose, row.entry.level, row.entry.peer_id) == ("model", ACCOUNTED_LEVEL, PEER_B)
    assert row.close is not None
    assert row.close.sent_bytes == sum(map(len, stream.written[:2])) + len(stream.written[2])
    assert row.close.outcome == "end"
    assert row.close.digest == hashlib.blake2b(b"".join(stream.written), digest_size=32).digest()
    assert guard.egress.traffic.of(PEER_B)["model"].frames == 2
    assert [file.closed for file in files.opened] == [1]


@pytest.mark.parametrize(("offset", "data"), [
    (0, b"my diary"), (1, FILE[:10]), (len(FILE) - 1, FILE[-1:] + b"x"), (len(FILE), b"x"),
])
async def test_other_bytes_never_leave(offset: int, data: bytes) -> None:
    guard = await guard_bench()
    channel, stream = await serving(guard, Files())
    with pytest.raises(NotCleared):
        await channel.send(ModelChunk(ID, offset, data))
    assert stream.written == [] and guard.rows.rows == []


async def test_negative_control_a_blind_check_lets_them_out() -> None:
    guard = await guard_bench()
    channel, stream = await serving(guard, Files())
    channel._blobs = Blind(Files())
    await channel.send(ModelChunk(ID, 0, b"my diary"))
    assert b"my diary" in stream.written[0]


async def test_nobody_asked() -> None:
    guard = await guard_bench()
    channel, stream = await serving(guard, Files(), asked=False)
    with pytest.raises(NotCleared):
        await channel.send(ModelChunk(ID, 0, FILE[:10]))
    channel, stream = await serving(guard, Files())
    with pytest.raises(NotCleared):
        await channel.send(ModelChunk(OTHER_ID, 0, FILE[:10]))
    assert stream.written == []


async def test_another_file_or_no_catalogue() -> None:
    for files, digest in ((Files(), "cd" * 32), (None, DIGEST)):
        guard = await guard_bench()
        channel, stream = await serving(guard, files, digest=digest)
        with pytest.raises(NotCleared):
            await channel.send(ModelChunk(ID, 0, FILE[:10]))
        assert stream.written == []


async def test_a_second_request_under_the_same_id_changes_nothing() -> None:
    guard, files = await guard_bench(), Files()
    channel, stream = await serving(guard, files, digest="cd" * 32)
    stream.push(encode_frame(canonical.encode(ModelRequest(ID, DIGEST, 0))))
    await channel.receive(deadline_s=5)
    with pytest.raises(NotCleared):
        await channel.send(ModelChunk(ID, 0, FILE[:10]))


async def test_a_ledger_that_fails_means_nothing() -> None:
    guard = await guard_bench()
    channel, stream = await serving(guard, Files())

    class Broken:
        async def open(self, *_):
            raise OSError

    channel._accounts = Broken()
    with pytest.raises(LedgerFailed):
        await channel.send(ModelChunk(ID, 0, FILE[:10]))
    assert stream.written == []


async def test_a_copy_that_is_refused_or_broken_off_closes_its_entry_and_file() -> None:
    for end, outcome in ((ModelRefused(ID, "revoked"), "refused"), (None, "broken")):
        guard, files = await guard_bench(), Files()
        channel, _ = await serving(guard, files)
        await channel.send(ModelChunk(ID, 0, FILE[:10]))
        if end is not None:
            await channel.send(end)
        await channel.reset()
        (row,) = await guard.ledger.newest(limit=9)
        assert row.close is not None
        assert row.close.outcome == outcome
        assert [file.closed for file in files.opened] == [1]
