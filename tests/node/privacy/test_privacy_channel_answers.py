"""The guarded channel counts control frames, accounts for answers that a peer asked for, and lets them be resumed."""

import hashlib

import msgspec
import pytest
import trio
from channel_frames import RID, bench, cleared, request, stream_for
from frame_samples import DIGEST, ID, PEER_B, SAMPLES
from guard_bench import GuardBench, MemoryStream

from node.privacy.channel import GuardedChannel, _strings
from node.privacy.errors import LedgerFailed, NotCleared
from protocol import canonical, names
from protocol.errors import LocalProtocolError
from protocol.frames import inference, link
from protocol.framing import encode_frame


def token(seq: int, text: str, ids: tuple[int, ...] = ()) -> inference.TokenFrame:
    return inference.TokenFrame(ID, seq, text, len(ids) or 1, ids, b"\0" * 16)


END = inference.End(ID, "stop", 2, b"\0" * 16, DIGEST)


# -- control and answers -------------------------------------------------------------------------------------------

@pytest.mark.parametrize(("protocol", "name"), [
    (protocol, name) for protocol, samples in SAMPLES.items() for name, frame in samples.items()
    if type(frame) in names.CONTROL and type(frame) is not inference.Accepted
])
async def test_every_control_frame_passes_and_is_counted(protocol: str, name: str) -> None:
    guard = await bench()
    stream = stream_for(protocol)
    await guard.egress.channel(stream).send(SAMPLES[protocol][name])
    [data] = stream.written
    assert guard.egress.traffic.of(PEER_B) == {"control": guard.egress.traffic.of(PEER_B)["control"]}
    assert guard.egress.traffic.of(PEER_B)["control"].frames == 1
    assert guard.egress.traffic.total_bytes() == len(data)
    assert guard.rows.rows == []


async def test_without_a_tap_everything_goes_on_as_before() -> None:
    guard = await bench()
    stream = stream_for(names.LINK)
    channel = GuardedChannel(
        stream, check=guard.egress.check_outgoing, accounts=guard.egress._accounts, traffic=guard.egress.traffic,
        observer=None,
    )
    await channel.send(link.Beat(1))
    assert len(stream.written) == 1


async def test_a_frame_of_another_protocol_is_a_bug() -> None:
    guard = await bench()
    stream = stream_for(names.LINK)
    with pytest.raises(LocalProtocolError):
        await guard.egress.channel(stream).send(END)
    assert stream.written == []


@pytest.mark.parametrize("frame", [token(0, "hi"), inference.Accepted(ID, DIGEST, 0),
                                   inference.ToolCallFrame(ID, 0, "clock_now", "{}")])
async def test_an_answer_to_a_request_that_nobody_made_is_stopped(frame) -> None:
    guard = await bench()
    stream = stream_for(names.INFER)
    with pytest.raises(NotCleared):
        await guard.egress.channel(stream).send(frame)
    assert stream.written == []
    assert guard.rows.rows == []


async def _serving(guard: GuardBench) -> tuple[GuardedChannel, MemoryStream]:
    stream = stream_for(names.INFER)
    channel = guard.egress.channel(stream)
    stream.push(encode_frame(canonical.encode(request("hi"))))
    await channel.receive(deadline_s=5)
    return channel, stream


async def test_an_answer_is_accounted_before_its_first_byte_and_closed_with_its_bytes() -> None:
    guard = await bench()
    channel, stream = await _serving(guard)
    await channel.send(inference.Accepted(ID, DIGEST, 0))
    assert len(guard.rows.rows) == 1
    await channel.send(token(0, "Zdravka Korenjak"))    # the peer's own words come back to it
    await channel.send(token(1, "!"))
    await channel.send(END)
    view = await guard.ledger.view(1)
    assert view is not None
    assert view.close is not None
    sent = stream.written[1:]       # Accepted is control
    assert (view.entry.level, view.entry.purpose, view.texts) == ("accounted", "answer", ())
    assert (view.close.sent_bytes, view.close.outcome) == (sum(map(len, sent)), "end")
    assert view.close.digest == hashlib.blake2b(b"".join(sent), digest_size=32).digest()
    assert guard.egress.traffic.of(PEER_B)["answer"].frames == 2


@pytest.mark.parametrize(("frame", "outcome"), [
    (inference.Refused(ID, "busy", None), "refused"), (inference.ErrorFrame(ID, "engine_failed"), "failed"),
])
async def test_other_ends_close_the_account(frame, outcome: str) -> None:
    guard = await bench()
    channel, _ = await _serving(guard)
    await channel.send(token(0, "hi"))
    await channel.send(frame)
    view = await guard.ledger.view(1)
    assert view is not None
    assert view.close is not None
    assert view.close.outcome == outcome


@pytest.mark.parametrize("end", ["finish", "reset"])
async def test_a_broken_off_answer_is_closed_as_broken(end: str) -> None:
    guard = await bench()
    channel, _ = await _serving(guard)
    await channel.send(token(0, "hi"))
    await getattr(channel, end)()
    await getattr(channel, end)()
    view = await guard.ledger.view(1)
    assert view is not None
    assert view.close is not None
    assert view.close.outcome == "broken"


async def test_an_answer_that_cannot_be_accounted_is_stopped() -> None:
    guard = await bench()
    channel, stream = await _serving(guard)

    def full():
        raise OSError("disk full")

    guard.rows.before_append = full
    with pytest.raises(LedgerFailed):
        await channel.send(token(0, "hi"))
    assert stream.written == []


async def test_an_account_that_cannot_be_closed_does_not_break_the_peer(caplog) -> None:
    guard = await bench()
    channel, stream = await _serving(guard)
    await channel.send(token(0, "hi"))

    async def full(*_):
        raise OSError("disk full")

    guard.rows.close = full
    await channel.send(END)
    await channel.reset()
    assert len(stream.written) == 2
    assert "could not be closed" in caplog.text


async def test_two_answer_frames_at_once_share_one_account() -> None:
    guard = await bench()
    channel, _ = await _serving(guard)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(channel.send, token(0, "a"))
        nursery.start_soon(channel.send, token(1, "b"))
    assert len(guard.rows.rows) == 1


async def test_only_so_many_requests_of_one_stream_are_served() -> None:
    guard = await bench()
    stream = stream_for(names.INFER)
    channel = guard.egress.channel(stream)
    for number in range(66):
        stream.push(encode_frame(canonical.encode(request("hi", request_id=number.to_bytes(16, "big")))))
        await channel.receive(deadline_s=5)
    last = inference.TokenFrame((65).to_bytes(16, "big"), 0, "a", 1, (), b"\0" * 16)
    with pytest.raises(NotCleared):
        await channel.send(last)


# -- resuming ------------------------------------------------------------------------------------------------------

async def test_what_the_peer_said_may_go_back_to_it() -> None:
    guard = await bench()
    stream = stream_for(names.INFER)
    channel = guard.egress.channel(stream)
    clearance = await cleared(guard, "hello")
    await channel.send_cleared(request("hello"), clearance)
    for frame in (token(0, "Dear ", (1,)), token(1, "Zdravka Korenjak", (2,))):      # its own invention
        stream.push(encode_frame(canonical.encode(frame)))
        await channel.receive(deadline_s=5)
    again = stream_for(names.INFER)
    resumed = guard.egress.channel(again)
    with pytest.raises(NotCleared):
        await resumed.send_cleared(request("hello", text_so_far="Dear me", resume_cursor=1), clearance)
    await resumed.send_cleared(request(
        "hello", text_so_far="Dear Zdravka Korenjak", token_ids_so_far=(1, 2), resume_cursor=2, model_digest=DIGEST,
    ), clearance)
    assert len(again.written) == 1
    # what came after the point of resuming was dropped, and is not accepted any more
    await resumed.send_cleared(request("hello", text_so_far="Dear ", resume_cursor=1), clearance)
    with pytest.raises(NotCleared):
        await resumed.send_cleared(request("hello", text_so_far="Dear Z", resume_cursor=1), clearance)


async def test_an_answer_begun_elsewhere_goes_on_with_a_clearance_for_it() -> None:
    guard = await bench()
    stream = stream_for(names.INFER)
    clearance = await cleared(guard, "hello", "Dear [PERSON_1]")
    await guard.egress.channel(stream).send_cleared(
        request("hello", text_so_far="Dear [PERSON_1]", resume_cursor=1), clearance,
    )
    assert len(stream.written) == 1


def test_every_string_is_read_wherever_it_stands() -> None:
    data = encode_frame(msgspec.msgpack.encode([1, "a", {"b": ["c", None]}, b"d"]))
    assert sorted(_strings(data)) == ["a", "b", "c"]


async def test_an_account_is_closed_once() -> None:
    guard = await bench()
    account = await guard.egress._accounts.open(PEER_B, RID)
    await account.close("end")
    await account.close("broken")
    view = await guard.ledger.view(1)
    assert view is not None
    assert view.close is not None
    assert view.close.outcome == "end"


async def test_only_so_much_of_an_answer_is_remembered() -> None:
    guard = await bench()
    clearance = await cleared(guard, "hello")
    for _ in range(140):
        clearance.hear("x" * 1024, tuple(range(1024)))
    assert clearance.has_heard("x" * 131_072, ())
    assert not clearance.has_heard("x" * 131_073, ())


async def test_tokens_of_nobodys_request_are_received_and_forgotten() -> None:
    guard = await bench()
    stream = stream_for(names.INFER)
    channel = guard.egress.channel(stream)
    stream.push(encode_frame(canonical.encode(token(0, "hi"))))
    assert await channel.receive(deadline_s=5) == token(0, "hi")
