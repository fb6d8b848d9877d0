"""Invented stand-ins for real values, for models that lose bracketed placeholders (the smallest ones).

All are made up: names from two lists of our own, e-mail under example.org (RFC 2606), telephone numbers of the range
kept for fiction (NANP 555-0100 to 0199), streets and towns that do not exist. The caller skips any that equals a real
value. Must not know real values.
"""

from collections.abc import Iterator

__all__ = ["surrogates"]

_GIVEN = (
    "Mara", "Tobin", "Elska", "Joren", "Runa", "Caspian", "Ilsebet", "Davor", "Selma", "Anselm", "Petra", "Lucan",
    "Odile", "Matteo", "Freya", "Ronan", "Vesna", "Emeric", "Thalia", "Osric", "Yara", "Bastian", "Noemi", "Kellan",
    "Sunniva", "Piers", "Liora", "Tavish", "Greta", "Alaric",
)
_FAMILY = (
    "Lindqvist", "Harrowgate", "Ostrander", "Vellmoor", "Castellane", "Thornbury", "Marchetti", "Quillfeld", "Rasmunde",
    "Wexcombe", "Delacorte", "Fenwright", "Kestrelby", "Norrington", "Pallister", "Silverwend", "Tremaine", "Ashgrove",
    "Bellerose", "Hollowell", "Ingleborn", "Larkspire", "Montclair", "Oakhurst", "Ravensby", "Stanhope", "Underhay",
    "Whitlock", "Yarborough",
)
_STREETS = ("Larkspur Row", "Cobbler's Rise", "Old Mill Terrace", "Heron Walk", "Foxglove Close", "Lantern Street",
            "Quarry Bank", "Willowbrook Lane")
_TOWNS = ("Eastmere", "Calderwick", "Port Anselm", "Hollinford", "Greywater", "Saltmarsh End", "Marlow Cross")
_FIRMS = ("Brightwell Supplies", "Northgate Partners", "Calder & Finch", "Meridian Works", "Oakline Services",
          "Harbour Light Trading")


def surrogates(type_: str, *, words: int) -> Iterator[str]:
    """Stand-ins for one type, best first, each at most 36 characters. Empty for types whose form matters (dates, ids).

    words: how many words the real value has; a single name gets a single name.
    """
    if type_ == "PERSON":
        for at in range(len(_GIVEN) * len(_FAMILY)):
            given, family = _GIVEN[at % len(_GIVEN)], _FAMILY[(at * 7 + at // len(_GIVEN)) % len(_FAMILY)]
            yield f"{given} {family}" if words > 1 else given
    elif type_ == "EMAIL":
        for at in range(len(_GIVEN) * len(_FAMILY)):
            yield f"{_GIVEN[at % len(_GIVEN)]}.{_FAMILY[(at * 11 + 3) % len(_FAMILY)]}@example.org".lower()
    elif type_ == "PHONE":
        for at in range(100):
            yield f"+1 202 555 01{at:02d}"
    elif type_ == "ADDRESS":
        for at in range(len(_STREETS) * len(_TOWNS)):
            yield f"{11 + at * 3} {_STREETS[at % len(_STREETS)]}, {_TOWNS[(at * 2) % len(_TOWNS)]}"
    elif type_ == "PLACE":
        yield from _TOWNS
    elif type_ == "ORG":
        yield from _FIRMS
