"""Answers peers' queries: within the grant, from folders shared with that very peer, never with a secret in it.

Every choice is made again for each query, so that revoking a grant or a share holds at once. Must not know streams, how
grants are issued or how the index is stored. Refusals are codes, without words.
"""

import logging
from collections import deque
from collections.abc import Callable, Sequence

import trio

from protocol import limits
from protocol.channel import FrameChannel
from protocol.errors import ChannelError, RemoteProtocolError
from protocol.fields import Frame
from protocol.frames.query import Answer, Passage, Query, QueryRefusalCode
from protocol.grants import permits
from protocol.machine import FinishSending, Received, Send
from protocol.query import AnswererMachine, Decide, Give, Refuse, Settle
from search.errors import QueryRejected
from search.local import search_index
from search.ports import (
    GrantBook,
    IndexedPassage,
    PassageCheck,
    PassageClearing,
    QueryClearance,
    ShareBook,
    TermIndex,
)

__all__ = ["QueryServer"]

log = logging.getLogger(__name__)

QUERY_WAIT_S = 5.0
WORK_LIMIT_S = 5.0
GIVE_LIMIT_S = 5.0
CONCURRENT = 4
PER_PEER_PER_MINUTE = 20
PEERS_REMEMBERED = 1_000
PASSAGES_PER_FRAME = 8
"""8 passages of the longest text in 4-byte characters stay below the frame's limit."""


class QueryServer:
    """Serves /kith/query/1. One call of serve() per stream."""

    def __init__(
        self, index: TermIndex, grants: GrantBook, shares: ShareBook, check: PassageCheck, clearing: PassageClearing,
        on_refusal: Callable[[str, str], None] = lambda peer_id, code: None,
    ) -> None:
        """on_refusal(peer_id, code): a query went beyond what is granted, for the owner to read."""
        self._on_refusal = on_refusal
        self._index = index
        self._grants = grants
        self._shares = shares
        self._check = check
        self._clearing = clearing
        self._recent: dict[str, deque[float]] = {}
        self.active = 0

    async def serve(self, channel: FrameChannel) -> None:
        """Answer the one query of this stream. Never raises for what the peer does."""
        session = _Session(channel)
        try:
            query = await session.question()
            if query is None:
                return
            if self.active >= CONCURRENT:
                return await session.refuse("busy")
            self.active += 1
            try:
                await self._answer(session, channel.peer_id, query)
            finally:
                self.active -= 1
        except (ChannelError, RemoteProtocolError) as error:
            log.info("a query of %s ended: %s", channel.peer_id, error.code)
            await channel.reset()

    async def _answer(self, session: "_Session", peer_id: str, query: Query) -> None:
        grant = self._grants.grant_for(peer_id)
        if grant is None or not permits(grant, "search"):
            self._on_refusal(peer_id, "not_granted")
            return await session.refuse("not_granted")
        if not self._within_rate(peer_id):
            self._on_refusal(peer_id, "quota")
            return await session.refuse("quota")
        try:
            with trio.fail_after(WORK_LIMIT_S):
                passages = await self._find(peer_id, query)
        except trio.TooSlowError:
            return await session.refuse("busy")
        except QueryRejected:
            return await session.refuse("bad_request")
        except Exception:
            # Whatever our own index does, the peer gets a code and this node goes on serving.
            log.exception("a query of %s could not be searched", peer_id)
            return await session.refuse("internal")
        if not passages:
            return await session.settle()
        clearance = await self._clear(peer_id, query, passages)
        if clearance is None:
            return await session.refuse("internal")
        outcome = "failed"
        try:
            with trio.fail_after(GIVE_LIMIT_S):
                await session.give(passages, clearance)
            outcome = "complete"
        except trio.TooSlowError:
            log.info("%s does not take its answer", peer_id)
            await session.drop()
        finally:
            with trio.CancelScope(shield=True):
                await clearance.close(outcome)

    async def _find(self, peer_id: str, query: Query) -> list[Passage]:
        folders = await self._shares.folders_for(peer_id)
        if not folders:
            return []
        finds = await search_index(self._index, query.text, limit=query.k, folders=folders)
        # Asked of the index, and looked at again: what is handed out depends on no query being right.
        allowed = [passage for passage in finds.passages if passage.folder in folders]
        return [_wire(passage) for passage in allowed if not self._holds_secret(passage)]

    def _holds_secret(self, passage: IndexedPassage) -> bool:
        return self._check.holds_secret(f"{passage.label}\n{passage.title}\n{passage.text}")

    async def _clear(self, peer_id: str, query: Query, passages: Sequence[Passage]) -> QueryClearance | None:
        try:
            with trio.fail_after(WORK_LIMIT_S):
                return await self._clearing.clear(peer_id, query.query_id, passages)
        except Exception as error:
            # The guard refused or is broken: either way nothing is sent. Its words may hold what it found.
            log.warning("an answer to %s was not cleared (%s)", peer_id, type(error).__name__)
            return None

    def _within_rate(self, peer_id: str) -> bool:
        now_s = trio.current_time()
        times = self._recent.setdefault(peer_id, deque(maxlen=PER_PEER_PER_MINUTE))
        if len(times) == PER_PEER_PER_MINUTE and times[0] > now_s - 60:
            return False
        times.append(now_s)
        if len(self._recent) > PEERS_REMEMBERED:
            self._recent.pop(next(iter(self._recent)))
        return True


class _Session:
    """One stream: the machine and the channel."""

    def __init__(self, channel: FrameChannel) -> None:
        self._channel = channel
        self._machine = AnswererMachine()

    async def question(self) -> Query | None:
        frame = await self._channel.receive(deadline_s=QUERY_WAIT_S)
        assert isinstance(frame, Frame)
        for command in self._machine.handle(Received(frame), trio.current_time()):
            if isinstance(command, Decide):
                return command.query
        return None

    async def refuse(self, code: QueryRefusalCode) -> None:
        await self._feed(Refuse(code), None)

    async def settle(self) -> None:
        await self._feed(Settle(), None)

    async def drop(self) -> None:
        await self._channel.reset()

    async def give(self, passages: Sequence[Passage], clearance: QueryClearance) -> None:
        for start in range(0, len(passages), PASSAGES_PER_FRAME):
            await self._feed(Give(tuple(passages[start:start + PASSAGES_PER_FRAME])), clearance)
        await self.settle()

    async def _feed(self, event: object, clearance: QueryClearance | None) -> None:
        for command in self._machine.handle(event, trio.current_time()):
            match command:
                case Send(Answer() as answer) if clearance is not None:
                    await self._channel.send_cleared(answer, clearance)
                case Send(frame):
                    await self._channel.send(frame)
                case FinishSending():
                    await self._channel.finish()


def _wire(passage: IndexedPassage) -> Passage:
    """The passage as it is sent, within the wire's limits: no path, no name of a file beyond its title."""
    return Passage(
        passage.doc_id, passage.title[:limits.MAX_TITLE_CHARS], passage.text[:limits.MAX_PASSAGE_CHARS],
        passage.label[:limits.MAX_FOLDER_CHARS],
    )
