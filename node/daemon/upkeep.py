"""What is looked after once a second: the machine's sleep, and that it keeps off while peers are served.

Must not know the life of the node, nor figures.
"""

import logging
from collections.abc import Callable

from node.daemon.machine_sleep import AwakeWhileServing, SleepWatch

__all__ = ["Upkeep"]

log = logging.getLogger(__name__)


class Upkeep:
    """tick() is called about once a second; close() at the end."""

    def __init__(
        self, awake: AwakeWhileServing | None, watch: SleepWatch, *, serving: Callable[[], bool],
        call_everyone: Callable[[], None],
    ) -> None:
        """awake: None when the owner wants the machine to sleep as it likes. call_everyone: look for all peers now."""
        self._awake = awake
        self._watch = watch
        self._serving = serving
        self._call_everyone = call_everyone

    async def tick(self) -> None:
        """One look."""
        slept_s = self._watch.look()
        if slept_s:
            # Every connection may be dead and every pause between calls is stale: don't wait for either to be noticed.
            log.info("this machine slept for %.0f s; calling the peers", slept_s)
            self._call_everyone()
        if self._awake is not None:
            await self._awake.update(serving=self._serving())

    async def close(self) -> None:
        """Let the machine sleep again."""
        if self._awake is not None:
            await self._awake.close()
