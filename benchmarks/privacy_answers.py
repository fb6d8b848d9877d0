"""What masking costs: tasks answered by the embedded model from plain text, and from masked text filled in afterwards.

Asked as the node asks, in the exact lane: the same model, build and kind of CPU give the same figures. The model is
small and fickle: another name alone changes many of its answers. So the same tasks are also asked with other people's
plain names, which shows how much of a difference is the masking's. Must not know the detectors.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import count

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

__all__ = ["measure"]

LEAST_PASSED = 60
TRIAL_DEADLINE_S = 900.0
PLAIN, OTHERS = "plain", "other names"
_NUMBERS = count()


@dataclass(frozen=True, slots=True)
class Asked:
    """passed: the answer held what the task needs. left: something of a placeholder or a stand-in stayed in it."""

    passed: bool
    left: bool


async def measure(report: Report, rounds: int) -> None:
    """The rows. rounds: how often each template is asked, each time of other people."""
    tasks = make_tasks(make_people(40, 11), rounds)
    engine = LocalEngine([MODELS], limits=HostLimits(context_tokens=8192))
    async with trio.open_nursery() as nursery:
        await nursery.start(engine.run)
        await engine.warm()
        info = (await engine.models())[0]
        verdict = await StyleTrial(engine, _fresh_id, TRIAL_DEADLINE_S).choose(info.digest)
        if verdict is None:
            raise RuntimeError("the model could not be tried")
        asked = {
            way: await _ask_all(engine, tasks if way != OTHERS else make_tasks(make_people(40, 12), rounds), way)
            for way in (PLAIN, SURROGATES, BRACKETS, OTHERS)
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
    report.add("passed unmasked with other names", _count(asked[OTHERS]), "tasks", baseline=plain)
    for way, what in ((verdict.style, "masked"), (OTHERS, "with other names")):
        kept = sum(one.passed and other.passed for one, other in zip(asked[PLAIN], asked[way], strict=True))
        report.add(f"of those passed unmasked, passed {what}", kept, "tasks", baseline=plain)


def _count(asked: Sequence[Asked]) -> int:
    return sum(one.passed for one in asked)


async def _ask_all(engine: LocalEngine, tasks: Sequence[Task], way: str) -> list[Asked]:
    return [await _ask(engine, task, way, at) for at, task in enumerate(tasks)]


async def _ask(engine: LocalEngine, task: Task, way: str, at: int) -> Asked:
    asked = StyleTask(task.kind, task.prompt, "", task.needed, task.facts)
    if way in (PLAIN, OTHERS):
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
