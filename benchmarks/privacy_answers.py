"""What masking costs: tasks answered by the embedded model from plain text, and from masked text filled in afterwards.

Asked as the node asks, in the exact lane: the same model, build and kind of CPU give the same figures. In brackets the
same task about other people is the same request, so it is answered once. Must not know the detectors.
"""

from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import aclosing, asynccontextmanager
from dataclasses import dataclass
from itertools import count

import msgspec
import trio

from benchmarks.engine import MODELS
from benchmarks.privacy_prompts import make_people
from benchmarks.privacy_tasks import Task, make_tasks, passes
from benchmarks.report import Report
from node.daemon.style_tasks import StyleTask
from node.daemon.style_trial import StyleTrial, answer_to, left_in
from node.privacy.placeholders import BRACKETS, SURROGATES, PlaceholderMap
from node.privacy.surrogates import surrogates
from offload.local_engine import LocalEngine
from offload.model_host import HostLimits
from offload.ports import Event, GenerateRequest

__all__ = ["measure"]

LEAST_PASSED = 60
TRIAL_DEADLINE_S = 900.0
PLAIN = "plain"
_NUMBERS = count()


@dataclass(frozen=True, slots=True)
class Asked:
    """passed: the answer held what the task needs. left: something of a placeholder or a stand-in stayed in it."""

    passed: bool
    left: bool


class Remembering:
    """An engine that answers a request it was asked before from memory."""

    def __init__(self, engine: LocalEngine) -> None:
        self._engine = engine
        self._answers: dict[bytes, list[Event]] = {}

    @asynccontextmanager
    async def stream(self, request: GenerateRequest) -> AsyncIterator[AsyncIterator[Event]]:
        """As Engine.stream."""
        key = msgspec.msgpack.encode(msgspec.structs.replace(request, request_id=""))
        if key not in self._answers:
            async with self._engine.stream(request) as events:
                self._answers[key] = [event async for event in events]

        async def again() -> AsyncIterator[Event]:
            for event in self._answers[key]:
                yield event

        async with aclosing(again()) as events:
            yield events


async def measure(report: Report, rounds: int) -> None:
    """The rows. rounds: how often each template is asked, each time of other people."""
    tasks = make_tasks(make_people(40, 11), rounds)
    engine = LocalEngine([MODELS], limits=HostLimits(context_tokens=8192))
    remembering = Remembering(engine)
    async with trio.open_nursery() as nursery:
        await nursery.start(engine.run)
        await engine.warm()
        info = (await engine.models())[0]
        verdict = await StyleTrial(engine, _fresh_id, TRIAL_DEADLINE_S).choose(info.digest)
        if verdict is None:
            raise RuntimeError("the model could not be tried")
        asked = {
            way: [await _ask(remembering, task, way, at) for at, task in enumerate(tasks)]
            for way in (PLAIN, SURROGATES, BRACKETS)
        }
        nursery.cancel_scope.cancel()
    plain = _count(asked[PLAIN])
    report.add(f"self-test: of {verdict.tasks} tasks, well with stand-ins", verdict.surrogates, "tasks")
    report.add("... well in brackets", verdict.brackets, "tasks")
    report.add("... differs from the installed record", int(verdict.style != info.placeholder_style), "records",
               at_most=0)
    report.add(f"of {len(tasks)} tasks passed unmasked", plain, "tasks", at_least=LEAST_PASSED)
    for way, name in ((SURROGATES, "with stand-ins"), (BRACKETS, "in brackets")):
        own = way == verdict.style
        report.add(f"passed masked {name}" + (" (its self-tested style)" if own else ""), _count(asked[way]), "tasks",
                   baseline=plain, ratio_at_least=0.95 if own else None)
        report.add("... answers with a part of one left in", sum(one.left for one in asked[way]), "answers")
    kept = sum(one.passed and other.passed for one, other in zip(asked[PLAIN], asked[verdict.style], strict=True))
    report.add("of those passed unmasked, passed masked", kept, "tasks", baseline=plain)


def _count(asked: Sequence[Asked]) -> int:
    return sum(one.passed for one in asked)


async def _ask(engine: Remembering, task: Task, way: str, at: int) -> Asked:
    asked = StyleTask(task.kind, task.prompt, "", task.needed, task.facts)
    if way == PLAIN:
        return Asked(passes(task, await answer_to(engine, _fresh_id, None, asked, None)), False)
    tokens = PlaceholderMap(way)
    for name in _used_up(at):
        tokens.reserve(name)
    answer = await answer_to(engine, _fresh_id, None, asked, tokens)
    return Asked(passes(task, answer), left_in(answer, asked, tokens.tokens))


def _used_up(at: int) -> Iterator[str]:
    """Stand-ins differ from task to task, as if others had been given out before."""
    for _, name in zip(range(at % 30), surrogates("PERSON", words=2), strict=False):
        yield name


def _fresh_id() -> str:
    return f"answers-{next(_NUMBERS)}"
