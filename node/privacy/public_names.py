"""Names that everybody knows and that the detectors would mask: technology, services, nationalities, holidays, the long
dead. The owner may add names; the list never overrules labels, the vault or patterns.

Must not know detectors or texts.
"""

from collections.abc import Iterable
from importlib.resources import files

from node.privacy.normalise import fold_word

__all__ = ["PublicNames", "shipped_names"]


class PublicNames:
    """A fixed set of names; compared folded, so case and accents make no difference."""

    def __init__(self, names: Iterable[str]) -> None:
        self._names = frozenset(fold_word(name) for name in names) - {""}

    def __len__(self) -> int:
        """How many."""
        return len(self._names)

    def holds(self, text: str) -> bool:
        """Whether the text, but for an article before it or a possessive s behind it, is one of them."""
        folded = fold_word(text)
        return any(form in self._names for form in (folded, folded.removeprefix("the "), folded.removesuffix(" s")))


def shipped_names() -> tuple[str, ...]:
    """The names that Kith brings along, from public_names.txt: comma-separated, lines with # are remarks."""
    lines = files("node.privacy").joinpath("public_names.txt").read_text(encoding="utf-8").splitlines()
    joined = ",".join(line for line in lines if not line.startswith("#"))
    return tuple(name for one in joined.split(",") if (name := one.strip()))
