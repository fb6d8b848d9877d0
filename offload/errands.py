"""Short things that a worker does for one caller: counting a prompt's tokens, embedding texts, scoring tokens.

Must not know answers, models or how a worker is started.
"""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field

import trio

from offload.child.errors import ChildGone
from offload.child.process import Child
from offload.errors import RequestRefused, WorkerDied, WorkerStalled
from offload.jobs import shown
from offload.ports import GenerateRequest, Prompt
from offload.worker_frames import Count, Counted, Embed, Embedded, Score, Scored, encode

__all__ = ["Errands"]

_COUNT_DEADLINE_S = 30.0
_EMBED_DEADLINE_S = 300.0
_SCORE_DEADLINE_S = 120.0
_OUT_OF_TURN = "The worker process answered something else than it was asked."


@dataclass(slots=True)
class _Errand:
    done: trio.Event = field(default_factory=trio.Event)
    result: Counted | Embedded | Scored | None = None


class Errands:
    """Those that wait for the present worker."""

    def __init__(self, ready_child: Callable[[], Awaitable[Child]]) -> None:
        """ready_child: the worker, started when necessary."""
        self._ready_child = ready_child
        self._waiting: dict[int, _Errand] = {}
        self._numbers = 0

    @property
    def busy(self) -> bool:
        """Whether anyone waits."""
        return bool(self._waiting)

    async def count(self, prompt: Prompt) -> int:
        """Tokens of a prompt. Raises EngineError."""
        result = await self._run(lambda number: Count(number, prompt), _COUNT_DEADLINE_S)
        if not isinstance(result, Counted):
            raise WorkerDied(_OUT_OF_TURN)
        return result.tokens

    async def embed(self, texts: Sequence[str]) -> list[list[float]]:
        """A vector for each text. Raises EngineError."""
        result = await self._run(lambda number: Embed(number, list(texts)), _EMBED_DEADLINE_S)
        if not isinstance(result, Embedded) or len(result.vectors) != len(texts):
            raise WorkerDied(_OUT_OF_TURN)
        return result.vectors

    async def score(self, request: GenerateRequest, token_ids: Sequence[int]) -> tuple[list[float], list[float]]:
        """The log-probability of each token as the answer to this request, and of the likeliest one in its place.

        Raises EngineError.
        """
        result = await self._run(lambda number: Score(number, request, list(token_ids)), _SCORE_DEADLINE_S)
        if not isinstance(result, Scored) or not len(result.chosen) == len(result.best) == len(token_ids):
            raise WorkerDied(_OUT_OF_TURN)
        return result.chosen, result.best

    def received(self, report: Counted | Embedded | Scored) -> None:
        """The worker answered one."""
        match report:
            case Counted(count_id=number) | Embedded(embed_id=number) | Scored(score_id=number):
                errand = self._waiting.get(number)
        if errand is not None:
            errand.result = report
            errand.done.set()

    def worker_died(self) -> None:
        """Nothing more comes for those that wait."""
        for errand in self._waiting.values():
            errand.done.set()

    async def _run(
        self, order: Callable[[int], Count | Embed | Score], deadline_s: float
    ) -> Counted | Embedded | Scored:
        self._numbers += 1
        number = self._numbers
        errand = self._waiting[number] = _Errand()
        try:
            child = await self._ready_child()
            await child.send(encode(order(number)))
            with trio.fail_after(deadline_s):
                await errand.done.wait()
        except (ChildGone, trio.TooSlowError) as error:
            raise WorkerStalled() from error
        finally:
            del self._waiting[number]
        if errand.result is None:
            raise WorkerDied()
        if errand.result.code:
            refusal = RequestRefused(shown(errand.result.message))
            refusal.code = shown(errand.result.code)
            raise refusal
        return errand.result
