"""The embedded model as a second reader: held to the grammar it never invents, and where it agrees it is right."""

import itertools

import agent_bank as bank
import pytest
import trio
from embedded_model import model_path

from node.agent.calling import _shots
from node.agent.copy_grammar import Copyist, agree
from node.agent.readers.phrases import residual
from node.agent.slots import text_kind
from node.daemon.local_model import OwnModel
from offload.local_engine import LocalEngine

pytestmark = pytest.mark.model


async def test_copies_are_substrings_and_agreement_is_right() -> None:
    numbers = itertools.count()
    engine = LocalEngine([model_path().parent], threads=1)
    specs, reader = {spec.name: spec for spec in bank.specs()}, bank.reader()
    copied_count = agreed = agreed_right = 0
    async with trio.open_nursery() as nursery:
        await nursery.start(engine.run)
        copyist = Copyist(OwnModel(engine, lambda: f"copy-{next(numbers)}"), deadline_s=60)
        for case in bank.cases():
            if case.tool not in {"notes_write", "reminder_set"}:
                continue
            spec, reading = specs[case.tool], reader.read(case.text, bank.NOW)
            kind, read = text_kind(spec.name, "text"), reader.fill(spec, reading, {}).values.get("text")
            if kind is None or read is None:
                continue
            left_over = residual(reading.text, reading.understood if kind == "reminder" else ())
            copied = await copyist.copy(spec.params["text"].description, left_over, _shots(spec, kind))
            assert copied is not None
            assert copied in left_over
            copied_count += 1
            value = agree(read, copied)
            if value.certain:
                agreed += 1
                agreed_right += str(value.value) in case.args["text"]
        nursery.cancel_scope.cancel()
    assert copied_count >= 6
    assert agreed >= 4
    assert agreed_right == agreed
