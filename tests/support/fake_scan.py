"""A scan worker without weights for tests of its client: does what the first text says. Vectors are [1.0, 2.0]."""

import argparse
import os
import signal
import struct
import time

from node.scan.frames import ScanReady, ScanRefused, Vectors, decode_order, encode
from offload.child.frames import BlockingPipe


def main() -> None:
    arguments = argparse.ArgumentParser()
    arguments.add_argument("--fd", type=int, required=True)
    arguments.add_argument("--parent", type=int, required=True)
    pipe = BlockingPipe(arguments.parse_args().fd)
    frames = pipe.read_all()
    next(frames)
    pipe.write(encode(ScanReady(["vectors"], 2, {}, {})))
    for payload in frames:
        order = decode_order(payload)
        match order.texts[0]:
            case "die":
                os.kill(os.getpid(), signal.SIGKILL)
            case "silent":
                time.sleep(600)
            case "refuse":
                pipe.write(encode(ScanRefused(order.number, "ValueError")))
            case "short":
                pipe.write(encode(Vectors(order.number, b"\0" * 4)))
            case _:
                pipe.write(encode(Vectors(order.number, struct.pack("<2f", 1.0, 2.0) * len(order.texts))))


if __name__ == "__main__":
    main()
