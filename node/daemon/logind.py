"""Puts the machine's sleep off through systemd-logind, over the system's message bus.

Implements node.daemon.machine_sleep.SleepBlocker. The block lasts while a file descriptor that logind gave is open, so
the node's death ends it too. Must not know when sleep is to be put off.
"""

import trio
from jeepney import (
    AuthenticationError,
    DBusAddress,
    DBusErrorResponse,
    FDNegotiationError,
    FileDescriptor,
    new_method_call,
)
from jeepney.io.blocking import open_dbus_connection
from jeepney.wrappers import unwrap_msg

__all__ = ["LogindBlocker"]

LOGIND = DBusAddress(
    "/org/freedesktop/login1", bus_name="org.freedesktop.login1", interface="org.freedesktop.login1.Manager"
)
CALL_S = 5.0


class LogindBlocker:
    """One inhibitor lock of logind for sleep and idleness."""

    def __init__(self) -> None:
        self._lock: FileDescriptor | None = None

    async def block(self) -> None:
        """Take the lock. Raises OSError, in words, where there is no bus, no logind, or no leave to do it."""
        await self.release()
        self._lock = await trio.to_thread.run_sync(_inhibit)

    async def release(self) -> None:
        """Give it back."""
        lock, self._lock = self._lock, None
        if lock is not None:
            lock.close()


def _inhibit() -> FileDescriptor:
    try:
        with open_dbus_connection("SYSTEM", enable_fds=True, auth_timeout=CALL_S) as bus:
            asked = new_method_call(
                LOGIND, "Inhibit", "ssss", ("sleep:idle", "kith", "computing for a paired device", "block")
            )
            reply = unwrap_msg(bus.send_and_get_reply(asked, timeout=CALL_S))
            if len(reply) != 1 or not isinstance(reply[0], FileDescriptor):
                raise OSError("systemd-logind gave no lock")
            lock: FileDescriptor = reply[0]
    except DBusErrorResponse as error:
        raise OSError(f"systemd-logind refused ({error.name})") from None
    except (OSError, ValueError, KeyError, RuntimeError, AuthenticationError, FDNegotiationError) as error:
        raise OSError(f"no systemd-logind to ask ({type(error).__name__})") from None
    return lock
