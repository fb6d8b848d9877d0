"""Prompts as people type them into a chat, with personal facts planted in them, made from a seed.

The templates and names are this file's own: no net was tuned on them. A value is written as people write it: whole,
in lower case, in capitals, the first or last name alone, "Last, First". Must not know nets or masking.
"""

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

__all__ = ["LANGUAGES", "Person", "Prompt", "make_prompts", "vault_values"]

GIVEN = ("Ottilie", "Bram", "Nkechi", "Yusuf", "Marit", "Tadeo", "Ingrid", "Kofi", "Leila", "Stellan", "Priya",
         "Goran", "Aoife", "Mateusz", "Hye-jin", "Renata", "Dmitri", "Salome", "Wim", "Chiara", "Ibrahim", "Solveig",
         "Nuno", "Katarzyna", "Emeka", "Rosalind", "Haruki", "Bettina", "Cillian", "Zeynep")
FAMILY = ("Vandersteen", "Okonkwo", "Brankovic", "Laurila", "Castellanos", "Hathaway", "Szymanski", "Dervishi",
          "Quigley", "Tanaka", "Oberholzer", "Mbeki", "Ferreira", "Lindholm", "Papadakis", "Achterberg", "Novotny",
          "Ramaswamy", "Gallagher", "Bianchetti", "Osei", "Kowalczyk", "Haugen", "Delgado", "Petrov", "Yildiz",
          "Moreau", "Stanic", "Weatherby", "Iwu")
STREETS = ("Cobblestone Way", "Harrier Close", "Pepperbox Lane", "Tannery Street", "Old Orchard Road",
           "Saint Bride Walk")
TOWNS = ("Ludlow", "Farnham", "Kendal", "Galway", "Durango", "Bellingham", "Utrecht", "Linz")
FIRMS = ("Hartwell & Stone", "Bluepine Logistics", "Corvane Systems", "Meridel Clinic", "Oakridge Dental",
         "Tessaly Labs")
DOMAINS = ("postbox.test", "mailer.test", "inbox.test")

ENGLISH = (
    "hey can you write a birthday message for {name}? keep it short and funny",
    "Draft an email to {email} saying I can't make it on Thursday because of the car.",
    "my neighbour {name} keeps parking in front of our gate, how do i bring it up without a fight",
    "Summarise this: {name} called from {phone} and wants to move the viewing at {address} to next week.",
    "what should i cook for {name} who is coming over, she doesn't eat fish",
    "Please reword: \"I spoke with {name} at {firm} and they will send the contract to {email}.\"",
    "I live at {address}. Which documents do I need to register a dog?",
    "{name} owes me 40 and {other} owes me 25, who should I remind first and what do I say",
    "Is it normal that my landlord {name} asks for three months deposit? The flat is at {address}.",
    "Make a list of questions for my appointment with {name} about my knee.",
    "can u shorten this text: tell {name} to ring {phone} before six or email {email}",
    "Write a complaint to {firm}. My name is {name} and my account is {iban}.",
    "I was born on {birth}. How many weeks old am I roughly?",
    "Turn this into a polite reminder: {name}, you still have my drill, bring it back to {address}.",
    "Explain to {name}'s daughter in simple words why the sky is blue.",
    "Our team: {name} does the accounts, {other} the website. Suggest a fair split of the weekend shifts.",
    "Proofread this: Dear {name}, thank you for you're patience. Please call {phone}.",
    "The plumber ({name}, {phone}) can only come at noon. Write a note for {other}.",
    "my boss {name} at {firm} said no to the raise. how do i ask again in spring",
    "Give me three gift ideas for {name}. She turned 61 and likes birds.",
    "Transfer text: pay {name}, {iban}, for the fence. Make it sound formal.",
    "i met {name} at the gym and want to text her at {phone}, what do i say",
    "Write a reference for {name}, who worked at {firm} for six years.",
    "What is a nice way to tell {name} and {other} that the trip is cancelled?",
)
OTHER_LANGUAGES = {
    "German": (
        "Schreib bitte eine kurze Nachricht an {name}, dass ich morgen später komme.",
        "Mein Vermieter {name} ruft mich immer unter {phone} an. Was kann ich tun?",
        "Formuliere das höflicher: {name} soll das Paket endlich zur {address} bringen.",
        "Ich wohne in der {address} und suche einen guten Zahnarzt, was muss ich beachten?",
        "Fasse zusammen: {name} von {firm} hat an {email} geschrieben und wartet auf die Antwort.",
    ),
    "French": (
        "Écris un petit message à {name} pour dire que je serai en retard demain.",
        "Mon voisin {name} m'appelle toujours au {phone}, que dois-je faire ?",
        "Reformule poliment : {name} doit apporter le colis au {address}.",
        "J'habite au {address} et je cherche un bon dentiste, que faut-il savoir ?",
        "Résume : {name} de {firm} a écrit à {email} et attend une réponse.",
    ),
    "Spanish": (
        "Escribe un mensaje corto a {name} para decir que mañana llego tarde.",
        "Mi vecino {name} siempre me llama al {phone}, ¿qué puedo hacer?",
        "Dilo con más cortesía: {name} tiene que llevar el paquete a {address}.",
        "Vivo en {address} y busco un buen dentista, ¿qué debo tener en cuenta?",
        "Resume: {name} de {firm} escribió a {email} y espera la respuesta.",
    ),
    "Italian": (
        "Scrivi un breve messaggio a {name} per dire che domani arrivo tardi.",
        "Il mio vicino {name} mi chiama sempre al {phone}, che cosa posso fare?",
        "Dillo in modo più gentile: {name} deve portare il pacco in {address}.",
        "Abito in {address} e cerco un bravo dentista, che cosa devo sapere?",
        "Riassumi: {name} di {firm} ha scritto a {email} e aspetta la risposta.",
    ),
}
LANGUAGES = tuple(OTHER_LANGUAGES)


@dataclass(frozen=True, slots=True)
class Person:
    """One invented person and their facts."""

    name: str
    email: str
    phone: str
    address: str
    firm: str
    iban: str
    birth: str


@dataclass(frozen=True, slots=True)
class Prompt:
    """A prompt and what was planted in it: (as written, type)."""

    text: str
    planted: tuple[tuple[str, str], ...]
    spans: tuple[tuple[int, int, str], ...]


def make_people(count: int, seed: int) -> list[Person]:
    """Invented people, each with all facts."""
    chance = random.Random(seed)
    people = []
    for _ in range(count):
        given, family = chance.choice(GIVEN), chance.choice(FAMILY)
        people.append(Person(
            f"{given} {family}", f"{given.lower()}.{family.lower()}@{chance.choice(DOMAINS)}",
            f"+44 1632 960{chance.randrange(1000):03d}",
            f"{chance.randrange(2, 190)} {chance.choice(STREETS)}, {chance.choice(TOWNS)}", chance.choice(FIRMS),
            _iban(chance),
            f"{chance.randrange(1950, 2004)}-{chance.randrange(1, 13):02d}-{chance.randrange(1, 29):02d}",
        ))
    return people


def vault_values(people: Sequence[Person]) -> list[tuple[str, str]]:
    """All their facts, as contacts and the owner's own profile give them to the vault."""
    values: dict[tuple[str, str], None] = {}
    for person in people:
        for value, type_ in ((person.name, "PERSON"), (person.email, "EMAIL"), (person.phone, "PHONE"),
                             (person.address, "ADDRESS"), (person.firm, "ORG"), (person.iban, "ID"),
                             (person.birth, "DATE")):
            values.setdefault((value, type_))
    return list(values)


def make_prompts(
    people: Sequence[Person], count: int, seed: int, *, language: str | None = None,
) -> Iterator[Prompt]:
    """Prompts in English, or in one of LANGUAGES, cycling through the templates."""
    chance = random.Random(seed)
    templates = ENGLISH if language is None else OTHER_LANGUAGES[language]
    for number in range(count):
        yield _fill(templates[number % len(templates)], chance, people)


_TYPES = {"name": "PERSON", "other": "PERSON", "email": "EMAIL_ADDRESS", "phone": "PHONE_NUMBER",
          "address": "STREET_ADDRESS", "firm": "ORGANIZATION", "iban": "IBAN_CODE", "birth": "DATE_TIME"}


def _fill(template: str, chance: random.Random, people: Sequence[Person]) -> Prompt:
    person, other = chance.sample(list(people), 2)
    style = chance.random()
    out, planted, spans = "", [], []
    rest = template
    while rest:
        before, brace, after = rest.partition("{")
        out += before.lower() if style < 0.25 else before
        if not brace:
            break
        field, _, rest = after.partition("}")
        fact = other.name if field == "other" else getattr(person, field)
        written = _written(fact, field, chance)
        written = written.lower() if style < 0.25 else written.upper() if style > 0.92 else written
        spans.append((len(out), len(out) + len(written), _TYPES[field]))
        planted.append((written, _TYPES[field]))
        out += written
    return Prompt(out, tuple(planted), tuple(spans))


def _written(fact: str, field: str, chance: random.Random) -> str:
    if field in ("name", "other"):
        first, last = fact.rsplit(" ", 1)
        return chance.choice((fact, fact, fact, first, last, f"{last}, {first}"))
    if field == "phone":
        return chance.choice((fact, fact.replace(" ", ""), fact.replace("+44 ", "0"), fact.replace(" ", "-")))
    if field == "iban":
        return chance.choice((fact, " ".join(fact[at : at + 4] for at in range(0, len(fact), 4))))
    if field == "address":
        return chance.choice((fact, fact, fact.partition(",")[0]))
    if field == "birth":
        year, month, day = fact.split("-")
        return chance.choice((fact, f"{int(day)}/{int(month)}/{year}", f"{day}.{month}.{year}"))
    return fact


def _iban(chance: random.Random) -> str:
    """A British account number of no bank, with right check digits (ISO 13616)."""
    body = "ZZZZ" + "".join(str(chance.randrange(10)) for _ in range(14))
    number = int("".join(str(int(char, 36)) for char in f"{body}GB00"))
    return f"GB{98 - number % 97:02d}{body}"
