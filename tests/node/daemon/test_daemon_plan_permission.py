"""Which model may plan: by its stored figures alone, and by the digest of its file."""

from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import msgspec
import pytest
from agent_memory import FixedClock

from node.agent.rehearsal import Rehearsed
from node.api.ports import EvalInput
from node.daemon import evaluation
from node.daemon.evaluation import Evaluating
from node.daemon.ladder_chooser import LadderChooser
from node.daemon.plan_permission import Figures, Permissions, figures_of, why_not
from node.daemon.planning import EnginePlanner
from node.store import settings
from node.store.database import Database
from node.store.schema import KITH
from offload.evaluation.cases import Case, Loaded, Tool
from offload.evaluation.chooser import Choice
from offload.evaluation.report import Scored
from offload.evaluation.scoring import score_choice
from offload.ports import ModelInfo

BERLIN = ZoneInfo("Europe/Berlin")
CLOCK = FixedClock(datetime(2026, 3, 18, 8, 30, tzinfo=UTC))
GOOD = Figures(
    at_ms=0, chooser="c", cases=100, without_tool=20, right=90, wrong_calls=2, compared=40, ladder_right=30,
    model_right=31)
TOOL = Tool(name="note_write")
MODELS = [ModelInfo(name="big", digest="d" * 64, size_bytes=1), ModelInfo(name="small", digest="e" * 64, size_bytes=1)]


@pytest.fixture
async def database(tmp_path: Path):
    opened = await Database.open(tmp_path / "kith.db", b"k" * 32, KITH)
    yield opened
    await opened.close()


@pytest.mark.parametrize(("changed", "word"), [
    ({"cases": 59, "wrong_calls": 0}, "60 cases"), ({"without_tool": 14}, "no tool fits"),
    ({"wrong_calls": 3}, "3% of its answers were wrong calls"), ({"compared": 0}, "could not be compared"),
    ({"model_right": 30}, "30 right, and this node's own rules 30"),
])
def test_each_figure_can_forbid_it(changed: dict[str, int], word: str) -> None:
    assert why_not(GOOD) is None
    assert word in (why_not(msgspec.structs.replace(GOOD, **changed)) or "")


def own(number: int, text: str) -> Case:
    return Case(
        case_id=f"own-{number}", kind="multiple", tools=[TOOL], right_tool="note_write", accepted={"text": [text]},
        messages=[("user", f"(It is Wednesday, 2026-03-18T09:30.)\nnote: {text}")])


def foreign(number: int, right: str | None) -> Case:
    return Case(case_id=f"f{number}", kind="irrelevance" if right is None else "simple", tools=[TOOL],
                messages=[("user", "x")], right_tool=right, accepted={"text": ["x"]} if right else {})


def scored(case: Case, **choice: Any) -> Scored:
    made = Choice(**choice)
    return Scored(case, made, score_choice(case, made))


def test_figures_count_wrong_calls_of_every_kind_and_compare_only_common_cases() -> None:
    cases = [own(1, "milk"), own(2, "eggs"), foreign(1, None), foreign(2, "note_write"), foreign(3, None)]
    right = {"kind": "call", "name": "note_write", "arguments": {"text": "milk"}}
    results = [
        scored(cases[0], **right), scored(cases[1], **right),            # the second is wrong: other words
        scored(cases[2], **right),                                       # wrong: nothing fits
        scored(cases[3], kind="ask"), scored(cases[4], kind="none"),     # neither is a call
    ]
    ladder = [scored(cases[1], kind="none")]
    figures = figures_of(results, ladder, chooser="c", clock=CLOCK)
    assert (figures.cases, figures.without_tool, figures.right, figures.wrong_calls) == (5, 2, 2, 2)
    assert (figures.compared, figures.ladder_right, figures.model_right) == (1, 0, 0)


async def test_permission_is_kept_by_digest_and_a_newer_run_takes_its_place(database: Database) -> None:
    permissions = Permissions(database)

    class Engine:
        async def models(self) -> list[ModelInfo]:
            return MODELS

    planner = EnginePlanner(Engine(), permissions, lambda: "r")      # type: ignore[arg-type]
    assert await planner.permitted(None) is None                     # nothing was measured
    await permissions.keep("d" * 64, GOOD)
    assert await planner.permitted(None) == "d" * 64
    assert await planner.permitted("big") == "d" * 64
    assert await planner.permitted("small") is None
    assert await planner.permitted("no such") is None
    await permissions.keep("d" * 64, msgspec.structs.replace(GOOD, wrong_calls=50))
    assert await planner.permitted(None) is None


async def test_figures_that_cannot_be_read_forbid(database: Database) -> None:
    await database.write(settings.put, "eval." + "d" * 64, '{"cases": "many"}')
    assert await Permissions(database).why_not("d" * 64) == why_not(None)
    await database.write(settings.put, "eval." + "d" * 64, "no json")
    assert await Permissions(database).why_not("d" * 64) == why_not(None)


async def test_the_ladder_answers_own_cases_as_of_their_moment_and_no_others() -> None:
    asked = []

    async def rehearse(text: str, now: datetime) -> Rehearsed | None:
        asked.append((text, now))
        if text == "note: skill":
            return None
        start = datetime(2026, 3, 20, 15, tzinfo=UTC)
        when = (start, start.replace(hour=16))
        return Rehearsed("calendar_create", {"start": start, "when": when, "who": ("A", "B")})

    ladder = LadderChooser(rehearse, BERLIN)
    assert await ladder.compared(foreign(1, None)) is None
    assert await ladder.compared(own(1, "skill")) is None
    choice = await ladder.compared(own(2, "milk"))
    assert choice == Choice(kind="call", name="calendar_create", arguments={
        "start": "2026-03-20T16:00", "when": "2026-03-20T16:00/2026-03-20T17:00", "who": ["A", "B"]})
    assert asked[-1] == ("note: milk", datetime(2026, 3, 18, 9, 30, tzinfo=BERLIN))


@pytest.mark.parametrize("good", [True, False])
async def test_a_run_stores_what_it_found_and_says_it(
    database: Database, monkeypatch: pytest.MonkeyPatch, good: bool,
) -> None:
    class Engine:
        async def models(self) -> list[ModelInfo]:
            return MODELS

    class Answers:
        """Right everywhere, or a call everywhere."""

        def __init__(self, *_: Any, **__: Any) -> None: ...

        async def choose(self, case: Case) -> Choice:
            if good and case.right_tool is None:
                return Choice(kind="none")
            text = case.messages[0][1].partition("note: ")[2] or "x"
            return Choice(kind="call", name="note_write", arguments={"text": text})

    async def none_of_its_own() -> Loaded:
        return Loaded([], {})

    async def ladder(case: Case) -> Choice | None:
        return Choice(kind="none") if case.case_id.startswith("own-") else None

    monkeypatch.setattr(evaluation, "PlainChooser", Answers)
    permissions = Permissions(database)
    events: list[dict[str, Any]] = []

    async def emit(event: dict[str, Any]) -> None:
        events.append(event)

    cases = [own(number, f"thing {number}") for number in range(40)]
    cases += [foreign(number, None) for number in range(20)]
    evaluating = Evaluating(
        Engine(), none_of_its_own, ladder=ladder, choosing=None, permissions=permissions,    # type: ignore[arg-type]
        clock=CLOCK)                                                                          # type: ignore[arg-type]
    await evaluating.run(EvalInput(cases=cases, most=None), emit)                         # type: ignore[arg-type]
    told = events[-1]["planning"]
    assert (told["allowed"], told["compared"], told["ladder_right"]) == (good, 40, 0)
    assert (await permissions.why_not("d" * 64) is None) is good
    assert await permissions.why_not("e" * 64) == why_not(None)

    gated = EvalInput(cases=cases, most=None, gated=True)
    monkeypatch.setattr(evaluation, "GatedChooser", lambda choosing, filling, *, may_decline: filling)
    await evaluating.run(gated, emit)                                                         # type: ignore[arg-type]
    assert events[-1]["chooser"].startswith(evaluation.GATED)
    assert events[-1]["planning"]["allowed"] is False and "own choice" in events[-1]["planning"]["why_not"]
    assert (await permissions.why_not("d" * 64) is None) is good, "a gated run leaves the permission as it was"
