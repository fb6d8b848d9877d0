"""What the agent says in its own words: questions for one slot, choices, refusals. English, short, with the next step.

Must not know how a decision was made; it gets the decision and puts it into words.
"""

from collections.abc import Sequence

from node.agent.effects import DEADLINE, NO_TERMINAL
from node.agent.heavy import Work
from node.agent.ports import Approval
from node.agent.readers.people import Unclear
from node.agent.tools.registry import ToolSpec

__all__ = ["ability", "declined", "denied", "question", "which", "who"]

_QUESTIONS = {
    "start": "When should it start?", "when": "When?", "duration": "How long?", "title": "What is it called?",
    "text": "What should I write"
            "?", "to": "To whom?", "attendees": "With whom?", "people": "With whom?", "name": "Whose?",
    "query": "What should I search for?", "field": "Which detail?", "folder": "Which folder?", "note": "Which note?",
    "file": "Which file?", "path": "Which file?", "place": "Where?", "value": "To what?", "setting": "Which setting?",
    "expression": "What should I work out?", "to_unit": "Into which unit?", "from_unit": "From which unit?",
}
_CHOICES_SHOWN = 8


def question(spec: ToolSpec, slot: str, offered: Sequence[str]) -> str:
    """The question for exactly one slot."""
    asked = _QUESTIONS.get(slot) or f"What is the {spec.params[slot].description}?"
    if slot == "text" and "remind" in spec.name:
        asked = "What should I remind you of?"
    noun = next((noun for noun in ("file", "note") if noun in spec.name), None)
    if noun and slot in {"name", "title"}:
        asked = f"Which {noun}?"
    if not offered:
        return asked
    more = f" and {len(offered) - _CHOICES_SHOWN} more" if len(offered) > _CHOICES_SHOWN else ""
    return f"{asked} I have: {', '.join(offered[:_CHOICES_SHOWN])}{more}."


def who(unclear: Unclear) -> str:
    """The question about one name."""
    if not unclear.candidates:
        return f"I know nobody called {unclear.said}. Who is meant?"
    return f"Whom do you mean by {unclear.said}: {' or '.join(unclear.candidates)}?"


def ability(description: str) -> str:
    """A tool's description as the end of "I can ...": its first sentence, small initial."""
    first = description.split(". ")[0].rstrip(".")
    return first[:1].lower() + first[1:] if not first[:2].isupper() else first


def which(abilities: Sequence[str]) -> str:
    """The question of the middle band."""
    lines = "\n".join(f"  {number}. {text}" for number, text in enumerate(abilities, 1))
    return f"I am not sure what you want. Did you mean:\n{lines}\nAnswer with the number, or say it another way."


def denied(approval: Approval | None, nothing: str) -> str:
    """Why what was shown was not done, and that nothing was: "nothing was written"."""
    by = approval.by if approval is not None else ""
    if by == NO_TERMINAL:
        return f"There was no terminal to ask you at, so {nothing}. Ask for it again in a terminal to decide."
    if by == DEADLINE:
        return f"Nobody answered the question in time, so {nothing}. Ask for it again to decide."
    return f"You did not approve it, so {nothing}."


def declined(work: Work, abilities: Sequence[str], *, vetoed: bool, forbidden: bool = False) -> str:
    """A plain refusal with the nearest things that can be done."""
    if forbidden:
        return "You said not to, so nothing was done. (kith undo takes back the last thing I wrote.)"
    if vetoed:
        reason = (
            "Nothing here removes or moves what exists, so nothing was changed. "
            "(kith undo takes back the last thing I wrote.)"
        )
    else:
        reason = {
            Work.LIVE: "I cannot do that: it needs news of the moment, and nothing here reads the web.",
            Work.PRIVATE: "I cannot know that: I see your calendar, contacts, notes and files, nothing else of yours.",
            Work.DEED: "I cannot do that: no tool here does it.",
            Work.THINK: "I cannot do that.",
        }[work]
    if not abilities:
        return reason
    lines = "\n".join(f"  - {text}" for text in abilities)
    return f"{reason}\nWhat I can do that comes nearest:\n{lines}"
