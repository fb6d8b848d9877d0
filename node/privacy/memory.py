"""What the guard remembers of each conversation: its label, the values tools returned, one placeholder map per peer.

In memory only; dropped when the conversation ends, at a restart, and when it has gone unused for longest of many: what
was read in it comes back with its turns, which keep their labels and are told anew when it is taken up again. Must not
know levels, consent or the ledger.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field

from node.privacy.errors import GuardFailed
from node.privacy.labels import Confidentiality, ConversationLabel, Integrity, Labeled, Value, known_values
from node.privacy.placeholders import PlaceholderMap
from node.privacy.vault import Vault

__all__ = ["ConversationMemory", "Memories"]

_VALUES_LIMIT = 20_000
_CONVERSATIONS_LIMIT = 512
_REMEMBERED_TYPES = frozenset({"PERSON", "NAME", "ORG", "PLACE", "ADDRESS", "EMAIL", "PHONE", "ID"})


@dataclass(slots=True)
class ConversationMemory:
    """One conversation's state."""

    label: ConversationLabel = field(default_factory=ConversationLabel)
    _values: dict[Value, None] = field(default_factory=dict)
    _guessed: dict[Value, None] = field(default_factory=dict)
    _maps: dict[tuple[str, str], PlaceholderMap] = field(default_factory=dict)
    _vault: Vault | None = None

    def absorb(self, *parts: Labeled) -> None:
        """Take in parts that entered the context. Raises GuardFailed beyond the limit: forgetting would leak."""
        self.label.absorb(*parts)
        before = len(self._values)
        for part in parts:
            for value in known_values(part):
                self._values.setdefault(value)
        if len(self._values) > _VALUES_LIMIT:
            raise GuardFailed(f"this conversation holds more than {_VALUES_LIMIT} personal values")
        if len(self._values) != before:
            self._vault = None

    def suspect(self, guessed: Iterable[Value]) -> bool:
        """Remember what detectors took for personal: from now on it is masked wherever it stands. Whether that is new.

        Raises GuardFailed beyond the limit.
        """
        before = len(self._guessed)
        for value in guessed:
            if value not in self._values and _is_distinct(value):
                self._guessed.setdefault(value)
        if len(self._guessed) > _VALUES_LIMIT:
            raise GuardFailed(f"this conversation holds more than {_VALUES_LIMIT} values that may be personal")
        if len(self._guessed) == before:
            return False
        self._vault = None
        return True

    @property
    def returned(self) -> Vault:
        """Every personal value that entered this conversation; all count, whatever their words, but for guesses."""
        if self._vault is None:
            self._vault = Vault(self._values, strict=True, doubtful=self._guessed)
        return self._vault

    def map_for(self, peer_id: str, style: str) -> PlaceholderMap:
        """The map of this conversation and peer, for a model of this style."""
        return self._maps.setdefault((peer_id, style), PlaceholderMap(style))

    @property
    def is_blank(self) -> bool:
        """Nothing personal or untrusted entered it and no placeholder was given out: a fresh one is as good."""
        label = self.label.label
        plain = label.confidentiality is Confidentiality.PUBLIC and label.integrity is not Integrity.UNTRUSTED
        return plain and not self._values and not self._guessed and not self._maps


class Memories:
    """All conversations of which something has to be remembered."""

    def __init__(self) -> None:
        self._all: dict[str, ConversationMemory] = {}   # the longest unused first

    def __len__(self) -> int:
        """How many are remembered."""
        return len(self._all)

    def of(self, conversation: str) -> ConversationMemory:
        """The state of a conversation; a fresh one when it is not known, which lasts only when it is kept."""
        memory = self._all.pop(conversation, None)
        if memory is None:
            return ConversationMemory()
        self._all[conversation] = memory
        return memory

    def keep(self, conversation: str, memory: ConversationMemory) -> None:
        """Remember it unless it is blank: single queries and messages leave nothing behind."""
        if not memory.is_blank:
            self._all.pop(conversation, None)
            self._all[conversation] = memory
        while len(self._all) > _CONVERSATIONS_LIMIT:
            del self._all[next(iter(self._all))]

    def forget(self, conversation: str) -> None:
        """Drop it. Fine when it is not known."""
        self._all.pop(conversation, None)


def _is_distinct(value: Value) -> bool:
    """Names and addresses with a capital or a digit; ages, titles, words in lower case would be masked everywhere."""
    written = value.text.strip()
    return value.type in _REMEMBERED_TYPES and len(written) >= 4 and any(
        char.isupper() or char.isdigit() for char in written)
