"""What forced text, drafts and the automaton save, counted in CPU time of the worker process, against the plain ways.

Run from the checkout: python -m benchmarks.shortcuts [--quick] [--json]. One thread, greedy, the embedded model, each
way asking as a principal of its own, so that none finds another one's prompt in the cache. Ways take turns request by
request. With xllamacpp installed llama.cpp's C++ server, a child process over HTTP, is asked the same under the same
grammar; else those rows are left out.
"""

import json
import sys
import time
from typing import Any

import trio

from benchmarks.call_cases import COPIES, FREE, REQUESTS, SCHEMA, call_prompt, schema_for
from benchmarks.cpp_server import Cost, CppServer, cpp_server, cpu_s
from benchmarks.engine import MODELS, Pongs
from benchmarks.report import Report, options
from benchmarks.timing import median
from offload.engine.chat import PromptReader
from offload.engine.context import Context
from offload.engine.library import Model
from offload.engine.preparation import prepare_answer
from offload.engine.sampling import Sampler
from offload.engine.scheduler import Scheduler
from offload.language import to_gbnf
from offload.local_engine import LocalEngine
from offload.model_host import HostLimits
from offload.ports import ChatPrompt, Failed, GenerateRequest, Message, Piece, TextPrompt
from offload.schema import schema_language

CONTEXT_TOKENS, SLOTS, CALL_TOKENS = 8192, 8, 96
CALLS_AT_ONCE = 8
WAYS = {"grammar": "owner", "automaton": "peer-1", "jump": "peer-2"}
QUICK, FULL = True, False
LOAD = {
    QUICK: {"calls": 6, "rounds": 1, "chosen": 0, "copies": 3, "frees": 1, "repeats": 1, "tokens": 64, "timed": 2},
    FULL: {"calls": 24, "rounds": 3, "chosen": 24, "copies": 5, "frees": 3, "repeats": 3, "tokens": 128, "timed": 6},
}


class Ours:
    """The engine behind its port."""

    def __init__(self, engine: LocalEngine, pid: int, pongs: Pongs) -> None:
        self._engine = engine
        self._pid = pid
        self._pongs = pongs
        self._asked = 0

    async def ask(self, cost: Cost, *requests: GenerateRequest) -> None:
        """These at once; their cost is added."""
        texts: dict[str, str] = {}
        known = cost.tokens
        before, begun_s = (await self._pongs.ask()).decodes, cpu_s(self._pid)
        async with trio.open_nursery() as nursery:
            for request in requests:
                nursery.start_soon(self._one, request, texts, cost)
        cost.cpu_s.append(cpu_s(self._pid) - begun_s)
        cost.decodes += (await self._pongs.ask()).decodes - before
        cost.tokens_of.append(cost.tokens - known)
        cost.texts += [texts[request.request_id] for request in requests]

    async def _one(self, request: GenerateRequest, texts: dict[str, str], cost: Cost) -> None:
        text = ""
        async with self._engine.stream(request) as events:
            async for event in events:
                if isinstance(event, Failed):
                    raise RuntimeError(event.message)
                if isinstance(event, Piece):
                    text += event.text
                    cost.tokens += len(event.token_ids)
        texts[request.request_id] = text

    def request(self, prompt: str, *, chat: bool = False, **more: Any) -> GenerateRequest:
        """A request with an id of its own."""
        self._asked += 1
        given = ChatPrompt((Message("user", prompt),)) if chat else TextPrompt(prompt)
        return GenerateRequest(request_id=f"r{self._asked}", prompt=given, **more)


def held_to(way: str, schema: dict[str, Any]) -> dict[str, Any]:
    """What a request of one way has beside its prompt."""
    rule: dict[str, Any] = {"principal": WAYS[way], "shortcuts": way == "jump", "max_tokens": CALL_TOKENS}
    if way == "grammar":
        return rule | {"grammar": to_gbnf(schema_language(schema))}
    return rule | {"schema": json.dumps(schema)}


async def calls(report: Report, ours: Ours, theirs: CppServer | None, load: dict[str, int]) -> None:
    """Tool calls one after the other, with the tool given and not, and eight at once."""
    few = [[request] for request in REQUESTS[::len(REQUESTS) // load["calls"]]]
    many = [list(REQUESTS[place::len(REQUESTS) // CALLS_AT_ONCE][:CALLS_AT_ONCE]) for place in range(load["rounds"])]
    for at_once, batches, given in ((1, few, True), (CALLS_AT_ONCE, many, True), (1, few[:load["chosen"]], False)):
        if not batches:
            continue
        ways = [*WAYS, *(["server"] if theirs is not None else [])]
        costs = {way: Cost() for way in ways}
        warm = [REQUESTS[0]] * at_once
        for number, batch in enumerate([warm, *batches]):
            for way in ways[number % len(ways):] + ways[:number % len(ways)]:
                cost = costs[way] if number else Cost()
                schemas = [schema_for(request) if given else SCHEMA for request in batch]
                prompts = [call_prompt(request if number else "Good morning") for request in batch]
                if way != "server":
                    await ours.ask(cost, *(
                        ours.request(prompt, **held_to(way, schema))
                        for prompt, schema in zip(prompts, schemas, strict=True)))
                elif theirs is not None:
                    await theirs.ask(cost, [
                        {"prompt": prompt, "n_predict": CALL_TOKENS, "grammar": to_gbnf(schema_language(schema))}
                        for prompt, schema in zip(prompts, schemas, strict=True)])
        _report_calls(report, costs, at_once, given=given)


def _report_calls(report: Report, costs: dict[str, Cost], at_once: int, *, given: bool) -> None:
    jump, count = costs["jump"], len(costs["jump"].texts)
    where = f"{count} calls, {at_once} at once, tool {'given' if given else 'not given'}"

    def ms(name: str) -> float:
        return sum(costs[name].cpu_s) * 1000 / count

    def ratio(name: str) -> float:
        return median([slow / fast for slow, fast in zip(costs[name].cpu_s, jump.cpu_s, strict=True)])

    for name in costs:
        report.add(f"{where}: {name}, CPU a call", ms(name), "ms", baseline=ms("jump"))
    for name in ("grammar", "automaton", "jump"):
        bound = 0.4 if name == "jump" and given else None
        report.add(f"{where}: {name}, decodes a token", costs[name].decodes / costs[name].tokens, "", at_most=bound)
        report.add(f"{where}: {name}, decodes a call", costs[name].decodes / count, "")
    report.add(f"{where}: grammar / jump CPU, median", ratio("grammar"), "")
    if "server" in costs:
        bound = 1.5 if at_once == 1 else 1.8
        report.add(f"{where}: server / jump CPU, median", ratio("server"), "", at_least=bound if given else None)
    report.add(f"{where}: whole calls by jump", sum(_is_json(text) for text in jump.texts) / count, "")
    for name in costs:
        if name != "jump":
            same = sum(a == b for a, b in zip(costs[name].texts, jump.texts, strict=True))
            report.add(f"{where}: same text by {name} and jump", same / count, "")


def _is_json(text: str) -> bool:
    try:
        json.loads(text)
    except ValueError:
        return False
    return True


async def drafts(report: Report, ours: Ours, theirs: CppServer | None, load: dict[str, int]) -> None:
    """Copies and free text, drafted and not, of one principal: both go on from the same cells of the cached prompt.

    Where a text was read decides about its last bits as much as drafts do: so one more reads it at another place.
    """
    for kind, prompts, bound in (
        ("copies", COPIES[:load["copies"]] * load["repeats"], 1.25),
        ("free text", FREE[:load["frees"]] * load["repeats"], 0.97),
    ):
        costs = {True: Cost(), False: Cost()}
        elsewhere, other = Cost(), Cost()
        for number, prompt in enumerate(prompts):
            for drafted in (True, False) if number % 2 else (False, True):
                more = {"chat": True, "principal": f"peer-{kind}", "shortcuts": drafted}
                await ours.ask(Cost(), ours.request(prompt, max_tokens=1, **more))
                await ours.ask(costs[drafted], ours.request(prompt, max_tokens=load["tokens"], **more))
            more = {"chat": True, "principal": f"peer-{kind}-elsewhere", "shortcuts": False}
            await ours.ask(Cost(), ours.request(prompt, max_tokens=1, **more))
            await ours.ask(elsewhere, ours.request(prompt, max_tokens=load["tokens"], **more))
            if theirs is not None:
                chat = ("<|im_start|>system\nYou are a helpful AI assistant named SmolLM, trained by Hugging Face"
                        f"<|im_end|>\n<|im_start|>user\n{prompt}<|im_end|>\n<|im_start|>assistant\n")
                await theirs.ask(Cost(), [{"prompt": chat, "n_predict": 1}])
                await theirs.ask(other, [{"prompt": chat, "n_predict": load["tokens"]}])
        with_s, without_s = sum(costs[True].cpu_s), sum(costs[False].cpu_s)
        report.add(f"{kind}: tokens a CPU second, drafted", costs[True].tokens / with_s, "1/s",
                   baseline=costs[False].tokens / without_s)
        gains = [fast / slow for fast, slow in zip(costs[True].rates(), costs[False].rates(), strict=True)]
        report.add(f"{kind}: drafted / not, median of {len(gains)}", median(gains), "", at_least=bound)
        report.add(f"{kind}: drafted / not, worst", min(gains), "")
        report.add(f"{kind}: tokens a decode, drafted", costs[True].tokens / costs[True].decodes, "")
        same = sum(a == b for a, b in zip(costs[True].texts, costs[False].texts, strict=True))
        report.add(f"{kind}: same text drafted and not", same / len(prompts), "")
        same = sum(a == b for a, b in zip(costs[False].texts, elsewhere.texts, strict=True))
        report.add(f"{kind}: same text undrafted, the prompt read at another place", same / len(prompts), "")
        if theirs is not None:
            report.add(f"{kind}: tokens a CPU second, drafted, against the server", costs[True].tokens / with_s, "1/s",
                       baseline=other.tokens / sum(other.cpu_s))


def rules(report: Report, load: dict[str, int]) -> None:
    """CPU time of one choice under each rule, on real logits."""
    model = Model(str(_model_path()), extra_buffers=True)
    context = Context(model, context_tokens=2048, sequences=2, threads=1)
    reader = PromptReader(model)
    for name in ("grammar", "automaton"):
        spent: list[float] = []
        choose = Sampler._choose_by_rule

        def timed(self: Sampler, *given: Any, choose: Any = choose, spent: list[float] = spent) -> int | None:
            begun_s = time.thread_time()
            token: int | None = choose(self, *given)
            spent.append(time.thread_time() - begun_s)
            return token

        Sampler._choose_by_rule = timed  # type: ignore[method-assign]
        machine = Scheduler(context, slots=1, queue_limit=9, now_s=time.perf_counter)
        for number, text in enumerate(REQUESTS[:load["timed"]]):
            request = GenerateRequest(
                request_id=f"r{number}", prompt=TextPrompt(call_prompt(text)), **held_to(name, SCHEMA))
            machine.submit(prepare_answer(request, model, reader, context_tokens=2048))
            while machine.has_work:
                machine.step()
        Sampler._choose_by_rule = choose  # type: ignore[method-assign]
        report.add(f"a choice under the {name}, mean of {len(spent)}", sum(spent) / len(spent) * 1000, "ms",
                   at_most=0.5 if name == "automaton" else None)
        for sequence in range(2):
            context.forget(sequence)
    context.close()
    model.close()


def _model_path() -> str:
    return str(next(MODELS.glob("*.gguf")))


async def measure(report: Report, load: dict[str, int]) -> None:
    """All rows."""
    engine = LocalEngine([MODELS], limits=HostLimits(context_tokens=CONTEXT_TOKENS, slots=SLOTS), threads=1)
    with cpp_server(_model_path(), context_tokens=CONTEXT_TOKENS, threads=1) as theirs:
        async with trio.open_nursery() as nursery:
            await nursery.start(engine.run)
            await engine.warm()
            (host, _), = engine._hosts.values()
            ours = Ours(engine, engine.worker_pids[0], Pongs(host))
            await calls(report, ours, theirs, load)
            await drafts(report, ours, theirs, load)
            nursery.cancel_scope.cancel()
    rules(report, load)


def main() -> None:
    """Measure and print; the exit code says whether every bound was met."""
    given = options("shortcuts")
    report = Report("shortcuts")
    trio.run(measure, report, LOAD[QUICK if given.quick else FULL])
    report.print(as_json=given.json)
    sys.exit(0 if report.ok else 1)


if __name__ == "__main__":
    main()
