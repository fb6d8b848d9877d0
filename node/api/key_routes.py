"""Routes about this device's key: locking, unlocking, rotating, the passphrase. They answer while the node is locked.

HTTP in, one service call, JSON out. Must not know how a service does its work.
"""

from typing import Any

from starlette.requests import Request

from node.api.exchange import Counter, Row, read_body
from node.api.privacy_ports import Passphrases

__all__ = ["KeyRoutes"]


class KeyRoutes:
    """The handlers, bound to the services of one node."""

    def __init__(self, at: Counter) -> None:
        self._at = at

    def table(self) -> list[Row]:
        """Method, path and handler of each route."""
        return [
            ("GET", "/v1/key", self.state),
            ("POST", "/v1/lock", self.lock),
            ("POST", "/v1/unlock", self.unlock),
            ("POST", "/v1/key/rotate", self.rotate),
            ("POST", "/v1/key/passphrase", self.passphrase),
        ]

    async def state(self, _: Request) -> Any:
        return await self._at.part("keys").state()

    async def lock(self, _: Request) -> Any:
        return await self._at.part("keys").lock()

    async def unlock(self, request: Request) -> Any:
        return await self._at.part("keys").unlock(read_body(request, Passphrases).passphrase or "")

    async def rotate(self, request: Request) -> Any:
        return await self._at.part("keys").rotate(read_body(request, Passphrases).passphrase)

    async def passphrase(self, request: Request) -> Any:
        given = read_body(request, Passphrases)
        return await self._at.part("keys").set_passphrase(given.passphrase, given.new)
