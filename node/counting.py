"""A number together with its noun, as a sentence for the owner needs it: "1 entry", "2 entries". Knows nothing else."""

__all__ = ["counted"]


def counted(number: int, one: str, several: str = "") -> str:
    """number with one where it is 1, else with several; several is one with an s where it is left out. Words behind the
    noun may stand in both: counted(n, "message waits", "messages wait")."""
    return f"{number:,} {one if number == 1 else several or one + 's'}"
