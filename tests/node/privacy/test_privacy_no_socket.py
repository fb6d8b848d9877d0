"""The guard opens no connection: under an audit hook, in a process of its own, a whole exchange causes no connect."""

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]

HOOKED = """
import sys
seen = []
def hook(event, args):
    if event in ("socket.connect", "socket.sendto", "socket.getaddrinfo", "socket.gethostbyname", "socket.bind"):
        seen.append((event, args[1:]))
sys.addaudithook(hook)
import trio
from frame_samples import ID, PEER_B
from guard_bench import MemoryStream, guard_bench
from node.privacy.egress import Part, PeerView
from node.privacy.labels import owner_text
from protocol import names
from protocol.frames import inference

async def main():
    guard = await guard_bench([("Zdravka Korenjak", "PERSON")])
    clearance = await guard.clear(Part("user", owner_text("ask Zdravka")), peer=PeerView(PEER_B, "pc", "home"),
                                  request_id=ID.hex())
    frame = inference.InferRequest(request_id=ID, max_tokens=1, deadline_s=1,
        prompt=inference.PromptParts((inference.Part("user", clearance.texts[0]),)))
    stream = MemoryStream(PEER_B, names.INFER)
    await guard.egress.channel(stream).send_cleared(frame, clearance)
    await clearance.close("end")
    assert len(stream.written) == 1

trio.run(main)
{extra}
print(len(seen))
"""


def _run(extra: str) -> str:
    done = subprocess.run(
        [sys.executable, "-P", "-c", HOOKED.format(extra=extra)], capture_output=True, text=True, timeout=120,
        check=False, cwd=ROOT, env={"PYTHONPATH": f"{ROOT}:{ROOT / 'tests' / 'support'}", "PATH": "/usr/bin:/bin"},
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def test_a_whole_exchange_connects_nowhere() -> None:
    assert _run("") == "0"


def test_the_hook_would_notice() -> None:
    connect = (
        "import socket\n"
        "s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)\n"
        "s.connect(('127.0.0.1', 9))\n"
        "s.close()"
    )
    assert _run(connect) == "1"
