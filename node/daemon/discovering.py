"""Finding nodes on the local network: when this node announces itself there, whom it recognises, whose window it finds.

Announces while the owner wants it (net.discovery) or while a pairing window is open; looks while somebody types a code
here. What is announced names nobody: see node.net.mdns_messages. Must not know packets or sockets.
"""

import ipaddress
import logging
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

import trio

from node.clock import Entropy
from node.daemon.networking import Networking
from node.daemon.own_addresses import may_be_told
from node.net.errors import reason_of
from node.net.gate import Gate
from node.net.mdns import Multicast
from node.net.mdns_messages import NONCE_BYTES, Announcement, tag_of
from node.settings import NetConfig

__all__ = ["Discovering"]

log = logging.getLogger(__name__)

LOOK_S = 1.0
FIND_S = 4.0
FRESH_S = 30.0
RETRY_S = 30.0
MAX_WINDOWS = 8


class Discovering:
    """One per node."""

    def __init__(
        self, settings: NetConfig, networking: Networking, gate: Gate, own_id: str,
        known: Callable[[], Sequence[tuple[str, Sequence[str]]]], told: Callable[[], Sequence[str]],
        here: Callable[[], frozenset[str]], entropy: Entropy,
    ) -> None:
        """known: paired peers with their addresses. told: where this node can be reached. here: this machine's
        addresses; may block for a moment."""
        self._settings = settings
        self._networking = networking
        self._gate = gate
        self._own_id = own_id
        self._known = known
        self._told = told
        self._here = here
        self._entropy = entropy
        self._nonce = b""
        self._looking = 0
        self._windows: dict[bytes, tuple[float, tuple[str, ...]]] = {}
        self._live: Multicast | None = None
        self._found = trio.Event()
        self.heard = 0

    @property
    def state(self) -> str:
        """What is announced on the local network now, in words."""
        if self._live is None:
            return "nothing on the local network"
        return "a pairing window, without a name" if self._gate.pairing_open else "itself, to those who know it"

    async def run(self, *, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        """Announce and listen while that is wanted, until cancelled."""
        task_status.started()
        while True:
            if not self._wanted():
                await trio.sleep(LOOK_S)
                continue
            try:
                await self._while_wanted()
            except* OSError as errors:
                log.warning("the local network cannot be listened on: %s", reason_of(errors))
                await trio.sleep(RETRY_S)

    def _wanted(self) -> bool:
        if self._networking.mode == "offline" or not self._networking.addresses():
            return False
        pairing = self._settings.pair_discovery and (self._gate.pairing_open or self._looking > 0)
        return self._settings.discovery or pairing

    async def _while_wanted(self) -> None:
        self._nonce = self._entropy.bytes(NONCE_BYTES)  # a new number each time: nobody follows this node by it
        live = Multicast(self._here, self._says, self._hears)
        self._live = live
        try:
            async with trio.open_nursery() as nursery:
                nursery.start_soon(self._watch, nursery.cancel_scope, live)
                await live.run()
        finally:
            self._live = None

    async def _watch(self, scope: trio.CancelScope, live: Multicast) -> None:
        open_before = False
        while self._wanted():
            if self._gate.pairing_open != open_before:
                open_before = self._gate.pairing_open
                live.ask()
            await trio.sleep(LOOK_S)
        scope.cancel()

    def _says(self) -> Announcement | None:
        """Only what is wanted: while somebody merely looks for a window, nothing."""
        pairing = self._settings.pair_discovery and self._gate.pairing_open
        if not (self._settings.discovery or pairing):
            return None
        local = [one.split("/") for one in self._told() if _is_local(one)]
        if not local:
            return None
        port = local[0][4]
        hosts = tuple(parts[2] for parts in local if parts[4] == port)
        return Announcement(self._nonce, tag_of(self._nonce, self._own_id), int(port), hosts, pairing)

    def _hears(self, said: Announcement) -> None:
        if said.nonce == self._nonce:
            return
        self.heard += 1
        addresses = tuple(
            text for host in said.hosts
            if _is_local(text := f"/ip{6 if ':' in host else 4}/{host}/tcp/{said.port}") and may_be_told(text, "")
        )
        if not addresses:
            return
        for peer_id, _ in self._known():
            if tag_of(said.nonce, peer_id) == said.tag:
                self._networking.hint(peer_id, addresses)
        if said.pairing:
            self._windows[said.nonce] = (trio.current_time(), addresses)
            while len(self._windows) > MAX_WINDOWS:
                del self._windows[next(iter(self._windows))]
            self._found.set()
            self._found = trio.Event()

    # -- for somebody who types a code --

    async def find_windows(self) -> list[tuple[str, ...]]:
        """The addresses of each node that shows a pairing code on the local network, within FIND_S; at once when
        there is one already."""
        if not self._settings.pair_discovery:
            return []
        with self._look():
            with trio.move_on_after(FIND_S):
                while not self._fresh():
                    await self._found.wait()
            await trio.sleep(0.5)  # a second one, whose answer is a moment late, must not go unnoticed
            return self._fresh()

    @contextmanager
    def _look(self) -> Iterator[None]:
        self._looking += 1
        try:
            if self._live is not None:
                self._live.ask()
            yield
        finally:
            self._looking -= 1

    def _fresh(self) -> list[tuple[str, ...]]:
        oldest_s = trio.current_time() - FRESH_S
        return [addresses for seen_s, addresses in self._windows.values() if seen_s >= oldest_s]


def _is_local(text: str) -> bool:
    parts = text.split("/")
    try:
        ip = ipaddress.ip_address(parts[2])
    except ValueError:
        return False
    return ip.is_private and not ip.is_loopback
