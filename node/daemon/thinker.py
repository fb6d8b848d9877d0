"""Runs heavy work where the router says: at a peer, through the guard, or on this device. The owner reads one
continuous answer.

When a machine refuses, is away, or dies in the middle, the next best one goes on from the exact text already shown, on
the words as they left; placeholders are filled in here, while streaming. Implements node.agent.ports.Thinker. Must not
know HTTP, tools or the database, nor how a single machine is asked.
"""

from collections.abc import Awaitable, Callable, Sequence
from typing import Protocol

import trio

from node.agent.ports import AUTO, LOCAL, ThinkJob, ThinkResult
from node.daemon.course import LOOK_EVERY_S, Course, PeersNow, Places, ThinkFailed, Unasked, asked_again, could_go_on
from node.daemon.delivery import Delivery, Keep
from node.daemon.hedging import best_places, race
from node.daemon.legs import Legs, OpenChannel, PeersAtWork
from node.daemon.prompt_size import likely_tokens
from node.daemon.under_way import UnderWay
from node.privacy.consent import ConsentAsker
from node.privacy.egress import Egress
from node.store.answers import KeptPiece
from offload.ports import Engine, ModelInfo
from offload.prefix_book import PrefixBook
from offload.router import Choice, JobNeeds, LocalView, choose

__all__ = ["AnswerKeeper", "OpenChannel", "PeerDirectory", "ThinkFailed", "Thinker"]

TEMPLATE_TOKENS = 64    # what a chat template adds
RESTART_WAIT_S = 5.0  # so long an answer that a restart cut off waits for the machine that wrote it


class PeerDirectory(PeersNow, PeersAtWork, Protocol):
    """Everything that thinking needs to know of peers."""

    def find(self, name: str) -> str:
        """The id of the peer that the owner named. Raises UnknownPeer or AmbiguousPeer."""
        ...


class AnswerKeeper(Protocol):
    """Keeps answers while they are written. Each call returns once it is durable."""

    stopping: bool
    """The node is about to end: what is not whole by then goes on at the next start."""

    async def begin(self, answer: UnderWay) -> None:
        """Keep a new one."""
        ...

    async def note_leg(self, answer: UnderWay) -> None:
        """Keep who writes now."""
        ...

    async def extend(self, request_id: str, first: int, pieces: Sequence[KeptPiece]) -> None:
        """Keep pieces; first: the number of the first of them."""
        ...

    async def leave(self, answer: UnderWay, *, whole: bool) -> None:
        """It is no longer written. whole: there is a result, whose turn settles it; else it is erased, unless the node
        is stopping: then it goes on at the next start."""
        ...


class Thinker:
    """One per node; think() may run many times at once."""

    def __init__(
        self,
        *,
        node_name: str,
        engine: Engine,
        egress: Egress,
        peers: PeerDirectory,
        open_channel: OpenChannel,
        ask: ConsentAsker,
        mode: Callable[[], str],
        default_model: Callable[[], Awaitable[ModelInfo | None]],
        answers: AnswerKeeper | None = None,
        go_on_at_home: bool = True,
        measure: Callable[[LocalView], LocalView] = lambda view: view,
    ) -> None:
        """answers: None keeps nothing over a restart. go_on_at_home: an answer that begins here while the owner's other
        machine is away goes on there once it is back, if it serves the same model and nobody has to be asked. measure:
        adds what is known of this device's speed and work."""
        self._peers = peers
        self._answers = answers
        legs = Legs(
            node_name=node_name, engine=engine, egress=egress, peers=peers, open_channel=open_channel, ask=ask,
            note_leg=self._note_leg,
        )
        self._places = Places(
            node_name, legs, egress, peers, mode, default_model, go_on_at_home, measure,
            stopping=lambda: answers is not None and answers.stopping)
        self.legs = legs
        self._prefixes = PrefixBook(trio.current_time)

    async def think(self, job: ThinkJob) -> ThinkResult:
        """The finished answer. Raises KithError when it can run nowhere, or not where the owner said."""
        if job.hedge and job.place == AUTO:
            places = best_places((await self.explain(job))[1].candidates)
            if len(places) > 1:
                return await race(job, places, self.think)
        return await self.write(UnderWay(job))

    async def write(self, answer: UnderWay) -> ThinkResult:
        """think() for an answer that others may follow while it grows."""
        needs = self._needs(answer.job)
        keeper = self._answers if answer.job.keep else None
        if keeper is not None:
            await keeper.begin(answer)
        return await self._see_through(answer, needs, keeper, None)

    async def take_up(self, answer: UnderWay) -> ThinkResult:
        """The finished answer of one that a restart cut off and that is kept. Nobody is there to be asked. Raises
        KithError."""
        if answer.ended_as:     # it was whole, and only its turn was not stored yet
            answer.end()
            last = answer.legs[-1]
            return ThinkResult(
                answer.shown, last.ran_on, "it was whole when this node was stopped", answer.ended_as, last.model,
                last.peer_id, tuple(answer.legs), exact=answer.exact)
        needs = self._needs(answer.job)
        if answer.legs and answer.legs[-1].peer_id is not None:
            with trio.move_on_after(RESTART_WAIT_S):
                while not self._anyone_for(answer.ids_of):  # noqa: ASYNC110 - peers announce nothing
                    await trio.sleep(LOOK_EVERY_S)
        return await self._see_through(answer, needs, self._answers, Unasked())

    async def explain(self, job: ThinkJob) -> tuple[JobNeeds, Choice]:
        """What this job needs and where it would go now, with every place considered. Runs and sends nothing.

        Raises UnknownPeer, AmbiguousPeer.
        """
        needs = self._needs(job)
        peers = asked_again(self._peers.candidates(), needs.place)
        return needs, choose(needs, await self._places.here(), peers, mode=self._places.mode())

    async def _see_through(
        self, answer: UnderWay, needs: JobNeeds, keeper: AnswerKeeper | None, ask: ConsentAsker | None,
    ) -> ThinkResult:
        delivery = Delivery(answer, None if keeper is None else _keeping(keeper, answer.job.job_id))
        result: ThinkResult | None = None
        failure: Exception | None = None
        try:
            async with trio.open_nursery() as nursery:
                nursery.start_soon(delivery.run)
                try:
                    result = await Course(self._places, answer, delivery, needs, ask=ask).run()
                except Exception as error:  # raised outside the nursery, which would wrap it in a group
                    failure = error
                nursery.cancel_scope.cancel()
            if result is not None and keeper is not None:
                answer.ended_as = result.finish_reason
                await keeper.note_leg(answer)   # so that nobody goes on with it
        finally:
            answer.end()
            if keeper is not None:
                with trio.CancelScope(shield=True):
                    await keeper.leave(answer, whole=result is not None)
        if failure is not None:
            raise failure
        assert result is not None
        if answer.legs:
            self._note_reading(answer)
        return result

    async def _note_leg(self, answer: UnderWay) -> None:
        if self._answers is not None and answer.job.keep:
            await self._answers.note_leg(answer)

    def _needs(self, job: ThinkJob) -> JobNeeds:
        place = job.place if job.place in (AUTO, LOCAL) else self._peers.find(job.place)
        texts = [part.text.value for part in job.parts]
        return JobNeeds(
            place, sum(map(likely_tokens, texts)) + TEMPLATE_TOKENS, job.max_tokens, job.model,
            self._prefixes.held(job.conversation_id, texts), self._prefixes.last(job.conversation_id),
        )

    def _note_reading(self, answer: UnderWay) -> None:
        """The machine that wrote last has read the prompt, and has its own answer at hand."""
        texts = [*(part.text.value for part in answer.job.parts), answer.shown]
        last = answer.legs[-1]
        self._prefixes.note(
            answer.job.conversation_id, (last.peer_id, last.digest), texts,
            [likely_tokens(text) for text in texts])

    def _anyone_for(self, digest: str) -> bool:
        return any(could_go_on(self._places, peer, digest) for peer in self._peers.candidates())


def _keeping(keeper: AnswerKeeper, request_id: str) -> Keep:
    async def keep(first: int, pieces: Sequence[KeptPiece]) -> None:
        await keeper.extend(request_id, first, pieces)

    return keep
