"""The names within a written name: "Dr. Imogen Sarkisian" is called Imogen and Sarkisian, not Dr.

Must not know whose names they are.
"""

__all__ = ["TITLES", "name_words"]

TITLES = frozenset({"mr", "mrs", "ms", "miss", "dr", "prof", "professor", "sir", "mx", "jr", "sr", "dipl", "ing"})


def name_words(name: str) -> list[str]:
    """The words of a person's name without titles and commas; all of them when there is nothing else."""
    words = [word.strip(",;") for word in name.split()]
    return [word for word in words if word.strip(".").lower() not in TITLES] or words
