"""Fetches a model from a hub into a file, whole and checked, or says why not. A broken-off try is gone on with.

The talking is done by a process of its own (hub_worker). Must not know whether the mode allows it, who announces it, or
where models are kept.
"""

import os
import re
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import msgspec
import trio

from offload.catalogue import digest_of
from offload.child.errors import ChildGone
from offload.child.process import Child, start_child
from offload.hub_frames import (
    HubFailed,
    HubFile,
    HubGet,
    HubGot,
    HubList,
    HubListing,
    HubOrder,
    HubProgress,
    HubReport,
    decode_report,
    encode,
)
from offload.hub_names import HubReference, choose_file
from offload.model_errors import HubError, HubMismatch, HubRefused, HubUnreachable
from offload.model_folder import require_room

__all__ = ["Fetched", "fetch_model"]

_SHA256 = re.compile(r"[0-9a-f]{64}")
_SILENCE_S = 180.0      # several timeouts and retries of the HTTP library

OnProgress = Callable[[str, int, int], Awaitable[None]]


@dataclass(frozen=True, slots=True)
class Fetched:
    """A model file that arrived whole: where it is for now, its checked digest, its name there, the licence named."""

    part: Path
    digest: str
    file_name: str
    licence: str


async def fetch_model(
    reference: HubReference, *, endpoint: str, folder: Path, on_progress: OnProgress,
) -> Fetched:
    """Fetch what the reference means into folder, as a hidden part file named by its digest.

    on_progress(file, done, total bytes). Raises HubName, HubUnreachable, HubRefused, HubMismatch, NoRoom.
    """
    async with _worker() as child:
        listing = await _ask(child, HubList(endpoint, reference.repository))
        if not isinstance(listing, HubListing):
            raise HubError("The process that talks to the hub answered out of turn.")
        file = choose_file(reference, listing.files, _memory_bytes())
        if not _SHA256.fullmatch(file.sha256) or file.size_bytes <= 0:     # it becomes part of a path
            raise HubMismatch(f"The hub names no size or checksum for {file.name}, so it is not fetched.")
        part = folder / f".{file.sha256}.part"
        await trio.to_thread.run_sync(require_room, folder, file.size_bytes - _size_of(part))
        await _get(child, HubGet(endpoint, reference.repository, listing.commit, file, str(part)), on_progress)
    digest = await trio.to_thread.run_sync(digest_of, part)
    if digest != file.sha256:
        part.unlink(missing_ok=True)
        raise HubMismatch(f"{file.name} arrived with another checksum than the hub announced; it was deleted.")
    return Fetched(part, digest, file.name.rpartition("/")[2], listing.licence)


@asynccontextmanager
async def _worker() -> AsyncIterator[Child]:
    child = start_child("offload.hub_worker")
    try:
        yield child
    finally:
        await child.end()


async def _get(child: Child, order: HubGet, on_progress: OnProgress) -> None:
    file: HubFile = order.file
    await on_progress(file.name, _size_of(Path(order.target)), file.size_bytes)
    report = await _ask(child, order)
    while isinstance(report, HubProgress):
        await on_progress(file.name, min(report.done_bytes, file.size_bytes), file.size_bytes)
        report = await _receive(child)
    if not isinstance(report, HubGot):
        raise HubError("The process that talks to the hub answered out of turn.")
    await on_progress(file.name, file.size_bytes, file.size_bytes)


async def _ask(child: Child, order: HubOrder) -> HubReport:
    try:
        await child.send(encode(order))
    except ChildGone as error:
        raise HubUnreachable("The process that talks to the hub ended.") from error
    return await _receive(child)


async def _receive(child: Child) -> HubReport:
    try:
        with trio.fail_after(_SILENCE_S):
            payload = await child.receive()
        if payload is None:
            raise HubUnreachable("The process that talks to the hub ended.")
        report = decode_report(payload)
    except trio.TooSlowError as error:
        raise HubUnreachable(f"The hub sent nothing for {_SILENCE_S:g} seconds.") from error
    except msgspec.DecodeError as error:
        raise HubError("The process that talks to the hub answered nonsense.") from error
    if isinstance(report, HubFailed):
        kind = HubRefused if report.refused else HubUnreachable
        raise kind(f"{kind.__doc__} ({report.message})")
    return report


def _size_of(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError:
        return 0


def _memory_bytes() -> int:
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
