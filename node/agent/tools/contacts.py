"""The tool that looks up one detail of one person in the owner's address book. Must not know how cards are stored."""

from collections.abc import Sequence

from node.agent.tools.calls import in_thread
from node.agent.tools.errors import AmbiguousName, NothingFound
from node.agent.tools.examples import examples_of
from node.agent.tools.registry import Args, Param, ToolAnswer, ToolContext, ToolSpec, check_args
from node.agent.tools.wording import listed
from node.privacy.labels import Confidentiality, Integrity, Labeled, Value
from node.sources.vcf import Contact, Contacts

__all__ = ["ContactLookup"]

_SPEC = ToolSpec(
    name="contact_lookup",
    description="Look up a person's phone number, email, address or birthday in the address book",
    params={
        "name": Param("the person's name", "choice"),
        "field": Param("which detail", "choice", choices=("phone", "email", "address", "birthday")),
    },
    required=("name", "field"),
    examples=(
        "what is Bo's phone number", "I need the e-mail address of the plumber", "which street does Aunt Rose live in",
        "when does Karim have his birthday", "give me the number of the dentist", "how do I reach Zoe by mail",
        "look up the postal address of my landlord", "on what day was Ines born", "show me the contact details of Paul",
        *examples_of("contact_lookup"),
    ),
    kind="read",
    cues=("phone", "number", "email", "e-mail", "address", "birthday", "born", "contact", "live", "reach"),
)
_NOUNS = {
    "phone": ("phone number", "PHONE"), "email": ("e-mail address", "EMAIL"), "address": ("address", "ADDRESS"),
    "birthday": ("birthday", "DATE"),
}


class ContactLookup:
    """One detail of one contact."""

    spec = _SPEC

    def __init__(self, contacts: Contacts) -> None:
        self._contacts = contacts

    async def choices(self, param: str) -> tuple[str, ...]:
        """The names in the address book."""
        return await in_thread(self._contacts.names) if param == "name" else ()

    async def run(self, args: Args, ctx: ToolContext) -> ToolAnswer:
        """The detail. Raises NothingFound for an unknown person or a missing detail, AmbiguousName when several fit."""
        check_args(self.spec, args)
        name, field = str(args["name"]), str(args["field"])
        found = await in_thread(lambda: self._contacts.lookup(name))
        names = tuple(dict.fromkeys(contact.name for contact in found))
        if not names:
            raise NothingFound(f"Nobody called {name} is in your address book.")
        if len(names) > 1:
            raise AmbiguousName(f"{name} could be {listed(names, last='or')}.", names)
        details = tuple(dict.fromkeys(detail for contact in found for detail in _details(contact, field)))
        noun, value_type = _NOUNS[field]
        if not details:
            raise NothingFound(f"There is no {noun} of {names[0]} in your address book.")
        text = f"{names[0]}'s {noun}: {listed(details)}."
        values = (Value(names[0], "PERSON"), *(Value(detail, value_type) for detail in details))
        source = f"contact_lookup:{found[0].source}"
        return ToolAnswer(
            Labeled(text, Confidentiality.PERSONAL, Integrity.LOCAL, source, values),
            {"name": names[0], "field": field, "values": list(details)},
        )


def _details(contact: Contact, field: str) -> Sequence[str]:
    match field:
        case "phone":
            return contact.phones
        case "email":
            return contact.emails
        case "address":
            return contact.addresses
        case _:
            return (contact.birthday,) if contact.birthday else ()
