"""The vault net that follows the owner's files: it reads contacts and calendars again whenever they changed.

A file that was just saved is known before the next text leaves. Must not know matching or masking.
"""

from collections.abc import Sequence

import trio

from node.clock import Clock
from node.counting import counted
from node.privacy.nets import VaultNet
from node.privacy.vault import Hit, Vault
from node.sources.ics import Calendars
from node.sources.values import vault_values
from node.sources.vcf import Contacts

__all__ = ["FollowingVault"]

FRESH_S = 0.5


class FollowingVault:
    """Implements node.privacy.nets.KnownValues over the owner's sources."""

    name = "vault"

    def __init__(self, calendars: Calendars, contacts: Contacts, clock: Clock) -> None:
        self._calendars = calendars
        self._contacts = contacts
        self._clock = clock
        self._net = VaultNet()
        self._values: tuple[tuple[str, str], ...] | None = None
        self._read_s = float("-inf")
        self._turn = trio.Lock()

    @property
    def size(self) -> int | None:
        """How many values it knows; None before the first reading."""
        return self._net.size

    @property
    def gaps(self) -> tuple[str, ...]:
        """Folders of contacts and calendars that could not be read at the last reading: names may stand in them."""
        places = (("contacts", self._contacts.unread()), ("calendar", self._calendars.unread()))
        return tuple(f"{name} ({counted(len(unread), 'folder')} unreadable)" for name, unread in places if unread)

    async def refresh(self) -> None:
        """Read the sources now. Raises what reading raises; the net then fails closed."""
        async with self._turn:
            if self._clock.monotonic_s() - self._read_s < FRESH_S:
                return
            found = await trio.to_thread.run_sync(vault_values, self._calendars, self._contacts)
            values = tuple((value.text, value.type.value) for value in found)
            if values != self._values:
                await self._net.load(values)
                self._values = values
            self._read_s = self._clock.monotonic_s()

    def holds(self, text: str) -> bool:
        """True for a value of the owner's, and while nothing is loaded."""
        return self._net.holds(text)

    async def scan(self, text: str, returned: Vault) -> Sequence[Hit]:
        """Hits, from sources that are at most half a second old."""
        await self.refresh()
        return await self._net.scan(text, returned)
