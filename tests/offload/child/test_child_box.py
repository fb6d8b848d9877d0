"""The box holds: what a child tries from inside is refused. Without the box, the same child can do all of it."""

import json
import os
import platform
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import trio

from offload.child.box import HELD
from offload.child.boxprobe import ATTEMPTS
from offload.child.process import start_child
from offload.child.syscalls import DENIED_X86_64, _assemble

FAKE = Path(__file__).resolve().parents[2] / "support" / "fake_child.py"
COMMAND = (sys.executable, "-P", str(FAKE))
linux_only = pytest.mark.skipif(platform.system() != "Linux", reason="the walls are Linux's")


async def greeted(word: str) -> dict[str, Any]:
    child = start_child("unused", command=COMMAND)
    try:
        with trio.fail_after(20):
            await child.send(word.encode())
            payload = await child.receive()
        assert payload is not None
        return json.loads(payload)
    finally:
        await child.end()


@linux_only
async def test_boxed_nothing_is_possible() -> None:
    seen = await greeted("box")
    assert set(seen["probe"]) == set(ATTEMPTS)
    assert [attempt for attempt, found in seen["probe"].items() if found == "possible"] == []
    if platform.machine() == "x86_64":
        assert seen["layers"]["seccomp"] == HELD
    assert seen["layers"]["no_new_privs"] == HELD
    assert seen["layers"]["parent_death"] == HELD


@linux_only
async def test_unboxed_everything_is_possible() -> None:
    """The negative control: the probe really tries, and only the walls refuse."""
    seen = await greeted("nobox")
    assert [attempt for attempt, found in seen["probe"].items() if found != "possible"] == []


async def test_no_core_files_and_few_open_files() -> None:
    assert (await greeted("nobox"))["limits"] == [[0, 0], [64, 64]]


async def test_nothing_of_our_environment_reaches_the_child(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KITH_PASSPHRASE", "planted-secret")
    child = start_child("unused", command=COMMAND)
    try:
        with trio.fail_after(20):
            await child.send(b"plain")
            assert await child.receive() == b"ready"
            await child.send(b"env")
            seen = json.loads(await child.receive() or b"{}")
    finally:
        await child.end()
    assert "KITH_PASSPHRASE" not in seen["env"]
    assert "HOME" not in seen["env"]
    assert "PATH" not in seen["env"]
    assert seen["env"]["GOMP_SPINCOUNT"] == "500"
    assert seen["env"]["GGML_NO_BACKTRACE"] == "1"
    assert seen["cwd"] == "/"


@linux_only
def test_the_child_dies_with_its_parent() -> None:
    """A parent that is killed can't say goodbye: the kernel does it."""
    script = (
        "import os, sys, time\n"
        "from offload.child.process import start_child\n"
        "import trio\n"
        "async def main():\n"
        f"    child = start_child('unused', command=({str(sys.executable)!r}, '-P', {str(FAKE)!r}))\n"
        "    await child.send(b'mute')\n"
        "    print(child.pid, flush=True)\n"
        "    await trio.sleep(0.5)\n"
        "    os.kill(os.getpid(), 9)\n"
        "trio.run(main)\n"
    )
    root = str(Path(__file__).resolve().parents[3])
    parent = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=60, check=False,
                            env=os.environ | {"PYTHONPATH": root})
    assert parent.returncode == -signal.SIGKILL
    pid = int(parent.stdout)
    for _ in range(500):
        try:
            state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
        except FileNotFoundError:
            return
        if state == "Z":
            return      # dead, waiting for whoever adopted it
        trio.run(trio.sleep, 0.01)
    pytest.fail("the child outlived its parent")


def run_filter(number: int, arch: int = 0xC000003E) -> int:
    """Interpret the seccomp program by the rules of classic BPF; returns the verdict."""
    code = _assemble(tuple(DENIED_X86_64.values()))
    program = [
        (int.from_bytes(code[i:i + 2], "little"), code[i + 2], code[i + 3], int.from_bytes(code[i + 4:i + 8], "little"))
        for i in range(0, len(code), 8)]
    at, accumulator = 0, 0
    while True:
        operation, when_true, when_false, value = program[at]
        if operation == 0x20:
            accumulator = {0: number, 4: arch}[value]
        elif operation == 0x06:
            return value
        else:
            hit = accumulator == value if operation == 0x15 else accumulator >= value
            at += when_true if hit else when_false
        at += 1


def test_the_filter_refuses_exactly_the_listed_calls() -> None:
    allow, refuse, kill = 0x7FFF0000, 0x00050001, 0x80000000
    refused = {number for number in range(600) if run_filter(number) == refuse}
    assert refused == set(DENIED_X86_64.values())
    assert all(run_filter(number) == allow for number in range(600) if number not in refused)
    assert run_filter(0x40000000 + 41) == refuse       # the x32 numbers of the same calls
    assert run_filter(41, arch=0x40000003) == kill      # 32-bit calls
