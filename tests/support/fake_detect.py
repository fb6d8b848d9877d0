"""Detectors without models for tests of their client: does what the first text says. Spans are the words "Name"."""

import argparse
import os
import re
import signal
import time

from node.scan.frames import ScanReady, ScanRefused, Spans, Vectors, decode_order, encode
from offload.child.frames import BlockingPipe


def main() -> None:
    arguments = argparse.ArgumentParser()
    arguments.add_argument("--fd", type=int, required=True)
    arguments.add_argument("--parent", type=int, required=True)
    pipe = BlockingPipe(arguments.parse_args().fd)
    frames = pipe.read_all()
    next(frames)
    pipe.write(encode(ScanReady(["fake"], 0, {}, {})))
    for payload in frames:
        order = decode_order(payload)
        match order.texts[0]:
            case "die":
                os.kill(os.getpid(), signal.SIGKILL)
            case "silent":
                time.sleep(600)
            case "refuse":
                pipe.write(encode(ScanRefused(order.number, "ValueError")))
            case "vectors":
                pipe.write(encode(Vectors(order.number, b"")))
            case "fewer":
                pipe.write(encode(Spans(order.number, [])))
            case "garbage":
                pipe.write(b"\xc1garbage")
            case _:
                pipe.write(encode(Spans(order.number, [
                    [(match.start(), match.end(), "PERSON") for match in re.finditer("Name", text)]
                    for text in order.texts
                ])))


if __name__ == "__main__":
    main()
