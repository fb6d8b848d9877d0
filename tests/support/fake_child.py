"""A child process for tests of supervision: does what its greeting and later frames tell it. Run as a script.

Greeting words: `mute` never becomes ready, `refuse` says so, `crash` dies at once, `huge` announces a frame above the
limit, else it is ready and echoes. Later frames: `die:N` kills itself with signal N, `exit:N`, `env`, `deaf` stops
reading, `children`, `box` / `nobox` probe with and without walls (as the greeting).
"""

import argparse
import json
import os
import resource
import struct
import sys
import time

from offload.child.box import enter_box, limit_resources, runtime_paths, tie_to_parent
from offload.child.boxprobe import probe_box
from offload.child.frames import BlockingPipe


def main() -> None:
    arguments = argparse.ArgumentParser()
    arguments.add_argument("--fd", type=int, required=True)
    arguments.add_argument("--parent", type=int, required=True)
    given = arguments.parse_args()
    tied = tie_to_parent(given.parent)
    limited = limit_resources()
    pipe = BlockingPipe(given.fd)
    frames = pipe.read_all()
    greeting = next(frames).decode()
    if greeting == "mute":
        time.sleep(60)
    if greeting == "crash":
        os.abort()
    if greeting == "huge":
        os.write(given.fd, struct.pack("<I", 2**31))
        time.sleep(60)
    if greeting in {"box", "nobox"}:
        layers = enter_box(read=("/proc/self", *runtime_paths())) if greeting == "box" else {}
        layers |= {"parent_death": tied, "limits": limited}
        limits = [resource.getrlimit(resource.RLIMIT_CORE), resource.getrlimit(resource.RLIMIT_NOFILE)]
        pipe.write(json.dumps({"layers": layers, "probe": probe_box(), "limits": limits}).encode())
    else:
        pipe.write(b"refused" if greeting == "refuse" else b"ready")
    for payload in frames:
        word, _, number = payload.decode().partition(":")
        match word:
            case "die":
                os.kill(os.getpid(), int(number))
            case "exit":
                sys.exit(int(number))
            case "env":
                pipe.write(json.dumps({"env": dict(os.environ), "path": sys.path, "cwd": os.getcwd()}).encode())
            case "deaf":
                time.sleep(60)
            case _:
                pipe.write(payload)


if __name__ == "__main__":
    main()
