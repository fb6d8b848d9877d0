"""Short ways to ask a local engine in tests: run it, collect an answer, end it."""

from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import trio

from offload.local_engine import LocalEngine
from offload.ports import ChatPrompt, Engine, Event, Failed, Finished, GenerateRequest, Message, Piece

__all__ = ["asked", "collect", "running_engine", "text_of"]


@asynccontextmanager
async def running_engine(
    folders: Sequence[Path], deadline_s: float = 120.0, **options: Any,
) -> AsyncIterator[LocalEngine]:
    """An engine that serves these folders; ended at the end."""
    engine = LocalEngine(folders, **options)
    with trio.fail_after(deadline_s):
        async with trio.open_nursery() as nursery:
            await nursery.start(engine.run)
            try:
                yield engine
            finally:
                nursery.cancel_scope.cancel()


def asked(text: str, **more: Any) -> GenerateRequest:
    """A greedy request with a user's question."""
    return GenerateRequest(**({
        "request_id": "r", "prompt": ChatPrompt((Message("user", text),)), "max_tokens": 24} | more))


async def collect(
    engine: Engine, request: GenerateRequest, on_event: Callable[[Event], None] = lambda _event: None,
) -> list[Event]:
    """All events of one answer."""
    events: list[Event] = []
    async with engine.stream(request) as answer:
        async for event in answer:
            events.append(event)
            on_event(event)
    assert isinstance(events[-1], Finished | Failed)
    assert not any(isinstance(event, Finished | Failed) for event in events[:-1])
    return events


def text_of(events: list[Event]) -> str:
    """What the reader sees."""
    return "".join(event.text for event in events if isinstance(event, Piece))
