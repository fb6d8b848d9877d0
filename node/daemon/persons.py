"""Which paired devices are one person's, so that they share one day's tokens. The owner's own ones are; of others the
owner says so.

Must not know what is counted.
"""

from collections.abc import Callable, Sequence

from node.store import settings
from node.store.database import Database

__all__ = ["Persons"]

_KEY = "person:"


class Persons:
    """Of one node. load() first."""

    def __init__(self, database: Database, own: Callable[[], frozenset[str]]) -> None:
        """own(): the peers that are the owner's own devices."""
        self._database = database
        self._own = own
        self._person: dict[str, str] = {}

    async def load(self, peers: Sequence[str]) -> None:
        """Read what the owner said of these peers."""
        for peer_id in peers:
            person = await self._database.read(settings.get, _KEY + peer_id)
            if person:
                self._person[peer_id] = person

    def devices_of(self, peer_id: str) -> frozenset[str]:
        """This peer and all others that are the same person's."""
        own = self._own()
        if peer_id in own:
            return own
        person = self._person.get(peer_id, peer_id)
        same = {other for other, whose in self._person.items() if whose == person}
        return frozenset({peer_id, person, *same} - own)

    async def join(self, peer_id: str, other_id: str | None) -> None:
        """This device is the same person's as the other one; None: a person of its own. Own devices stay own."""
        person = self._person.get(other_id, other_id) if other_id is not None else peer_id
        if other_id is None and any(whose == peer_id and one != peer_id for one, whose in self._person.items()):
            # others were named after this one: they stay together under the first of them
            left = sorted(one for one, whose in self._person.items() if whose == peer_id and one != peer_id)
            for one in left:
                await self._put(one, left[0])
        await self._put(peer_id, person)

    async def forget(self, peer_id: str) -> None:
        """The peer is paired no more; if it is paired again it is a person of its own."""
        if self._person.pop(peer_id, None) is not None:
            await self._database.write(settings.put, _KEY + peer_id, "")

    async def _put(self, peer_id: str, person: str) -> None:
        await self._database.write(settings.put, _KEY + peer_id, person)
        self._person[peer_id] = person
