"""One turn written with guesses, forced text and words in the model's place: the same text as without, whole memory."""

from collections.abc import Sequence
from typing import Any, cast

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from jump_words import CONTROL, END, PieceWords, WantingContext

from offload.engine.automaton import Automaton
from offload.engine.context import Context
from offload.engine.drafts import DraftWriter
from offload.engine.formats.detection import FORMATS
from offload.engine.formats.parser import AnswerParser
from offload.engine.formats.tools import Tool, read_tools
from offload.engine.jump import JumpWriter
from offload.engine.output import Output, Shown
from offload.engine.rules import SchemaRule
from offload.engine.sampling import Sampler
from offload.engine.thinking import ThoughtMarks
from offload.engine.turn import Starts, TurnWriter
from offload.engine.writing import PlainWriter, Writer

QWEN = next(one for one in FORMATS if one.name == "qwen-xml")
TOOLS: tuple[Tool, ...] = read_tools([{
    "name": "note",
    "parameters": {"type": "object", "required": ["text"], "properties": {"text": {"type": "string"}}}}])
CALL = "<tool_call>\n<function=note>\n<parameter=text>\nmilk\n</parameter>\n</function>\n</tool_call>"
# In the thought the call's first lines stand within a line, so they are no call; from then on they can be guessed.
SAID = "hello dear world of tools abc"
TALK = f"I could write {SAID}<tool_call>\n<function=note> or not.\n</think>\n\n{SAID}{CALL}"
PROMPT = [ord("?")]


class Turn:
    """One answer, as answer.py and scheduler.py would have it written."""

    def __init__(
        self, words: PieceWords, script: str, *, drafts: bool, starts: Starts = "at_call", budget: int = 1000,
        jumps: bool = True, one_by_one: bool = False, so_far: Sequence[int] = (), inside: bool = True,
    ) -> None:
        self.words = words
        self.script = script.encode()
        parser = AnswerParser(
            QWEN, TOOLS, marks=ThoughtMarks(), inside_thought=inside, thought_budget_tokens=budget)
        self.output = Output(words.piece, (), parser)
        free: Writer = DraftWriter([*PROMPT, *so_far], words.end_tokens | words.control_tokens) if drafts else \
            PlainWriter(Sampler(words, temperature=0.0, top_p=1.0, seed=0))
        rule = SchemaRule(words, Automaton(QWEN.language(TOOLS, parallel=False)))
        held = JumpWriter(
            Sampler(words, temperature=0.0, top_p=1.0, seed=0, rule=rule), rule, words, jumps=jumps, can_cut=True)
        self.writer = TurnWriter(
            self.output, free, held, starts=starts, trigger=b"<tool_call>", coded=str.encode,
            ids_of=lambda text: words.tokenise(text, begin=False, control=False), one_by_one=one_by_one)
        self.writer.follow(so_far)
        self.so_far = list(so_far)
        self.context = WantingContext(words, self._wants)
        self.longest = self.taken_back = 0

    def _wants(self, seen: bytes) -> list[int]:
        rest = self.script[len(seen) - 1:]
        longer = [token for token in range(258, self.words.size) if rest.startswith(self.words.piece(token))]
        return [*sorted(longer, key=lambda token: -len(self.words.piece(token))), *rest[:1], END, CONTROL]

    def write(self, left: int = 240) -> tuple[list[int], Shown]:
        shown = Shown()
        for token in self.so_far:
            shown += self.output.show(token)
        feed, looks = [*PROMPT, *self.so_far, *self.writer.begin(left)], self.writer.looks
        written: list[int] = []
        while True:
            guessed = self.writer.guess(7) if written else ()
            rows = self.context.decode([*feed, *guessed])
            self.longest = max(self.longest, len(feed) + len(guessed) if written else 0)
            count = looks + len(guessed)
            advance = self.writer.advance(cast("Context", self.context), rows[-count:], left - len(written))
            self.context.take_back(advance.surplus)
            self.taken_back += advance.surplus
            for place, token in enumerate(advance.tokens, 1):
                if token in self.words.end_tokens:
                    return written, shown + self.output.finish(cut=False)
                written.append(token)
                shown += self.output.show(token)
                if self.output.stopped or (advance.ended and place == len(advance.tokens)):
                    return written, shown + self.output.finish(cut=False)
                if len(written) >= left:
                    return written, shown + self.output.finish(cut=True)
            if advance.ended:
                return written, shown + self.output.finish(cut=False)
            feed, looks = list(advance.feed), advance.looks
            known, memory = [*PROMPT, *self.so_far, *written], self.context.memory
            assert memory == known[:len(memory)], "the memory holds the answer's beginning"
            assert [*memory, *feed][:len(known)] == known, "and what is pending the rest of it"


WORDS = PieceWords(["<tool_call>", "</think>", "\n\n", ">\n", "abc", "<function="])


def test_guesses_that_run_into_a_call_are_cut_there_and_the_rule_goes_on() -> None:
    taken_back = 0
    for more in range(8):       # wherever a guess ends: before the call, in it, behind its beginning
        said = SAID + "xyzwvuts"[:more]
        talk = TALK.replace(SAID, said)
        plain, quick = Turn(WORDS, talk, drafts=False), Turn(WORDS, talk, drafts=True)
        (_, told), (written, shown) = plain.write(), quick.write()
        assert shown == told
        assert (told.thought, told.text) == (f"I could write {said}<tool_call>\n<function=note> or not.", said)
        assert [call.arguments for call in told.calls] == ['{"text": "milk"}']
        assert quick.context.decodes < plain.context.decodes
        assert WORDS.text_of(written) == talk
        assert plain.taken_back == 0
        taken_back += quick.taken_back
    assert taken_back > 0


@given(st.data())
@settings(max_examples=25, deadline=None)
def test_going_on_from_any_token_gives_the_same_rest(data: st.DataObject) -> None:
    starts: Any = data.draw(st.sampled_from(["at_call", "at_once"]))
    budget = data.draw(st.sampled_from([3, 9, 1000]))
    options = {
        "drafts": data.draw(st.booleans()), "starts": starts, "budget": budget, "jumps": data.draw(st.booleans()),
        "one_by_one": data.draw(st.booleans())}
    whole, shown = Turn(WORDS, TALK, **options).write()
    assert [call.name for call in shown.calls] == (["note"] if shown.calls else [])
    at = data.draw(st.integers(0, len(whole)))
    options |= {"drafts": data.draw(st.booleans()), "jumps": data.draw(st.booleans())}
    turn = Turn(WORDS, TALK, so_far=whole[:at], **options)
    if turn.output.complete:
        assert at == len(whole)
        return
    rest, again = turn.write()
    assert whole[:at] + rest == whole or WORDS.text_of(whole[:at] + rest) == WORDS.text_of(whole)
    assert again == shown


@pytest.mark.parametrize("one_by_one", [False, True])
def test_the_exact_lane_never_decodes_two_tokens(one_by_one: bool) -> None:
    turn = Turn(
        WORDS, TALK, drafts=False, starts="at_once", budget=5, jumps=not one_by_one, one_by_one=one_by_one)
    _, shown = turn.write()
    assert shown.thought
    assert (turn.longest == 1) == one_by_one


def test_forced_words_stay_within_what_is_left() -> None:
    for left in range(1, 40):
        written, _ = Turn(WORDS, TALK, drafts=True, starts="at_once", budget=4).write(left)
        assert len(written) <= left
