"""A notice on the owner's desktop, by the freedesktop program notify-send, where there is one and a display.

It is the only program that the daemon itself starts; its words are fixed and hold nothing of the owner's. Several
notices in a short time become one. Must not know what happened.
"""

import logging
import shutil
from collections.abc import Mapping

import trio

__all__ = ["DesktopNotices", "find_notifier"]

log = logging.getLogger(__name__)

TIMEOUT_S = 5.0
QUIET_S = 10.0
WAITING = 16


def find_notifier(wish: str, env: Mapping[str, str]) -> str | None:
    """The program to use; None when the owner wants no notices, or nobody would see them. wish: auto, on or off."""
    display = env.get("WAYLAND_DISPLAY") or env.get("DISPLAY")
    if wish == "off" or (wish == "auto" and not display):
        return None
    return shutil.which("notify-send", path=env.get("PATH"))


class DesktopNotices:
    """tell() from anywhere; run() shows."""

    def __init__(self, program: str | None) -> None:
        self._program = program
        self._put, self._got = trio.open_memory_channel[str](WAITING)

    def tell(self, text: str) -> None:
        """Show this soon. Never blocks; what is too much is dropped."""
        if self._program is None:
            return
        try:
            self._put.send_nowait(text)
        except trio.WouldBlock:
            log.info("a desktop notice was dropped: too many at once")

    async def run(self) -> None:
        """Show what is told, until cancelled."""
        async for text in self._got:
            more = self._got.statistics().current_buffer_used
            for _ in range(more):
                await self._got.receive()
            several = f"{more + 1} things have news. See them with: kith queue, kith reminders"
            await self._show(several if more else text)
            await trio.sleep(QUIET_S)

    async def _show(self, text: str) -> None:
        assert self._program is not None
        try:
            with trio.move_on_after(TIMEOUT_S):
                await trio.run_process(  # noqa: TID251  no child to supervise: it ends by itself within the bound
                    [self._program, "--app-name=Kith", "Kith", text], stdin=b"", capture_stdout=True,
                    capture_stderr=True, check=False,
                )
        except OSError as error:
            log.warning("desktop notices do not work here: %s", type(error).__name__)
