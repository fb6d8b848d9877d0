"""How many inbound connections may wait for their upgrade, in all and per IP address. Must not know sockets or libp2p.

At a limit the OLDEST waiting one is dropped, never the newcomer refused: a real peer gets through while idle
connections pile up, because its handshake takes milliseconds and theirs never end.
"""

from collections import OrderedDict
from typing import Protocol

__all__ = ["Admission", "Waiting"]


class Waiting(Protocol):
    """A connection that has not proven who it is."""

    @property
    def ip(self) -> str:
        """Where it comes from."""
        ...

    def abort(self) -> None:
        """Drop it at once."""
        ...


class Admission:
    """The waiting connections, oldest first."""

    def __init__(self, *, total: int, per_ip: int) -> None:
        self._total = total
        self._per_ip = per_ip
        self._waiting: dict[str, OrderedDict[int, Waiting]] = {}
        self._count = 0
        self.dropped = 0

    def __len__(self) -> int:
        return self._count

    def enter(self, connection: Waiting) -> None:
        """Take a new connection in, dropping the oldest one of its IP, or of the busiest IP, when a limit is
        reached."""
        mine = self._waiting.get(connection.ip, OrderedDict())
        if len(mine) >= self._per_ip:
            self._drop_oldest(connection.ip)
        elif self._count >= self._total:
            self._drop_oldest(max(self._waiting, key=lambda ip: len(self._waiting[ip])))
        self._waiting.setdefault(connection.ip, OrderedDict())[id(connection)] = connection
        self._count += 1

    def leave(self, connection: Waiting) -> None:
        """It was upgraded, or is gone. Doing it twice is fine."""
        mine = self._waiting.get(connection.ip)
        if mine is not None and mine.pop(id(connection), None) is not None:
            self._count -= 1
            if not mine:
                del self._waiting[connection.ip]

    def _drop_oldest(self, ip: str) -> None:
        oldest = next(iter(self._waiting[ip].values()))
        self.leave(oldest)
        self.dropped += 1
        oldest.abort()
