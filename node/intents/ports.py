"""What the queue needs of the rest of the node: somebody who can run a request, and somebody to tell.

Must not know models, peers, the guard or screens.
"""

from dataclasses import dataclass
from typing import Protocol, TypeAlias

from node.store.conversations import Turn
from node.store.intents import Intent

__all__ = ["Again", "GaveUp", "Outcome", "Parked", "Refused", "Teller", "Upgraded", "Upgrader"]


@dataclass(frozen=True, slots=True)
class Upgraded:
    """The better answer, as it will stand in the conversation."""

    turn: Turn


@dataclass(frozen=True, slots=True)
class Again:
    """Nothing came of it this time."""

    reason: str


@dataclass(frozen=True, slots=True)
class Parked:
    """The owner must say yes first: question_json is what he will be shown."""

    question_json: str
    reason: str


@dataclass(frozen=True, slots=True)
class Refused:
    """It may not leave, now or later."""

    reason: str


@dataclass(frozen=True, slots=True)
class GaveUp:
    """It can never run."""

    reason: str


Outcome: TypeAlias = Upgraded | Again | Parked | Refused | GaveUp


class Upgrader(Protocol):
    """Runs requests elsewhere."""

    async def can_run(self, intent: Intent) -> bool:
        """Whether it could run elsewhere at this moment. Sends nothing."""
        ...

    async def run(self, intent: Intent) -> Outcome:
        """Run it. Raises nothing but what is a bug; cancelling it ends it there as well."""
        ...


class Teller(Protocol):
    """Whoever follows what happens; must not block or raise, and gets no text of the owner's."""

    def intent_changed(self, intent: Intent) -> None:
        """A request is in another state now."""
        ...
