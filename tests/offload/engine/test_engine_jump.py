"""Jumping ahead on a made-up vocabulary: the three seams by construction, and counts of decodes."""

import json
from collections.abc import Sequence
from typing import Any, cast

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from jump_words import CONTROL, END, PieceWords, WantingContext

from offload.engine.automaton import Automaton
from offload.engine.context import Context
from offload.engine.jump import JumpWriter
from offload.engine.rules import SchemaRule
from offload.engine.sampling import Sampler
from offload.errors import BadGrammar
from offload.schema import schema_language

CITY = {"type": "object", "required": ["city", "unit"], "properties": {
    "city": {"type": "string", "maxLength": 30}, "unit": {"enum": ["celsius", "fahrenheit"]}}}
NAME = {"type": "object", "required": ["name"], "properties": {"name": {"type": "string", "maxLength": 30}}}
PROMPT = [ord("?")]


def writer(words: PieceWords, schema: Any, *, so_far: str = "", jumps: bool = True, can_cut: bool = True) -> JumpWriter:
    rule = SchemaRule(words, Automaton(schema_language(schema)))
    sampler = Sampler(words, temperature=0.0, top_p=1.0, seed=0, rule=rule)
    sampler.follow(words.tokenise(so_far, begin=False, control=False))
    return JumpWriter(sampler, rule, words, jumps=jumps, can_cut=can_cut)


def wanting(words: PieceWords, text: str, then: Sequence[int] = (END,)) -> WantingContext:
    """Wants the pieces of this text, the longest that fits first; then other tokens."""
    data = text.encode()

    def wants(seen: bytes) -> list[int]:
        rest = data[len(seen) - 1:] if data.startswith(seen[1:]) else b""
        fitting = [token for token in range(words.size) if words.piece(token) and rest.startswith(words.piece(token))]
        return [*sorted(fitting, key=lambda token: -len(words.piece(token))), *then]

    return WantingContext(words, wants)


def write(jumper: JumpWriter, context: WantingContext, left: int = 200) -> list[int]:
    """The whole answer, as answer.py and scheduler.py would have it written."""
    feed, looks = [*PROMPT, *jumper.begin(left)], jumper.looks
    written: list[int] = []
    while len(written) < left:
        rows = context.decode(feed)
        advance = jumper.advance(cast("Context", context), rows[-looks:], left - len(written))
        context.take_back(advance.surplus)
        written += advance.tokens
        if advance.ended:
            return written
        feed, looks = list(advance.feed), advance.looks
        assert context.memory[1:] in (written, written[:-1]), "the memory holds the answer, but for what is pending"
    return written


def test_forced_text_costs_no_decode_and_the_end_is_not_sampled() -> None:
    words = PieceWords()
    text = '{"city": "Rome", "unit": "celsius"}'
    context = wanting(words, text)
    assert words.text_of(write(writer(words, CITY), context)) == text
    # prompt with the opening, R o m e, the quote, c with all the rest at the end: no decode behind it
    assert context.decodes == 6
    plain = wanting(words, text)
    assert words.text_of(write(writer(words, CITY, jumps=False), plain)) == text
    assert plain.decodes == len(text)


def test_the_first_forced_text_rides_with_the_prompt() -> None:
    words = PieceWords(['{"city": "'])
    jumper = writer(words, CITY)
    assert jumper.begin(200) == (words.id_of('{"city": "'),)


def test_head_a_sampled_token_is_replaced_by_one_that_covers_what_follows_it() -> None:
    words = PieceWords(['", "unit": "'])
    text = '{"city": "Rome", "unit": "celsius"}'
    bytewise = WantingContext(words, lambda seen: [text.encode()[len(seen) - 1], END])
    tokens = write(writer(words, CITY), bytewise)
    assert words.text_of(tokens) == text
    place = len('{"city": "Rome')
    assert tokens[place] == words.id_of('", "unit": "'), "the sampled quote was replaced"
    assert bytewise.memory[1:] == tokens[:len(bytewise.memory) - 1]


def test_tail_a_longer_token_takes_the_place_of_the_last_forced_one() -> None:
    words = PieceWords(['"Ro'])
    context = wanting(words, '{"name": "Rome"}')
    tokens = write(writer(words, NAME), context)
    assert words.text_of(tokens) == '{"name": "Rome"}'
    assert words.id_of('"Ro') in tokens
    assert tokens[:-2] == context.memory[1:], "the shorter quote is gone from the memory"


def test_tail_is_left_alone_where_the_memory_can_not_be_cut() -> None:
    words = PieceWords(['"Ro'])
    context = wanting(words, '{"name": "Rome"}')
    jumper = writer(words, NAME, can_cut=False)
    tokens = write(jumper, context)
    assert words.text_of(tokens) == '{"name": "Rome"}'
    assert words.id_of('"Ro') not in tokens


def test_tail_is_left_alone_once_the_memory_took_nothing_back() -> None:
    words = PieceWords(['"Ro'])
    context = wanting(words, '{"name": "Rome"}')
    jumper = writer(words, NAME)
    jumper.stay_plain()
    assert words.id_of('"Ro') not in write(jumper, context)


def test_a_tail_that_would_break_the_schema_is_not_taken() -> None:
    words = PieceWords(['"\n'])
    context = wanting(words, '{"name": "\nRome"}', then=(ord("R"), ord('"')))
    assert json.loads(words.text_of(write(writer(words, NAME), context)))


def test_an_answer_that_is_forced_whole_takes_one_decode() -> None:
    words = PieceWords()
    context = wanting(words, "")
    tokens = write(writer(words, {"const": {"a": 1}}), context)
    assert words.text_of(tokens) == '{"a": 1}'
    assert context.decodes == 1


def test_forced_text_that_begins_or_ends_within_a_character() -> None:
    words = PieceWords()
    for text in ('"é1"', '"è2"', '"é3"', '"日本"', '"旦本"'):
        context = wanting(words, text)
        schema = {"enum": ["é1", "è2", "é3", "日本", "旦本"]}
        assert words.text_of(write(writer(words, schema), context)) == text


def test_the_end_token_ends_only_where_the_text_may_end() -> None:
    words = PieceWords()
    context = wanting(words, "12")
    assert words.text_of(write(writer(words, {"type": "integer"}), context)) == "12"
    eager = WantingContext(words, lambda _seen: [END, ord("7"), ord('"')])
    assert json.loads(words.text_of(write(writer(words, NAME), eager))) == {"name": "7" * 30}


def test_a_control_token_never_gets_into_an_argument() -> None:
    words = PieceWords()
    pushy = WantingContext(words, lambda seen: [CONTROL, END, ord("x") if len(seen) < 14 else ord('"')])
    tokens = write(writer(words, NAME), pushy)
    assert CONTROL not in tokens
    assert json.loads(words.text_of(tokens))["name"].startswith("x")


@pytest.mark.parametrize("left", range(1, 36))
def test_it_never_goes_beyond_its_limit_nor_leaves_the_memory_behind(left: int) -> None:
    words = PieceWords(['", "', 'unit": "'])
    text = '{"city": "Rome", "unit": "celsius"}'
    context = wanting(words, text)
    tokens = write(writer(words, CITY), context, left=left)
    written = words.text_of(tokens[:left])
    assert len(tokens) <= left or text.startswith(written), "what was forced together may be cut"
    assert text.startswith(written) or json.loads(written)["unit"]
    assert len(context.memory) - 1 <= left


@pytest.mark.parametrize("at", range(len('{"city": "Rome", "unit": "celsius"}') + 1))
def test_it_goes_on_from_any_place(at: int) -> None:
    words = PieceWords(['", "', "Rome", 'unit": "'])
    text = '{"city": "Rome", "unit": "celsius"}'
    context = wanting(words, text[at:])
    tokens = write(writer(words, CITY, so_far=text[:at]), context)
    assert text[:at] + words.text_of(tokens) == text


def test_text_so_far_that_breaks_the_schema_is_refused() -> None:
    with pytest.raises(BadGrammar):
        writer(PieceWords(), CITY, so_far='{"town')


PIECES = st.lists(
    st.text(st.sampled_from(' {}[]":,abcnu1e'), min_size=2, max_size=5), max_size=12, unique=True)
SCHEMA = {"type": "object", "required": ["a", "b"], "properties": {
    "a": {"type": "string", "maxLength": 8}, "n": {"type": "integer", "minimum": 0, "maximum": 1200},
    "b": {"enum": ["abc", "abcc", "bc", None]}, "c": {"type": "array", "items": {"type": "boolean"}, "maxItems": 2}}}


@settings(deadline=None)
@given(PIECES, st.lists(st.integers(0, 2**16), min_size=3, max_size=3))
def test_whatever_the_vocabulary_and_the_wishes_the_answer_is_valid_and_the_memory_right(
    pieces: list[str], wishes: list[int],
) -> None:
    words = PieceWords(pieces)

    def wants(seen: bytes) -> list[int]:
        mixed = [(token * 40503 + wishes[len(seen) % 3]) % 65521 for token in range(words.size)]
        return sorted(range(words.size), key=mixed.__getitem__)

    for can_cut in (True, False):
        context = WantingContext(words, wants)
        tokens = write(writer(words, SCHEMA, can_cut=can_cut), context)
        value = json.loads(words.text_of(tokens))
        assert {"a", "b"} <= set(value) <= {"a", "n", "b", "c"}
        assert context.decodes <= len(tokens) + 1


@pytest.mark.parametrize("jumps", [True, False])
def test_it_comes_to_an_end_within_any_room_that_the_shortest_text_fits_in(jumps: bool) -> None:
    """A model that never closes its string, and one that makes every list longer."""
    words = PieceWords()
    lists = {"type": "object", "required": ["names", "city"], "properties": {
        "names": {"type": "array", "items": NAME}, "city": {"type": "string"}}}
    for schema, shortest, wish in ((CITY, '{"city": "", "unit": "celsius"}', b"a"),
                                   (lists, '{"names": [], "city": ""}', b", {")):
        for room in range(len(shortest) + 4, len(shortest) + 70, 3):
            context = WantingContext(words, lambda _seen, wish=wish: [*wish, END])  # type: ignore[misc]
            tokens = write(writer(words, schema, jumps=jumps), context, left=room)
            assert len(tokens) <= room
            json.loads(words.text_of(tokens))


def test_the_shortest_end_is_known_at_any_place_also_behind_what_is_forced() -> None:
    words = PieceWords()
    text = '{"city": "Rome", "unit": "celsius"}'
    for stop in range(1, 7):
        jumper, context = writer(words, CITY), wanting(words, text)
        written = list(jumper.begin(200))
        rows, tokens = context.decode([*PROMPT, *written]), []
        for _ in range(stop):
            advance = jumper.advance(cast("Context", context), rows[-jumper.looks:], 200)
            tokens += advance.tokens
            if advance.ended:
                break
            rows = context.decode(list(advance.feed))
        else:
            tokens += jumper.ending()
        json.loads(words.text_of(tokens))
