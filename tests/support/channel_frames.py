"""Frames, clearances and streams that the tests of the guarded channel share."""

from frame_samples import ID, PEER_B
from guard_bench import GuardBench, MemoryStream, guard_bench

from node.privacy.egress import Part, PeerView
from node.privacy.labels import owner_text
from protocol.frames import inference

__all__ = ["FRIEND", "PEER", "RID", "VALUES", "bench", "cleared", "request", "stream_for"]


VALUES = [("Zdravka Korenjak", "PERSON"), ("+386 41 907 663", "PHONE")]
PEER = PeerView(PEER_B, "home-pc", "home")
FRIEND = PeerView(PEER_B, "dana", "friend")
RID = ID.hex()


async def bench(**more) -> GuardBench:
    return await guard_bench(VALUES, **more)


def stream_for(protocol: str, peer: str = PEER_B) -> MemoryStream:
    return MemoryStream(peer, protocol)


def request(*texts: str, **more) -> inference.InferRequest:
    parts = tuple(inference.Part("user", text) for text in texts)
    return inference.InferRequest(request_id=more.pop("request_id", ID), prompt=more.pop(
        "prompt", inference.PromptParts(parts)), max_tokens=8, deadline_s=5, **more)


async def cleared(guard: GuardBench, *texts: str, **more):
    more.setdefault("peer", PEER)
    more.setdefault("request_id", RID)
    return await guard.clear(*(Part("user", owner_text(text)) for text in texts), **more)
