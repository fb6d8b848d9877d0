"""What masking costs: tasks answered by the embedded model from plain text, and from masked text filled in afterwards.

The model is small and fickle: another name alone changes many of its answers. So the same tasks are also asked with
other people's plain names, which shows how much of a difference is the masking's. Must not know the detectors.
"""

from collections.abc import Sequence
from itertools import count

import trio

from benchmarks.engine import MODELS
from benchmarks.privacy_prompts import make_people
from benchmarks.privacy_tasks import Task, make_tasks, passes
from benchmarks.report import Report
from node.daemon.style_trial import StyleTrial
from node.privacy.placeholders import BRACKETS, SURROGATES, PlaceholderMap, mask
from node.privacy.rehydrate import Restorer
from node.privacy.surrogates import surrogates
from node.privacy.vault import Vault
from offload.local_engine import LocalEngine
from offload.model_host import HostLimits
from offload.ports import ChatPrompt, Failed, GenerateRequest, Message, Piece

__all__ = ["measure"]

AT_ONCE, ANSWER_TOKENS, LEAST_PASSED = 8, 64, 60
PLAIN, OTHERS = "plain", "other names"


async def measure(report: Report, rounds: int) -> None:
    """The rows. rounds: how often each template is asked, each time of other people."""
    tasks = make_tasks(make_people(40, 11), rounds)
    engine = LocalEngine([MODELS], limits=HostLimits(context_tokens=8192, slots=AT_ONCE))
    async with trio.open_nursery() as nursery:
        await nursery.start(engine.run)
        await engine.warm()
        info = (await engine.models())[0]
        numbers = count()
        own = await StyleTrial(engine, lambda: f"trial-{next(numbers)}", 600).choose(info.digest)
        passed = {
            way: await _ask_all(engine, tasks if way != OTHERS else make_tasks(make_people(40, 12), rounds), way)
            for way in (PLAIN, OTHERS, SURROGATES, BRACKETS)
        }
        nursery.cancel_scope.cancel()
    own = own or info.placeholder_style
    plain = sum(passed[PLAIN])
    report.add(f"of {len(tasks)} tasks passed unmasked", plain, "tasks", at_least=LEAST_PASSED)
    for way in (SURROGATES, BRACKETS):
        name = f"passed masked as {way}" + (" (its self-tested style)" if way == own else "")
        report.add(name, sum(passed[way]), "tasks", baseline=plain, ratio_at_least=0.95 if way == own else None)
    report.add("passed unmasked with other names", sum(passed[OTHERS]), "tasks", baseline=plain)
    for way in (own, OTHERS):
        kept = sum(one and other for one, other in zip(passed[PLAIN], passed[way], strict=True))
        what = "masked" if way == own else "with other names"
        report.add(f"of those passed unmasked, passed {what}", kept, "tasks", baseline=plain)


async def _ask_all(engine: LocalEngine, tasks: Sequence[Task], way: str) -> list[bool]:
    passed = [False] * len(tasks)
    limit = trio.CapacityLimiter(AT_ONCE)

    async def one(at: int) -> None:
        task = tasks[at]
        async with limit:
            if way in (PLAIN, OTHERS):
                passed[at] = passes(task, await _answer(engine, f"{way}-{at}", task.prompt))
                return
            tokens = PlaceholderMap(way)
            tokens.reserve(task.prompt)
            for name in list(surrogates("PERSON", words=2))[: at % 30]:     # stand-ins differ from task to task
                tokens.reserve(name)
            text, _ = mask(task.prompt, Vault(task.facts).find(task.prompt), tokens)
            answer = await _answer(engine, f"{way}-{at}", text)
            passed[at] = passes(task, Restorer(tokens.tokens).restore(answer))

    async with trio.open_nursery() as nursery:
        for at in range(len(tasks)):
            nursery.start_soon(one, at)
    return passed


async def _answer(engine: LocalEngine, request_id: str, prompt: str) -> str:
    request = GenerateRequest(
        request_id=request_id, prompt=ChatPrompt((Message("user", prompt),)), max_tokens=ANSWER_TOKENS)
    text = ""
    async with engine.stream(request) as events:
        async for event in events:
            if isinstance(event, Failed):
                raise RuntimeError(event.message)
            if isinstance(event, Piece):
                text += event.text
    return text
