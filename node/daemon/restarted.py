"""Goes on with the answers that the last stop of the node cut off, from what was kept of them; asks nobody anything.

Must not know how an answer is written, or where it is kept.
"""

import logging

import msgspec
import trio

from node.agent.events import Answered
from node.agent.loop import Agent
from node.agent.ports import ThinkResult
from node.agent.repetition import RepeatedText
from node.counting import counted
from node.daemon.answers import Answers
from node.daemon.owner import answer_event
from node.daemon.persevering import in_words
from node.daemon.thinker import Thinker
from node.daemon.under_way import UnderWay
from node.errors import KithError
from node.store import answers
from node.store.answers import KeptAnswer
from node.store.database import Database

__all__ = ["Restarted"]

log = logging.getLogger(__name__)

AT_ONCE = 2
MOST_ATTEMPTS = 3  # an answer that ends its node each time would do so for ever


class Restarted:
    """run() once, when models and network are there."""

    def __init__(self, database: Database, kept: Answers, thinker: Thinker, agent: Agent, node_name: str) -> None:
        self._database = database
        self._kept = kept
        self._thinker = thinker
        self._agent = agent
        self._node_name = node_name

    async def run(self) -> None:
        """Until all are whole, or have nobody to go on with them."""
        found = await self._database.read(answers.every)
        if found:
            log.info("going on with %s that a stop had cut off", counted(len(found), "answer"))
        turns = trio.CapacityLimiter(AT_ONCE)
        async with trio.open_nursery() as nursery:
            for kept in found:
                nursery.start_soon(self._see_to, kept, turns)

    async def _see_to(self, kept: KeptAnswer, turns: trio.CapacityLimiter) -> None:
        async with turns:
            try:
                await self._finish(kept)
            except (KithError, msgspec.MsgspecError, ValueError) as error:
                log.warning("an answer that was cut off cannot go on: %s", _reason(error))
                await self._drop(kept.request_id)

    async def _finish(self, kept: KeptAnswer) -> None:
        watch = RepeatedText()

        async def on_text(text: str) -> bool:
            return not watch.feed(text)

        answer = UnderWay.taken_up(kept, on_text)
        watch.feed(answer.shown)
        self._kept.adopt(answer, kept.begun_ms)
        if await self._database.write(answers.note_attempt, kept.request_id) > MOST_ATTEMPTS:
            answer.end()
            result = self._cut_off(answer, "this node was stopped again and again while it was written")
        else:
            try:
                result = await self._thinker.take_up(answer)
            except KithError as error:
                if not answer.shown:
                    raise
                result = self._cut_off(answer, error.text)
        said = await self._agent.finish(answer.job, result, watch)
        self._kept.conclude(kept.request_id, answer_event(Answered(said).answer))

    def _cut_off(self, answer: UnderWay, why: str) -> ThinkResult:
        last = answer.legs[-1] if answer.legs else None
        return ThinkResult(
            answer.shown, last.ran_on if last else self._node_name, why, "broken", last.model if last else "",
            last.peer_id if last else None, tuple(answer.legs))

    async def _drop(self, request_id: str) -> None:
        try:
            await self._database.write(answers.settle, request_id)
        except KithError as error:
            log.warning("it stays for the next start: %s", error.code)


def _reason(error: Exception) -> str:
    return in_words(error) if isinstance(error, KithError) else type(error).__name__
