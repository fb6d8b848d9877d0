"""Whether this node can do its work: ready means that a token was produced, or that no model is here.

A process that runs and answers is no proof: an engine may load and never write a word, or hang in the middle of one.
Must not know HTTP or who asks.
"""

import logging
from collections.abc import Callable

import trio

from node.api.views import HealthView
from node.clock import Clock
from offload.errors import OffloadError
from offload.ports import ChatPrompt, Engine, EngineHealth, Failed, GenerateRequest, Message, Piece

__all__ = ["PROBE_S", "STUCK_S", "Readiness"]

log = logging.getLogger(__name__)

PROBE_S = 60.0
"""How long a probe may take: loading a large model cold is part of it."""
STUCK_S = 120.0
"""A request that runs and brings no token for so long is stuck; reading a long prompt on a slow machine takes less."""


class Readiness:
    """Looks at one engine. look() never waits for it, but for a probe that was asked for."""

    def __init__(self, engine: Engine, clock: Clock, new_id: Callable[[], str]) -> None:
        self._engine = engine
        self._clock = clock
        self._new_id = new_id
        self._probing = trio.Lock()
        self._token_s: float | None = None
        self._busy_s: float | None = None
        self._problem = ""

    async def look(self, *, probe: bool) -> HealthView:
        """The state now. probe: when no token was ever produced, have one produced first, within PROBE_S."""
        view = self._view(await self._health())
        if probe and view.state in ("untried", "failing") and self._token_s is None:
            async with self._probing:
                if self._token_s is None:  # whoever probed at the same time may have had success
                    await self._produce_one()
            view = self._view(await self._health())
        return view

    async def _health(self) -> EngineHealth | None:
        try:
            return await self._engine.health()
        except OffloadError as error:
            self._problem = f"the engine's state is unknown ({error.code})"
            return None

    def _view(self, health: EngineHealth | None) -> HealthView:
        now_s = self._clock.monotonic_s()
        if health is None:
            return HealthView(state="failing", ready=False, detail=self._problem)
        if health.last_token_age_s is not None:
            token_s = now_s - health.last_token_age_s
            self._token_s = token_s if self._token_s is None else max(self._token_s, token_s)
            self._problem = ""
        state, detail = self._judge(health, now_s)
        return HealthView(
            state=state, ready=state in ("ready", "no_model"), detail=detail,
            model=health.model.name if health.model else None, running=health.running, queued=health.queued,
            last_token_age_s=None if self._token_s is None else round(max(0.0, now_s - self._token_s), 3),
        )

    def _judge(self, health: EngineHealth, now_s: float) -> tuple[str, str]:
        if not health.running:
            self._busy_s = None
        elif self._busy_s is None:
            self._busy_s = now_s
        if health.state == "no_model":
            return "no_model", "nothing can be computed here; messages and search work"
        if health.state in ("quarantined", "stopped", "restarting"):
            return "failing", health.detail or f"the model's process is {health.state}"
        if self._busy_s is not None and now_s - max(self._busy_s, self._token_s or 0.0) > STUCK_S:
            return "stuck", f"a request runs and brought no token for {STUCK_S:.0f} s"
        if self._token_s is None:
            return ("failing", self._problem) if self._problem else ("untried", "no token was produced yet")
        return "ready", ""

    async def _produce_one(self) -> None:
        request = GenerateRequest(request_id=self._new_id(), prompt=ChatPrompt((Message("user", "Hi"),)), max_tokens=1)
        with trio.move_on_after(PROBE_S) as limit:
            async with self._engine.stream(request) as events:
                async for event in events:
                    match event:
                        case Failed(code=code):
                            log.warning("the readiness probe failed: %s", code)
                            self._problem = f"the model does not answer ({code})"
                        case Piece(token_ids=ids) if ids:
                            self._token_s, self._problem = self._clock.monotonic_s(), ""
        if limit.cancelled_caught:
            self._problem = f"the model brought no token within {PROBE_S:.0f} s"
