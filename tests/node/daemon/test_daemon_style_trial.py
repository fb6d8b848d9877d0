"""Which style a model keeps better is tried with real tasks: brackets unless stand-ins do better, and never by hand."""

import re
import tomllib
from collections.abc import AsyncIterator
from contextlib import aclosing, asynccontextmanager
from itertools import count

import msgspec
import pytest
import trio
from embedded_model import model_path

from node.daemon.style_tasks import TRIAL_VERSION, make_style_tasks
from node.daemon.style_trial import StyleTrial, Verdict, answer_to, is_right, left_in
from node.privacy.placeholders import SURROGATES, PlaceholderMap
from offload.catalogue import Record, read_record
from offload.local_engine import LocalEngine
from offload.ports import Failed, Finished, Piece
from offload.style_verdicts import VERDICTS, with_verdict

TASKS = make_style_tasks()
ALL_NEEDED = " ".join(sorted({needed for task in TASKS for needed in task.needed if needed[0].islower() or
                              needed[0].isdigit()}))


class Model:
    """Says its prompt again, bent in some way, and all words that no prompt holds."""

    def __init__(self, bend, *, failing: bool = False, silent_after: int = 10_000, exact: bool = True) -> None:
        self.bend = bend
        self.failing = failing
        self.silent_after = silent_after
        self.exact = exact
        self.requests = []

    @asynccontextmanager
    async def stream(self, request) -> AsyncIterator:
        self.requests.append(request)

        async def events():
            if len(self.requests) > self.silent_after:
                await trio.sleep_forever()
            if self.failing:
                yield Failed("worker_died", "it died")
                return
            if request.lane == "exact" and not self.exact:
                yield Failed("lane_unsupported", "it can not")
                return
            yield Piece(self.bend(request.prompt.messages[-1].content) + " " + ALL_NEEDED, ())
            yield Finished("stop", 1, 1)

        async with aclosing(events()) as given:
            yield given


def trial(model: Model) -> StyleTrial:
    numbers = count()
    return StyleTrial(model, lambda: f"r{next(numbers)}")  # type: ignore[arg-type]


async def test_a_model_that_copies_both_gets_brackets_after_a_few_tasks() -> None:
    model = Model(lambda text: text)
    verdict = await trial(model).choose("ab" * 32)
    assert verdict == Verdict(12, 12, 12)
    assert verdict.style == "brackets"
    assert {request.model for request in model.requests} == {"ab" * 32}
    assert {request.lane for request in model.requests} == {"exact"}
    assert len({request.request_id for request in model.requests}) == 24


async def test_a_model_that_loses_brackets_gets_stand_ins() -> None:
    verdict = await trial(Model(lambda text: re.sub(r"\[\w+\]", "someone", text))).choose("m")
    assert verdict.tasks == len(TASKS) == verdict.surrogates > verdict.brackets
    assert verdict.style == "surrogates"


async def test_a_model_that_bends_brackets_beyond_repair_gets_stand_ins() -> None:
    """All that is needed is there, and so is a placeholder that nobody can fill in."""
    verdict = await trial(Model(lambda text: f"{text} [PERSON_99]" if "[" in text else text)).choose("m")
    assert verdict.style == "surrogates"
    verdict = await trial(Model(lambda text: f"{text} [Your name]" if "[" in text else text)).choose("m")
    assert verdict.style == "surrogates"


async def test_a_model_that_leaves_half_a_stand_in_gets_brackets() -> None:
    def bend(text: str) -> str:
        return text if "[" in text else re.sub(r"\b(Anna|Peter) (\w+)", r"\1son \2ton \1 \2", text)

    def with_slip(text: str) -> str:
        return f"{bend(text)} [PERSON_99]" if "ladder" in text else bend(text)

    verdict = await trial(Model(with_slip)).choose("m")
    assert verdict.style == "brackets"
    assert verdict.brackets == len(TASKS) - 1


async def test_a_model_that_loses_everything_gets_brackets() -> None:
    assert (await trial(Model(lambda text: "I am a language model. [PERSON_9]")).choose("m")).style == "brackets"


async def test_an_engine_without_the_exact_lane_is_tried_in_the_normal_one() -> None:
    model = Model(lambda text: text, exact=False)
    assert await trial(model).choose("m") == Verdict(12, 12, 12)


async def test_a_failing_or_hanging_model_tells_nothing(autojump_clock: trio.testing.MockClock) -> None:
    assert await trial(Model(str, failing=True)).choose("m") is None
    assert await trial(Model(str, silent_after=23)).choose("m") is None
    assert trio.current_time() <= 241


async def test_a_slow_model_is_judged_by_what_it_did_in_time(autojump_clock: trio.testing.MockClock) -> None:
    verdict = await trial(Model(lambda text: re.sub(r"\[\w+\]", "someone", text), silent_after=30)).choose("m")
    assert (verdict.tasks, verdict.style) == (15, "surrogates")


async def test_it_asks_as_the_node_asks() -> None:
    """The instruction, the words and the material as they are joined for a peer, with no fact of the task left."""
    model = Model(str)
    for task in TASKS:
        tokens = PlaceholderMap(SURROGATES)
        await answer_to(model, lambda: "r", "m", task, tokens)  # type: ignore[arg-type]
        system, user = model.requests[-1].prompt.messages
        assert (system.role, user.role) == ("system", "user")
        assert "careful assistant" in system.content
        assert tokens.tokens or "{" not in user.content
        assert not any(value in user.content for value, _ in task.facts)


def test_the_tasks_cover_what_owners_ask_and_are_apart() -> None:
    assert len(TASKS) == 32
    assert {task.kind for task in TASKS} == {
        "extraction", "rewriting", "summary", "long text", "drafting", "dates", "arithmetic"}
    assert sum(len(task.material) > 400 for task in TASKS) >= 4
    for task in TASKS:
        asked = f"{task.request} {task.material}"
        assert "{" not in asked
        assert task.kind in ("dates", "arithmetic", "rewriting") or all(
            needed.casefold() in asked.casefold() for needed in task.needed)


def test_what_is_left_in_an_answer_is_seen() -> None:
    task = next(task for task in TASKS if "ladder" in task.material)
    stand_in = {"Anna Wilson": task.facts[0][0], "11 Oak Street, Riverton": "x"}
    for text in ("[PERSON_1] left", "PERSON 2", "person_3", "see [Name]", "[Recipient Name 2]"):
        assert left_in(text, task, {}) is (text != "person_3")
    for text in ("Dear Annabel", "the street", "Oak"):
        assert not left_in(text, task, stand_in)
    for text in ("Dear Anna", "wilson", "in Riverton"):
        assert left_in(text, task, stand_in)
    assert is_right(task, f"{task.facts[0][0].upper()}: the Ladder")
    assert not is_right(task, "the ladder")


def test_the_recorded_verdict_decides_the_embedded_models_style() -> None:
    recorded = tomllib.loads(VERDICTS.read_text())
    assert recorded
    for digest, figures in recorded.items():
        assert figures["trial_version"] == TRIAL_VERSION, "run scripts/style_verdicts.py again"
        made = with_verdict(Record(name="m", digest=digest))
        more = figures["well_in_surrogates"] > figures["well_in_brackets"]
        assert made.placeholder_style == ("surrogates" if more else "brackets")
        assert {name: msgspec.to_builtins(made)[name] for name in figures} == figures
    unknown = Record(name="m", digest="0" * 64)
    assert with_verdict(unknown) == unknown
    installed = read_record(model_path())
    assert installed == with_verdict(installed), "scripts/install brings the installed record up to date"


@pytest.mark.model
async def test_the_trial_of_the_embedded_model_says_what_is_recorded() -> None:
    numbers = count()
    engine = LocalEngine([model_path().parent])
    with trio.fail_after(400):
        async with trio.open_nursery() as nursery:
            await nursery.start(engine.run)
            (info,) = await engine.models()
            verdict = await StyleTrial(engine, lambda: f"r{next(numbers)}", deadline_s=380).choose(info.digest)
            nursery.cancel_scope.cancel()
    recorded = tomllib.loads(VERDICTS.read_text())[info.digest]
    assert (verdict.version, verdict.tasks) == (recorded["trial_version"], recorded["trial_tasks"])
    assert verdict.style == info.placeholder_style
    # another kind of CPU rounds otherwise, which may turn an answer or two
    assert abs(verdict.brackets - recorded["well_in_brackets"]) <= 2
    assert abs(verdict.surrogates - recorded["well_in_surrogates"]) <= 2
