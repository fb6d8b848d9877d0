"""Ctrl-C at a question: the command says so in one line and ends as a shell expects, and nothing is answered."""

import os
import pty
import subprocess
import sys

import pytest
from typing_owner import read_until

ASKED = """
import fcntl, signal, termios
signal.signal(signal.SIGINT, signal.default_int_handler)    # which a run in the background hands on as ignored
fcntl.ioctl(2, termios.TIOCSCTTY, 0)
from node.cli import main
from node.cli.client import NodeClient
event = {"event": "question", "id": "q1", "kind": "pairing", "peer_name": "home-pc", "peer_id": "12D3KooW",
         "trust": "friend", "their_trust": "home", "emoji": []}

def stream(self, path, body):
    yield event

NodeClient.stream = stream
NodeClient.post = lambda *_: print("ANSWERED", flush=True)
main.main(["pair", "some-code", "--at", "127.0.0.1:1", "--trust", "friend"])
"""


@pytest.mark.parametrize(("typed", "code", "answered"), [("\x03", 130, ""), ("y\n", 6, "ANSWERED\n")])
def test_ctrl_c_at_the_pairing_question(typed: str, code: int, answered: str) -> None:
    """The second row is the control: the same question takes an answer."""
    controller, tty = pty.openpty()
    try:
        process = subprocess.Popen(
            [sys.executable, "-P", "-c", ASKED], stdin=tty, stderr=tty, stdout=subprocess.PIPE, text=True,
            start_new_session=True,
        )
        os.close(tty)
        with process:
            try:
                assert read_until(controller, "[y/N] ").endswith("Pair? [y/N] ")
                os.write(controller, typed.encode())
                out = process.communicate(timeout=60)[0]
            finally:
                process.kill()      # so that a failure is a failure and no wait without end
        shown = read_until(controller, "\0")
        assert (process.returncode, out) == (code, answered), shown
        if code == 130:
            assert shown.replace("^C", "").split() == ["kith:", "stopped"]
            assert shown.endswith("\nkith: stopped\r\n")
    finally:
        os.close(controller)
