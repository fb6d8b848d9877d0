"""Searches here and at peers at once: fans out, waits a bounded time, scores all texts again itself.

One peer that is slow, gone, hostile or refused by the guard costs the others nothing. Texts of peers are scored as
texts and marked with their origin; what reads them must treat them as untrusted. Must not know streams, masking or
the index's form.
"""

import logging
from collections.abc import Sequence
from dataclasses import dataclass, field

import trio

from protocol import limits
from protocol.channel import FrameChannel
from protocol.errors import ChannelClosed, ChannelError, ChannelLost, DeadlinePassed, ProtocolError
from protocol.fields import Frame
from protocol.frames.query import Passage, Query
from protocol.machine import ChannelBroken, FinishSending, PeerFinished, Received, ResetChannel, Send
from protocol.query import Ask, AskerMachine, QueryOver
from search.errors import PeerSilent, QueryRejected
from search.local import LocalFinds, scored_text, search_index
from search.plan import Plan, SearchPeer, make_plan
from search.ports import ChannelOpener, Entropy, QueryClearance, QueryGuard, TermIndex
from search.rank import merged_statistics, score

__all__ = ["DEADLINE_S", "Found", "SearchClient", "SearchResult"]

log = logging.getLogger(__name__)

DEADLINE_S = 1.5
"""For opening, asking and answering together; the guard's question to the owner comes before and has its own."""
GRACE_S = 0.2
"""Beyond the deadline, for a channel that does not even take the question."""
PASSAGES_PER_PEER = 20

_LATE = ChannelBroken()
"""Told to the machine when time is up, so that it hands out what came so far."""


@dataclass(frozen=True, slots=True)
class Found:
    """One passage with its origin."""

    title: str
    text: str
    label: str
    """What its owner calls its folder."""
    score: float
    peer_id: str = ""
    """Empty for this device's own."""
    peer_name: str = ""
    name: str = ""
    """The file, for this device's own."""


@dataclass(frozen=True, slots=True)
class SearchResult:
    """Hits, best first, and a true account of who was asked."""

    hits: tuple[Found, ...]
    answered: tuple[str, ...] = ()
    """Names of peers that answered in full."""
    silent: tuple[str, ...] = ()
    """Names of peers that could not be asked, refused, or did not finish in time."""
    stayed_local: str = ""
    """Why nobody was asked; empty when somebody was."""


@dataclass(slots=True)
class _Gathered:
    """What came from peers so far."""

    passages: list[tuple[SearchPeer, Passage]] = field(default_factory=list)
    answered: list[str] = field(default_factory=list)


class SearchClient:
    """Searches for the owner of this node."""

    def __init__(self, index: TermIndex, opener: ChannelOpener, guard: QueryGuard, entropy: Entropy) -> None:
        self._index = index
        self._opener = opener
        self._guard = guard
        self._entropy = entropy

    async def search(
        self, query: str, peers: Sequence[SearchPeer], *, limit: int = 10, local_only: bool = False,
    ) -> SearchResult:
        """The best passages of all that answered within DEADLINE_S. Raises QueryRejected for a query without words
        or above the wire's limit; never for what a peer does."""
        query = " ".join(query.split())
        if not query or len(query) > limits.MAX_QUERY_CHARS:
            raise QueryRejected
        own = await search_index(self._index, query, limit=max(limit, PASSAGES_PER_PEER))
        reason = "" if local_only else await self._guard.private_reason(query)
        plan = make_plan(peers, private_reason=reason, local_only=local_only)
        gathered = await self._ask_all(query, plan, min(limit, PASSAGES_PER_PEER))
        silent = [peer.name for peer in (*plan.ask, *plan.absent) if peer.name not in gathered.answered]
        hits = _merge(query, own, gathered.passages)[:limit]
        return SearchResult(tuple(hits), tuple(gathered.answered), tuple(silent), plan.stayed_local)

    async def _ask_all(self, query: str, plan: Plan, count: int) -> _Gathered:
        gathered = _Gathered()
        cleared: list[tuple[SearchPeer, bytes, QueryClearance]] = []
        for peer in plan.ask:   # one after another: each may put a question to the owner
            query_id = self._entropy.bytes(limits.ID_BYTES)
            try:
                cleared.append((peer, query_id, await self._guard.clear(peer.peer_id, query_id, query)))
            except PeerSilent as error:
                log.info("search: %s is not asked (%s)", peer.peer_id, error.code)
            except Exception as error:
                # A guard that fails lets nothing out to this peer. Its words may hold what it found.
                log.warning("search: %s is not asked (%s)", peer.peer_id, type(error).__name__)
        async with trio.open_nursery() as nursery:
            for peer, query_id, clearance in cleared:
                nursery.start_soon(self._ask_one, peer, query_id, clearance, count, gathered)
        return gathered

    async def _ask_one(
        self, peer: SearchPeer, query_id: bytes, clearance: QueryClearance, count: int, gathered: _Gathered,
    ) -> None:
        outcome = "late"
        try:
            with trio.move_on_after(DEADLINE_S + GRACE_S):
                over = await self._converse(peer, Query(query_id, clearance.texts[0], count), clearance)
                gathered.passages.extend((peer, passage) for passage in over.passages)
                if over.reason == "complete":
                    gathered.answered.append(peer.name)
                outcome = "late" if over.reason == "lost" else over.reason
        except (PeerSilent, ProtocolError) as error:
            outcome = "failed"
            log.info("search: %s failed (%s)", peer.peer_id, error.code)
        except Exception:
            # The boundary that keeps one peer's fault, or one of ours in serving it, from stopping the others.
            outcome = "failed"
            log.exception("search: asking %s failed", peer.peer_id)
        finally:
            with trio.CancelScope(shield=True):
                await clearance.close(outcome)

    async def _converse(self, peer: SearchPeer, query: Query, clearance: QueryClearance) -> QueryOver:
        give_up_s = trio.current_time() + DEADLINE_S
        channel = await self._opener.open(peer.peer_id, timeout_s=DEADLINE_S)
        machine = AskerMachine(query)
        try:
            over = await _carry_out(channel, machine.handle(Ask(), trio.current_time()), clearance)
            while over is None:
                event = await _next_event(channel, give_up_s)
                over = await _carry_out(channel, machine.handle(event, trio.current_time()), clearance)
                if event is _LATE:
                    await channel.reset()
        except BaseException:
            with trio.CancelScope(shield=True):
                await channel.reset()
            raise
        return over


async def _next_event(channel: FrameChannel, give_up_s: float) -> object:
    try:
        frame = await channel.receive(deadline_s=max(give_up_s - trio.current_time(), 0.0))
    except DeadlinePassed:
        return _LATE
    except ChannelClosed:
        return PeerFinished()
    except ChannelLost:
        return ChannelBroken()
    assert isinstance(frame, Frame)
    return Received(frame)


async def _carry_out(
    channel: FrameChannel, commands: Sequence[object], clearance: QueryClearance,
) -> QueryOver | None:
    over: QueryOver | None = None
    for command in commands:
        match command:
            case Send(frame):
                await channel.send_cleared(frame, clearance)
            case FinishSending():
                try:
                    await channel.finish()
                except ChannelError:
                    log.debug("search: %s left before its stream was ended", channel.peer_id)
            case ResetChannel():
                await channel.reset()
            case QueryOver():
                over = command
    return over


def _merge(query: str, own: LocalFinds, passages: Sequence[tuple[SearchPeer, Passage]]) -> list[Found]:
    """All texts scored alike, the same text once, this device's own first among equals."""
    found = [
        Found(passage.title, passage.text, passage.label, 0.0, name=passage.name) for passage in own.passages
    ]
    found += [
        Found(passage.title, passage.text, passage.folder, 0.0, peer.peer_id, peer.name) for peer, passage in passages
    ]
    unique: dict[str, Found] = {}
    for each in found:
        unique.setdefault(" ".join(each.text.split()), each)
    listed = list(unique.values())
    texts = [scored_text(each.title, each.text) for each in listed]
    theirs = [text for each, text in zip(listed, texts, strict=True) if each.peer_id]
    statistics = merged_statistics(own.statistics, query, theirs)
    return [
        Found(
            listed[each.at].title, listed[each.at].text, listed[each.at].label, each.score, listed[each.at].peer_id,
            listed[each.at].peer_name, listed[each.at].name,
        )
        for each in score(query, texts, statistics)
    ]
