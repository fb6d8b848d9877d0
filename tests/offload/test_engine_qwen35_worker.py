"""A model of Qwen3.5's kind with its own published template: a tiny one of random weights, added and asked like a real
one. Its words mean nothing; the shape of its calls and thoughts, and what its memory keeps, must be right."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from chat_templates import chat_template
from embedded_model import model_path
from engine_asks import asked, collect, running_engine, text_of
from tiny_hybrid import make_hybrid

from node.clock import SystemEntropy
from node.daemon.hub import HubDesk
from node.daemon.model_copies import CopyDesk
from node.daemon.models import ModelShelf
from offload.engine.chat import PromptReader
from offload.engine.library import Model
from offload.engine.thinking import ThoughtMarks
from offload.joined_engine import JoinedEngine
from offload.local_engine import LocalEngine
from offload.model_host import HostLimits
from offload.ports import (
    ChatPrompt,
    Event,
    Failed,
    Finished,
    GenerateRequest,
    Message,
    PastCall,
    Piece,
    Started,
    ToolCall,
    ToolOffer,
)

pytestmark = pytest.mark.model

FILE = "BotPsy-tiny.Q8_0.gguf"
LIMITS = HostLimits(context_tokens=4096, slots=2)
LAMP = ToolOffer("lamp_set", "Switches a lamp", json.dumps({
    "type": "object", "required": ["room", "on"],
    "properties": {"room": {"enum": ["kitchen", "hall"]}, "on": {"type": "boolean"}}}))
TALK = (Message("system", "You run the house."), Message("user", "Light in the kitchen, please."))


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the model."""
    made = tmp_path_factory.mktemp("qwen35")
    make_hybrid(model_path(), made / FILE, chat_template("Qwen3.5-4B"))
    return made


def ask(messages: tuple[Message, ...], **more: Any) -> GenerateRequest:
    return GenerateRequest(**({
        "request_id": "r", "prompt": ChatPrompt(messages), "tools": (LAMP,), "max_tokens": 80} | more))


def started(events: list[Event]) -> Started:
    (found,) = (event for event in events if isinstance(event, Started))
    return found


def call_of(events: list[Event]) -> ToolCall:
    (call,) = (event for event in events if isinstance(event, ToolCall))
    return call


def test_the_template_is_the_files_own_and_says_what_the_model_was_taught(folder: Path) -> None:
    model = Model(str(folder / FILE), extra_buffers=False)
    try:
        assert model.keeps_state_per_sequence
        reader = PromptReader(model)
        assert reader.tool_format.name == "qwen-xml"
        assert reader.marks == ThoughtMarks()
        off, on = (reader.render(TALK, thinking=thinking) for thinking in (False, True))
        assert off.endswith("<|im_start|>assistant\n<think>\n\n</think>\n\n")
        assert on.endswith("<|im_start|>assistant\n<think>\n")
    finally:
        model.close()


async def test_calls_thoughts_and_the_memory_of_a_hybrid_model(folder: Path) -> None:
    async with running_engine([folder], limits=LIMITS) as engine:
        first = await collect(engine, ask(TALK, tool_choice="required"))
        call = call_of(first)
        assert (call.name, call.repairs, call.faults) == ("lamp_set", (), ())
        arguments = json.loads(call.arguments)
        assert arguments["room"] in {"kitchen", "hall"}
        assert isinstance(arguments["on"], bool)
        assert isinstance(first[-1], Finished)
        assert (text_of(first), first[-1].finish_reason, started(first).cached_tokens) == ("", "tool_calls", 0)

        # the next turn brings the call and its result; a checkpoint spares reading the system turn and the tools again
        later = (
            *TALK, Message("assistant", "", (PastCall(call.name, call.arguments, "c1"),)),
            Message("tool", "done", call_id="c1"), Message("user", "And in the hall."))
        second = await collect(engine, ask(later, tool_choice="required"))
        fresh = await collect(engine, ask(later, tool_choice="required", principal="someone else"))
        assert started(fresh).cached_tokens == 0
        assert started(second).cached_tokens > 0.5 * started(first).prompt_tokens
        assert call_of(second) == call_of(fresh)

        # a thought ends by itself or is ended, and is never a part of the answer
        for budget in (0, 12):
            events = await collect(engine, asked("Why?", thinking_tokens=budget, max_tokens=60))
            thought = "".join(event.thought for event in events if isinstance(event, Piece))
            assert bool(thought) == bool(budget)
            assert "think>" not in text_of(events) + thought
            assert text_of(events)
            assert isinstance(events[-1], Finished)

        # and a schema or a call comes behind it
        events = await collect(engine, ask(TALK, tool_choice="required", thinking_tokens=12))
        assert call_of(events).faults == ()
        assert any(event.thought for event in events if isinstance(event, Piece))


async def test_each_context_of_a_hybrid_model_fits_into_its_memory_limit(folder: Path) -> None:
    """Its graph takes half a gigabyte however small its weights are: the exact lane and side work need as much each."""
    async with running_engine([folder], limits=LIMITS) as engine:
        whole = await collect(engine, asked("Why?", lane="exact", max_tokens=24))
        ids = [token for event in whole if isinstance(event, Piece) for token in event.token_ids]
        assert len(ids) == 24
        rest = await collect(
            engine, asked("Why?", lane="exact", max_tokens=12, token_ids_so_far=tuple(ids[:12]), text_so_far=""))
        assert [token for event in rest if isinstance(event, Piece) for token in event.token_ids][-12:] == ids[12:]
        assert len(await engine.embed(["some text", "more of it"])) == 2
        chosen, best = await engine.score(asked("Why?"), ids[:3])
        assert len(chosen) == len(best) == 3
        health = await engine.health()
        assert (health.restarts, health.box["memory_limit"]) == (0, "held")


async def test_a_memory_limit_that_is_too_small_for_the_model_ends_in_words(folder: Path) -> None:
    limits = replace(LIMITS, memory_bytes=200 * 1024 * 1024)
    async with running_engine([folder], limits=limits) as engine:
        (*_, failed) = await collect(engine, asked("Why?"))
        assert isinstance(failed, Failed)


async def test_added_to_the_shelf_it_is_shown_for_what_it_is(folder: Path, tmp_path: Path) -> None:
    own = tmp_path / "models"
    own.mkdir()
    engine = JoinedEngine(LocalEngine([own], cache_dir=tmp_path), None)
    hub = HubDesk("http://127.0.0.1:1", None, lambda: "offline", lambda: "id")  # type: ignore[arg-type]
    copies = CopyDesk(None, None, SystemEntropy(), "phone")      # type: ignore[arg-type]
    shelf = ModelShelf(engine, [own], tmp_path / "digests.json", hub, copies, lambda _name: None)
    events: list[Any] = []

    async def emit(event: Any) -> None:
        events.append(event)

    await shelf.add(str(folder / FILE), emit)
    (view,) = await shelf.all()
    assert (view.name, view.quantisation, view.base, view.default) == ("botpsy-tiny.q8_0", "Q8_0", "", True)
    detail = await shelf.info(view.name)
    assert (detail.architecture, detail.chat_template, detail.template_knows_tools) == ("qwen35", True, True)
