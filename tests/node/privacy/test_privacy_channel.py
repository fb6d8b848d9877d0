"""The guarded channel lets content pass with a clearance that covers it, and looks at the final bytes once more."""

import hashlib

import pytest
import trio
from channel_frames import FRIEND, PEER, RID, VALUES, bench, cleared, request, stream_for
from frame_samples import DIGEST, ID, OTHER_ID, PEER_A, PEER_B, SAMPLES
from guard_bench import BlindInspector, GuardBench, MemoryStream

from node.privacy.channel import GuardedChannel
from node.privacy.egress import Part, Purpose
from node.privacy.errors import GuardFailed, HoldsPersonal, HoldsSecret, NotCleared
from node.privacy.inspector import Inspector
from node.privacy.labels import owner_text, public_text
from node.privacy.nets import SecretsNet, VaultNet
from protocol import names
from protocol.channel import Clearance
from protocol.frames import inference, link, mail, query

QUESTION = "What suits Zdravka Korenjak?"


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
