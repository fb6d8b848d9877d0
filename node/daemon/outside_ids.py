"""The ids of every engine outside that was ever used here: they take no receipts, so none of theirs is ever missing.

Ids only, in a file of the state folder; an address that was given up leaves its entries in the ledger. Must not know
addresses or the ledger.
"""

import json
import logging
import os
from pathlib import Path

__all__ = ["outside_ids"]

log = logging.getLogger(__name__)

_LIMIT = 256


def outside_ids(path: Path, now: str | None) -> frozenset[str]:
    """All ids in the file and the one used now, which is kept from now on. A file that can't be read holds none."""
    known = _read(path)
    if now is not None and now not in known:
        known = [*known, now][-_LIMIT:]
        unfinished = path.with_name(f"{path.name}.unfinished")
        try:
            unfinished.unlink(missing_ok=True)
            path.parent.mkdir(parents=True, exist_ok=True)
            descriptor = os.open(unfinished, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
            with open(descriptor, "w", encoding="utf-8") as file:
                json.dump(known, file)
            unfinished.replace(path)
        except OSError as error:
            log.warning("the id of the engine outside was not kept: %s", error.strerror)
    return frozenset(known)


def _read(path: Path) -> list[str]:
    try:
        known = json.loads(path.read_bytes())
    except (OSError, ValueError):
        return []
    return known if isinstance(known, list) and all(isinstance(one, str) for one in known) else []
