"""Both sides account for the same bytes: what left here is what the peer signed for, and every difference shows."""

import msgspec
import trio
from guard_bench import Owner
from receipt_pair import Pair, receipt_pair

from node.privacy.channel import GuardedChannel
from node.privacy.egress import Part, PeerView, Purpose
from node.privacy.labels import owner_text
from node.privacy.ledger_records import Standing
from protocol import names
from protocol.canonical import decode, encode
from protocol.frames.inference import InferRequest
from protocol.frames.mail import Mail
from protocol.frames.query import Query, QueryEnd
from protocol.frames.receipt import Receipt
from protocol.framing import encode_frame

ID, OTHER = bytes(range(16)), bytes(range(16, 32))


async def standings(pair: Pair) -> tuple[list[Standing], list[Standing]]:
    """(phone's entries, home's entries), newest first."""
    return (
        [view.standing for view in await pair.phone.ledger.newest(limit=9)],
        [view.standing for view in await pair.home.ledger.newest(limit=9)],
    )


async def test_a_request_and_its_answer_are_signed_for_by_their_receivers(autojump_clock) -> None:
    async with receipt_pair() as pair:
        await pair.infer(ID)
        assert await standings(pair) == ([Standing.UNRECEIPTED], [Standing.UNRECEIPTED])    # nobody waited for one
        await pair.settle()
        assert await standings(pair) == ([Standing.RECEIPTED], [Standing.RECEIPTED])
        sent = await pair.phone.ledger.view(1)
        assert sent is not None
        assert sent.close is not None
        assert sent.bodies is not None
        # the receipt is for exactly the bytes that are kept, and those decode to the request
        assert sent.receipts[0].size_bytes == len(sent.bodies[0]) == sent.close.sent_bytes
        request = decode(sent.bodies[0][4:], names.FRAMES[names.INFER])
        assert isinstance(request, InferRequest)
        assert request.request_id == ID
        for side in (pair.phone, pair.home):
            report = await side.ledger.verify()
            assert (report.ok, report.standings) == (True, {Standing.RECEIPTED: 1})


async def test_what_arrives_altered_shows_as_a_mismatch(autojump_clock) -> None:
    async with receipt_pair() as pair:
        pair.alter = lambda data: data.replace(b"salt", b"gold")
        await pair.infer(ID)
        await pair.settle()
        report = await pair.phone.ledger.verify()
        assert report.problems == ()
        assert report.disputes == ("entry 1: the peer signed for other bytes than those that left",)
        assert not report.ok
        assert (await standings(pair))[0] == [Standing.MISMATCH]


async def test_a_peer_that_never_signs_is_visible_and_delays_nothing(autojump_clock) -> None:
    async with receipt_pair(deaf=True) as pair:
        began = trio.current_time()
        await pair.infer(ID)
        assert trio.current_time() - began < 0.01
        await trio.sleep(3600)
        assert (await standings(pair))[0] == [Standing.UNRECEIPTED]
        report = await pair.phone.ledger.verify()
        assert (report.ok, report.standings) == (True, {Standing.UNRECEIPTED: 1})


async def test_receipts_wait_while_the_peer_is_away(autojump_clock) -> None:
    async with receipt_pair() as pair:
        pair.home.online = False
        await pair.infer(ID)
        await pair.settle()
        assert await standings(pair) == ([Standing.UNRECEIPTED], [Standing.UNRECEIPTED])
        pair.home.online = True
        pair.home.desk.peer_up(pair.phone.peer_id)
        pair.phone.desk.peer_up(pair.home.peer_id)
        await pair.settle()
        assert await standings(pair) == ([Standing.RECEIPTED], [Standing.RECEIPTED])


async def test_lost_receipts_can_be_asked_for(autojump_clock) -> None:
    async with receipt_pair() as pair:
        await pair.infer(ID)
        await pair.settle()
        await pair.phone.database.write(lambda tx: tx.execute("DELETE FROM receipts"))
        assert (await standings(pair))[0] == [Standing.UNRECEIPTED]
        asked = await pair.phone.desk.ask(pair.home.peer_id)
        assert (asked.asked, asked.new) == (1, 1)
        assert (await standings(pair))[0] == [Standing.RECEIPTED]
        assert (await pair.phone.desk.ask(pair.home.peer_id)).asked == 0


async def test_many_requests_share_streams(autojump_clock) -> None:
    async with receipt_pair() as pair:
        for number in range(100):
            await pair.infer(bytes([number]) * 16, words=1)
        await pair.settle()
        await pair.settle()
        report = await pair.phone.ledger.verify()
        assert report.standings == {Standing.RECEIPTED: 100}
        assert len(pair.home.opened) <= 8       # 64 on a stream, and no stream per request


async def test_a_message_sent_twice_is_one_piece(autojump_clock) -> None:
    async with receipt_pair() as pair:
        clearance = await pair.phone.egress.clear(
            peer=PeerView(pair.home.peer_id, "home", "home"), purpose=Purpose.MAIL, conversation="",
            request_id=ID.hex(), parts=(Part("mail", owner_text("see you at six")),), ask=Owner(),
        )
        frame = Mail(1, ID, "chat.msg", "see you at six", 5)
        for _ in range(2):      # the stream broke, the message goes out again
            near, far = pair.channels(names.MAIL)
            await near.send_cleared(frame, clearance)
            assert await far.receive(deadline_s=5) == frame
        await pair.phone.database.write(clearance.closing("delivered"))
        await pair.settle()
        view = (await pair.phone.ledger.newest(limit=1))[0]
        assert view.close is not None
        assert view.close.sent_bytes == 2 * len(encode_frame(encode(frame)))
        assert len(view.close.stretches) == len(view.receipts) == 1
        assert view.standing is Standing.RECEIPTED


async def test_a_question_without_passages_owes_no_answer(autojump_clock) -> None:
    async with receipt_pair() as pair:
        clearance = await pair.phone.egress.clear(
            peer=PeerView(pair.home.peer_id, "home", "home"), purpose=Purpose.QUERY, conversation="",
            request_id=ID.hex(), parts=(Part("query", owner_text("sourdough")),), ask=Owner(),
        )
        near, far = pair.channels(names.QUERY)
        await near.send_cleared(Query(ID, "sourdough", 3), clearance)
        await far.receive(deadline_s=5)
        await far.send(QueryEnd(ID, 0))
        await near.receive(deadline_s=5)
        await clearance.close("answered")
        await pair.settle()
        assert await standings(pair) == ([Standing.RECEIPTED], [])


async def hand_in(pair: Pair, *receipts: msgspec.Struct) -> None:
    """The home node says these things to the phone's desk."""
    channel: GuardedChannel = await pair.home.desk._open_channel(pair.phone.peer_id)
    for receipt in receipts:
        await channel.send(receipt)
    await channel.finish()
    await pair.settle()


async def test_forged_and_foreign_receipts_are_not_kept(autojump_clock) -> None:
    async with receipt_pair(deaf=True) as pair:
        await pair.infer(ID)
        forged = Receipt(ID, "infer", 10, b"d" * 32, bytes(64))
        await hand_in(pair, forged, Receipt(OTHER, "infer", 10, b"d" * 32, bytes(64)))
        assert (await pair.phone.ledger.newest(limit=1))[0].receipts == ()
        # one that got into the database all the same is found by verify
        await pair.phone.database.write(
            lambda tx: tx.execute("INSERT INTO receipts VALUES (1, ?, 10, ?, 5)", (b"d" * 32, bytes(64))))
        assert (await pair.phone.ledger.verify()).problems == ("entry 1: a receipt is not the peer's",)


async def test_a_peer_can_not_fill_the_database_with_receipts(autojump_clock) -> None:
    async with receipt_pair(deaf=True) as pair:
        await pair.infer(ID)
        from protocol.receipts import Received, countersign
        many = [
            countersign(
                Received(sender=pair.phone.peer_id, receiver=pair.home.peer_id, request_id=ID, purpose="infer",
                         size_bytes=number + 1, digest=bytes([number]) * 32),
                pair.home.desk._sign,
            )
            for number in range(60)
        ]
        await hand_in(pair, *many)
        assert len((await pair.phone.ledger.newest(limit=1))[0].receipts) == 8


async def test_too_many_arrivals_are_overlooked_and_never_wait(autojump_clock) -> None:
    async with receipt_pair() as pair:
        from node.privacy.arrivals import Arrived
        for number in range(3000):
            pair.home.desk.note(Arrived(pair.phone.peer_id, "mail", number.to_bytes(16, "big"), 5, b"d" * 32))
        assert pair.home.desk.overlooked >= 3000 - 1024 - 1
