"""The guarded channel: what passes, what is stopped, and that stopped means not one byte."""

import hashlib

import msgspec
import pytest
import trio
from frame_samples import DIGEST, ID, OTHER_ID, PEER_A, PEER_B, SAMPLES
from guard_bench import BlindInspector, GuardBench, MemoryStream, guard_bench, memory_streams

from node.privacy.channel import GuardedChannel, _strings
from node.privacy.egress import Part, PeerView, Purpose
from node.privacy.errors import GuardFailed, HoldsPersonal, HoldsSecret, LedgerFailed, NotCleared
from node.privacy.inspector import Inspector
from node.privacy.labels import Confidentiality, Integrity, Labeled, owner_text, public_text
from node.privacy.nets import SecretsNet, VaultNet
from protocol import canonical, names
from protocol.channel import Clearance
from protocol.errors import ChannelClosed, ChannelLost, DeadlinePassed, LocalProtocolError, RemoteProtocolError
from protocol.frames import inference, link, mail, query
from protocol.framing import encode_frame

VALUES = [("Zdravka Korenjak", "PERSON"), ("+386 41 907 663", "PHONE")]
PEER = PeerView(PEER_B, "home-pc", "home")
FRIEND = PeerView(PEER_B, "dana", "friend")
RID = ID.hex()
QUESTION = "What suits Zdravka Korenjak?"


async def bench(**more) -> GuardBench:
    return await guard_bench(VALUES, **more)


def stream_for(protocol: str, peer: str = PEER_B) -> MemoryStream:
    return MemoryStream(peer, protocol)


def request(*texts: str, **more) -> inference.InferRequest:
    parts = tuple(inference.Part("user", text) for text in texts)
    return inference.InferRequest(request_id=more.pop("request_id", ID), prompt=more.pop(
        "prompt", inference.PromptParts(parts)), max_tokens=8, deadline_s=5, **more)


def token(seq: int, text: str, ids: tuple[int, ...] = ()) -> inference.TokenFrame:
    return inference.TokenFrame(ID, seq, text, len(ids) or 1, ids, b"\0" * 16)


END = inference.End(ID, "stop", 2, b"\0" * 16, DIGEST)


async def cleared(guard: GuardBench, *texts: str, **more):
    more.setdefault("peer", PEER)
    more.setdefault("request_id", RID)
    return await guard.clear(*(Part("user", owner_text(text)) for text in texts), **more)


# -- content -------------------------------------------------------------------------------------------------------

async def test_a_cleared_request_passes_masked_and_its_bytes_are_in_the_ledger() -> None:
    guard = await bench()
    stream = stream_for(names.INFER)
    channel = guard.egress.channel(stream)
    clearance = await cleared(guard, QUESTION)
    await channel.send_cleared(request(*clearance.texts), clearance)
    await clearance.close("end")
    [data] = stream.written
    assert b"Zdravka" not in data
    assert b"[PERSON_1]" in data
    assert guard.tapped == [(PEER_B, names.INFER, data)]
    assert guard.egress.traffic.of(PEER_B)["infer"].bytes == len(data) == guard.egress.traffic.total_bytes()
    view = await guard.ledger.view(clearance.entry)
    assert view is not None
    assert view.close is not None
    assert view.close.sent_bytes == len(data) == clearance.sent_bytes
    assert view.close.digest == hashlib.blake2b(data, digest_size=32).digest()


async def test_the_entry_is_durable_before_the_first_byte() -> None:
    guard = await bench()
    seen = []

    class Watching(MemoryStream):
        async def write(self, data: bytes) -> None:
            seen.append(len(guard.rows.rows))
            await super().write(data)

    clearance = await cleared(guard, "hello")
    await guard.egress.channel(Watching(PEER_B, names.INFER)).send_cleared(request("hello"), clearance)
    assert seen == [1]


CONTENT = [
    (names.INFER, SAMPLES[names.INFER]["request_bare"]), (names.QUERY, query.Query(ID, "sourdough", 3)),
    (names.QUERY, query.Answer(ID, (query.Passage(OTHER_ID, "t", "text", "notes"),))),
    (names.MAIL, mail.Mail(1, ID, "chat.msg", "hi", 5)),
]


@pytest.mark.parametrize(("protocol", "frame"), CONTENT)
async def test_content_without_a_clearance_is_stopped(protocol: str, frame) -> None:
    guard = await bench()
    stream = stream_for(protocol)
    with pytest.raises(NotCleared):
        await guard.egress.channel(stream).send(frame)
    assert stream.written == []


class Forged:
    """Looks like a clearance, was never given."""

    def __init__(self, *texts: str) -> None:
        self.texts = texts


async def test_a_forged_clearance_is_stopped() -> None:
    guard = await bench()
    stream = stream_for(names.INFER)
    assert isinstance(Forged("hello"), Clearance)
    with pytest.raises(NotCleared):
        await guard.egress.channel(stream).send_cleared(request("hello"), Forged("hello"))
    assert stream.written == []


async def test_a_clearance_of_another_guard_is_stopped() -> None:
    guard, other = await bench(), await bench()
    stream = stream_for(names.INFER)
    clearance = await cleared(other, "hello")
    with pytest.raises(NotCleared):
        await guard.egress.channel(stream).send_cleared(request("hello"), clearance)
    assert stream.written == []


@pytest.mark.parametrize("frame", [
    request("hello", "and more"), request("hello!"), request("hello", stop=("unseen",)),
    request("hello", text_so_far="made up", resume_cursor=1), request("hello", request_id=OTHER_ID),
    request("hello", tools=(inference.ToolOffer("t", "unseen words", "{}"),)),
    request(prompt=inference.PromptTokens((1, 2)), model_digest=DIGEST),
    request("hello", token_ids_so_far=(1, 2), model_digest=DIGEST, resume_cursor=2),
])
async def test_whatever_the_clearance_does_not_cover_is_stopped(frame) -> None:
    guard = await bench()
    stream = stream_for(names.INFER)
    clearance = await cleared(guard, "hello")
    with pytest.raises(NotCleared):
        await guard.egress.channel(stream).send_cleared(frame, clearance)
    assert stream.written == []
    assert clearance.sent_bytes == 0


async def test_another_peer_or_purpose_or_a_closed_clearance_is_stopped() -> None:
    guard = await bench()
    clearance = await cleared(guard, "hello")
    other = stream_for(names.INFER, PEER_A)
    with pytest.raises(NotCleared):
        await guard.egress.channel(other).send_cleared(request("hello"), clearance)
    mailbox = stream_for(names.MAIL)
    with pytest.raises(NotCleared):
        await guard.egress.channel(mailbox).send_cleared(mail.Mail(1, ID, "chat.msg", "hello", 5), clearance)
    beat = stream_for(names.LINK)
    with pytest.raises(NotCleared):
        await guard.egress.channel(beat).send_cleared(link.Beat(1), clearance)
    await clearance.close("end")
    late = stream_for(names.INFER)
    with pytest.raises(NotCleared):
        await guard.egress.channel(late).send_cleared(request("hello"), clearance)
    assert other.written == mailbox.written == beat.written == late.written == []


async def test_every_text_kind_of_a_request_can_be_cleared() -> None:
    guard = await bench()
    stream = stream_for(names.INFER)
    clearance = await guard.clear(
        Part("user", owner_text("hello")), Part("stop", public_text("\n\n", source="prompt")),
        Part("tools", public_text("Finds time.", source="tools")), Part("tools", public_text("{}", source="tools")),
        peer=PEER, request_id=RID,
    )
    frame = request("hello", stop=("\n\n",), tools=(inference.ToolOffer("calendar_free", "Finds time.", "{}"),))
    await guard.egress.channel(stream).send_cleared(frame, clearance)
    assert len(stream.written) == 1


# -- the last look at the final bytes ------------------------------------------------------------------------------

class LateInspector(Inspector):
    """Blind until it is told to see: what clear() missed must be caught in the final bytes."""

    def __init__(self, vault, secrets) -> None:
        super().__init__(vault=vault, secrets=secrets, detectors=None)
        self.blind = BlindInspector()
        self.sees = False

    async def inspect(self, parts, returned, *, guess=True):
        return await (super() if self.sees else self.blind).inspect(parts, returned)

    async def find_secrets(self, texts, returned):
        return await (super() if self.sees else self.blind).find_secrets(texts, returned)

    async def find_personal(self, texts, returned):
        return await (super() if self.sees else self.blind).find_personal(texts, returned)


async def _late() -> tuple[GuardBench, LateInspector]:
    vault = VaultNet()
    await vault.load(VALUES)
    late = LateInspector(vault, SecretsNet())
    return await bench(inspector=late), late


@pytest.mark.parametrize(("text", "error"), [
    (QUESTION, HoldsPersonal), ("my pin is 4921", HoldsSecret), ("call 041 907 663", HoldsPersonal),
])
@pytest.mark.parametrize("sees", [True, False])
async def test_final_bytes_are_looked_at_again(text: str, error, sees: bool) -> None:
    guard, late = await _late()
    stream = stream_for(names.INFER)
    clearance = await cleared(guard, text)
    late.sees = sees
    channel = guard.egress.channel(stream)
    if sees:
        with pytest.raises(error):
            await channel.send_cleared(request(text), clearance)
        assert stream.written == []
    else:       # the negative control: without the last look it leaves
        await channel.send_cleared(request(text), clearance)
        assert text.encode() in stream.written[0]


async def test_a_tool_name_is_looked_at_too() -> None:
    guard = await bench()
    stream = stream_for(names.INFER)
    clearance = await guard.clear(
        Part("user", owner_text("hello")), Part("tools", public_text("Calls.", source="t")), peer=PEER, request_id=RID,
    )
    frame = request("hello", tools=(inference.ToolOffer("call_zdravka_korenjak", "Calls.", "Calls."),))
    with pytest.raises(HoldsPersonal):
        await guard.egress.channel(stream).send_cleared(frame, clearance)
    assert stream.written == []


async def test_mail_in_clear_keeps_personal_values_and_no_secret() -> None:
    guard, late = await _late()
    stream = stream_for(names.MAIL)
    channel = guard.egress.channel(stream)
    for body, passes in ((f"{QUESTION} :)", True), ("my pin is 4921", False)):
        late.sees = False
        clearance = await cleared(guard, body, purpose=Purpose.MAIL, peer=FRIEND)
        late.sees = True
        frame = mail.Mail(1, ID, "chat.msg", body, 5)
        if passes:
            await channel.send_cleared(frame, clearance)
        else:
            with pytest.raises(HoldsSecret):
                await channel.send_cleared(frame, clearance)
    assert len(stream.written) == 1


async def test_a_last_look_that_hangs_or_fails_means_nothing(autojump_clock) -> None:
    guard = await bench()
    clearance = await cleared(guard, "hello")

    async def hangs(*_):
        await trio.sleep_forever()

    async def raises(*_):
        raise GuardFailed("net")

    for check in (hangs, raises):
        stream = stream_for(names.INFER)
        channel = GuardedChannel(
            stream, check=check, accounts=guard.egress._accounts, traffic=guard.egress.traffic, observer=None,
        )
        with pytest.raises(GuardFailed):
            await channel.send_cleared(request("hello"), clearance)
        assert stream.written == []


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


# -- receiving -----------------------------------------------------------------------------------------------------

async def test_frames_arrive_whole_however_they_are_cut() -> None:
    guard = await bench()
    near, far = memory_streams(names.LINK, near_peer=PEER_B, far_peer=PEER_A)
    channel = guard.egress.channel(near)
    assert (channel.peer_id, channel.protocol) == (PEER_B, names.LINK)
    data = b"".join(encode_frame(canonical.encode(link.Beat(n))) for n in range(3))
    for at in range(0, len(data), 2):
        await far.write(data[at : at + 2])
    await far.close_write()
    assert [await channel.receive(deadline_s=5) for _ in range(3)] == [link.Beat(n) for n in range(3)]
    with pytest.raises(ChannelClosed):
        await channel.receive(deadline_s=5)


async def test_an_end_in_the_middle_of_a_frame_is_a_loss() -> None:
    guard = await bench()
    near, far = memory_streams(names.LINK, near_peer=PEER_B, far_peer=PEER_A)
    await far.write(encode_frame(canonical.encode(link.Beat(1)))[:-1])
    await far.close_write()
    with pytest.raises(ChannelLost):
        await guard.egress.channel(near).receive(deadline_s=5)


async def test_silence_ends_at_the_deadline_even_when_bytes_trickle(autojump_clock) -> None:
    guard = await bench()
    near, far = memory_streams(names.LINK, near_peer=PEER_B, far_peer=PEER_A)
    channel = guard.egress.channel(near)

    async def trickle() -> None:
        for byte in encode_frame(b"x" * 60):
            await trio.sleep(1)
            await far.write(bytes([byte]))

    async with trio.open_nursery() as nursery:
        nursery.start_soon(trickle)
        start = trio.current_time()
        with pytest.raises(DeadlinePassed):
            await channel.receive(deadline_s=5)
        assert trio.current_time() - start == pytest.approx(5)
        nursery.cancel_scope.cancel()


@pytest.mark.parametrize("data", [
    b"\x7f\xff\xff\xff", b"\0\0\0\0", encode_frame(b"\xc1"), encode_frame(b"\x93\x09\x01\x02"),
    encode_frame(canonical.encode(link.Beat(1)) + b"\0"),
])
async def test_bytes_that_break_the_rules_reset_the_stream(data: bytes) -> None:
    guard = await bench()
    near, far = memory_streams(names.LINK, near_peer=PEER_B, far_peer=PEER_A)
    await far.write(data)
    with pytest.raises(RemoteProtocolError):
        await guard.egress.channel(near).receive(deadline_s=5)
    assert near.was_reset


async def test_a_write_that_fails_is_counted_as_perhaps_sent() -> None:
    guard = await bench()
    stream = stream_for(names.INFER)
    stream.fail_write = ChannelLost()
    clearance = await cleared(guard, "hello")
    with pytest.raises(ChannelLost):
        await guard.egress.channel(stream).send_cleared(request("hello"), clearance)
    assert clearance.sent_bytes > 0


async def test_a_labelled_answer_needs_a_share_to_be_cleared() -> None:
    class Shares:
        async def covers(self, source: str, peer_id: str) -> bool:
            return source == "share:notes"

    guard = await bench(shares=Shares())
    parts = [Part(role, Labeled(text, Confidentiality.PUBLIC, Integrity.LOCAL, "share:notes"))
             for role, text in (("title", "Soup"), ("passage", "Zdravka's soup"), ("folder", "notes"))]
    clearance = await guard.clear(*parts, purpose=Purpose.ANSWER, peer=FRIEND, request_id=RID)
    stream = stream_for(names.QUERY)
    frame = query.Answer(ID, (query.Passage(OTHER_ID, "Soup", "Zdravka's soup", "notes"),))
    await guard.egress.channel(stream).send_cleared(frame, clearance)
    assert len(stream.written) == 1
