"""Tell everyone in a note, or everyone who is paired, the same words: one write, approved whole, sent once to each.

Everyone who is paired means people: the owner's own devices get nothing.

Must not know models, nor how messages are sent.
"""

import re

import trio

from node.agent.effects import Origin
from node.agent.ports import Span
from node.agent.readers.closed import pick
from node.agent.readers.phrases import trimmed
from node.agent.skills.registry import SkillAsk, SkillCall, SkillOutcome, SkillSay, SkillWrite
from node.agent.slots import Reading
from node.agent.tools.messages import Postbox, peer_of
from node.agent.tools.registry import Provenance
from node.agent.tools.wording import listed
from node.privacy.labels import Confidentiality, Integrity, Labeled, Value, public_text
from node.sources.notes import NoteFolder

__all__ = ["TellEveryone"]

_ASKED = re.compile(
    r"^\s*(?:(?:please|can\s+you|could\s+you)\s+)*(?:tell|message|text|write\s+to|let|inform|notify|ping|send)\s+"
    r"(?:a\s+message\s+to\s+)?(?:everyone|everybody|all(?:\s+the\s+people)?|them\s+all)\b"
    r"(?P<where>\s+(?:in|on|from|named\s+in)\s+(?:my\s+|the\s+)?(?:note|list)?\s*(?P<note>.+?))?\s*"
    r"(?:,\s*)?(?:(?:know\s+)?that|know|saying|about\s+it:|:)\s+(?P<words>.+)$",
    re.IGNORECASE | re.DOTALL,
)


class TellEveryone:
    """The skill over notes and the postbox."""

    name = "tell_everyone"
    description = "Send the same message to everyone in a note, or to all paired people"
    claims = ("message_send",)
    examples = (
        "tell everyone in the party note that it starts at eight", "message everybody that the match is cancelled",
        "text all the people in the book club note that we meet at Robin's", "let everyone know dinner is at seven",
        "write to everyone on the guest list that there is parking behind the house",
        "tell everybody the key is under the mat", "notify everyone in the trip note that the train leaves at six",
        "send everyone the message that the office is closed",
    )
    cues = ("everyone", "everybody")

    def __init__(self, notes: NoteFolder, postbox: Postbox) -> None:
        self._notes = notes
        self._postbox = postbox

    def takes(self, tool: str, reading: Reading) -> bool:
        """Requests that name everybody."""
        return tool in self.claims and self.sure(reading)

    def sure(self, reading: Reading) -> bool:
        """True when everybody and the words are said."""
        return _ASKED.search(reading.text) is not None

    def evidence(self, reading: Reading) -> float:
        """Everybody and the words."""
        return 1.0 if self.sure(reading) else 0.0

    async def run(self, call: SkillCall) -> SkillOutcome:
        """One message to all of them; says who of the note can't be written to."""
        text = call.reading.text
        match = _ASKED.search(text)
        span = trimmed(text, Span(*match.span("words"))) if match else None
        if match is None or span is None:
            return SkillAsk("text", "What should I write?")
        peers = await self._postbox.peers()
        source, names = "everyone who is paired, but for your own devices", tuple(await self._postbox.people())
        missing: list[str] = []
        if match.group("where"):
            title = await self._title(call, match.group("note") or "")
            if isinstance(title, SkillAsk):
                return title
            note = await trio.to_thread.run_sync(lambda: self._notes.read(self._notes.find(title)[0].name))
            people = call.slots.book.read(note.text, expected=True, taken=())
            names = tuple(name for name in people.names if peer_of(name, peers))
            missing = [name for name in people.names if not peer_of(name, peers)]
            source = f"the note \"{title}\""
            if not names:
                said = f"Nobody of {source} has a paired device, so I can write to nobody."
                values = (Value(title, "PRIVATE"),)
                return SkillSay(Labeled(said, Confidentiality.PERSONAL, Integrity.LOCAL, "notes", values),
                                "nobody to write to")
        if not names:
            said = "Only your own devices are paired, so" if peers else "Nobody has a paired device, so"
            return SkillSay(public_text(f"{said} I can write to nobody.", source="kith"), "nobody to write to")
        before = f"No paired device belongs to {listed(missing)}; they get nothing." if missing else ""
        provenance = {
            "to": Provenance(Origin.SOURCE, source),
            "text": Provenance(Origin.REQUEST, f"your words: \"{span.of(text)}\"", span),
        }
        return SkillWrite("message_send", {"to": names, "text": span.of(text)}, provenance, before, "")

    async def _title(self, call: SkillCall, said: str) -> str | SkillAsk:
        titles = tuple(info.title for info in await trio.to_thread.run_sync(self._notes.all))
        answer = call.answers["note"].text if "note" in call.answers else said
        found = pick(answer, titles)
        if found is None or found.others:
            return SkillAsk("note", "In which note are they?", found.others if found else titles[:8])
        return found.value

