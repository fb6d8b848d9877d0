"""Lessons at work: what the owner confirmed before, for the choice of a tool and for the words of an argument.

Must not know how lessons are kept or compared.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from node.agent.approve import Applied, Result
from node.agent.drafts import Draft
from node.agent.effects import Origin
from node.agent.lessons import Lesson, Lessons, framed
from node.agent.slots import Filled, Reading, SlotValue, text_kind
from node.agent.tools.registry import Provenance, ToolSpec

__all__ = ["Near", "fill_as_before", "learn_from", "learnt_choice", "recall"]

_FREE = frozenset({"title", "reminder", "message", "note", "query"})


Near = Sequence[tuple[Lesson, float]]
"""Lessons like a request, the most alike first, with their cosine."""


async def recall(lessons: Lessons | None, text: str) -> Near:
    """The lessons like this request; none where nothing is learnt."""
    return await lessons.near(text) if lessons is not None else ()


def learnt_choice(near: Near) -> dict[str, float]:
    """By tool: how alike the nearest confirmed sentence is."""
    best: dict[str, float] = {}
    for lesson, cosine in near:
        best[lesson.tool] = max(best.get(lesson.tool, 0.0), cosine)
    return best


def fill_as_before(near: Near, spec: ToolSpec, filled: Filled, reading: Reading) -> Filled:
    """The arguments with the words that stand where such words stood before: in a gap, or as the first of two choices
    where the rules read something else. Quoted words and exact names stay."""
    mine = [lesson for lesson, _ in near if lesson.tool == spec.name]
    if not mine or spec.kind == "read":
        return filled
    values = dict(filled.values)
    timed = any(param.reads in {"moment", "window"} for param in spec.params.values())
    cut = reading.understood if timed else ()   # a time in a message or a note is part of its words
    for name, param in spec.params.items():
        if param.reads != "text" or text_kind(spec.name, name) not in _FREE:
            continue
        read = values.get(name)
        if read is not None and read.certain:
            continue
        for lesson in mine:
            span = framed(lesson, name, reading.text, cut)
            if span is None:
                continue
            said = span.of(reading.text)
            if read is None or str(read.value) != said:
                others = (str(read.value), *read.alternatives) if read is not None else ()
                values[name] = SlotValue(said, said, Origin.COPIED, f'your words, as before: "{said}"', span, others)
            break
    return replace(filled, values=values, missing=tuple(one for one in spec.required if one not in values))


async def learn_from(lessons: Lessons | None, draft: Draft, reading: Reading, tool: str, applied: Applied | None,
                     provenance: Mapping[str, Provenance]) -> None:
    """Keep what was just done as a lesson, when the owner said yes to it. A denial teaches nothing."""
    if lessons is None or applied is None or applied.result is not Result.APPLIED or draft.kind != "tool":
        return
    chosen = applied.approval.chosen if applied.approval is not None else {}
    words: dict[str, str] = {}
    for value in applied.effect.values:
        found = provenance.get(value.name)
        if found is None or found.origin not in (Origin.REQUEST, Origin.COPIED, Origin.CHOSEN):
            continue
        if isinstance(value.value, str) and text_kind(tool, value.name) in _FREE:
            words[value.name] = chosen.get(value.name, value.value)
    await lessons.learn(draft.text, tool, words, reading.now)
