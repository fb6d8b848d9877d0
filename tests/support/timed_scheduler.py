"""Schedulers over a context whose decodes take time by what is in them, and answers whose tokens are scripted.

Must not know what is tested.
"""

from typing import Any, cast

from fake_context import FakeContext, FakeVocabulary, ScriptedSampler

from offload.engine.answer import Answer
from offload.engine.context import Context
from offload.engine.scheduler import Events, Scheduler
from offload.engine.writing import PlainWriter
from offload.ports import GenerateRequest, TextPrompt

__all__ = ["TimedContext", "answer", "finish", "scheduler", "tokens", "varied"]


class TimedContext(FakeContext):
    """Decodes take time by what is in them: a base, and so much per token."""

    base_s = 0.02
    token_s = 0.003
    now_s = 0.0

    def decode(self) -> int:
        result = super().decode()
        self.now_s += self.base_s + self.token_s * sum(count for _, count in self.batches[-1])
        return result


def scheduler(context: FakeContext, **more: Any) -> Scheduler:
    options: dict[str, Any] = {
        "slots": 4, "queue_limit": 16, "kept": 8, "now_s": lambda: getattr(context, "now_s", 0.0)} | more
    return Scheduler(cast("Context", context), **options)


def answer(
    name: str, prompt: list[int], writes: list[int], *, who: str = "owner", most: int = 200, context: int = 8000,
) -> Answer:
    request = GenerateRequest(request_id=name, principal=who, prompt=TextPrompt("x"), max_tokens=most)
    return Answer(request, FakeVocabulary(), PlainWriter(ScriptedSampler(writes)), prompt=prompt, replayed=(),
                  context_tokens=context)


def tokens(seed: int, count: int) -> list[int]:
    return [2 + (seed * 7919 + number * 31) % 20_000 for number in range(count)]


def varied(count: int, seed: int = 0) -> list[int]:
    """Tokens to write that never go in circles."""
    return [2 + (number * number + seed) % 997 for number in range(count)]


def finish(machine: Scheduler, steps: int = 3000) -> Events:
    events: Events = []
    for _ in range(steps):
        if not machine.has_work:
            return events
        events += machine.step()
    raise AssertionError("it never ends")
