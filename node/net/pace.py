"""How often anybody may make this node work before it has proven who it is, and how often a peer may open a stream.

Token buckets: one for each source, one for all of them together, in a bounded table. Who proves to be known gets back
what it took, so that only others use the buckets up; and where a known one was met lately the common bucket does not
count, so that a flood from many places shuts none of them out. Must not know sockets, peers or what time it really is.
"""

import ipaddress
from collections import OrderedDict
from collections.abc import Callable

from node.net.limits import PaceLimits, Rate

__all__ = ["NO_LIMIT", "CallPace", "Pace", "source_of"]

NO_LIMIT = Rate(1 << 30, float(1 << 30))

_SOURCES = 4096
"""Sources remembered; the one that was quiet for longest is forgotten, and begins anew with a full bucket."""


def source_of(ip: str) -> str:
    """Who counts as one caller: an IPv4 address; a /64 of IPv6, of which a household has one at least; but each address
    where the network is a local one, which all its devices share."""
    address = ipaddress.ip_address(ip.partition("%")[0])
    if isinstance(address, ipaddress.IPv4Address):
        return str(address)
    if address.ipv4_mapped is not None:
        return str(address.ipv4_mapped)
    if address.is_link_local or address.is_private:
        return str(address)
    return str(ipaddress.IPv6Network((address, 64), strict=False))


class _Bucket:
    """Full at first; refills with time, to its burst at most."""

    __slots__ = ("_at_s", "_rate", "tokens")

    def __init__(self, rate: Rate, now_s: float) -> None:
        self._rate = rate
        self._at_s = now_s
        self.tokens = float(rate.burst)

    def refill(self, now_s: float) -> None:
        self.tokens = min(self._rate.burst, self.tokens + max(0.0, now_s - self._at_s) * self._rate.per_s)
        self._at_s = now_s


class Pace:
    """Of one kind of thing. refused: how many were not let through so far."""

    def __init__(
        self, each: Rate, together: Rate, now_s: Callable[[], float], *, most_sources: int = _SOURCES
    ) -> None:
        """each: for every source; together: for all that are not familiar."""
        self._each = each
        self._together = together
        self._now_s = now_s
        self._most = most_sources
        self._buckets: OrderedDict[str, _Bucket] = OrderedDict()
        self._common: _Bucket | None = None
        self._familiar: OrderedDict[str, None] = OrderedDict()
        self.refused = 0
        self.refused_at_s: float | None = None
        """When that happened last."""

    def __len__(self) -> int:
        return len(self._buckets)

    def take(self, source: str) -> bool:
        """Whether one more of this source is let through now; takes it from its buckets then."""
        now_s = self._now_s()
        own, common = self._bucket(source, now_s), self._of_all(now_s)
        counts = source not in self._familiar
        if own.tokens < 1 or (counts and common.tokens < 1):
            self.refused += 1
            self.refused_at_s = now_s
            return False
        own.tokens -= 1
        common.tokens -= counts
        return True

    def give_back(self, source: str) -> None:
        """What was let through turned out to be somebody known: it costs nothing, and the source is familiar now."""
        now_s = self._now_s()
        own, common = self._bucket(source, now_s), self._of_all(now_s)
        own.tokens = min(self._each.burst, own.tokens + 1)
        if source not in self._familiar:
            common.tokens = min(self._together.burst, common.tokens + 1)
        self._familiar[source] = None
        self._familiar.move_to_end(source)
        if len(self._familiar) > self._most:
            self._familiar.popitem(last=False)

    def _bucket(self, source: str, now_s: float) -> _Bucket:
        bucket = self._buckets.get(source)
        if bucket is None:
            bucket = self._buckets[source] = _Bucket(self._each, now_s)
            if len(self._buckets) > self._most:
                self._buckets.popitem(last=False)
        self._buckets.move_to_end(source)
        bucket.refill(now_s)
        return bucket

    def _of_all(self, now_s: float) -> _Bucket:
        if self._common is None:
            self._common = _Bucket(self._together, now_s)
        self._common.refill(now_s)
        return self._common


class CallPace:
    """Of inbound connections: how often they are taken at all, and how often the costly part of the handshake is begun.

    Two, since they are used up by different callers: connections that say nothing cost little and fill the first one
    only, and behind the same address a known peer still gets through.
    """

    def __init__(self, limits: PaceLimits, now_s: Callable[[], float]) -> None:
        self.calls = Pace(limits.calls, limits.calls_together, now_s)
        self.proofs = Pace(limits.proofs, limits.proofs_together, now_s)
        self._known = Pace(limits.known, NO_LIMIT, now_s)

    def proven(self, source: str, peer_id: str) -> None:
        """A known peer has shown who it is: its call costs it nothing, unless it does nothing but call."""
        if self._known.take(peer_id):
            self.calls.give_back(source)
            self.proofs.give_back(source)

    @property
    def refused(self) -> int:
        """Connections that were closed for coming too often."""
        return self.calls.refused + self.proofs.refused

    @property
    def refused_at_s(self) -> float | None:
        """When that happened last."""
        return max((at_s for at_s in (self.calls.refused_at_s, self.proofs.refused_at_s) if at_s is not None),
                   default=None)
