"""Stand-ins for real values, for models that lose bracketed placeholders (the smallest ones).

All are made up: plain names that small models write without a slip (each is one token of a common vocabulary, and none
is an English word), e-mail under example.org (RFC 2606), telephone numbers of the range kept for fiction (NANP 555-0100
to 0199), streets and towns without a country. A name as common as these may be somebody's: the caller skips any that
equals a real value or stands in the text. Must not know real values.
"""

from collections.abc import Iterator

__all__ = ["FIRMS", "surrogates"]

_GIVEN = (
    "Anna", "Peter", "Laura", "David", "Julia", "Simon", "Helen", "Martin", "Emma", "Thomas", "Susan", "Robert",
    "Linda", "Kevin", "Karen", "Brian", "Nancy", "Edward", "Diana", "Steven", "Rachel", "Andrew", "Lisa", "Philip",
    "Rebecca", "Walter", "Ellen", "Samuel", "Sophie", "Patrick", "Alice", "Daniel", "Clara", "Oliver", "Louise",
    "George", "Maria", "Henry", "Charlotte", "Victor", "Nina", "Benjamin", "Margaret", "Jonathan", "Kate",
)
_FAMILY = (
    "Wilson", "Anderson", "Bennett", "Thompson", "Collins", "Harris", "Murray", "Roberts", "Watson", "Mitchell",
    "Simpson", "Hughes", "Campbell", "Stevens", "Reynolds", "Gibson", "Jenkins", "Morris", "Henderson", "Edwards",
    "Sullivan", "Richardson", "Phillips", "Patterson", "Morrison", "Spencer", "Evans", "Peterson", "Barnes",
    "Graham", "Russell", "Robinson", "Davidson", "Matthews", "Harrison", "Andrews", "Hamilton", "Clarke", "Lewis",
    "Griffin", "Douglas", "Hansen", "Nelson", "Jensen",
)
_STREETS = ("Oak Street", "Maple Avenue", "Mill Lane", "Station Road", "Garden Street", "River Road", "Forest Avenue",
            "Bridge Street")
_TOWNS = ("Springfield", "Riverton", "Brookfield", "Westfield", "Millbrook", "Fairfield", "Ashford")
FIRMS = ("Brightwell Supplies", "Northgate Partners", "Calder & Finch", "Meridian Works", "Oakline Services",
          "Harbour Light Trading")


def surrogates(type_: str, *, words: int, lines: int = 2, given: str = "") -> Iterator[str]:
    """Stand-ins for one type, best first, each at most 36 characters. Empty for types whose form matters (dates, ids).

    words: how many words the real value has; a single name gets a single name. lines: how many parts between commas; an
    address of one gets a street alone. given: what the person's first name alone was replaced by before, if it was.
    """
    if type_ == "PERSON":
        for at in range(len(_GIVEN) * len(_FAMILY)):
            first, family = given or _GIVEN[at % len(_GIVEN)], _FAMILY[(at * 7 + at // len(_GIVEN)) % len(_FAMILY)]
            yield f"{first} {family}" if words > 1 else first
    elif type_ == "EMAIL":
        for at in range(len(_GIVEN) * len(_FAMILY)):
            yield f"{_GIVEN[at % len(_GIVEN)]}.{_FAMILY[(at * 11 + 3) % len(_FAMILY)]}@example.org".lower()
    elif type_ == "PHONE":
        for at in range(100):
            yield f"+1 202 555 01{at:02d}"
    elif type_ == "ADDRESS":
        for at in range(len(_STREETS) * len(_TOWNS)):
            street = f"{11 + at * 3} {_STREETS[at % len(_STREETS)]}"
            yield street if lines == 1 else f"{street}, {_TOWNS[(at * 2) % len(_TOWNS)]}"
    elif type_ == "PLACE":
        yield from _TOWNS
    elif type_ == "ORG":
        yield from FIRMS
