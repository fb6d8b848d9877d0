"""Keeps a port of the router mapped to this node, in mode online and when the owner wants it (net.port_mapping).

Must not know what a router is asked, nor who uses the address that comes of it.
"""

import logging
from collections.abc import Awaitable, Callable, Sequence

import trio

from node.daemon.networking import Networking
from node.net.addresses import parse
from node.net.port_mapping import MappingFailed, PortMapping, Router, map_port, unmap_port
from node.settings import NetConfig

__all__ = ["Mapping"]

log = logging.getLogger(__name__)

OFF = "is not asked (net.port_mapping is false)"
LOOK_S = 1.0
RETRY_S = 120.0
UNMAP_S = 2.0


class Mapping:
    """One per node; run() does it all."""

    def __init__(
        self, settings: NetConfig, networking: Networking, on_change: Callable[[Sequence[str]], None],
        find: Callable[[], tuple[str, str] | None], *, router: Callable[[str], Router] = Router,
        ask: Callable[[Router, str, int], Awaitable[PortMapping]] = map_port,
    ) -> None:
        """on_change: the addresses outside that lead here now. find: own address and gateway; may block for a
        moment."""
        self._settings = settings
        self._networking = networking
        self._on_change = on_change
        self._find = find
        self._router = router
        self._ask = ask
        self.state = "will be asked in mode online" if settings.port_mapping else OFF
        """How it stands, in words that follow "router"."""

    async def run(self, *, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        """Map, renew, take back, until cancelled."""
        task_status.started()
        if not self._settings.port_mapping:
            return
        while True:
            wanted = await self._wanted()
            if wanted is None:
                await trio.sleep(LOOK_S)
                continue
            await self._hold(*wanted)

    async def _wanted(self) -> tuple[str, str, int] | None:
        """Own address, gateway and port; None when nothing is to be mapped now."""
        listening = self._networking.addresses()
        if self._networking.mode != "online" or not listening:
            return None
        try:
            found = await trio.to_thread.run_sync(self._find)
        except OSError as error:
            log.info("the default gateway cannot be looked for: %s", error.strerror)
            found = None
        if found is None:
            self.state = "was not found: this machine has no default gateway"
            return None
        own, gateway = found
        ports = [one.port for one in map(parse, listening) if one.host in (own, "0.0.0.0")]  # noqa: S104 - a wildcard
        if not ports:
            self.state = f"cannot pass calls on: this node does not listen on {own} (net.listen)"
            return None
        return own, gateway, ports[0]

    async def _hold(self, own: str, gateway: str, port: int) -> None:
        """One mapping, for as long as nothing changes."""
        router = self._router(gateway)
        mapping: PortMapping | None = None
        try:
            while True:
                self.state = self.state if mapping else "is being asked"
                try:
                    mapping = await self._ask(router, own, port)
                except MappingFailed as error:
                    mapping = None
                    self.state = f"passes nothing on: {error}"
                    log.info("the router %s", self.state)
                    self._on_change(())
                else:
                    self.state = f"passes calls on ({mapping.by})"
                    self._on_change((f"/ip4/{mapping.host}/tcp/{mapping.port}",))
                due_s = trio.current_time() + (max(1.0, mapping.lifetime_s / 2) if mapping else RETRY_S)
                while trio.current_time() < due_s:
                    await trio.sleep(LOOK_S)
                    if await self._wanted() != (own, gateway, port):
                        return
        finally:
            self._on_change(())
            if mapping is not None:
                with trio.move_on_after(UNMAP_S, shield=True):
                    await unmap_port(router, mapping, port)
