"""Options that work before and after the command's name, and the session that a command gets.

Must not know any command.
"""

from collections.abc import Callable
from typing import Any, TypeVar

import click

from node.cli.output import Session

__all__ = ["json_option", "session"]

F = TypeVar("F", bound=Callable[..., Any])


def _set_json(ctx: click.Context, _: click.Parameter, value: bool) -> None:
    if value:
        ctx.find_root().obj.as_json = True


def json_option(command: F) -> F:
    """Let `kith NAME --json` mean the same as `kith --json NAME`."""
    return click.option("--json", is_flag=True, expose_value=False, callback=_set_json, help="Print one JSON object.")(
        command
    )


def session(ctx: click.Context) -> Session:
    """The running command's session."""
    found = ctx.find_root().obj
    assert isinstance(found, Session)
    return found
