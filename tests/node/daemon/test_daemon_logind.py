"""The lock that keeps a machine awake, against a real message bus on which a stand-in for logind answers."""

import os
import select
import shutil
import subprocess
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from jeepney import HeaderFields, MessageType, new_error, new_method_return
from jeepney.bus_messages import message_bus
from jeepney.io.blocking import open_dbus_connection

from node.daemon.logind import LogindBlocker

CONFIG = """<!DOCTYPE busconfig PUBLIC "-//freedesktop//DTD D-BUS Bus Configuration 1.0//EN"
 "http://www.freedesktop.org/standards/dbus/1.0/busconfig.dtd">
<busconfig><type>system</type><listen>unix:path={socket}</listen><auth>EXTERNAL</auth>
<policy context="default"><allow send_destination="*" eavesdrop="true"/><allow eavesdrop="true"/>
<allow own="*"/><allow user="*"/></policy></busconfig>
"""


class Logind:
    """Answers Inhibit on the bus, with one end of a pipe as logind does; refuses when told to."""

    def __init__(self, address: str) -> None:
        self.refuses = False
        self.asked: list[tuple[str, ...]] = []
        self.read_end = -1
        self._bus = open_dbus_connection(address, enable_fds=True)
        self._bus.send_and_get_reply(message_bus.RequestName("org.freedesktop.login1"))
        self._thread = threading.Thread(target=self._answer, daemon=True)
        self._thread.start()

    def _answer(self) -> None:
        while True:
            try:
                call = self._bus.receive(timeout=20)
            except (OSError, TimeoutError):
                return
            if call.header.message_type is not MessageType.method_call:
                continue
            if call.header.fields.get(HeaderFields.member) == "Quit":
                return
            self.asked.append(call.body)
            if self.refuses:
                self._bus.send(new_error(call, "org.freedesktop.DBus.Error.AccessDenied"))
                continue
            self.read_end, write_end = os.pipe()
            self._bus.send(new_method_return(call, "h", (write_end,)))
            os.close(write_end)

    def lock_is_held(self) -> bool:
        """The pipe's other end is open somewhere: no end of file to read."""
        ready, _, _ = select.select([self.read_end], [], [], 0)
        return not ready

    def close(self) -> None:
        self._bus.sock.shutdown(2)
        self._thread.join(10)
        self._bus.close()
        if self.read_end >= 0:
            os.close(self.read_end)


@pytest.fixture
def logind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Logind]:
    program = shutil.which("dbus-daemon")
    if program is None:
        pytest.skip("there is no dbus-daemon on this machine")
    config, socket = tmp_path / "bus.conf", tmp_path / "bus"
    config.write_text(CONFIG.format(socket=socket))
    bus = subprocess.Popen(
        [program, f"--config-file={config}", "--nofork", "--print-address=1"], stdout=subprocess.PIPE, text=True,
    )
    assert bus.stdout is not None
    assert bus.stdout.readline().strip()
    monkeypatch.setenv("DBUS_SYSTEM_BUS_ADDRESS", f"unix:path={socket}")
    stand_in = Logind(f"unix:path={socket}")
    yield stand_in
    stand_in.close()
    bus.terminate()
    bus.wait(10)
    bus.stdout.close()


async def test_the_lock_is_held_until_it_is_given_back(logind: Logind) -> None:
    blocker = LogindBlocker()
    await blocker.block()
    assert logind.asked == [("sleep:idle", "kith", "computing for a paired device", "block")]
    assert logind.lock_is_held()
    await blocker.release()
    assert not logind.lock_is_held()
    await blocker.release()


async def test_a_refusal_is_an_error_in_words(logind: Logind) -> None:
    logind.refuses = True
    with pytest.raises(OSError, match=r"logind refused \(org.freedesktop.DBus.Error.AccessDenied\)"):
        await LogindBlocker().block()


async def test_a_machine_without_a_bus_is_an_error_in_words(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("DBUS_SYSTEM_BUS_ADDRESS", f"unix:path={tmp_path / 'none'}")
    with pytest.raises(OSError, match="no systemd-logind to ask"):
        await LogindBlocker().block()
