"""Real models as planners: one that writes a call, one of random weights; whatever they write, nothing bad comes."""

from collections.abc import AsyncIterator
from contextlib import aclosing, asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from agent_memory import Owner
from agent_node import World, fill_folder, world
from embedded_model import model_path
from engine_asks import running_engine
from scripted_model import write_scripted
from tiny_hybrid import make_hybrid
from tool_asks import HERMES, LIMITS

from node.agent.events import ApprovalNeeded
from node.agent.plan_port import PlannedCall
from node.agent.ports import AnswerKind
from node.daemon.planning import EnginePlanner
from offload.ports import Engine, Event, Failed, GenerateRequest, ModelInfo

pytestmark = pytest.mark.model

TEXT = "what do I have tomorrow and send it to Priya"
REQUESTS = (
    TEXT, "remind me about the boiler tomorrow at 9 and tell Priya about it",
    "something about the garden plan tomorrow",
)


class Allowing:
    """Permission for every model."""

    async def why_not(self, digest: str) -> None:
        return None


class Keeping:
    """An engine that keeps what it is asked and answers nothing."""

    def __init__(self) -> None:
        self.requests: list[GenerateRequest] = []

    async def models(self) -> list[ModelInfo]:
        return [ModelInfo(name="m", digest="d" * 64, size_bytes=1)]

    @asynccontextmanager
    async def stream(self, request: GenerateRequest) -> AsyncIterator[AsyncIterator[Event]]:
        self.requests.append(request)

        async def events() -> AsyncIterator[Event]:
            yield Failed("broken", "for the test")

        async with aclosing(events()) as stream:
            yield stream


class Heard(EnginePlanner):
    """Keeps what was proposed."""

    def __init__(self, engine: Any) -> None:
        super().__init__(engine, Allowing(), lambda: "r")      # type: ignore[arg-type]
        self.proposed: list[PlannedCall | None] = []

    async def propose(self, *asked: Any) -> PlannedCall | None:
        self.proposed.append(await super().propose(*asked))
        return self.proposed[-1]


def with_engine(root: Path, engine: Engine | Keeping, owner: Owner) -> World:
    return world(root, planner=Heard(engine), owner=owner)


def owned(root: Path) -> dict[Path, bytes]:
    """All files of the owner."""
    return {path: path.read_bytes() for path in root.rglob("*.*") if "models" not in path.parts}


async def first_request(root: Path) -> GenerateRequest:
    keeping = Keeping()
    answer = await with_engine(root, keeping, Owner()).ask(TEXT)
    assert answer.tools_used == ("calendar_list",)             # the ladder went on by itself
    return keeping.requests[0]


async def test_a_call_in_a_models_own_format_becomes_a_step_of_the_plan(tmp_path: Path) -> None:
    fill_folder(tmp_path)
    request = await first_request(tmp_path)
    assert [tool.name for tool in request.tools][-2:] == ["no_suitable_tool", "ask_user"]
    models = tmp_path / "models"
    models.mkdir()
    script = (
        '<tool_call>\n{"name": "message_send", "arguments": {"to": "Priya Nair", "text": "tomorrow"}}\n</tool_call>'
        "<|im_end|>")
    write_scripted(models / "model.gguf", request, script, template=HERMES)
    async with running_engine([models], limits=LIMITS) as engine:
        one = with_engine(tmp_path, engine, Owner(lambda effect: False))
        answer = await one.ask(TEXT)
    (needed,) = [event for event in one.events.seen if isinstance(event, ApprovalNeeded)]
    assert (needed.effect.tool, needed.effect.value("text")) == ("message_send", "tomorrow")
    assert answer.kind is AnswerKind.DENIED
    assert not any(entry.applied for entry in one.journal.entries.values())


async def test_a_model_that_writes_nonsense_writes_nothing_unseen_and_leaves_the_task(tmp_path: Path) -> None:
    fill_folder(tmp_path)
    models = tmp_path / "models"
    models.mkdir()
    make_hybrid(model_path(), models / "tiny.gguf")
    before = owned(tmp_path)
    async with running_engine([models], limits=LIMITS) as engine:
        heard: list[PlannedCall | None] = []
        for text in REQUESTS:
            owner = Owner(lambda effect: False)
            one = with_engine(tmp_path, engine, owner)
            answer = await one.ask(text)
            heard += one.agent._parts.planner.proposed         # type: ignore[union-attr]
            shown = [event.effect for event in one.events.seen if isinstance(event, ApprovalNeeded)]
            assert shown == owner.shown
            assert len(answer.tools_used) <= 4
            assert not any(entry.applied for entry in one.journal.entries.values())
            for effect in shown:
                words = str(effect.value("text", ""))
                assert words.casefold() in " ".join(text.split()).casefold() or words in answer.text
    assert len([call for call in heard if call is not None]) >= len(REQUESTS)      # it did propose calls
    assert owned(tmp_path) == before
