"""Drafting from the prompt: what is guessed, what stays, what it costs, and that the text is the undrafted one."""

import random
from collections.abc import Callable, Sequence
from typing import Any, cast

import pytest
from fake_context import FakeVocabulary
from hypothesis import given, settings
from hypothesis import strategies as st
from jump_words import PieceWords
from speaking_context import SpeakingContext

from offload.engine.answer import Answer
from offload.engine.automaton import Automaton
from offload.engine.context import Context
from offload.engine.drafts import DraftWriter, Lookup
from offload.engine.jump import JumpWriter
from offload.engine.rules import SchemaRule
from offload.engine.sampling import Sampler
from offload.engine.scheduler import Events, Scheduler
from offload.engine.writing import PlainWriter, Writer
from offload.ports import Finished, GenerateRequest, Piece, Started, TextPrompt
from offload.schema import schema_language

END = 0


def test_a_draft_is_what_followed_the_same_three_tokens_last() -> None:
    lookup = Lookup([1, 2, 3, 4, 5, 1, 2, 3, 6, 7, 9, 1, 2])
    assert lookup.following(4) == []
    lookup.add([3])
    assert lookup.following(4) == [6, 7, 9, 1]
    assert lookup.following(2) == [6, 7]
    lookup.add([6])
    assert lookup.following(9) == [7, 9, 1, 2, 3, 6]
    assert Lookup([1, 2]).following(3) == []
    assert Lookup([]).following(3) == []


def scheduler(context: SpeakingContext, slots: int = 8) -> Scheduler:
    return Scheduler(cast("Context", context), slots=slots, queue_limit=9, now_s=lambda: 0.0, model_digest="d")


def copying(prompt: Sequence[int], text: Sequence[int]) -> Callable[[Sequence[int]], Sequence[int]]:
    """A model that writes this text behind any prompt of this length, then ends."""
    def wants(tokens: Sequence[int]) -> list[int]:
        at = len(tokens) - len(prompt)
        return [text[at] if at < len(text) else END]
    return wants


def answer(name: str, prompt: Sequence[int], writer: Writer | None = None, *, most: int = 100, **more: Any) -> Answer:
    request = GenerateRequest(
        request_id=name, principal=more.pop("principal", "owner"), prompt=TextPrompt("x"), max_tokens=most, **more)
    vocabulary = FakeVocabulary()
    return Answer(
        request, vocabulary, writer or DraftWriter(prompt, vocabulary.control_tokens), prompt=prompt, replayed=(),
        context_tokens=1000)


def greedy() -> Writer:
    class Best(FakeVocabulary):
        end_tokens = frozenset({END})
    return PlainWriter(Sampler(Best(), temperature=0.0, top_p=1.0, seed=0))


def run(machine: Scheduler, steps: int = 400) -> Events:
    events: Events = []
    for _ in range(steps):
        if not machine.has_work:
            return events
        events += machine.step()
    raise AssertionError("it never ends")


def ids_of(events: Events, name: str) -> list[int]:
    return [token for who, event in events if who == name and isinstance(event, Piece) for token in event.token_ids]


SOURCE = [*range(30, 90)]


def test_a_copy_takes_a_fraction_of_the_decodes_and_is_the_same() -> None:
    prompt = [*SOURCE, 2, 3]
    context = SpeakingContext(wants=copying(prompt, SOURCE))
    machine = scheduler(context)
    machine.submit(answer("a", prompt))
    events = run(machine)
    assert ids_of(events, "a") == SOURCE
    assert events[-1][1].usage.output_tokens == len(SOURCE)  # type: ignore[union-attr]
    # the prompt, three more until four tokens are known, then 4 at once, then 8 each time
    assert context.decodes == 12
    assert max(tokens for batch in context.batches[1:] for _, tokens in batch) == 8
    plain = SpeakingContext(wants=copying(prompt, SOURCE))
    machine = scheduler(plain)
    machine.submit(answer("a", prompt, greedy()))
    assert ids_of(run(machine), "a") == SOURCE
    assert plain.decodes == len(SOURCE) + 1


def test_wrong_guesses_are_taken_out_of_the_memory_again() -> None:
    text = [*SOURCE[:10], 5, 6, 7, *SOURCE[10:20], 9, *SOURCE[30:40]]
    prompt = [*SOURCE, 2, 3]
    context = SpeakingContext(wants=copying(prompt, text))
    machine = scheduler(context)
    machine.submit(answer("a", prompt))
    assert ids_of(run(machine), "a") == text
    assert context.cuts
    assert context.memory[0][:len(prompt) + len(text)] == [*prompt, *text]


def test_the_next_prompt_finds_the_memory_as_it_is() -> None:
    prompt = [*SOURCE, 2, 3]
    context = SpeakingContext(wants=copying(prompt, SOURCE[:40]))
    machine = scheduler(context)
    machine.submit(answer("a", prompt))
    run(machine)
    longer = [*prompt, *SOURCE[:40], 4, 5]
    context.wants = copying(longer, [7])
    machine.submit(answer("b", longer))
    assert ("b", Started(len(longer), len(prompt) + 40, "d")) in run(machine)


def test_where_the_memory_takes_nothing_back_all_is_read_again_and_guessing_ends() -> None:
    text = [*SOURCE[:10], 5, 6, 7, *SOURCE[10:20], 9, *SOURCE[30:40]]
    prompt = [*SOURCE, 2, 3]
    context = SpeakingContext(wants=copying(prompt, text), refuse_cuts=1)
    machine = scheduler(context)
    machine.submit(answer("a", prompt))
    events = run(machine)
    assert ids_of(events, "a") == text
    assert len(context.cuts) == 1
    assert ("a", Started(len(prompt), 0, "d")) in events
    assert events[-1][1].usage.prompt_tokens == len(prompt)  # type: ignore[union-attr]
    again = next(at for at, batch in enumerate(context.batches) if at and batch[0][1] > 50)
    assert all(tokens == 1 for batch in context.batches[again + 1:] for _, tokens in batch)


@pytest.mark.parametrize("at", range(3, 12))
def test_a_draft_whose_decode_did_not_take_place_is_no_part_of_the_answer(at: int) -> None:
    """There were too few cells, so one of two answers had to wait and is read again later."""
    prompts = {"a": [*SOURCE, 2, 3], "b": [*reversed(SOURCE), 4, 5]}
    wants = {prompt[0]: copying(prompt, prompt[:30]) for prompt in prompts.values()}
    context = SpeakingContext(wants=lambda tokens: wants[tokens[0]](tokens), context_tokens=3000)
    machine = scheduler(context)
    for name, prompt in prompts.items():
        machine.submit(answer(name, prompt))
    events: Events = []
    for step in range(100):
        if step == at:
            context.results = [1]
        events += machine.step()
    for name, prompt in prompts.items():
        assert ids_of(events, name) == prompt[:30]
    for slot in machine._memory.slots:
        assert slot.tokens == context.memory.get(slot.sequence, [])


def test_short_turns_of_phrase_of_the_answer_itself_are_no_copies() -> None:
    """Seven equal tokens of its own are not enough, eight are; of the prompt three are not and four are."""
    for same, prompt_has_it in ((7, False), (8, False), (3, True), (4, True)):
        phrase = list(range(10, 10 + same))
        prompt = [*phrase, 70, 71, 72, 73] if prompt_has_it else [90, 91]
        writer = DraftWriter(prompt, frozenset())
        if not prompt_has_it:
            writer.skip([*phrase, 70, 71, 72, 73])
        writer.skip([80, *phrase])
        assert writer.guess(7) == ((70, 71, 72) if same in (4, 8) else ()), (same, prompt_has_it)


def test_guesses_that_fail_stop_for_a_while() -> None:
    """The same four tokens come again and again, each time with something else behind them."""
    text = [token for number in range(40) for token in (2, 3, 4, 5, 100 + number, 140 + number)]
    prompt = [2, 3, 4, 5, 9, 9, 9]
    context = SpeakingContext(wants=copying(prompt, text), context_tokens=2000)
    machine = scheduler(context)
    machine.submit(answer("a", prompt, most=300))
    assert ids_of(run(machine), "a") == text
    drafted = sum(tokens - 1 for batch in context.batches[1:] for _, tokens in batch)
    assert drafted < 0.35 * len(text)


@pytest.mark.parametrize(("others", "longest"), [(0, 8), (1, 7), (3, 5), (5, 1), (7, 1)])
def test_a_full_batch_is_not_filled_further_with_guesses(others: int, longest: int) -> None:
    prompt = [*SOURCE, 2, 3]
    wants = copying(prompt, SOURCE)
    context = SpeakingContext(
        wants=lambda tokens: wants(tokens) if tokens[0] == SOURCE[0] else [2 + len(tokens) % 20], context_tokens=5000)
    machine = scheduler(context)
    for number in range(others):
        machine.submit(answer(f"o{number}", [200 + number], greedy(), most=200))
    machine.step()
    machine.submit(answer("a", prompt))
    while not ids_of(machine.step(), "a"):
        pass
    before = len(context.batches)
    while machine.running > others:
        machine.step()
    seen = context.batches[before:]
    assert max(tokens for batch in seen for _, tokens in batch) == longest
    assert all(sum(tokens for _, tokens in batch) <= max(8, others + 1, longest) for batch in seen)


def test_a_draft_fills_the_tile_where_one_more_does() -> None:
    """Kernels take four tokens together: with four others 8 cost less than 7; where only 3 are known, none."""
    writer = DraftWriter([5, 6, 7, 8, 10, 11, 12, 13, 14, 15, 5, 6, 7, 8], frozenset())
    assert writer.guess(3) == (10, 11, 12)
    assert writer.guess(4) == (10, 11, 12, 13)
    assert writer.guess(5) == (10, 11, 12)
    short = DraftWriter([5, 6, 7, 8, 10, 11, 12, 5, 6, 7, 8], frozenset({5}))
    assert short.guess(3) == (10, 11, 12)
    assert short.guess(4) == ()


def test_nothing_is_guessed_while_a_prompt_is_read() -> None:
    prompt = [*SOURCE, 2, 3]
    wants = copying(prompt, SOURCE)
    context = SpeakingContext(wants=lambda tokens: wants(tokens) if tokens[0] == SOURCE[0] else [END])
    machine = scheduler(context)
    machine.submit(answer("a", prompt))
    for _ in range(7):
        machine.step()
    machine.submit(answer("b", [7] * 500))
    machine.step()
    assert context.batches[-1][0][1] == 1
    assert context.batches[-1][1][1] > 1


def test_no_draft_holds_a_control_token_or_goes_beyond_the_limit() -> None:
    assert DraftWriter([4, 5, 6, 7, 8, 9, 3, 1, 9, 4, 5, 6, 7], frozenset({0, 1})).guess(10) == (8, 9, 3)
    assert DraftWriter([4, 5, 6, 7, 8, 1, 9, 4, 5, 6, 7], frozenset({0, 1})).guess(10) == ()
    prompt = [*SOURCE, 2, 3]
    for most in range(1, 30):
        context = SpeakingContext(wants=copying(prompt, SOURCE))
        machine = scheduler(context)
        machine.submit(answer("a", prompt, most=most))
        events = run(machine)
        assert ids_of(events, "a") == SOURCE[:most]
        assert events[-1][1].finish_reason == "length"  # type: ignore[union-attr]
        assert len(context.memory[0]) <= len(prompt) + most


def test_a_stop_text_within_a_draft_ends_the_answer_there() -> None:
    prompt = [*SOURCE, 2, 3]
    context = SpeakingContext(wants=copying(prompt, SOURCE))
    machine = scheduler(context)
    letters = "".join(FakeVocabulary().piece(token).decode() for token in SOURCE)
    machine.submit(answer("a", prompt, stop=(letters[20:24],)))
    events = run(machine)
    assert "".join(event.text for _, event in events if isinstance(event, Piece)) == letters[:20]


def test_cancelled_between_guesses_nothing_more_is_decoded() -> None:
    prompt = [*SOURCE, 2, 3]
    context = SpeakingContext(wants=copying(prompt, SOURCE))
    machine = scheduler(context)
    machine.submit(answer("a", prompt))
    for _ in range(7):
        machine.step()
    decodes = context.decodes
    assert isinstance(machine.cancel("a")[0][1], Finished)
    assert not machine.has_work
    assert machine.step() == []
    assert context.decodes == decodes


@settings(deadline=None)
@given(st.integers(0, 2**32), st.integers(3, 12), st.integers(1, 6))
def test_drafted_and_undrafted_text_are_the_same(seed: int, alphabet: int, streams: int) -> None:
    """On a model whose choice depends on the whole sequence, so that one wrong token in the memory changes the rest."""
    def wants(tokens: Sequence[int]) -> list[int]:
        choice = random.Random(hash((seed, tuple(tokens[-2:]), len(tokens) // 9)))
        return [choice.choice([*([END] if len(tokens) > 40 else []), *range(2, 2 + alphabet)])]

    texts = []
    for drafted in (True, False):
        context = SpeakingContext(wants=wants, context_tokens=3000)
        machine = scheduler(context)
        for number in range(streams):
            prompt = [2 + (number + step) % alphabet for step in range(12)]
            machine.submit(answer(f"r{number}", prompt, None if drafted else greedy(), most=80))
        events = run(machine)
        texts.append([ids_of(events, f"r{number}") for number in range(streams)])
        for slot in machine._memory.slots:
            assert slot.tokens == context.memory.get(slot.sequence, [])
    assert texts[0] == texts[1]


SCHEMA = {"type": "object", "required": ["city", "unit"], "properties": {
    "city": {"type": "string", "maxLength": 30}, "unit": {"enum": ["celsius", "fahrenheit"]}}}


def jumping(words: PieceWords, can_cut: bool = True) -> JumpWriter:
    rule = SchemaRule(words, Automaton(schema_language(SCHEMA)))
    sampler = Sampler(words, temperature=0.0, top_p=1.0, seed=0, rule=rule)
    return JumpWriter(sampler, rule, words, jumps=True, can_cut=can_cut)


def spelling(words: PieceWords, text: str) -> Callable[[Sequence[int]], Sequence[int]]:
    """A model that writes this text behind a prompt of three tokens, longest pieces first; others go on for ever."""
    data = text.encode()

    def wants(tokens: Sequence[int]) -> list[int]:
        if tokens[0] != ord("#"):
            return [ord("a") + len(tokens) % 20]
        seen = b"".join(map(words.piece, tokens[3:]))
        rest = data[len(seen):] if data.startswith(seen) else b""
        fits = [token for token in range(words.size) if words.piece(token) and rest.startswith(words.piece(token))]
        return [*sorted(fits, key=lambda token: -len(words.piece(token))), 256]
    return wants


@pytest.mark.parametrize(("refused", "can_cut"), [(0, True), (1, True), (0, False)])
def test_jumps_share_decodes_with_plain_answers_and_keep_the_memory_right(refused: int, can_cut: bool) -> None:
    words = PieceWords(['"Ro', '", "'])
    text = '{"city": "Rome", "unit": "celsius"}'
    context = SpeakingContext(wants=spelling(words, text), refuse_cuts=refused, context_tokens=4000)
    machine = scheduler(context)

    def ask(name: str, prompt: list[int], writer: Writer) -> Answer:
        request = GenerateRequest(request_id=name, prompt=TextPrompt("x"), max_tokens=60)
        return Answer(request, words, writer, prompt=prompt, replayed=(), context_tokens=1000)

    prompt = [*b"#??"]
    machine.submit(ask("plain", [*b"abc"], PlainWriter(Sampler(words, temperature=0.0, top_p=1.0, seed=0))))
    machine.submit(ask("jump", prompt, jumping(words, can_cut)))
    machine.submit(ask("again", prompt, jumping(words, can_cut)))
    events = run(machine)
    for name in ("jump", "again"):
        assert "".join(e.text for who, e in events if who == name and isinstance(e, Piece)) == text
        last = [e for who, e in events if who == name][-1]
        assert isinstance(last, Finished)
        assert last.finish_reason == "stop"
        assert last.usage.prompt_tokens == 3
        assert last.usage.output_tokens == len(ids_of(events, name))
    assert len(ids_of(events, "plain")) == 60
    jumped = [tokens for batch in context.batches for sequence, tokens in batch if sequence == 1]
    assert len(jumped) <= 0.4 * len(ids_of(events, "jump"))
    for slot in machine._memory.slots:
        assert slot.tokens == context.memory.get(slot.sequence, [])
