"""Sends labelled values through the guard in several turns, styles and kinds of request, and looks for them in bytes.

The judge is the canary scanner of the tests, which knows nothing of the guard. Must not know how it is reported.
"""

from canary import Canary
from guard_bench import HOME, BlindInspector, GuardBench, MemoryStream, guard_bench

from benchmarks.privacy_prompts import make_people
from node.privacy.egress import Part, PeerView, Purpose
from node.privacy.errors import EgressDenied
from node.privacy.labels import Confidentiality, Integrity, Labeled, Value, owner_text, public_text
from protocol import names
from protocol.frames import inference, mail, query

__all__ = ["SMALL", "labelled_leaks"]

PEOPLE = make_people(6, 99)
VALUES = tuple(value for one in PEOPLE for value in (
    Value(one.name, "PERSON"), Value(one.email, "EMAIL"), Value(one.phone, "PHONE"), Value(one.address, "ADDRESS")))
CALENDAR = "\n".join(f"{9 + at}:00 {one.name}, {one.address}" for at, one in enumerate(PEOPLE))
CONTACTS = "\n".join(f"{one.name}: {one.phone}, {one.email}" for one in PEOPLE)
SMALL = PeerView("12D3KooWSmall", "tablet", "self", style="surrogates")


async def labelled_leaks() -> tuple[int, int, int]:
    """(values found on the wire, the same with a blind guard, frames sent by the real one)."""
    frames = await _send_all(await guard_bench())
    blind = await _send_all(await guard_bench(inspector=BlindInspector()))
    return len(_found(frames)), len(_found(blind)), len(frames)


def _found(frames: list[bytes]) -> set[str]:
    judge = Canary([value.text for value in VALUES])
    return {find.value for find in judge.scan(frames)}


async def _send_all(guard: GuardBench) -> list[bytes]:
    tools = [
        Labeled(text, Confidentiality.PERSONAL, Integrity.LOCAL, source, tuple(v for v in VALUES if v.text in text))
        for source, text in (("calendar", CALENDAR), ("contacts", CONTACTS), ("notes", PEOPLE[0].address))
    ]
    sent: list[bytes] = []
    for peer in (HOME, SMALL):
        answer = ""
        for turn, said in enumerate(("Who is first?", PEOPLE[1].name.upper(), f"And {PEOPLE[2].name.split()[1]}?")):
            parts = [Part("system", public_text("Be brief.", source="kith")), *(Part("tool", one) for one in tools),
                     Part("user", owner_text(said))]
            if answer:      # the filled-in answer goes back into the next turn
                said_before = Labeled(answer, Confidentiality.PERSONAL, Integrity.UNTRUSTED, "model", ())
                parts.append(Part("assistant", said_before))
            request_id = bytes([turn]) * 16
            clearance = await guard.clear(*parts, peer=peer, conversation=peer.name, request_id=request_id.hex())
            stream = MemoryStream(peer.peer_id, names.INFER)
            prompt = inference.PromptParts(tuple(
                inference.Part(part.role, text) for part, text in zip(parts, clearance.texts, strict=True)))
            await guard.egress.channel(stream).send_cleared(
                inference.InferRequest(request_id=request_id, prompt=prompt, max_tokens=8, deadline_s=5), clearance)
            answer = clearance.restore(" ".join(clearance.placeholders.tokens))
            sent += stream.written
        await _try_query_and_mail(guard, peer, sent)
    return sent


async def _try_query_and_mail(guard: GuardBench, peer: PeerView, sent: list[bytes]) -> None:
    """A search and a message that an agent composed of what it read: a guard that works refuses both."""
    composed = Labeled(f"when does {PEOPLE[3].name} come", Confidentiality.PUBLIC, Integrity.LOCAL, "agent")
    rid = b"\x77" * 16
    for purpose, protocol in ((Purpose.QUERY, names.QUERY), (Purpose.MAIL, names.MAIL)):
        stream = MemoryStream(peer.peer_id, protocol)
        try:
            clearance = await guard.clear(
                Part("query", composed), peer=peer, purpose=purpose, conversation=peer.name, request_id=rid.hex())
            text = clearance.texts[0]
            frame = query.Query(rid, text, 3) if purpose is Purpose.QUERY else mail.Mail(1, rid, "chat.msg", text, 5)
            await guard.egress.channel(stream).send_cleared(frame, clearance)
        except EgressDenied:
            continue
        sent += stream.written
