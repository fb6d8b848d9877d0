"""Real nodes on a real disk that is full or read-only: a small file system of their own, in a mount namespace.

Needs the kernel's leave to mount without being root (user namespaces); skipped where that is not given.
"""

import shutil
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

pytestmark = pytest.mark.e2e

MOUNT = "mount -t tmpfs -o size=16m,mode=0700 tmpfs {folder}"


def mounted(folder: Path, script: str, timeout_s: float = 120) -> subprocess.CompletedProcess[str]:
    """Run a Python script with a 16 MB file system of its own at folder."""
    if shutil.which("unshare") is None:
        pytest.skip("this machine has no unshare")
    folder.mkdir(exist_ok=True)
    mount = MOUNT.format(folder=folder)
    if subprocess.run(["unshare", "-Urm", "sh", "-c", mount], capture_output=True, check=False).returncode:
        pytest.skip("the kernel does not let this user mount")
    line = f'{mount} && exec "$0" -P -c "$1" "$2"'
    command = ["unshare", "-Urm", "sh", "-c", line, sys.executable, textwrap.dedent(script), str(folder)]
    return subprocess.run(command, capture_output=True, text=True, timeout=timeout_s, check=False)


COMMON = """
import os, signal, subprocess, sys, time
from pathlib import Path
folder = Path(sys.argv[1])
os.environ["KITH_HOME"] = str(folder / "h")
UP = [sys.executable, "-P", "-m", "node.daemon", "--mode", "offline"]

def up(*more):
    return subprocess.Popen([*UP, *more], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)

def ready(node):
    for line in node.stdout:
        if line.strip() == "ready":
            return
    raise SystemExit("never ready: " + node.stderr.read())

def fill():
    with open(folder / "ballast", "wb", buffering=0) as file:
        for size in (1 << 16, 1 << 10, 1):
            try:
                while True:
                    file.write(bytes(size))
            except OSError:
                pass

def log():
    return (folder / "h" / "state" / "kith.log").read_text()
"""


FILLED = """
node = up()
ready(node)
node.send_signal(signal.SIGINT)
assert node.wait(30) == 0
node = up("--mode", "lan")          # it chooses a port, and wants to keep it
shm = folder / "h" / "data" / "index.db-shm"
while not shm.exists():             # the databases are open; the network library takes seconds from here
    time.sleep(0.01)
time.sleep(0.3)
fill()
"""

UNGUARDED = """
CODE = '''
from node.daemon.persevering import Persevering
async def attempt(self, step):
    await step()
    return True
Persevering.attempt = attempt
from node.daemon.__main__ import main
main()
'''
UP = [sys.executable, "-P", "-c", CODE, "--mode", "offline"]
"""


def test_a_node_outlives_a_full_disk(tmp_path: Path) -> None:
    done = mounted(tmp_path / "disk", COMMON + FILLED + """
ready(node)
time.sleep(6)                       # more rounds of its background work
assert node.poll() is None, node.stderr.read()
(folder / "ballast").unlink()
node.send_signal(signal.SIGINT)
assert node.wait(30) == 0, node.stderr.read()
node = up()                         # and the data is sound
ready(node)
node.send_signal(signal.SIGINT)
assert node.wait(30) == 0
print("lived")
""")
    assert done.stdout.endswith("lived\n"), done.stdout + done.stderr


def test_negative_control_without_the_guard_it_ends_and_says_why(tmp_path: Path) -> None:
    done = mounted(tmp_path / "disk", COMMON + UNGUARDED + FILLED + """
print(node.wait(60))
print(node.stderr.read())
""")
    code, _, said = done.stdout.partition("\n")
    assert code == "1", done.stdout + done.stderr
    assert "is full" in said
    assert "Traceback" not in said


@pytest.mark.parametrize("how", ["full", "read-only"])
def test_a_start_on_a_disk_that_takes_nothing_says_so_in_words(tmp_path: Path, how: str) -> None:
    done = mounted(tmp_path / "disk", COMMON + f"""
node = up()
ready(node)
node.send_signal(signal.SIGINT)
assert node.wait(30) == 0
if {how!r} == "full":
    fill()
else:
    subprocess.run(["mount", "-o", "remount,ro", str(folder)], check=True)
node = subprocess.run(UP, capture_output=True, text=True, timeout=60)
print(node.returncode)
print(node.stderr)
""")
    code, _, said = done.stdout.partition("\n")
    assert code == "1", done.stdout + done.stderr
    assert said.startswith("kith: ")
    assert "Traceback" not in said
