"""Tells peers, and this node's own choice, how fast and how busy its engine is: peers when that changes, and at most
twice a second.

Keeps the measured speeds over restarts. Must not know who is told, or what a peer may use.
"""

import json
import logging
from collections.abc import Awaitable, Callable
from dataclasses import replace
from functools import partial

import trio

from node.daemon.persevering import Persevering
from node.store import settings
from node.store.database import Database
from offload.ports import ModelInfo
from offload.prediction import Speed
from offload.router import LocalView
from offload.workload import Workload
from protocol import limits
from protocol.frames.link import Load, ModelAdvert

__all__ = ["Adverts", "advert_of", "load_of"]

log = logging.getLogger(__name__)

LEAST_PAUSE_S = 0.5
KEEP_EVERY_S = 30.0
SPEEDS_KEY = "engine.speeds"
MOST_KEPT = 64
ASSUMED_CONTEXT_TOKENS = 2048
"""Of a model that was never loaded: its room is not known yet, and it must be asked for to become so."""
_UNKNOWN_QUANTISATION = "unknown"


async def _nobody(load: Load) -> None:
    """Nobody listens yet."""


class Adverts:
    """One per node. run() for as long as it serves."""

    def __init__(self, workload: Workload, database: Database) -> None:
        self._workload = workload
        self._database = database
        self.battery: Callable[[], float | None] = lambda: None
        """What is left of the battery, 0 to 1, while the machine runs on it; None on mains."""
        self._changed = trio.Event()
        self._kept: dict[str, Speed] = {}
        self.tell: Callable[[Load], Awaitable[None]] = _nobody
        """Tells peers. Called with a load that differs, or when a speed has changed."""
        workload.changed = self._wake

    def _wake(self) -> None:
        self._changed.set()

    def speed_of(self, digest: str) -> Speed:
        """What was measured of a model here."""
        return self._workload.speed_of(digest)

    def measure(self, view: LocalView) -> LocalView:
        """This device as a place for work, with its speed, its present work and its battery."""
        return replace(
            view, speed=self.speed_of(view.model_digest), wait_s=self._workload.ahead().ahead_s,
            battery=self.battery())

    async def recall(self) -> None:
        """Take in the speeds of earlier starts. What cannot be read counts as not measured."""
        text = await self._database.read(settings.get, SPEEDS_KEY)
        try:
            kept = {digest: Speed(*map(float, numbers)) for digest, numbers in json.loads(text or "{}").items()}
        except (ValueError, TypeError, AttributeError):
            log.warning("the measured speeds of the models were not readable; they are measured anew")
            return
        self._kept = kept
        self._workload.recall(kept)

    async def run(self, *, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        """Tell and keep what changes, until cancelled."""
        await Persevering("reading the models' speeds").attempt(self.recall)
        task_status.started()
        telling, keeping = Persevering("telling how busy this node is"), Persevering("keeping the models' speeds")
        told: tuple[Load, object] | None = None
        kept_at_s = trio.current_time()
        while True:
            await self._changed.wait()
            self._changed = trio.Event()
            speeds = self._workload.speeds()
            now = (load_of(self._workload, saving=self.battery() is not None), _rounded(speeds))
            if now != told:
                told = now
                await telling.attempt(partial(self.tell, now[0]))
            if speeds != self._kept and trio.current_time() >= kept_at_s + KEEP_EVERY_S:
                kept_at_s = trio.current_time()
                await keeping.attempt(partial(self.keep, dict(speeds)))
            await trio.sleep(LEAST_PAUSE_S)

    async def keep(self, speeds: dict[str, Speed]) -> None:
        """Store the speeds."""
        newest = dict(list(speeds.items())[-MOST_KEPT:])
        text = json.dumps({
            digest: (one.prompt_token_s, one.output_token_s, one.load_s) for digest, one in newest.items()})
        await self._database.write(settings.put, SPEEDS_KEY, text)
        self._kept = speeds


def load_of(workload: Workload, *, saving: bool) -> Load:
    """The load as peers are told it: coarse, so that it changes seldom while one answer is written."""
    ahead = workload.ahead()
    step_ms = 500 if ahead.ahead_s < 10 else 5000 if ahead.ahead_s < 120 else 30_000
    ahead_ms = min(limits.MAX_UINT32, -(-int(ahead.ahead_s * 1000) // step_ms) * step_ms)
    return Load(ahead.running, ahead.queued, ahead_ms, saving)


def advert_of(info: ModelInfo, speed: Speed) -> ModelAdvert:
    """One model as peers are told of it."""
    fits = 0 < len(info.quantisation) <= 24 and all(one.isascii() and (one.isalnum() or one in "_.-")
                                                     for one in info.quantisation)
    return ModelAdvert(
        info.name, info.digest, info.context_tokens or ASSUMED_CONTEXT_TOKENS, info.loaded,
        info.quantisation if fits else _UNKNOWN_QUANTISATION, _whole(speed.prompt_token_s * 1e6),
        _whole(speed.output_token_s * 1e6), _whole(speed.load_s * 1e3), info.placeholder_style,
    )


def _whole(value: float) -> int:
    """Two leading digits: enough to choose by, and a small change is no news."""
    if value < 1:
        return 0
    step: int = 10 ** max(0, len(str(int(value))) - 2)
    return min(limits.MAX_UINT32, round(value / step) * step)


def _rounded(speeds: object) -> object:
    assert isinstance(speeds, dict)
    return {
        digest: (_whole(one.prompt_token_s * 1e6), _whole(one.output_token_s * 1e6), _whole(one.load_s * 1e3))
        for digest, one in speeds.items()
    }
