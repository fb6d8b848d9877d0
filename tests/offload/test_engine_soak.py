"""Hundreds of random requests, cancels and disconnects over eight streams: nothing mixes, leaks or hangs.

The real worker. By default a seeded tenth; all of it with KITH_SOAK=full.
"""

import random
from typing import Any

import psutil
import pytest
import trio
from embedded_model import models_folder
from engine_asks import asked, running_engine
from running_nodes import rounds
from worker_pongs import Pongs

from offload.local_engine import LocalEngine
from offload.model_host import HostLimits
from offload.ports import Failed, Finished, Piece

pytestmark = [pytest.mark.model, pytest.mark.soak]

SEED = 20_261_130
STREAMS = 8
REQUESTS = 500
TENTH = 50
LIMITS = HostLimits(context_tokens=2048, slots=4, queue_limit=16)
RSS_GROWTH = 1.05


class Soak:
    """Draws what each stream does next, and checks what it gets."""

    def __init__(self, engine: LocalEngine, count: int) -> None:
        self.engine = engine
        self.left = count
        self.peak_bytes = 0
        self.ends: dict[str, int] = {}
        self._random = random.Random(SEED)

    async def stream(self, number: int) -> None:
        """One asker: its letter is in each of its answers and in nobody else's."""
        letter = chr(97 + number)
        while self.left:
            self.left -= 1
            draw = self._random.random
            grammar = f'root ::= ("{letter}" [0-9]){{{self._random.randint(1, 20)}}}'
            request = asked(
                f"{letter} " * self._random.choice((1, 5, 60, 300)), grammar=grammar, max_tokens=60,
                temperature=self._random.choice((0.0, 1.0)), seed=self._random.randint(0, 999),
                principal=self._random.choice(("owner", "peer-1", "peer-2")),
                lane="exact" if draw() < 0.05 else "normal", shortcuts=draw() < 0.7,
            ) if draw() < 0.9 else asked("x " * 4000)       # or one that can't be served
            if request.lane == "exact":
                request = asked(f"{letter} exactly", grammar=grammar, max_tokens=10, lane="exact")
            leave_at = self._random.choice((None, None, 0, 1, 3)) if draw() < 0.8 else None
            end = await self._ask(request, letter, leave_at, patience_s=0.05 if draw() < 0.1 else 60)
            self.ends[end] = self.ends.get(end, 0) + 1
            self.peak_bytes = max(self.peak_bytes, memory_of(self.engine))

    async def _ask(self, request: Any, letter: str, leave_at: int | None, patience_s: float) -> str:
        text, events = "", 0
        with trio.move_on_after(patience_s):
            async with self.engine.stream(request) as answer:
                async for event in answer:
                    if leave_at == events:
                        return "left"
                    events += 1
                    match event:
                        case Piece(piece):
                            text += piece
                            assert set(text[::2]) <= {letter}, f"{letter} was answered {text}"
                        case Finished(finish_reason=reason):
                            return reason
                        case Failed(code=code):
                            assert code in ("prompt_too_long", "busy"), code
                            return code
        return "lost patience"


def memory_of(engine: LocalEngine) -> int:
    """What the worker takes now, in bytes."""
    (pid,) = engine.worker_pids
    return int(psutil.Process(pid).memory_info().rss)


async def test_random_requests_cancels_and_disconnects_over_eight_streams() -> None:
    """No cross-talk, no deadlock, no slot lost, memory flat within 5 %: by its peaks, as what is parked comes and goes.
    """
    async with running_engine([models_folder()], limits=LIMITS, deadline_s=1500) as engine:
        async def run(count: int) -> Soak:
            soak = Soak(engine, count)
            async with trio.open_nursery() as nursery:
                for number in range(STREAMS):
                    nursery.start_soon(soak.stream, number)
            return soak

        before = await run(120)     # both lanes are open, each buffer is at its size, as much was parked as may be
        pids = engine.worker_pids
        soak = await run(rounds(REQUESTS, TENTH))
        assert sum(soak.ends.values()) >= rounds(REQUESTS, TENTH)
        assert soak.ends.get("stop", 0) > 0 and soak.ends.get("left", 0) > 0, soak.ends
        assert soak.peak_bytes <= RSS_GROWTH * before.peak_bytes, (before.peak_bytes, soak.peak_bytes)
        assert engine.worker_pids == pids       # one process from the first to the last
        pongs = Pongs(engine)
        with trio.fail_after(30):
            while (last := await pongs.ask()).running or last.queued:
                await trio.sleep(0.01)
        assert (await engine.health()).restarts == 0
