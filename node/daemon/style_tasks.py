"""The fixed tasks of the trial of placeholders: what owners ask, asked the way the node asks it, checkable by code.

Requests alone and with material, one line to a page: extraction, rewriting, summaries, questions about a long text,
drafts with slots, dates and sums over given facts. All people are invented. Must not know masking or models.
"""

from collections.abc import Sequence
from dataclasses import dataclass

__all__ = ["PEOPLE", "TRIAL_VERSION", "StyleTask", "make_style_tasks"]

TRIAL_VERSION = 1
"""Rises whenever a task, a check or the way of asking changes: an older verdict is then none."""


@dataclass(frozen=True, slots=True)
class StyleTask:
    """request: the owner's words; material: a text that goes with them, or "". needed: what a right answer holds.

    facts: (value, type) of everything personal in it.
    """

    kind: str
    request: str
    material: str
    needed: tuple[str, ...]
    facts: tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class Somebody:
    """An invented person."""

    name: str
    email: str
    phone: str
    address: str


PEOPLE = (
    Somebody("Hanneke Osterholt", "hanneke.osterholt@letterbox.test", "+44 1632 960114", "7 Saddler Lane, Corbridge"),
    Somebody("Ruben Adeyemi", "r.adeyemi@parcelpost.test", "+44 1632 960287", "58 Kiln Street, Whitby"),
    Somebody("Margaret Pugh", "margaret@pughfamily.test", "+44 1632 960335", "3 Wharf Cottages, Bala"),
    Somebody("Tomasz Wieczorek", "tomasz.w@letterbox.test", "+48 500 555 129", "21 Elder Court, Hexham"),
    Somebody("Lucia Benedetti", "lucia.benedetti@mailhall.test", "+39 06 5550 0182", "140 Rectory Road, Oundle"),
    Somebody("Daniel Frost", "dan.frost@parcelpost.test", "+44 1632 960461", "9 Plover Drive, Settle"),
    Somebody("Amara Nwosu", "amara@nwosu-design.test", "+44 1632 960508", "66 Chandler Row, Alnwick"),
    Somebody("Jakob Steiner", "j.steiner@mailhall.test", "+43 1 5550 0193", "12 Maltings Yard, Frome"),
)

_FENCE = ("{name} repaired the fence behind the house at {address}. It took two days and cost 210 euros. The posts "
          "are new. {name} comes back in June to paint it.")
_CHOIR = ("The choir met on Thursday. {name} will order the new folders and {other} looks for a piano. The summer "
          "concert is on 12 June. Nobody has booked the hall yet.")
_FLAT = ("We looked at the flat at {address}. It is on the second floor, has three rooms and a small balcony. The "
         "owner, {name}, wants 940 euros a month. The heating is old.")
_FERRY = ("{name} missed the ferry on Monday because the bus was late. She slept at the harbour and took the first "
          "boat in the morning. The suitcase is still on the island. {other} will send it with the post.")
_CLUB = ("Notes of the allotment club. The meeting began at seven. {name} reported that the water pump is broken "
         "again and that a new one costs 320 euros. {other} offered to ask the dealer for a lower price. The hedge "
         "along the road has to be cut before the birds nest, so everyone comes on Saturday morning with gloves. The "
         "key of the tool shed now hangs at the gate. The old lawn mower was given away. Last year's harvest festival"
         " brought in 415 euros, which pays for the compost. The next meeting is at {address}, on the first Friday in"
         " April. Whoever cannot come tells {other} by telephone: {phone}.")
_TRIP = ("Plan for the school trip. We leave on Wednesday at eight from the car park and are back by six. {name} "
         "drives the first bus and {other} the second. Each child needs a rain coat, a sandwich and a bottle of "
         "water. In the morning we visit the glass works, where photographs are not allowed. Lunch is in the garden "
         "of the museum. In the afternoon the older classes climb the tower and the younger ones stay in the park. "
         "The entrance costs four euros for each child. In an emergency call {phone}. Lost things can be asked for at"
         " {email} for two weeks.")

_TEMPLATES = (
    # kind, request, material, what the answer must hold
    ("extraction", "Who should I ring back?", "Missed call at 9:40: {name}, {phone}. The van is ready.", ("{name}",)),
    ("extraction", "Which number should I ring?", "Missed call at 9:40: {name}, {phone}. The van is ready.",
     ("{phone}",)),
    ("extraction", "What is the builder's e-mail address?",
     "The builder is {name}. His e-mail address is {email}. He starts on Monday.", ("{email}",)),
    ("extraction", "Where does the walk start? Give the address.",
     "The walk starts at {address} at nine. Bring boots and something to drink.", ("{address}",)),
    ("extraction", "Name everyone who comes on Saturday.", "Guests for Saturday: {name}, {other}, {third}.",
     ("{name}", "{other}", "{third}")),
    ("rewriting", "Make this friendlier.", "{name}, you still have my ladder. Bring it back.", ("{name}", "ladder")),
    ("rewriting", "Put this into the past tense.", "{name} walks to the station and buys two tickets.",
     ("{name}", "tickets")),
    ("rewriting", "Correct the mistakes in this message.", "{name} and {other} is comming on sunday with the dog.",
     ("{name}", "{other}", "sunday")),
    ("rewriting", "Write this as one sentence.", "The lamp is broken. {name} dropped it. {other} was not there.",
     ("{name}", "lamp")),
    ("rewriting", "Rewrite this note so that it is easy to read.", _FENCE, ("{name}", "{address}")),
    ("rewriting", "Shorten this: Please would you be so kind as to tell {name} that the room has been moved to the "
     "first floor.", "", ("{name}", "floor")),
    ("summary", "Sum this up in two sentences.", _FENCE, ("{name}", "fence")),
    ("summary", "Sum this up in two sentences.", _CHOIR, ("{name}", "{other}")),
    ("summary", "What is the most important in this note?", _FLAT, ("{address}", "940")),
    ("summary", "Summarise the note in one or two sentences.", _FERRY, ("{name}", "ferry")),
    ("summary", "Give me a short summary of these notes.", _CLUB, ("{name}", "pump")),
    ("summary", "Give me a short summary of this plan.", _TRIP, ("{name}", "bus")),
    ("long text", "Who drives the second bus?", _TRIP, ("{other}",)),
    ("long text", "Which number is for emergencies?", _TRIP, ("{phone}",)),
    ("long text", "Who said that the pump is broken?", _CLUB, ("{name}",)),
    ("long text", "Where is the next meeting?", _CLUB, ("{address}",)),
    ("drafting", "Write a short message to {name}: the parcel is at the post office.", "", ("{name}", "parcel")),
    ("drafting", "Write a short letter to {name} about the broken gate at {address}.", "", ("{name}", "gate")),
    ("drafting", "Write two sentences that thank {name} and {other} for the help with the move.", "",
     ("{name}", "{other}")),
    ("drafting", "Write an e-mail to {name} that cancels the lesson on Wednesday.", "", ("{name}", "wednesday")),
    ("drafting", "Write a note for {name}: call {other} on {phone} before noon.", "", ("{other}", "{phone}")),
    ("dates", "When is the rehearsal now?", "{name} moved the rehearsal from Wednesday to Saturday.", ("saturday",)),
    ("dates", "{name} arrives on 4 May and leaves on 9 May. When does {name} leave?", "", ("9 may",)),
    ("dates", "On which day does {other} have the car?", "{name} has the car on Monday and {other} on Thursday.",
     ("thursday",)),
    ("arithmetic", "{name} baked 12 rolls and {other} baked 8 rolls. How many rolls did they bake together?", "",
     ("20",)),
    ("arithmetic", "{name} had 9 pencils and gave 3 of them to {other}. How many pencils are left?", "", ("6",)),
    ("arithmetic", "{name} pays 15 euros for each of 2 tickets. How many euros are that?", "", ("30",)),
)


def make_style_tasks(people: Sequence[Somebody] = PEOPLE, first: int = 0) -> list[StyleTask]:
    """Each task once, of people taken in turn. first: with whom the turn begins."""
    tasks = []
    for number, (kind, request, material, needed) in enumerate(_TEMPLATES):
        three = [people[(first + number * 3 + more) % len(people)] for more in range(3)]
        one = three[0]
        given = {"name": one.name, "other": three[1].name, "third": three[2].name, "email": one.email,
                 "phone": one.phone, "address": one.address}
        tasks.append(StyleTask(
            kind, request.format(**given), material.format(**given), tuple(text.format(**given) for text in needed),
            (*((person.name, "PERSON") for person in three), (one.email, "EMAIL"), (one.phone, "PHONE"),
             (one.address, "ADDRESS")),
        ))
    return tasks
