"""Schemas through the engine's port and its real worker process, box and all."""

import json

import pytest
from embedded_model import models_folder
from engine_asks import asked, collect, running_engine, text_of

from offload.model_host import HostLimits
from offload.ports import Failed, Finished, Piece

pytestmark = pytest.mark.model

SMALL = HostLimits(context_tokens=1024, slots=2)
FRUIT = {"type": "object", "required": ["name", "count"], "properties": {
    "name": {"type": "string", "minLength": 1, "maxLength": 16},
    "count": {"type": "integer", "minimum": 1, "maximum": 99}}}


async def test_schemas_are_kept_in_the_box() -> None:
    async with running_engine([models_folder()], limits=SMALL) as engine:
        events = await collect(engine, asked("A fruit and how many, please.", schema=json.dumps(FRUIT), max_tokens=60))
        assert set(json.loads(text_of(events))) == {"name", "count"}
        last = events[-1]
        assert isinstance(last, Finished)
        assert last.finish_reason == "stop"
        ids = [token for event in events if isinstance(event, Piece) for token in event.token_ids]
        assert last.usage.output_tokens == len(ids)
        plain = await collect(engine, asked(
            "A fruit and how many, please.", schema=json.dumps(FRUIT), max_tokens=60, shortcuts=False))
        assert set(json.loads(text_of(plain))) == {"name", "count"}
        by_grammar = {"$ref": "#/$defs/tree", "$defs": {"tree": {"enum": ["oak", "elm"]}}}
        events = await collect(engine, asked("A tree?", schema=json.dumps(by_grammar), max_tokens=20))
        assert json.loads(text_of(events)) in {"oak", "elm"}


async def test_a_bad_schema_is_an_answer_and_no_crash() -> None:
    async with running_engine([models_folder()], limits=SMALL) as engine:
        for schema in ("{", "[]", '{"type": "integer", "multipleOf": 2}', '{"$ref": "https://127.0.0.1:1/s"}',
                       '{"items": ' * 400 + "{}" + "}" * 400, '{"type": "string", "pattern": "((("}'):
            events = await collect(engine, asked("x", schema=schema))
            assert isinstance(events[-1], Failed)
            assert events[-1].code == "bad_grammar"
        assert (await engine.health()).restarts == 0
        events = await collect(engine, asked("Hi", max_tokens=3))
        assert isinstance(events[-1], Finished)
