"""A worker process without a model, for tests of its host: speaks the worker's frames and misbehaves on request.

The first message of a chat is its script: `say:TEXT` answers with TEXT, `die` is killed by SIGKILL after one piece,
`silent` never answers nor shows life, `flood` sends far more pieces than were asked for, `swell` far longer ones,
`insult` fails with a message for the terminal, `idle` starts and then decodes nothing.
A model file named `slow...` takes half a second to load. With the fast kernels on, a model file named `deadly...`
kills it with SIGILL while it starts.
"""

import argparse
import os
import signal
import time

from offload.child.frames import BlockingPipe
from offload.ports import Failed, Finished, GenerateRequest, Piece, Queued, Started, Usage
from offload.worker_frames import (
    CancelJob,
    Count,
    Counted,
    Ping,
    Pong,
    Ready,
    Step,
    Submit,
    decode_opening,
    decode_order,
    encode,
)


def main() -> None:
    arguments = argparse.ArgumentParser()
    arguments.add_argument("--fd", type=int, required=True)
    arguments.add_argument("--parent", type=int, required=True)
    pipe = BlockingPipe(arguments.parse_args().fd)
    frames = pipe.read_all()
    setup = decode_opening(next(frames))
    if setup.extra_buffers and os.path.basename(setup.model_path).startswith("deadly"):
        os.kill(os.getpid(), signal.SIGILL)
    if os.path.basename(setup.model_path).startswith("slow"):
        time.sleep(0.5)
    pipe.write(encode(Ready(
        context_tokens=setup.context_tokens, threads=1, backend="fast" if setup.extra_buffers else "plain",
        description="fake", licence="", has_template=True, box={"landlock": "held"}, probe={})))
    running = 0
    for payload in frames:
        match decode_order(payload):
            case Submit(request=request):
                running += 1
                answer(pipe, request)
            case Ping():
                pipe.write(encode(Pong(7, running, 0)))
            case Count(count_id=number):
                pipe.write(encode(Counted(number, 3)))
            case CancelJob():
                pass


def answer(pipe: BlockingPipe, request: GenerateRequest) -> None:
    word, _, text = request.prompt.messages[0].content.partition(":")
    name = request.request_id

    def tell(*events: object) -> None:
        pipe.write(encode(Step([(name, event) for event in events])))

    tell(Queued(0), Started(5, 0, "d"))
    match word:
        case "say":
            tell(Piece(text, (9,)), Finished("stop", Usage(5, 0, 1)))
        case "die":
            tell(Piece("x", (8,)))
            os.kill(os.getpid(), signal.SIGKILL)
        case "silent":
            time.sleep(600)
        case "flood":
            while True:
                tell(Piece("y", (8,)))
        case "swell":
            while True:
                tell(Piece("y" * 1_000_000, (8,)))
        case "insult":
            tell(Failed("code\x1b[2J", "\x1b" + "x" * 10_000, "\x1b[31m"))
        case "idle":
            pass


if __name__ == "__main__":
    main()
