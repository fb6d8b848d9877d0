"""What an asker sees of a provider that reads a long prompt, loads, waits or hangs: moving is life, beating is not."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import date
from typing import Any

import pytest
import trio
from memory_channel import ALICE, BOB, TestClearance, memory_channels

from offload.client import AnswerBroken, RemoteAnswer, ask_peer
from offload.ports import Finished, ModelInfo, Piece, Queued, Reading, Resumed, Started, Usage
from offload.quota import QuotaBook
from offload.server import InferenceServer
from protocol.grants import ANY_MODEL, Grant
from protocol.inference import InferRequest, Part, Progress, PromptParts
from protocol.names import INFER

DIGEST = "ab" * 32
END = [Piece("done", (1,)), Finished("stop", Usage(100, 0, 1))]


class Engine:
    """Plays events; a number is a pause in seconds."""

    def __init__(self, script: list[Any]) -> None:
        self.script = script

    async def models(self) -> list[ModelInfo]:
        return [ModelInfo(name="m", digest=DIGEST, size_bytes=1, context_tokens=4096, loaded=True)]

    @asynccontextmanager
    async def stream(self, request: Any) -> AsyncIterator[Any]:
        async def play() -> AsyncIterator[Any]:
            for item in self.script:
                if isinstance(item, float):
                    await trio.sleep(item)
                else:
                    yield item

        events = play()
        try:
            yield events
        finally:
            await events.aclose()


class Book:
    def grant_for(self, peer_id: str) -> Grant:
        return Grant(
            services=("infer",), models=(ANY_MODEL,), tokens_per_day=10_000, max_context=4096, max_concurrency=2,
            not_after_s=2**40, issued_by=BOB, issued_to=ALICE, epoch=1)

    def ran_out(self, peer_id: str) -> bool:
        return False

    def reopens_in_s(self, peer_id: str) -> int | None:
        return None


class Free:
    async def tokens_on(self, peer_id: str, day: date) -> int:
        return 0

    async def add_tokens(
        self, peer_id: str, day: date, *, prompt_tokens: int, output_tokens: int, requests: int = 1,
    ) -> None:
        pass


async def asked(script: list[Any]) -> tuple[RemoteAnswer | AnswerBroken, list[Progress], float]:
    """How it ended, the signs of life on the wire, and when."""
    near, far = memory_channels(INFER)
    server = InferenceServer(Engine(script), Book(), QuotaBook(Free(), lambda: date(2026, 3, 1)))  # type: ignore[arg-type]
    request = InferRequest(
        request_id=bytes(16), prompt=PromptParts((Part("user", "hi"),)), max_tokens=8, deadline_s=600)
    ended: RemoteAnswer | AnswerBroken

    async def on_text(text: str) -> bool:
        return True

    begun_s = trio.current_time()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(server.serve, far)
        try:
            ended = await ask_peer(near, request, TestClearance(("hi",)), on_text)
        except AnswerBroken as broken:
            ended = broken
        took_s = trio.current_time() - begun_s
        nursery.cancel_scope.cancel()
    return ended, [frame for frame in far.sent if isinstance(frame, Progress)], took_s


async def test_a_prompt_of_which_more_is_read_is_waited_for(autojump_clock: object) -> None:
    reading = [item for done in range(10, 100, 10) for item in (Reading(done, 100), 2.5)]
    ended, beats, _ = await asked([Queued(0), Started(100, 0, DIGEST), 1.0, *reading, *END])
    assert isinstance(ended, RemoteAnswer)
    assert ended.text == "done"
    read = [beat.prompt_done for beat in beats if beat.state == "prefill"]
    assert read == sorted(read)
    assert set(range(10, 100, 10)) <= set(read)


@pytest.mark.parametrize("script", [
    [Started(100, 0, DIGEST), 30.0, *END], [Started(100, 0, DIGEST), Reading(50, 100), 30.0, *END],
    [Started(100, 0, DIGEST), Piece("a", (1,)), 30.0, *END],
])  # fmt: skip
async def test_a_provider_that_beats_and_does_not_move_is_left_after_three_seconds(
    autojump_clock: object, script: list[Any]
) -> None:
    """The negative control of the test above, too."""
    ended, beats, took_s = await asked(script)
    assert isinstance(ended, AnswerBroken)
    assert ended.reason == "stalled"
    assert took_s == pytest.approx(3, abs=0.3)
    assert len(beats) >= 2      # it was never silent


@pytest.mark.parametrize(
    ("script", "reason", "after_s"),
    [
        ([Queued(2), 58.0, Started(9, 0, DIGEST), *END], None, 58),
        ([Queued(2), 70.0, *END], "queued", 60),
        ([Queued(2), 40.0, Queued(1), 40.0, Started(9, 0, DIGEST), *END], None, 80),
        ([80.0, Started(9, 0, DIGEST), *END], None, 80),
        ([100.0, *END], "loading", 91),
        ([Started(9, 0, DIGEST), Piece("a", (1,)), Resumed("it died"), 80.0, *END], None, 80),
        ([Started(0, 0, DIGEST), 80.0, *END], None, 80),    # an engine of another program, which does not count
    ],
)  # fmt: skip
async def test_queues_and_loads_have_their_own_time(
    autojump_clock: object, script: list[Any], reason: str | None, after_s: float
) -> None:
    ended, beats, took_s = await asked(script)
    assert getattr(ended, "reason", None) == reason
    assert took_s == pytest.approx(after_s, abs=1.2)
    assert len(beats) >= after_s - 3       # at least one a second
