"""Reads a passphrase: from the terminal without showing it, or a line of standard input. Never an argument.

Must not know what it opens.
"""

import getpass
import sys

from node.cli.failure import CommandFailure

__all__ = ["read_new_passphrase", "read_passphrase"]

_LIMIT_CHARS = 4096


def read_passphrase(prompt: str) -> str:
    """What was typed or piped, without its line end. Raises CommandFailure for nothing."""
    typed = sys.stdin.isatty()
    given = getpass.getpass(f"{prompt}: ") if typed else sys.stdin.readline(_LIMIT_CHARS).rstrip("\r\n")
    if not given:
        raise CommandFailure("no passphrase was given", hint="Type it, or pipe it in.", exit_code=2, code="usage")
    return given


def read_new_passphrase() -> str:
    """A new one; typed twice at a terminal. Raises CommandFailure when the two differ."""
    given = read_passphrase("New passphrase")
    if sys.stdin.isatty() and getpass.getpass("Again: ") != given:
        raise CommandFailure("the two differ; nothing was changed", hint="Try again.", exit_code=2, code="usage")
    return given
