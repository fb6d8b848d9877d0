"""Jumps, drafts and plain answers of several principals at once, cancelled, resting and refused at random: each answer
is the one that it is alone, and the memory is what the scheduler believes."""

import json
import random
from collections.abc import Sequence
from typing import cast

from hypothesis import given, settings
from hypothesis import strategies as st
from jump_words import CONTROL, END, PieceWords
from speaking_context import SpeakingContext

from offload.engine.answer import Answer
from offload.engine.automaton import Automaton
from offload.engine.context import Context
from offload.engine.drafts import DraftWriter
from offload.engine.jump import JumpWriter
from offload.engine.rules import SchemaRule
from offload.engine.sampling import Sampler
from offload.engine.scheduler import Events, Scheduler
from offload.engine.writing import PlainWriter, Writer
from offload.ports import Failed, Finished, GenerateRequest, Piece, TextPrompt
from offload.schema import schema_language

WORDS = PieceWords(['"a', '", "', '": ', "ab", "bc", "cab", "}]"])
SCHEMA = {"type": "object", "required": ["name", "kind"], "properties": {
    "name": {"type": "string", "maxLength": 9}, "many": {"type": "integer", "minimum": 0, "maximum": 300},
    "kind": {"enum": ["abc", "abd", "cab"]}}}
LANGUAGE = schema_language(SCHEMA)


def wants(seed: int, tokens: Sequence[int]) -> list[int]:
    """Of few letters, so that texts repeat, and of all that was written before, so that a wrong memory shows."""
    choice = random.Random(hash((seed, sum(tokens) % 97, tuple(tokens[-2:]))))
    order = [*b'abcab"0123', WORDS.id_of("ab"), WORDS.id_of('"a'), WORDS.id_of('", "')]
    choice.shuffle(order)
    return [END, *order] if len(tokens) > 50 and choice.random() < 0.1 else order


def writer(kind: str, prompt: list[int]) -> Writer:
    if kind == "draft":
        return DraftWriter(prompt, WORDS.control_tokens)
    if kind == "plain":
        return PlainWriter(Sampler(WORDS, temperature=0.0, top_p=1.0, seed=0))
    rule = SchemaRule(WORDS, Automaton(LANGUAGE))
    sampler = Sampler(WORDS, temperature=0.0, top_p=1.0, seed=0, rule=rule)
    return JumpWriter(sampler, rule, WORDS, jumps=True, can_cut=True)


def answer(name: str, kind: str, prompt: list[int], who: str) -> Answer:
    request = GenerateRequest(request_id=name, principal=who, prompt=TextPrompt("x"), max_tokens=40)
    return Answer(request, WORDS, writer(kind, prompt), prompt=prompt, replayed=(), context_tokens=400)


def scheduler(context: SpeakingContext) -> Scheduler:
    return Scheduler(cast("Context", context), slots=3, queue_limit=99, now_s=lambda: 0.0, model_digest="d", kept=2)


def ids_of(events: Events, name: str) -> list[int]:
    return [token for who, event in events if who == name and isinstance(event, Piece) for token in event.token_ids]


def alone(seed: int, kind: str, prompt: list[int]) -> list[int]:
    machine = scheduler(SpeakingContext(wants=lambda tokens: wants(seed, tokens), context_tokens=2000, size=WORDS.size))
    machine.submit(answer("x", kind, prompt, "owner"))
    events: Events = []
    for _ in range(200):
        events += machine.step()
    return ids_of(events, "x")


@settings(deadline=None, max_examples=60)
@given(st.integers(0, 2**32))
def test_company_changes_no_answer_and_the_memory_is_what_is_believed(seed: int) -> None:
    chance = random.Random(seed)
    context = SpeakingContext(wants=lambda tokens: wants(seed, tokens), context_tokens=2000, size=WORDS.size)
    machine = scheduler(context)
    asked: dict[str, tuple[str, list[int]]] = {}
    gone: set[str] = set()
    events: Events = []
    for step in range(600):
        roll = chance.random()
        if len(asked) < 10 and roll < 0.15:
            name, kind = f"r{step}", chance.choice(["jump", "jump", "draft", "plain"])
            prompt = [*b"xyz"[:chance.randrange(1, 4)], *chance.choices(b"abc", k=chance.randrange(2, 30))]
            asked[name] = kind, prompt
            events += machine.submit(answer(name, kind, prompt, chance.choice(["owner", "peer-1", "peer-2"])))
        elif asked and roll < 0.17:
            name = chance.choice(list(asked))
            gone.add(name)
            events += machine.cancel(name)
        elif roll < 0.2:
            context.refuse_cuts = 1
        elif roll < 0.22 and machine.running > 1:
            context.results = [1]
        events += machine.step()
        for slot in machine._memory.slots:
            assert slot.tokens == context.memory.get(slot.sequence, [])
    assert not machine.has_work
    for name, (kind, prompt) in asked.items():
        last = [event for who, event in events if who == name][-1]
        assert isinstance(last, Finished), last
        ids = ids_of(events, name)
        assert CONTROL not in ids
        if name not in gone and kind != "jump":
            assert ids == alone(seed, kind, prompt)
        if name not in gone and kind == "jump":
            assert last.finish_reason == "stop"
            assert set(json.loads(WORDS.text_of(ids))) >= {"name", "kind"}
        assert last.usage.output_tokens == len(ids)
    assert not any(isinstance(event, Failed) for _, event in events)
