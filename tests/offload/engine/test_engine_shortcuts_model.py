"""Schemas, jumps and drafts on the real embedded model, against llama.cpp's own grammar and the plain way."""

import json
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from embedded_model import model_path
from tiny_hybrid import make_hybrid

from node.agent.copy_grammar import copy_grammar, parse_copy
from offload.engine.automaton import Automaton
from offload.engine.chat import PromptReader
from offload.engine.context import Context
from offload.engine.library import Model
from offload.engine.preparation import prepare_answer
from offload.engine.rules import GrammarRule, SchemaRule
from offload.engine.sampling import Sampler
from offload.engine.scheduler import Events, Scheduler
from offload.errors import BadGrammar
from offload.language import to_gbnf
from offload.ports import ChatPrompt, Finished, GenerateRequest, Message, Piece, TextPrompt
from offload.schema import schema_language

pytestmark = pytest.mark.model


def tool(name: str, properties: dict[str, Any], required: list[str]) -> dict[str, Any]:
    return {"type": "object", "required": ["name", "arguments"], "properties": {
        "name": {"const": name},
        "arguments": {"type": "object", "properties": properties, "required": required}}}


CALL = {"anyOf": [
    tool("get_weather", {
        "city": {"type": "string", "maxLength": 24}, "days": {"type": "integer", "minimum": 1, "maximum": 14},
        "unit": {"enum": ["celsius", "fahrenheit"]}}, ["city", "unit"]),
    tool("send_message", {"to": {"type": "string", "maxLength": 24}, "text": {"type": "string", "maxLength": 60},
                          "urgent": {"type": "boolean"}}, ["to", "text"]),
    tool("set_timer", {"minutes": {"type": "number", "minimum": 0, "maximum": 600}}, ["minutes"]),
]}
SHOWN = (
    ("How cold is it in Oslo?", "get_weather", {"city": "Oslo", "unit": "celsius"}),
    ("Write to Ben: see you at six", "send_message", {"to": "Ben", "text": "see you at six"}),
    ("Wake me in 8 minutes", "set_timer", {"minutes": 8}),
    ("Weather in Austin for 3 days in fahrenheit", "get_weather", {"city": "Austin", "days": 3, "unit": "fahrenheit"}),
    ("Quickly tell Mia the door is open", "send_message", {"to": "Mia", "text": "the door is open", "urgent": True}),
)
ASKED = ("What is the weather in Paris, in celsius?", "Tell Anna that I am late.", "Set a timer for 20 minutes.")
SHOTS = "".join(
    f"Request: {text}\nCall:\n{json.dumps({'name': name, 'arguments': arguments})}\n\n"
    for text, name, arguments in SHOWN)


@pytest.fixture(scope="module")
def model() -> Iterator[Model]:
    opened = Model(str(model_path()), extra_buffers=True)
    yield opened
    opened.close()


@pytest.fixture
def context(model: Model) -> Iterator[Context]:
    opened = Context(model, context_tokens=2048, sequences=4, threads=2)
    yield opened
    opened.close()


def request(text: str, name: str = "r", **more: Any) -> GenerateRequest:
    prompt = TextPrompt(f"{SHOTS}Request: {text}\nCall:\n")
    return GenerateRequest(**({"request_id": name, "prompt": prompt, "max_tokens": 96} | more))


def answered(model: Model, context: Context, *requests: GenerateRequest, exact: bool = False) -> tuple[Events, int]:
    """The events of these requests at once on an empty context, and how many decodes they took."""
    for sequence in range(4):
        context.forget(sequence)
    machine = Scheduler(context, slots=1 if exact else 4, queue_limit=9, now_s=lambda: 0.0, exact=exact)
    before = context.decodes
    events: Events = []
    for one in requests:
        events += machine.submit(prepare_answer(one, model, PromptReader(model), context_tokens=2048))
    for _ in range(1000):
        if not machine.has_work:
            break
        events += machine.step()
    assert not machine.has_work, "it never ends"
    return events, context.decodes - before


def text_of(events: Events, name: str = "r") -> str:
    return "".join(event.text for who, event in events if who == name and isinstance(event, Piece))


def ids_of(events: Events, name: str = "r") -> list[int]:
    return [token for who, event in events if who == name and isinstance(event, Piece) for token in event.token_ids]


class Rows:
    """Logits that the test makes up."""

    def __init__(self, logits: Any) -> None:
        self._logits = logits

    def logits(self, _row: int) -> Any:
        return self._logits


@pytest.mark.parametrize("seed", range(4))
def test_choices_are_those_of_llama_cpps_grammar_at_random_states(model: Model, seed: int) -> None:
    """Both rules say the same of every token at each state of a random text, and so choose and draw the same token.

    The grammar would let control tokens into strings as the text they are printed as; those apart.
    """
    language = schema_language(CALL)
    chance = np.random.default_rng(seed)
    everything = np.array([token for token in range(model.size) if token not in model.control_tokens])
    temperature = 0.0 if seed % 2 == 0 else 1.0
    schema, grammar = SchemaRule(model, Automaton(language)), GrammarRule(model, to_gbnf(language))
    samplers = [
        Sampler(model, temperature=temperature, top_p=0.95, seed=seed, rule=rule) for rule in (schema, grammar)]
    states = 0
    while not schema.done and states < 40:
        if states % 8 == 0:     # over all tokens it costs the grammar 10 ms, and finding out the automaton's states 50
            flags = schema.allowed(everything)
            assert np.array_equal(flags, grammar.allowed(everything))
        logits = chance.normal(size=model.size).astype(np.float32) * 4
        if chance.random() < 0.8:       # mostly something allowed is likely, as with a model that knows the form
            some = chance.choice(everything, size=2000)
            logits[some[schema.allowed(some)][:3]] += 12
        tokens = [sampler.choose(Rows(logits), 0) for sampler in samplers]  # type: ignore[arg-type]
        assert tokens[0] == tokens[1]
        assert tokens[0] is not None
        for sampler in samplers:
            sampler.accept(tokens[0])
        states += 1
    for sampler in samplers:
        sampler.close()
    assert states > 10


def test_the_first_allowed_one_in_falling_order_is_the_best_under_the_rule(model: Model) -> None:
    """Where none of the best 64 is allowed the whole vocabulary is looked at."""
    rule = SchemaRule(model, Automaton(schema_language(CALL)))
    sampler = Sampler(model, temperature=0.0, top_p=1.0, seed=0, rule=rule)
    logits = np.random.default_rng(3).normal(size=model.size).astype(np.float32)
    allowed = [token for token in range(model.size) if rule.allowed(np.array([token]))[0]]
    assert 0 < len(allowed) < 64
    logits[allowed] = -50.0
    logits[allowed[1]] = -49.0
    assert sampler.choose(Rows(logits), 0) == allowed[1]  # type: ignore[arg-type]


def test_a_control_token_never_gets_into_an_argument(model: Model) -> None:
    rule = SchemaRule(model, Automaton(schema_language(CALL)))
    inside = b'{"name": "get_weather", "arguments": {"city": "Par'
    rule.state = rule.behind(rule.state, inside)
    sampler = Sampler(model, temperature=0.0, top_p=1.0, seed=0, rule=rule)
    sampler._never = np.array([], dtype=np.int64)       # the automaton must do it alone
    for token in model.control_tokens:
        logits = np.zeros(model.size, dtype=np.float32)
        logits[token] = 100.0
        assert sampler.choose(Rows(logits), 0) not in model.control_tokens  # type: ignore[arg-type]
    grammar = GrammarRule(model, to_gbnf(schema_language(CALL)))
    for token in model.tokenise(inside.decode(), begin=False, control=False):
        grammar.accept(token)
    let_through = grammar.allowed(np.array(sorted(model.control_tokens - model.end_tokens)))
    assert let_through.any(), "the negative control: the same language as a grammar lets some through"
    grammar.close()


def test_jumping_takes_at_most_two_fifths_of_a_decode_per_token(model: Model, context: Context) -> None:
    decodes = tokens = 0
    for text in ASKED:
        events, count = answered(model, context, request(text, schema=json.dumps(CALL)))
        call = json.loads(text_of(events))
        assert call["name"] in {"get_weather", "send_message", "set_timer"}
        last = events[-1][1]
        assert isinstance(last, Finished)
        assert last.finish_reason == "stop"
        assert last.usage.output_tokens == len(ids_of(events))
        assert model.text_of(tuple(ids_of(events))).decode() == text_of(events)
        decodes, tokens = decodes + count, tokens + len(ids_of(events))
    assert decodes <= 0.4 * tokens


def test_jumped_and_plain_calls_are_of_one_language_and_mostly_the_same(model: Model, context: Context) -> None:
    same = 0
    for text in ASKED[::2]:
        jumped, few = answered(model, context, request(text, schema=json.dumps(CALL)))
        plain, many = answered(model, context, request(text, schema=json.dumps(CALL), shortcuts=False))
        by_grammar, _ = answered(
            model, context, request(text, grammar=to_gbnf(schema_language(CALL)), shortcuts=False))
        assert text_of(plain) == text_of(by_grammar), "one token at a time, the rule alone makes no difference"
        assert few < 0.5 * many
        same += text_of(jumped) == text_of(plain)
    assert same >= 1        # near ties may flip with the shape of a decode


def test_the_agents_copy_grammar_is_jumped_through_too(model: Model, context: Context) -> None:
    words = "Remind me to call Anna about the broken dishwasher on Friday at noon"
    prompt = ChatPrompt((Message("system", "Copy the errand from the request, word for word. Answer as JSON."),
                         Message("user", words)))
    asked = {"prompt": prompt, "grammar": copy_grammar(words), "max_tokens": 48}
    quick, few = answered(model, context, request("", **asked))
    plain, many = answered(model, context, request("", **asked, shortcuts=False))
    assert parse_copy(text_of(quick), words)
    assert parse_copy(text_of(plain), words)
    assert few < len(ids_of(quick))
    assert many > len(ids_of(plain))


def test_calls_and_a_chat_at_once(model: Model, context: Context) -> None:
    requests = [request(text, f"c{number}", schema=json.dumps(CALL)) for number, text in enumerate(ASKED)]
    events, decodes = answered(
        model, context, *requests, request("Tell me about the sea.", "chat", max_tokens=12))
    for number in range(len(ASKED)):
        json.loads(text_of(events, f"c{number}"))
    assert len(ids_of(events, "chat")) == 12
    assert decodes < 40


def test_a_call_goes_on_behind_any_part_of_it(model: Model, context: Context) -> None:
    whole = text_of(answered(model, context, request(ASKED[0], schema=json.dumps(CALL)))[0])
    for at in random.Random(1).sample(range(1, len(whole)), 4):
        events, _ = answered(model, context, request(ASKED[0], schema=json.dumps(CALL), text_so_far=whole[:at]))
        json.loads(whole[:at] + text_of(events))
    events, _ = answered(model, context, request(ASKED[0], schema=json.dumps(CALL), text_so_far=whole))
    assert text_of(events) == ""


def test_drawn_calls_are_valid(model: Model, context: Context) -> None:
    texts = set()
    for seed in range(3):
        events, _ = answered(
            model, context, request(ASKED[1], schema=json.dumps(CALL), temperature=1.5, seed=seed, max_tokens=200))
        texts.add(text_of(events))
        json.loads(text_of(events))
    assert len(texts) > 1


def test_the_exact_lane_writes_a_call_one_token_at_a_time_and_goes_on_with_the_same_ids(
    model: Model, context: Context,
) -> None:
    exact = request(ASKED[0], schema=json.dumps(CALL), lane="exact")
    events, decodes = answered(model, context, exact, exact=True)
    ids = ids_of(events)
    json.loads(text_of(events))
    assert decodes >= len(ids)
    for at in (11, len(ids) - 2):
        so_far = tuple(ids[:at])
        later = request(ASKED[0], schema=json.dumps(CALL), lane="exact", token_ids_so_far=so_far,
                        text_so_far=model.text_of(so_far).decode())
        assert ids_of(answered(model, context, later, exact=True)[0]) == ids[at:]


STORY = ("The harbour was quiet when Marta tied up the boat. Two gulls stood on the wall and watched her. She had "
         "caught nothing but a boot and a bottle, and the bottle had a letter in it, dated the third of May 1911.")


def test_a_copy_is_drafted_and_is_a_copy(model: Model, context: Context) -> None:
    prompt = ChatPrompt((Message("user", f"Repeat this text word for word:\n\n{STORY}"),))
    drafted, few = answered(model, context, request("", prompt=prompt, max_tokens=60))
    plain, many = answered(model, context, request("", prompt=prompt, max_tokens=60, shortcuts=False))
    # kernels for one token and for several round differently, so a near tie may go the other way later on
    assert text_of(drafted)[:80] == text_of(plain)[:80] == STORY[:80]
    assert few < 0.7 * many


def test_the_memory_after_drafts_is_the_text(model: Model, context: Context) -> None:
    """The next token after a drafted answer, read from its memory, is that of reading all of it anew."""
    machine = Scheduler(context, slots=1, queue_limit=9, now_s=lambda: 0.0)
    first = GenerateRequest(request_id="r", prompt=TextPrompt(f"{STORY}\n\n{STORY[:80]}"), max_tokens=30)
    answer = prepare_answer(first, model, PromptReader(model), context_tokens=2048)
    machine.submit(answer)
    events: Events = []
    for _ in range(100):
        events += machine.step()
    slot = next(slot for slot in machine._memory.slots if slot.tokens)
    logits = []
    wrong = [*slot.tokens[:-9], 11, *slot.tokens[-8:], 11]
    for sequence, tokens, position in (
        (slot.sequence, [11], len(slot.tokens)), (2, [*slot.tokens, 11], 0), (3, wrong, 0),
    ):
        context.begin_batch()
        row = context.add(sequence, position, tokens, want_last=1)
        assert context.decode() == 0
        logits.append(context.logits(row).copy())
    assert logits[0].argmax() == logits[1].argmax()
    apart = [float(np.abs(logits[0] - other).mean()) for other in logits[1:]]
    assert apart[0] < apart[1] / 2, "as far apart as kernels for other shapes are, and nearer than one other token"


@pytest.mark.parametrize("schema", [
    {"$ref": "#/$defs/leaf", "$defs": {"leaf": {"enum": ["oak", "elm"]}}},
    {"type": "string", "pattern": "^[a-c]{2}$"},
])
def test_a_schema_beyond_the_automaton_goes_by_way_of_a_grammar(
    model: Model, context: Context, schema: dict[str, Any],
) -> None:
    events, _ = answered(model, context, request("Which tree?", schema=json.dumps(schema), max_tokens=30))
    assert json.loads(text_of(events)) in ("oak", "elm", *(a + b for a in "abc" for b in "abc"))


def deep(levels: int) -> dict[str, Any]:
    inner: dict[str, Any] = {"type": "null"}
    for _ in range(levels):
        inner = {"type": "object", "required": [f"p{n}" for n in range(128)], "properties": {
            **{f"p{n}": {"type": "null"} for n in range(127)}, "p127": inner}}
    return inner


@pytest.mark.parametrize("more", [
    {"schema": json.dumps(deep(9))},
    {"schema": "{"}, {"schema": '{"type": "integer", "multipleOf": 3}'}, {"schema": '{"$ref": "#/nowhere"}'},
    {"schema": '{"type": "null"}', "grammar": 'root ::= "a"'}, {"schema": '{"type": "null"}', "text_so_far": "nil"},
    {"schema": '{"type": "string", "pattern": "("}'}, {"schema": '{"anyOf": [{"$ref": "https://127.0.0.1:1/a"}]}'},
    {"schema": '{"type": "string", "pattern": "[a"}'}, {"schema": '{"type": "string", "pattern": "a{3"}'},
    {"schema": '{"allOf": 3}'}, {"schema": '{"$ref": 3}'}, {"schema": '{"type": "string", "pattern": 7}'},
    {"schema": '{"$ref": "#/a/b", "a": []}'},
])
def test_a_schema_that_can_not_be_used_is_refused(model: Model, more: dict[str, Any]) -> None:
    with pytest.raises(BadGrammar):
        prepare_answer(request("x", **more), model, PromptReader(model), context_tokens=2048)


def test_a_hybrid_model_jumps_without_taking_anything_back_and_drafts_nothing(tmp_path: Path) -> None:
    hybrid = Model(str(make_hybrid(model_path(), tmp_path / "tiny.gguf")), extra_buffers=True)
    context = Context(hybrid, context_tokens=2048, sequences=4, threads=1)
    cuts: list[int] = []
    cut = context.cut
    context.cut = lambda sequence, keep: cuts.append(keep) or cut(sequence, keep)  # type: ignore[method-assign,func-returns-value]
    events, decodes = answered(hybrid, context, request(ASKED[0], schema=json.dumps(CALL), max_tokens=400))
    json.loads(text_of(events))
    assert decodes < len(ids_of(events))
    events, decodes = answered(hybrid, context, request("", prompt=TextPrompt(STORY * 2), max_tokens=20))
    assert decodes >= len(ids_of(events))
    assert not cuts
    context.close()
    hybrid.close()
