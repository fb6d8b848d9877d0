"""GBNF read as languages: what the automaton takes is what the grammar says, and what is not plain is left alone."""

import contextlib
import json
import random

import numpy as np
import pytest
from embedded_model import model_path
from hypothesis import given, settings
from hypothesis import strategies as st

from node.agent.copy_grammar import copy_grammar, parse_copy
from offload.engine.automaton import Automaton
from offload.engine.gbnf import language_of_grammar
from offload.engine.library import Model
from offload.engine.rules import GrammarRule, SchemaRule, rule_for
from offload.language import to_gbnf
from offload.schema import BeyondAutomaton, schema_language

OBJECT = r'''root ::= "{\"name\": \"" [^"\\\x00-\x1f]{1,24} "\", \"count\": " [1-9] [0-9]{0,3} "}"'''


def takes(grammar: str, text: str) -> bool:
    machine = Automaton(language_of_grammar(grammar))
    state = machine.walk(machine.start, text.encode())
    return state is not None and state.may_end


@pytest.mark.parametrize(("grammar", "right", "wrong"), [
    ('root ::= "a"', ["a"], ["", "aa", "b"]),
    ('root ::= "a" | "b" "c" | ""', ["a", "bc", ""], ["b", "abc"]),
    ('root ::= a-b c*  # what it is\n\na-b ::= ("x"\n  | "y")+ # more\nc ::= [0-9a-c]?  "!"',
     ["x", "yx1!", "y!b!"], ["", "!"]),
    (r'root ::= "\"\\\n\t\x41\u00e9\U0001F642"', ['"\\\n\tAé🙂'], ["A"]),
    (r'root ::= [^\n"]{2} .', ["aé\n", "🙂a\""], ["a\na", "ab"]),
    ("root ::= [a-]{1,2} [\\]x]{2,}", ["a]x", "--]]]x"], ["a]", "aaa]]"]),
    ("root ::= [0-9]+ (\"e\" [+-]? [0-9]+)?", ["1", "12e-3", "1e5"], ["e", "1e"]),
    (OBJECT, ['{"name": "pear", "count": 3}'], ['{"name": "", "count": 3}', '{"name": "a", "count": 0}']),
])
def test_it_takes_what_the_grammar_says(grammar: str, right: list[str], wrong: list[str]) -> None:
    for text in right:
        assert takes(grammar, text), text
    for text in wrong:
        assert not takes(grammar, text), text


@pytest.mark.parametrize("grammar", [
    'root ::= "a" root | "b"', "root ::= missing", 'other ::= "a"', "root ::= [é]", 'root ::= ("a"?)*', 'root ::= "a',
    'root ::= <[5]>', 'root ::= ("a"', r'root ::= "\q"', "root ::= []", 'root ::= "a" root ::= "b"',
    'root ::= "a"{9999999}',
    'root ::= "a"\nroot ::= "b"', "x" * 100, "", r'root ::= "\ud800"', 'root ::= "a"{3,2}', "root ::= *",
])
def test_what_is_not_plain_is_left_to_llama_cpp(grammar: str) -> None:
    with pytest.raises(BeyondAutomaton):
        language_of_grammar(grammar)


@settings(deadline=None)
@given(st.text('root:=" |()[]{}*+?\\x41a-\n#,1', max_size=40))
def test_any_text_is_read_or_left_alone(text: str) -> None:
    with contextlib.suppress(BeyondAutomaton):
        language_of_grammar(f"root ::= {text}")


WORDS = "Remind me to call Anna's brother, the \"quick\" one, on Friday; café at 5."


def test_every_copy_is_taken_and_nothing_else() -> None:
    grammar = copy_grammar(WORDS)
    words = WORDS.split()
    for begin in range(len(words)):
        for end in range(begin + 1, len(words) + 1):
            run = json.dumps({"text": " ".join(words[begin:end]).rstrip(".,;\"")}, ensure_ascii=False)
            assert takes(grammar, run), run
    for wrong in ("Remind to call", "Anna Anna", "", "me  to"):
        assert not takes(grammar, json.dumps({"text": wrong}))


def test_a_language_written_as_gbnf_is_read_back() -> None:
    schema = {"type": "object", "required": ["b"], "properties": {
        "a": {"type": "string", "maxLength": 5}, "b": {"type": "array", "items": {"type": "number"}, "maxItems": 3},
        "c": {"enum": ["é", 'x"y', None]}}}
    machine = Automaton(language_of_grammar(to_gbnf(schema_language(schema))))
    reference = Automaton(schema_language(schema))
    for seed in range(50):
        choice, state, other, text = random.Random(seed), reference.start, machine.start, bytearray()
        while not reference.done(state):
            assert state.next_bytes == other.next_bytes
            assert state.may_end == other.may_end
            options = [byte for byte in range(256) if state.next_bytes >> byte & 1]
            byte = choice.choice([byte for byte in options if byte in b'"]},'] or options)
            text.append(byte)
            following, beside = reference.walk(state, bytes([byte])), machine.walk(other, bytes([byte]))
            assert following is not None
            assert beside is not None
            state, other = following, beside
        assert machine.done(other)
        json.loads(text)


def test_a_grammar_made_to_be_ambiguous_has_an_end() -> None:
    machine = Automaton(language_of_grammar('root ::= (("a"{1,900}){1,900}){1,900}'))
    state = machine.walk(machine.start, b"a" * 150)
    assert state is None or len(machine._states) < 1000


@pytest.mark.model
def test_a_plain_grammar_allows_what_llama_cpp_allows() -> None:
    model = Model(str(model_path()), extra_buffers=True)
    everything = np.array([token for token in range(model.size) if token not in model.control_tokens])
    for grammar, text in (
        (copy_grammar(WORDS), '{"text": "Anna\'s brother, the \\"quick\\"'), (OBJECT, '{"name": "pear", '),
    ):
        quick = rule_for(model, grammar=grammar, schema=None, quick=True)
        slow = rule_for(model, grammar=grammar, schema=None)
        assert isinstance(quick, SchemaRule)
        assert isinstance(slow, GrammarRule)
        ids = model.tokenise(text, begin=False, control=False)
        for token in [*ids, -1]:
            assert np.array_equal(quick.allowed(everything), slow.allowed(everything))
            if token >= 0:
                quick.accept(token)
                slow.accept(token)
        slow.close()
    assert isinstance(rule_for(model, grammar='root ::= "a" root | "b"', schema=None, quick=True), GrammarRule)
    assert parse_copy('{"text": "call Anna"}', WORDS) == "call Anna"
    model.close()
