"""Find the note about something, then read it: two tools' work in one request, in this order. Reads only.

Must not know models, nor how notes are kept.
"""

import re

import trio

from node.agent.ports import Span
from node.agent.readers.phrases import trimmed
from node.agent.skills.registry import SkillAsk, SkillCall, SkillOutcome, SkillSay
from node.agent.slots import Reading
from node.privacy.labels import Confidentiality, Integrity, Labeled, public_text
from node.sources.notes import Hit, NoteFolder

__all__ = ["FindThenRead"]

_ASKED = re.compile(
    r"\b(?:find|look\s+for|search(?:\s+for)?|look\s+up)\s+(?:me\s+)?(?:the\s+note\s+|my\s+note\s+|a\s+note\s+|"
    r"(?:in|through)\s+my\s+notes?\s+|what\s+i\s+(?:wrote|noted)\s+|the\s+one\s+)?(?:for|about|on|with|that\s+mentions)?\s*"
    r"(?P<words>.+?)\s*,?\s+(?:and\s+then|then|and)\s+(?:read|open|show|display|tell)\b",
    re.IGNORECASE,
)
CANDIDATES = 4
READ_CHARS = 4000


class FindThenRead:
    """The skill over the owner's notes."""

    name = "find_then_read"
    description = "Find a note by what it is about, and read it"
    claims: tuple[str, ...] = ()
    examples = ("find the note about tomatoes and read it to me", "look for the boiler and then read it")
    cues: tuple[str, ...] = ()

    def __init__(self, notes: NoteFolder) -> None:
        self._notes = notes

    def takes(self, tool: str, reading: Reading) -> bool:
        """Never in a tool's place."""
        return False

    def sure(self, reading: Reading) -> bool:
        """True when the request says both steps."""
        return _wanted(reading.text) is not None

    def evidence(self, reading: Reading) -> float:
        """None: it is taken when it is sure, or not at all."""
        return 0.0

    async def run(self, call: SkillCall) -> SkillOutcome:
        """The note with most of the words; a question when several have as many."""
        words = _wanted(call.reading.text) or ""
        hits = await trio.to_thread.run_sync(lambda: self._notes.search(words, limit=CANDIDATES))
        if not hits:
            return SkillSay(public_text("No note of yours has these words.", source="kith"), "nothing found")
        best = [hit for hit in hits if hit.words_found == hits[0].words_found]
        if len(best) > 1:
            titles = tuple(hit.info.title for hit in best)
            answer = call.answers["title"].text.casefold() if "title" in call.answers else ""
            chosen = [hit for hit in best if answer and answer in hit.info.title.casefold()]
            if len(chosen) != 1:
                return SkillAsk("title", f"Several notes have these words: {', '.join(titles)}. Which one?", titles)
            best = chosen
        return await self._read(best[0])

    async def _read(self, hit: Hit) -> SkillOutcome:
        note = await trio.to_thread.run_sync(self._notes.read, hit.info.name)
        text = note.text.strip()
        more = f"\n(the note goes on for {len(text) - READ_CHARS} characters)" if len(text) > READ_CHARS else ""
        return SkillSay(Labeled(
            f"{hit.info.title}:\n{text[:READ_CHARS]}{more}", Confidentiality.PERSONAL, Integrity.LOCAL,
            f"note:{hit.info.title}", (),
        ))


def _wanted(text: str) -> str | None:
    match = _ASKED.search(text)
    if match is None:
        return None
    span = trimmed(text, Span(*match.span("words")))
    return span.of(text) if span else None
