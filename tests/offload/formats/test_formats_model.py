"""The grammars of all formats on llama.cpp itself and the embedded model, which is far too small to call by itself."""

from collections.abc import Iterator

import numpy as np
import pytest
from embedded_model import model_path
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from language_sentences import sentences
from tool_samples import TOOLS, calls_of, parse

from offload.engine.automaton import Automaton
from offload.engine.context import Context
from offload.engine.formats.detection import FORMATS
from offload.engine.formats.format import ToolFormat, grammar
from offload.engine.formats.marker_tokens import MarkerVocabulary
from offload.engine.formats.parser import AnswerParser
from offload.engine.formats.tools import read_tools
from offload.engine.library import Model
from offload.engine.rules import GrammarRule, SchemaRule
from offload.engine.sampling import Sampler

pytestmark = pytest.mark.model

IDS = [one.name for one in FORMATS]
SENTENCES = {one.name: sentences(one.language(TOOLS, parallel=True)) for one in FORMATS}


@pytest.fixture(scope="module")
def model() -> Iterator[Model]:
    opened = Model(str(model_path()), extra_buffers=True)
    yield opened
    opened.close()


@pytest.mark.parametrize("source", FORMATS, ids=IDS)
@given(st.data())
@settings(max_examples=8, deadline=None, suppress_health_check=list(HealthCheck), database=None)
def test_llama_cpp_takes_the_grammar_and_its_sentences(source: ToolFormat, model: Model, data: st.DataObject) -> None:
    text = data.draw(SENTENCES[source.name])
    rule = GrammarRule(model, grammar(source, TOOLS, parallel=True))
    try:
        for token in model.tokenise(text, begin=False, control=False):
            assert rule.allowed(np.array([token]))[0]
            rule.accept(token)
        bell = model.tokenise("\x07", begin=False, control=False)
        assert not rule.allowed(np.array(bell[:1]))[0]
    finally:
        rule.close()


@pytest.mark.parametrize("source", FORMATS, ids=IDS)
@pytest.mark.parametrize("automaton", [False, True])
def test_the_smallest_model_makes_valid_calls_in_each_format(
    source: ToolFormat, model: Model, automaton: bool,
) -> None:
    """It never makes one by itself."""
    offered = read_tools([
        {"name": "calendar_list", "description": "Show appointments", "parameters": {
            "type": "object", "properties": {"when": {"type": "string", "maxLength": 12}, "most": {"type": "integer"}},
            "required": ["when", "most"]}},
    ])
    context = Context(model, context_tokens=512, sequences=1, threads=1)
    rule = SchemaRule(MarkerVocabulary(model, source.markers), Automaton(source.language(offered, parallel=False))) \
        if automaton else GrammarRule(model, grammar(source, offered, parallel=False))
    sampler = Sampler(model, temperature=0.0, top_p=1.0, seed=0, rule=rule)
    prompt = f"{source.describe(offered)}\n\nUser: what is on today? at most 3\nCall: "
    fed, position, written = model.tokenise(prompt, begin=True, control=False), 0, b""
    try:
        for _ in range(90):
            context.begin_batch()
            line = context.add(0, position, fed, want_last=True)
            assert context.decode() == 0
            position += len(fed)
            token = sampler.next(context, line)
            if token is None or token in model.end_tokens:
                break
            written += model.piece(token)
            fed = [token]
    finally:
        sampler.close()
        context.close()
    deltas = parse(AnswerParser(source, offered), written.decode(), (3,))
    call, = calls_of(deltas)
    assert (call.name, call.repairs, call.faults) == ("calendar_list", (), ())
    assert set(call.arguments) == {"when", "most"}
