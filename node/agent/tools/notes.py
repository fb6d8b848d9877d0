"""The tools that search, read and add to the owner's notes. Must not know how a note is put on disk."""

from collections.abc import Sequence

from node.agent.ports import Effect, EffectValue, Json, Origin
from node.agent.tools.calls import in_thread
from node.agent.tools.errors import AmbiguousName, NothingFound
from node.agent.tools.examples import examples_of
from node.agent.tools.registry import (
    Args,
    Param,
    ToolAnswer,
    ToolContext,
    ToolSpec,
    UndoRecord,
    check_args,
    effect_value,
)
from node.agent.tools.wording import listed
from node.counting import counted
from node.privacy.labels import Confidentiality, Integrity, Labeled
from node.sources.notes import Hit, NoteFolder, NoteInfo, WritePlan

__all__ = ["NoteRead", "NoteSearch", "NoteWrite", "hits_text", "one_of"]

SHOWN_HITS = 8

_SEARCH = ToolSpec(
    name="note_search",
    description="Search all notes for words",
    params={"query": Param("the words to look for", "text")},
    required=("query",),
    examples=(
        "do I have anything noted about the boiler", "look through my notes for recipes",
        "where did I write about the lease",
        "which note mentions the paint colour", "search the notes for vaccination", "find what I wrote on tomatoes",
        "is there a note with the word passport", "have I made notes about Lisbon", "check my notes for gift ideas",
        *examples_of("note_search"),
    ),
    kind="read",
    cues=("notes", "noted", "wrote", "write down", "search", "find", "mention"),
)
_READ = ToolSpec(
    name="note_read",
    description="Open and read one note by its title",
    params={"title": Param("the note's title", "choice")},
    required=("title",),
    examples=(
        "read me the packing note", "open the note Recipes", "what is in my note about the lease",
        "show the note named Gift ideas", "what did I put into the shopping note", "let me see my vaccination note",
        "display the note Lisbon trip", "what does the bike note say", "read out my to-do note",
        *examples_of("note_read"),
    ),
    kind="read",
    cues=("note", "read", "open", "show", "say"),
)
_WRITE = ToolSpec(
    name="note_write",
    description="Write a new note or add text to a note",
    params={
        "text": Param("the text to write down", "text"),
        "title": Param("the existing note to add to, or the title of a new one", "choice"),
    },
    required=("text",),
    examples=(
        "note: the boiler was serviced today", "write down that Bo owes me ten euros",
        "put olive oil on the shopping note",
        "take a note, the code of the gate is on the fridge", "add a line to Gift ideas: a red scarf",
        "jot down the licence plate B-KT 401", "make a new note with the words call the landlord",
        "remember in my notes that the paint is called Sage 4", "append milk to my list note",
        *examples_of("note_write"),
    ),
    kind="write",
    cues=("note", "write down", "jot", "add", "append", "make a note", "remember that", "take a note"),
)


class NoteSearch:
    """Which notes hold some words."""

    spec = _SEARCH

    def __init__(self, notes: NoteFolder) -> None:
        self._notes = notes

    async def choices(self, param: str) -> tuple[str, ...]:
        """Any words may be looked for."""
        return ()

    async def run(self, args: Args, ctx: ToolContext) -> ToolAnswer:
        """The notes with most of the words first, each with its best line."""
        check_args(self.spec, args)
        query = str(args["query"])
        hits = await in_thread(lambda: self._notes.search(query, limit=SHOWN_HITS))
        text = hits_text(hits, "note", query)
        source = "note_search:" + ",".join(hit.info.name for hit in hits[:3])
        return ToolAnswer(Labeled(text, Confidentiality.PERSONAL, Integrity.LOCAL, source, ()), hits_data(hits))


class NoteRead:
    """One whole note."""

    spec = _READ

    def __init__(self, notes: NoteFolder) -> None:
        self._notes = notes

    async def choices(self, param: str) -> tuple[str, ...]:
        """The titles that exist."""
        return await _titles(self._notes) if param == "title" else ()

    async def run(self, args: Args, ctx: ToolContext) -> ToolAnswer:
        """The note's text as it stands. Raises NothingFound, AmbiguousName."""
        check_args(self.spec, args)
        title = str(args["title"])
        info = one_of(await in_thread(lambda: self._notes.find(title)), title, "note")
        note = await in_thread(lambda: self._notes.read(info.name))
        text = note.text.strip() or f"The note {info.title} is empty."
        return ToolAnswer(
            Labeled(text, Confidentiality.PERSONAL, Integrity.LOCAL, f"note_read:{info.name}", ()),
            {"title": info.title, "name": info.name},
        )


class NoteWrite:
    """A new note, or one more paragraph in an old one. Never changes what is there."""

    spec = _WRITE

    def __init__(self, notes: NoteFolder) -> None:
        self._notes = notes

    async def choices(self, param: str) -> tuple[str, ...]:
        """The titles that exist; a title that does not makes a new note."""
        return await _titles(self._notes) if param == "title" else ()

    async def plan(self, args: Args, ctx: ToolContext, *, idempotency_key: str) -> Effect:
        """The exact characters and the file they go to."""
        check_args(self.spec, args)
        text, title = str(args["text"]), str(args.get("title", ""))
        found = await in_thread(lambda: self._notes.find(title)) if title else ()
        if len(found) > 1:
            one_of(found, title, "note")
        plan = await in_thread(lambda: self._notes.plan_write(text, title=title))
        new = plan.before is None
        head = f"New note {plan.name}:" if new else f"Add to the note {plan.name}:"
        shown = plan.added.strip("\n")
        values = (
            effect_value("text", shown, shown, ctx),
            effect_value("title", plan.name, plan.name, ctx),
            EffectValue("plan", _plan_data(plan), "new file" if new else "added at the end", Origin.COMPUTED),
        )
        return Effect(self.spec.name, "write", f"{head}\n{shown}", values, idempotency_key)

    async def apply(self, effect: Effect, idempotency_key: str) -> UndoRecord:
        """Write, unless the note already is as it would be afterwards. The record is the plan itself."""
        data = effect.value("plan")
        assert isinstance(data, dict)
        plan = _plan_of(data)
        await in_thread(lambda: self._notes.write(plan))
        return data

    async def undo(self, record: UndoRecord) -> str:
        """Take the text out again, unless somebody edited the note since."""
        plan = _plan_of(record)
        done = await in_thread(lambda: self._notes.unwrite(plan))
        if not done:
            return f"{plan.name} is already as it was before."
        return f"The note {plan.name} is gone again." if plan.before is None else f"{plan.name} is as it was before."


def one_of(found: Sequence[NoteInfo], title: str, noun: str) -> NoteInfo:
    """The only one. Raises NothingFound, AmbiguousName."""
    if not found:
        raise NothingFound(f"There is no {noun} called {title}.")
    if len(found) > 1:
        names = tuple(info.name for info in found)
        raise AmbiguousName(f"{title} could be {listed(names, last='or')}.", names)
    return found[0]


def hits_text(hits: Sequence[Hit], noun: str, query: str) -> str:
    """The hits in words."""
    if not hits:
        return f"No {noun} holds \"{query}\"."
    lines = [f"{counted(len(hits), noun)} found."]
    lines.extend(f"- {hit.info.title}: {hit.snippet}" for hit in hits)
    return "\n".join(lines)


def hits_data(hits: Sequence[Hit]) -> Json:
    """The hits as data."""
    return {"hits": [{"title": hit.info.title, "name": hit.info.name, "snippet": hit.snippet} for hit in hits]}


async def _titles(notes: NoteFolder) -> tuple[str, ...]:
    return await in_thread(lambda: tuple(dict.fromkeys(info.title for info in notes.all())))


def _plan_data(plan: WritePlan) -> dict[str, Json]:
    return {
        "name": plan.name, "added": plan.added, "before": plan.before, "size_before": plan.size_before,
        "after": plan.after,
    }


def _plan_of(data: UndoRecord) -> WritePlan:
    before, size = data["before"], data["size_before"]
    assert isinstance(size, int)
    return WritePlan(
        str(data["name"]), str(data["added"]), None if before is None else str(before), size, str(data["after"]),
    )
