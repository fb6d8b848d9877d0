"""Asks the owner on the terminal. What was typed before the question stood there is thrown away: it answers nothing.

Reads standard input when it is a terminal, else the terminal that the command was started from, so that a command can
be fed by a pipe and still ask. Must not know what is asked.
"""

import contextlib
import os
import sys
import termios
from collections.abc import Iterator, Sequence

from node.cli.failure import CommandFailure
from node.cli.printable import printable

__all__ = ["can_ask", "choose", "confirm", "pick"]

TERMINAL = "/dev/tty"
MAX_ANSWER_BYTES = 4096


def can_ask() -> bool:
    """True when a question can be shown and answered."""
    if not sys.stderr.isatty():
        return False
    try:
        with _terminal():
            return True
    except OSError:
        return False


def confirm(question: str, drawn: str = "") -> bool:
    """The owner's yes to question, shown below drawn; anything but y or yes is no.

    Raises CommandFailure when the terminal closes.
    """
    return _answer(f"{question} [y/N] ", drawn).lower() in {"y", "yes"}


def pick(question: str, words: Sequence[str], drawn: str = "") -> str:
    """"yes", one of words, or "no" for anything else. Raises CommandFailure as confirm() does."""
    answer = _answer(f"{question} [y/N] ", drawn).lower()
    return "yes" if answer in {"y", "yes"} else answer if answer in words else "no"


def choose(question: str, options: Sequence[str], default: str) -> str:
    """One of options, asked for until it is; an empty line means default. Raises CommandFailure as confirm() does."""
    while True:
        word = _answer(f"{question} ({', '.join(options)}) [{default}]: ").lower() or default
        if word in options:
            return word


@contextlib.contextmanager
def _terminal() -> Iterator[int]:
    """A descriptor that what the owner types is read from."""
    if sys.stdin is not None and sys.stdin.isatty():
        yield sys.stdin.fileno()
        return
    descriptor = os.open(TERMINAL, os.O_RDONLY | os.O_NOCTTY | os.O_CLOEXEC)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def _answer(prompt: str, drawn: str = "") -> str:
    try:
        with _terminal() as descriptor:
            if drawn:
                print(printable(drawn), file=sys.stderr, flush=True)
            termios.tcflush(descriptor, termios.TCIFLUSH)
            print(printable(prompt), end="", file=sys.stderr, flush=True)
            line = _read_line(descriptor)
    except (OSError, termios.error):
        line = b""
    if not line:
        raise CommandFailure("the terminal closed before an answer", exit_code=4, code="denied")
    return line.decode("utf-8", "replace").strip()


def _read_line(descriptor: int) -> bytes:
    """One line; read without a buffer, so that nothing typed for this question is kept for the next."""
    line = b""
    while not line.endswith(b"\n") and len(line) < MAX_ANSWER_BYTES:
        piece = os.read(descriptor, MAX_ANSWER_BYTES - len(line))
        if not piece:
            break
        line += piece
    return line
