"""A node on a leash ends when whoever holds the other end is gone; one without goes on."""

import os
import signal
import subprocess
import sys
import time

import pytest

WAITING = """
import os, signal, sys, time
from node.daemon import leash
signal.signal(signal.SIGTERM, lambda *_: sys.exit(7))
if sys.argv[1] == "held":
    leash.hold()
print("ready", flush=True)
time.sleep(60)
"""


@pytest.mark.parametrize(("how", "code"), [("held", 7), ("free", None)])
def test_the_end_of_standard_input_is_the_end(how: str, code: int | None) -> None:
    process = subprocess.Popen(
        [sys.executable, "-P", "-c", WAITING, how], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    with process:
        try:
            assert process.stdin is not None and process.stdout is not None
            assert process.stdout.readline() == b"ready\n"
            process.stdin.write(b"a word changes nothing\n")
            process.stdin.flush()
            time.sleep(0.2)
            assert process.poll() is None
            process.stdin.close()
            if code is None:
                time.sleep(0.5)
                assert process.poll() is None
            else:
                assert process.wait(20) == code
        finally:
            if process.poll() is None:
                os.kill(process.pid, signal.SIGKILL)
