"""One call of one tool: arguments from slots, the model's second reading, running a read, carrying out a write.

Gives an outcome the loop turns into an answer. Must not know how a tool was chosen, conversations or drafts.
"""

import hashlib
import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime

from node.agent.approve import Applied, Approvals, Result
from node.agent.copy_grammar import Copyist, beside
from node.agent.events import EventSink, ToolFinished, ToolStarted
from node.agent.ports import Clock, Effect, Origin
from node.agent.readers.phrases import phrase, residual
from node.agent.readers.remains import remains
from node.agent.readers.windows import Locale
from node.agent.saying import denied
from node.agent.slots import Filled, Reading, SlotReader, SlotValue, show_interval, show_moment, text_kind
from node.agent.tools.errors import ToolError
from node.agent.tools.registry import Args, ArgValue, Provenance, ReadTool, ToolContext, ToolSpec, WriteTool
from node.privacy.labels import Confidentiality, Integrity, Labeled, Value

__all__ = ["Call", "Called", "Caller", "effect_key", "provenance_of"]

_log = logging.getLogger(__name__)
_EXAMPLES = 2
_OWN_WORDS = frozenset({"title", "text", "attendees", "location"})


@dataclass(frozen=True, slots=True)
class Call:
    """A complete call."""

    args: Args
    provenance: Mapping[str, Provenance]
    options: Mapping[str, Mapping[str, ArgValue]] = field(default_factory=dict)
    """The values behind the alternatives that are shown, by argument and shown text; text stands for itself."""
    before: str = ""
    after: str = ""


@dataclass(frozen=True, slots=True)
class Called:
    """What a call led to: a read tool's text, or a write's end."""

    text: Labeled
    applied: Applied | None = None


class Caller:
    """Runs tools for one owner."""

    def __init__(self, slots: SlotReader, clock: Clock, approvals: Approvals, copyist: Copyist | None) -> None:
        self._slots = slots
        self._clock = clock
        self._approvals = approvals
        self._copyist = copyist

    async def second_reading(self, spec: ToolSpec, filled: Filled, reading: Reading) -> Filled:
        """The free-text arguments of a write with another reading beside them: sure when the model copied the same, a
        choice when it or what is left of the request says something else. Where the cues found nothing the model is
        not asked: it finds nothing more there."""
        if spec.kind == "read":
            return filled
        values = dict(filled.values)
        for name, param in spec.params.items():
            kind = text_kind(spec.name, name)
            read = values.get(name)
            if param.reads != "text" or kind is None or read is None or read.certain:
                continue
            cut = reading.understood if kind in {"title", "reminder"} else ()
            left_over = residual(reading.text, cut)
            copied = await self._copied(param.description, left_over, _shots(spec, kind))
            if copied and copied.split() == left_over.split():      # all of it is no choice
                copied = None
            left = remains(reading.text, kind, cut)
            values[name] = beside(read, copied, left.of(reading.text) if left else None)
        return replace(filled, values=values)

    async def _copied(self, wanted: str, left_over: str, shots: Sequence[tuple[str, str]]) -> str | None:
        if self._copyist is None:
            return None
        try:
            return await self._copyist.copy(wanted, left_over, shots)
        except Exception as error:                  # a second opinion must never stop the first
            _log.info("no second reading: %s", type(error).__name__)
            return None

    def call_of(self, filled: Filled) -> Call:
        """The call that filled arguments make."""
        return Call(
            {name: value.value for name, value in filled.values.items()},
            {name: provenance_of(value) for name, value in filled.values.items()},
        )

    async def read(self, tool: ReadTool, call: Call, request_id: str, events: EventSink) -> Called:
        """The tool's answer. Raises ToolError."""
        await events.emit(ToolStarted(tool.spec.name, _shown(call.args, self._slots.locale)))
        try:
            answer = await tool.run(call.args, self._context(call, request_id))
        except ToolError as error:
            await events.emit(ToolFinished(tool.spec.name, False, str(error)))
            raise
        await events.emit(ToolFinished(tool.spec.name, True, ""))
        return Called(answer.text)

    async def write(
        self, tool: WriteTool, call: Call, key: str, request_id: str, events: EventSink, *, dry_run: bool,
        cautions: tuple[str, ...] = (), replaces: str = "",
    ) -> Called:
        """The write, after the owner's yes, who sees the cautions too. replaces: the write that it corrects. Raises
        ToolError."""
        name = tool.spec.name

        async def planned(args: Args) -> Effect:
            effect = await tool.plan(args, self._context(call, request_id), idempotency_key=key)
            return replace(effect, cautions=cautions, replaces=replaces)

        effect = await planned(call.args)

        async def replan(chosen: Mapping[str, str]) -> Effect:
            args = dict(call.args)
            for slot, shown in chosen.items():
                if slot not in args or shown not in call.provenance[slot].alternatives:
                    raise LookupError(f"{slot} was not offered as a choice")
                args[slot] = call.options.get(slot, {}).get(shown, shown)
            return await planned(args)

        await events.emit(ToolStarted(name, _shown(call.args, self._slots.locale)))
        try:
            applied = await self._approvals.carry_out(effect, events, dry_run=dry_run, replan=replan)
        except ToolError as error:
            await events.emit(ToolFinished(name, False, str(error)))
            raise
        await events.emit(ToolFinished(name, applied.result in {Result.APPLIED, Result.ALREADY}, applied.result.value))
        text = Labeled(_outcome(applied, call), Confidentiality.PERSONAL, Integrity.LOCAL, name,
            _values(applied.effect))
        return Called(text, applied)

    def _context(self, call: Call, request_id: str) -> ToolContext:
        return ToolContext(self._clock, self._slots.locale.zone, request_id, call.provenance)


def effect_key(request_id: str, tool: str, number: int) -> str:
    """The idempotency key of the number-th write of a request: the same again for the same request."""
    return hashlib.blake2b(f"{request_id}\0{tool}\0{number}".encode(), digest_size=16).hexdigest()


def _outcome(applied: Applied, call: Call) -> str:
    match applied.result:
        case Result.APPLIED:
            text = f"Done. {applied.effect.text}"
        case Result.ALREADY:
            text = f"That is in place already, nothing was written again. {applied.effect.text}"
        case Result.DENIED:
            return denied(applied.approval, "nothing was written")
        case Result.PROPOSED:
            text = f"This is what I would do; nothing was written. {applied.effect.text}"
    return f"{text}\n{call.after}" if call.after and call.after not in text else text


def _values(effect: Effect) -> tuple[Value, ...]:
    """What of an effect is the owner's own and may stand in its text."""
    return tuple(
        Value(one.shown, "PRIVATE") for one in effect.values
        if one.origin in {Origin.REQUEST, Origin.COPIED, Origin.CHOSEN, Origin.SOURCE} and one.name in _OWN_WORDS
    )


def provenance_of(value: SlotValue) -> Provenance:
    """Where a value came from, for its call."""
    return Provenance(value.origin, value.source, value.span, value.alternatives)


def _shown(args: Args, locale: Locale) -> dict[str, str]:
    """The arguments as the owner reads them."""
    return {name: _worded(value, locale) for name, value in args.items()}


def _worded(value: ArgValue, locale: Locale) -> str:
    if isinstance(value, datetime):
        return show_moment(value, locale)
    if not isinstance(value, tuple):
        return str(value)
    if len(value) == 2 and isinstance(value[0], datetime) and isinstance(value[1], datetime):
        return show_interval((value[0], value[1]), locale)
    parts = [show_interval(one, locale) if isinstance(one, tuple) else str(one) for one in value]
    return "; ".join(parts)


def _shots(spec: ToolSpec, kind: str) -> list[tuple[str, str]]:
    """Two of the tool's own sentences with the words that the rules copy from them: examples for the model."""
    found: list[tuple[str, str]] = []
    for sentence in spec.examples:
        span = phrase(sentence, kind, ())
        if span and len(found) < _EXAMPLES:
            found.append((sentence, span.of(sentence)))
    return found
