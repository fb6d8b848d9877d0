"""Requests to a model hub as the owner's rules allow them: in mode online only, announced in the ledger, cut off when
the mode changes.

Nothing of anyone's is in them: the name of a repository that the owner typed. Must not know how a hub is asked.
"""

import hashlib
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from urllib.parse import urlsplit

import trio

from node.errors import PolicyRefused
from node.privacy.ledger import Draft, Ledger
from offload.errors import OffloadError
from offload.hub import Fetched, OnProgress, fetch_model
from offload.hub_names import HubReference

__all__ = ["HubDesk"]

PURPOSE = "hub"
LEVEL = "announced"
_LOOK_EVERY_S = 0.5
_NOTHING_HASHED = hashlib.blake2b(digest_size=32).digest()


class HubDesk:
    """Fetches models for one node."""

    def __init__(self, endpoint: str, ledger: Ledger, mode: Callable[[], str], new_id: Callable[[], str]) -> None:
        self._endpoint = endpoint.rstrip("/")
        self._ledger = ledger
        self._mode = mode
        self._new_id = new_id

    @property
    def host(self) -> str:
        """The hub's host, as the ledger names it."""
        return urlsplit(self._endpoint).netloc

    async def fetch(self, reference: HubReference, folder: Path, on_progress: OnProgress) -> Fetched:
        """The model, as a part file in folder. Raises PolicyRefused, StorageError, offload.model_errors.HubError."""
        self._require_online()
        async with self._announced(reference):
            return await self._while_online(reference, folder, on_progress)

    @asynccontextmanager
    async def _announced(self, reference: HubReference) -> AsyncIterator[None]:
        """One ledger entry, durable before the first byte; its byte count is 0: the library's bytes are not counted."""
        place = await self._ledger.append(Draft(
            peer_id=self.host, purpose=PURPOSE, level=LEVEL, request_id=self._new_id(), substitutions=0,
            texts=(f"{self._endpoint}: list the files of {reference.repository}, fetch one",),
            approved_by="owner, by adding this model",
        ))
        outcome = "failed"
        try:
            yield
            outcome = "end"
        finally:
            with trio.CancelScope(shield=True):
                await self._ledger.close(place, sent_bytes=0, digest=_NOTHING_HASHED, outcome=outcome)

    async def _while_online(self, reference: HubReference, folder: Path, on_progress: OnProgress) -> Fetched:
        fetched: Fetched | None = None
        failure: OffloadError | None = None
        async with trio.open_nursery() as nursery:
            nursery.start_soon(self._watch, nursery.cancel_scope)
            try:
                fetched = await fetch_model(
                    reference, endpoint=self._endpoint, folder=folder, on_progress=on_progress)
            except OffloadError as error:
                failure = error
            nursery.cancel_scope.cancel()
        if failure is not None:
            raise failure
        if fetched is None:
            raise PolicyRefused("The mode changed, so the transfer was cut off; what has arrived is kept.")
        return fetched

    async def _watch(self, scope: trio.CancelScope) -> None:
        while self._mode() == "online":  # noqa: ASYNC110 - the mode announces nothing
            await trio.sleep(_LOOK_EVERY_S)
        scope.cancel()

    def _require_online(self) -> None:
        mode = self._mode()
        if mode != "online":
            raise PolicyRefused(
                f"A model hub is only asked in mode online, and this node is in mode {mode}.",
                hint="Switch with: kith mode online, or add a file: kith models add FILE.gguf")
