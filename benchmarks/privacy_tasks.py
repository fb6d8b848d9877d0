"""Tasks whose answers can be checked by code, each with personal facts in it: extraction, rewriting, drafting with
slots, date logic and arithmetic over given facts. For measuring what masking costs.

Must not know masking, models or how answers come about.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from benchmarks.privacy_prompts import Person

__all__ = ["Task", "make_tasks", "passes"]


@dataclass(frozen=True, slots=True)
class Task:
    """needed: texts that a right answer holds, whatever their case; facts: what the owner's contacts know."""

    kind: str
    prompt: str
    needed: tuple[str, ...]
    facts: tuple[tuple[str, str], ...]


# kind, prompt, what the answer must hold
_TEMPLATES = (
    ("extraction", "Text: {name} called from {phone} about the garden.\nWho called? Give the name.", ("{name}",)),
    ("extraction", "Text: {name} called from {phone} about the garden.\nWhat is the phone number?", ("{phone}",)),
    ("extraction", "Text: Please write to {email} before Friday.\nWhich e-mail address is in the text?", ("{email}",)),
    ("extraction", "Text: The party is at {address}.\nWhat is the address of the party?", ("{address}",)),
    ("extraction", "Text: {name} has the keys and {other} has the car.\nWho has the car?", ("{other}",)),
    ("extraction", "Text: {name} has the keys and {other} has the car.\nWho has the keys?", ("{name}",)),
    ("extraction", "List the two people in this text: {name} met {other} at the station.", ("{name}", "{other}")),
    ("rewriting", "Rewrite this politely: Tell {name} to call {phone}.", ("{name}", "{phone}")),
    ("rewriting", "Correct the spelling and keep the rest: {name} wil bring the cake to {address}.",
     ("{name}", "{address}")),
    ("rewriting", "Rewrite in one sentence: {name} is late. The train broke down.", ("{name}",)),
    ("rewriting", "Turn this into a question: {name} is coming to dinner.", ("{name}",)),
    ("rewriting", "Summarise in one sentence: {name} phoned this morning. {name} sells the old boat.", ("{name}",)),
    ("drafting", "Write a short e-mail to {name} about the meeting on Friday.", ("{name}", "friday")),
    ("drafting", "Write a birthday card for {name}.", ("{name}",)),
    ("drafting", "Write a thank-you note to {name} for the flowers.", ("{name}", "flowers")),
    ("drafting", "Write a short invitation to dinner for {name} and {other}.", ("{name}", "{other}")),
    ("drafting", "Write a text message that asks {name} to bring bread.", ("{name}", "bread")),
    ("drafting", "Write a reminder for {name}: the rent is due on Monday.", ("{name}", "monday")),
    ("dates", "The meeting with {name} is on Tuesday at 3 pm. On which day is the meeting with {name}?", ("tuesday",)),
    ("dates", "{name} arrives on Sunday and leaves on Thursday. On which day does {name} leave?", ("thursday",)),
    ("dates", "Today is Monday. {name} comes tomorrow. On which day does {name} come?", ("tuesday",)),
    ("dates", "{name} has a dentist appointment on Friday at noon. When is the appointment?", ("friday",)),
    ("arithmetic", "{name} paid 20 euros and {other} paid 30 euros. How many euros did they pay together?", ("50",)),
    ("arithmetic", "{name} has 3 apples and {other} gives {name} 2 more. How many apples does {name} have?", ("5",)),
    ("arithmetic", "{name} has 10 books and gives 4 to {other}. How many books does {name} have left?", ("6",)),
)


def make_tasks(people: Sequence[Person], rounds: int) -> list[Task]:
    """Every template with `rounds` different people."""
    tasks = []
    for at in range(rounds):
        for number, (kind, prompt, needed) in enumerate(_TEMPLATES):
            person = people[(at * 7 + number) % len(people)]
            other = next(one for one in people[(at * 7 + number + 1) % len(people):] if one.name != person.name)
            given = {"name": person.name, "other": other.name, "email": person.email, "phone": person.phone,
                     "address": person.address}
            tasks.append(Task(
                kind, prompt.format(**given), tuple(one.format(**given) for one in needed),
                ((person.name, "PERSON"), (other.name, "PERSON"), (person.email, "EMAIL"), (person.phone, "PHONE"),
                 (person.address, "ADDRESS")),
            ))
    return tasks


def passes(task: Task, answer: str) -> bool:
    """Whether the answer holds all that is needed."""
    low = answer.casefold()
    return all(one.casefold() in low for one in task.needed)
