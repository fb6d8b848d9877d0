"""An owner at a terminal who answers each question once it stands there. Must not know any command."""

import os
import select

__all__ = ["read_until", "type_answers"]

WAIT_S = 120.0


def read_until(controller: int, mark: str) -> str:
    """What the terminal shows up to mark, or up to its end."""
    shown = ""
    while not shown.endswith(mark) and select.select([controller], [], [], WAIT_S)[0]:
        try:
            shown += os.read(controller, 1).decode("latin-1")
        except OSError:  # the other side is closed
            break
    return shown


def type_answers(controller: int, answers: str, mark: str = "[y/N] ") -> None:
    """Type one line of answers after each mark."""
    for line in answers.splitlines(keepends=True):
        if read_until(controller, mark).endswith(mark):
            os.write(controller, line.encode())
