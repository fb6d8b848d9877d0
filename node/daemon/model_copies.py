"""Model files between this node and its peers: the catalogue's files as they may be handed out, and copies fetched.

Implements offload.model_server.SharedFiles and node.privacy.blobs.BlobFiles, so that the side that reads and the guard
that compares each open the file for themselves. Must not know grants, machines or how a model is named here.
"""

import os
from collections.abc import Sequence
from pathlib import Path

import trio

from node.clock import Entropy
from node.daemon.networking import Networking
from node.daemon.peers import Roster
from node.errors import ModelMissing, NotPaired, PeerUnreachable, UsageError
from offload.catalogue import Catalogue, Record
from offload.model_copy import Copied, OnProgress, copy_model
from protocol.channel import FrameChannel
from protocol.errors import ChannelLost
from protocol.frames.link import ModelAdvert
from protocol.limits import ID_BYTES
from protocol.names import MODEL

__all__ = ["PREFIX", "CatalogueFile", "CatalogueFiles", "CopyDesk"]

PREFIX = "peer:"
_WAIT_FOR_PEER_S = 5.0


class CatalogueFile:
    """One model file, open for reading at any place."""

    def __init__(self, path: Path, record: Record) -> None:
        """Raises OSError. Blocks for a moment."""
        self.name = record.name
        self.licence = record.licence if record.licence != "unknown" else ""
        self._descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        self.size_bytes = os.fstat(self._descriptor).st_size

    async def read(self, offset: int, most_bytes: int) -> bytes:
        """The bytes from there on. Raises OSError."""
        return await trio.to_thread.run_sync(os.pread, self._descriptor, most_bytes, offset)

    async def holds(self, offset: int, data: bytes) -> bool:
        """Whether exactly these bytes stand there. Raises OSError."""
        return await self.read(offset, len(data)) == data

    def close(self) -> None:
        """Let go of it; a second call changes nothing."""
        descriptor, self._descriptor = self._descriptor, -1
        if descriptor >= 0:
            os.close(descriptor)


class CatalogueFiles:
    """The catalogue's files that are whole and unchanged."""

    def __init__(self, folders: Sequence[Path], digest_cache: Path) -> None:
        self._folders = tuple(folders)
        self._digest_cache = digest_cache

    async def open(self, digest: str) -> CatalogueFile | None:
        """The file with this digest; None when there is none. Raises OSError."""
        return await trio.to_thread.run_sync(self._find, digest)

    def _find(self, digest: str) -> CatalogueFile | None:
        for model in Catalogue(self._folders, self._digest_cache).scan():
            if model.digest == digest and not model.changed and not model.damage:
                return CatalogueFile(model.path, model.record)
        return None


class CopyDesk:
    """Fetches models from paired peers."""

    def __init__(self, networking: Networking, roster: Roster, entropy: Entropy, node_name: str) -> None:
        """node_name: what peers call this node, as a rule."""
        self._node_name = node_name
        self._networking = networking
        self._roster = roster
        self._entropy = entropy

    async def fetch(self, source: str, folder: Path, on_progress: OnProgress) -> tuple[Copied, str]:
        """What peer:PEER/MODEL means, as a part file in folder, and the peer's name.

        Raises UsageError, UnknownPeer, NotPaired, PeerUnreachable, ModelMissing, and offload's ModelKeepingError.
        """
        peer, slash, wanted = source.removeprefix(PREFIX).partition("/")
        if not (peer and slash and wanted):
            raise UsageError(f"{source} names no model of a peer.", hint="Write peer:PEER/MODEL")
        peer_id = self._roster.find(peer)
        advert = await self._advert(peer_id, wanted)
        copied = await copy_model(
            lambda: self._open(peer_id), digest=advert.digest, folder=folder,
            new_id=lambda: self._entropy.bytes(ID_BYTES), on_progress=on_progress)
        return copied, self._roster.name_of(peer_id)

    async def _advert(self, peer_id: str, wanted: str) -> ModelAdvert:
        """The model that the peer calls so, or whose digest begins so."""
        name = self._roster.name_of(peer_id)
        with trio.move_on_after(_WAIT_FOR_PEER_S):
            await self._roster.wait_for(peer_id)    # a greeting may be under way
        allowed = self._roster.allows_us(peer_id)
        if allowed is None:
            raise PeerUnreachable(f"{name} is not here, so nothing can be copied from it.")
        if "models" not in allowed:
            services = ",".join(sorted({*allowed, "models"}))
            raise NotPaired(
                f"{name} has not granted this device the copying of models.",
                hint=f"On {name}: kith grant edit {self._node_name} --services {services}")
        adverts = self._roster.adverts(peer_id)
        found = [one for one in adverts if wanted.lower() in (one.name.lower(), one.digest)] or [
            one for one in adverts if len(wanted) >= 6 and one.digest.startswith(wanted.lower())]
        if len(found) != 1:
            offered = ", ".join(one.name for one in adverts) or "no model"
            raise ModelMissing(f"{name} offers no model called {wanted}; it offers {offered}.", hint="See: kith peers")
        return found[0]

    async def _open(self, peer_id: str) -> FrameChannel:
        try:
            return await self._networking.open_channel(peer_id, MODEL)
        except PeerUnreachable as error:
            if self._networking.mode == "offline":
                raise
            raise ChannelLost(error.text) from error
