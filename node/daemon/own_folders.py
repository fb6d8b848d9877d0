"""Where Kith keeps its own files, so that none of them is ever handed to a peer. Must not know who asks or shares."""

import os
from collections.abc import Iterable
from pathlib import Path

from node.errors import UsageError
from node.paths import Paths

__all__ = ["OwnFolders"]


class OwnFolders:
    """Data, state, settings and socket of one node."""

    def __init__(self, paths: Paths, notes: Path, files: Iterable[Path] = ()) -> None:
        """notes, files: the folders of the owner's texts, which may lie in Kith's data folder."""
        self.all = tuple(dict.fromkeys((paths.data_dir, paths.state_dir, paths.config_dir, paths.runtime_dir)))
        self._notes = notes
        self._theirs = (notes, *files)

    def around(self, folder: Path) -> Path | None:
        """The own folder that this one is or lies in; None for one of the owner's."""
        real = folder.resolve()
        line = [_place(one) for one in (real, *real.parents)]
        own = {place: one for one in self.all if (place := _place(one))}
        theirs = {place for one in self._theirs if (place := _place(one))}
        for place in line:
            if place in own:
                return own[place]
            if place in theirs:
                return None
        return None

    def refuse(self, folder: Path) -> None:
        """Raises UsageError for a folder that is Kith's own."""
        own = self.around(folder)
        if own is None:
            return
        raise UsageError(
            f"{folder} is not shared: {own} is one of Kith's own folders, and what is in those is for no peer.",
            hint=f"Share a folder of yours, such as your notes: kith share add {self._notes} --with PEER")


def _place(path: Path) -> tuple[int, int] | None:
    """What the folder is on the disk, however it is reached; None for one that is not there."""
    try:
        found = os.stat(path)
    except OSError:
        return None
    return found.st_dev, found.st_ino
