"""Computes answers for peers: any number of requests at once, ended together when a grant is taken back or narrowed, or
when the node stops.

Must not know how streams are made, how a grant was issued, or how one request is answered.
"""

import logging
from collections.abc import Callable

import trio

from offload.claim import GrantBook, Hindrance
from offload.ports import Engine
from offload.quota import QuotaBook
from offload.served_request import ServedRequest
from protocol.channel import FrameChannel
from protocol.errors import ChannelError, RemoteProtocolError

__all__ = ["InferenceServer"]

log = logging.getLogger(__name__)

CUT_S = 0.5


class InferenceServer:
    """Serves /kith/infer/1. One call of serve() per stream."""

    def __init__(
        self, engine: Engine, grants: GrantBook, quota: QuotaBook,
        on_refusal: Callable[[str, str, int | None], None] = lambda peer_id, code, limit: None,
    ) -> None:
        """on_refusal(peer_id, code, limit): a request was refused or broken off, for the owner to read."""
        self._engine = engine
        self._grants = grants
        self._quota = quota
        self._on_refusal = on_refusal
        self._requests: set[ServedRequest] = set()
        self._one_ended = trio.Event()
        self._closing = False
        self._served = 0
        self.active = 0

    async def serve(self, channel: FrameChannel) -> None:
        """Answer the one request of this stream. Never raises for what the peer does."""
        self.active += 1
        self._served += 1
        request = ServedRequest(
            channel, self._engine, self._grants, self._quota, self._on_refusal, n=self._served, closing=self._closing)
        self._requests.add(request)
        try:
            await request.run()
        except* (ChannelError, RemoteProtocolError) as errors:
            log.info("a request of %s ended: %s", channel.peer_id, errors.exceptions[0])
            await channel.reset()
        finally:
            self.active -= 1
            request.over.set()
            self._requests.discard(request)
            self._one_ended.set()
            self._one_ended = trio.Event()

    async def cut(self, peer_id: str) -> None:
        """End every answer for this peer at once: the engine stops, the peer is told "revoked". Within CUT_S, however
        slowly it reads; the caller drops its connection afterwards.
        """
        await self._break_off([one for one in self._requests if one.peer_id == peer_id], Hindrance("revoked"))

    async def review(self, peer_id: str) -> None:
        """The grant of this peer was narrowed: end those answers, within CUT_S, that it does not cover any more, and of
        more than it allows at once the newest ones.
        """
        grant = self._grants.grant_for(peer_id)
        running = sorted((one for one in self._requests if one.peer_id == peer_id and one.begun), key=lambda one: one.n)
        over = running[grant.max_concurrency:] if grant is not None else []
        ends = {one: one.hindrance() for one in running}
        ends |= {one: Hindrance("narrowed", grant.max_concurrency) for one in over if grant and ends[one] is None}
        with trio.move_on_after(CUT_S):
            async with trio.open_nursery() as nursery:
                for request, why in ends.items():
                    if why is not None:
                        nursery.start_soon(request.break_off, why)

    async def drain(self, timeout_s: float) -> int:
        """Refuse what comes from now on with shutting_down and let running answers end, for timeout_s at most.

        How many had to be broken off comes back; their peers are told, and go on elsewhere.
        """
        self._closing = True
        for request in self._requests:
            request.closing = True  # one whose request has not been read yet is refused too
        with trio.move_on_after(timeout_s):
            while any(request.begun for request in self._requests):
                await self._one_ended.wait()
        left = sum(request.begun for request in self._requests)
        await self._break_off(list(self._requests), Hindrance("shutting_down"))
        return left

    async def _break_off(self, requests: list[ServedRequest], why: Hindrance) -> None:
        with trio.move_on_after(CUT_S):
            async with trio.open_nursery() as nursery:
                for request in requests:
                    nursery.start_soon(request.break_off, why)
