"""From a request to an answer that is ready for the scheduler: the prompt read, what holds the answer, who writes it.

Touches the vocabulary only, so any thread may do it while another decodes. Must not know slots, batches or the pipe.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from offload.engine.answer import Answer
from offload.engine.automaton import Automaton
from offload.engine.chat import PromptReader
from offload.engine.drafts import DraftWriter
from offload.engine.formats.choice import CallPlan, NamedTool, plan_calls
from offload.engine.formats.format import CALLS_LIMIT
from offload.engine.formats.marker_tokens import MarkerVocabulary
from offload.engine.formats.parser import AnswerParser
from offload.engine.formats.tools import Tool, read_tools
from offload.engine.jump import JumpWriter
from offload.engine.library import Model
from offload.engine.output import Output, Shown
from offload.engine.rules import GrammarRule, SchemaRule, rule_for
from offload.engine.sampling import Sampler
from offload.engine.thinking import starts_inside
from offload.engine.turn import HeldWriter, Starts, TurnWriter
from offload.engine.writing import GrammarWriter, PlainWriter, Writer
from offload.errors import BadGrammar, LaneUnsupported
from offload.ports import ChatPrompt, GenerateRequest

__all__ = ["prepare_answer"]


@dataclass(frozen=True, slots=True)
class _Reading:
    """The prompt as ids, and how its answer is to be read and held."""

    ids: list[int]
    words: MarkerVocabulary
    parser: Callable[[], AnswerParser] | None = None    # None: all of the answer is text
    plan: CallPlan | None = None
    opens_thought: bool = False
    most_calls: int = 1
    stops: tuple[str, ...] = ()

    def output(self) -> Output:
        """What its reader sees, from the beginning."""
        parser = self.parser() if self.parser is not None else None
        return Output(self.words.shown, self.stops, parser, most_calls=self.most_calls)


@dataclass(frozen=True, slots=True)
class _SoFar:
    """What was written before: as ids, and which of them were ids before; else as text."""

    ids: list[int] = field(default_factory=list)
    replayed: tuple[int, ...] = ()
    text: str = ""


def prepare_answer(
    request: GenerateRequest, model: Model, reader: PromptReader, *, context_tokens: int,
) -> Answer:
    """An answer ready for the scheduler.

    Raises BadPrompt, BadGrammar, BadTools, PromptTooLong, LaneUnsupported.
    """
    if request.lane == "exact" and request.temperature > 0:
        raise LaneUnsupported("The exact lane is greedy: set the temperature to 0.")
    reading = _read(request, model, reader)
    so_far = _so_far(request, model, reader, reading)
    output = reading.output()
    writer = _writer(request, model, reading, output, so_far)
    try:
        return Answer(
            request, reading.words, writer, prompt=[*reading.ids, *so_far.ids], replayed=so_far.replayed,
            context_tokens=context_tokens, output=output,
            boundaries=_turns(reading.ids, model, reading.words) if model.keeps_state_per_sequence else ())
    except BaseException:
        writer.close()
        raise


# -- the prompt

def _read(request: GenerateRequest, model: Model, reader: PromptReader) -> _Reading:
    prompt = request.prompt
    if not isinstance(prompt, ChatPrompt):
        return _Reading(reader.ids(prompt), MarkerVocabulary(model, ()), stops=request.stop)
    source, marks = reader.tool_format, reader.marks
    # a small model whose template renders tools was trained to call them, and when
    taught = source.message_shape(reader.source_text).tools_by_template
    plan = plan_calls(
        source, _tools(request), choice=NamedTool(request.named_tool) if request.named_tool else request.tool_choice,
        parallel=request.parallel_calls, model_parameters=None if taught else model.parameters)
    thinking = request.thinking_tokens > 0 and plan.forced != "small_model"
    chat = reader.read(prompt.messages, plan.tools, thinking=thinking)
    thoughts = (marks.opening, marks.closing) if marks is not None else ()
    words = MarkerVocabulary(model, tuple(dict.fromkeys((*(source.markers if plan.tools else ()), *thoughts))))
    opens_thought = marks is not None and starts_inside(chat.text, marks)
    held = request.schema is not None or request.grammar is not None
    if not plan.tools and (marks is None or (held and not opens_thought)):
        return _Reading(chat.ids, words, stops=request.stop)

    def parser() -> AnswerParser:
        return plan.parser(
            reader.source_text, chat.text, thought_budget_tokens=request.thinking_tokens if thinking else 0)

    return _Reading(
        chat.ids, words, parser, plan if plan.tools else None, opens_thought,
        CALLS_LIMIT if request.parallel_calls else 1, request.stop)


def _tools(request: GenerateRequest) -> tuple[Tool, ...]:
    return read_tools([
        {"name": tool.name, "description": tool.description, "parameters": tool.parameters} for tool in request.tools])


# -- what was written before

def _so_far(request: GenerateRequest, model: Model, reader: PromptReader, reading: _Reading) -> _SoFar:
    ids = request.token_ids_so_far
    if ids and all(0 <= token < model.size for token in ids) and _fits(_shown_by(reading.output(), ids), request):
        return _SoFar(list(ids), ids)
    if request.lane == "exact" and (ids or request.text_so_far or request.thought_so_far):
        raise LaneUnsupported("The exact lane goes on from token ids of this model, and these are not.")
    text, thought, marks = request.text_so_far, request.thought_so_far, reader.marks
    if not text and not thought:
        return _SoFar()
    found: list[int] = []
    written = ""

    def add(words: str, *, markers: bool = False) -> None:
        nonlocal written
        written += words
        source = reading.words if markers else model
        found.extend(source.tokenise(words, begin=False, control=False))

    if reading.parser is not None and marks is not None and (thought or reading.opens_thought):
        if not reading.opens_thought:
            add(f"{marks.opening}\n", markers=True)
        add(thought)
        if text or not thought:
            add(marks.cutting, markers=True)
    if text:
        add(text)
    return _SoFar(found, text=written)


def _shown_by(output: Output, tokens: Sequence[int]) -> Shown:
    shown = Shown()
    for token in tokens:
        shown += output.show(token)
        if output.thought_too_long:
            output.cut_thought()
    return shown + output.finish(cut=True)


def _fits(shown: Shown, request: GenerateRequest) -> bool:
    return shown.text.startswith(request.text_so_far) and shown.thought.startswith(request.thought_so_far) \
        and len(shown.calls) >= request.calls_so_far


# -- who writes

def _writer(
    request: GenerateRequest, model: Model, reading: _Reading, output: Output, so_far: _SoFar,
) -> Writer:
    """The quickest way to write this answer that its lane and its model's memory allow."""
    quick = request.shortcuts and request.lane == "normal"
    can_cut = not model.keeps_state_per_sequence
    words = reading.words
    # only a call may hold markers: for a schema or grammar they are control tokens like any other
    held_words = words if reading.plan is not None else model

    def sampler(rule: GrammarRule | SchemaRule | None) -> Sampler:
        return Sampler(
            held_words, temperature=request.temperature, top_p=request.top_p, seed=request.seed, rule=rule)

    def free() -> Writer:
        if quick and can_cut and request.temperature <= 0:
            return DraftWriter([*reading.ids, *so_far.ids], words.end_tokens | words.control_tokens)
        return PlainWriter(sampler(None))

    rule: GrammarRule | SchemaRule | None
    if reading.plan is not None and reading.plan.language is not None:
        _ = words.first_bytes       # now, in the thread that prepares, and not between two decodes
        try:
            rule = SchemaRule(words, Automaton(words.language(reading.plan.language)))
        except RecursionError as error:
            raise BadGrammar("The schemas of the tools are nested too deep.") from error
    else:
        rule = rule_for(model, grammar=request.grammar, schema=request.schema, quick=quick)
    held: HeldWriter | None = None
    if isinstance(rule, SchemaRule):
        held = JumpWriter(sampler(rule), rule, held_words, jumps=quick, can_cut=can_cut)
    elif rule is not None:
        held = GrammarWriter(sampler(rule))
    writer: Writer | None = None
    try:
        if reading.parser is None:
            writer = held or free()
            if held is not None:
                held.follow(so_far.ids)
            return writer
        turn = writer = TurnWriter(
            output, free(), held, starts=_starts(reading, held), coded=words.coded, ids_of=_ids_of(words),
            trigger=words.coded(reading.plan.source.trigger.text) if reading.plan is not None else b"",
            one_by_one=request.lane == "exact")
        output.stand_behind(so_far.text)
        turn.follow(so_far.replayed)
        return turn
    except BaseException:
        if writer is not None:
            writer.close()
        elif held is not None:
            held.close()
        raise


def _starts(reading: _Reading, held: HeldWriter | None) -> Starts:
    if held is None:
        return "never"
    return reading.plan.starts if reading.plan is not None else "at_once"


def _ids_of(words: MarkerVocabulary) -> Callable[[str], list[int]]:
    return lambda text: words.tokenise(text, begin=False, control=False)


def _turns(prompt: Sequence[int], model: Model, words: MarkerVocabulary) -> list[int]:
    """The end of the first turn, where the last question begins, and where the answer does.

    The next prompt of a chat parts from this one at one of them: templates rewrite older answers (without thoughts).
    """
    begins = model.control_tokens - model.end_tokens - words.markers
    starts = [position for position, token in enumerate(prompt) if position and token in begins]
    return sorted({*starts[:1], *starts[-2:]})
