"""kith key: how this device's key is kept; a new key for the data at rest; the passphrase."""

from typing import Any

import click

from node.cli.options import json_option, session
from node.cli.output import Session
from node.cli.passphrases import read_new_passphrase, read_passphrase


@click.group("key", invoke_without_command=True)
@json_option
@click.pass_context
def command(ctx: click.Context) -> None:
    """Show how the key is kept, change its passphrase, or encrypt the data anew."""
    if not ctx.invoked_subcommand:
        at = session(ctx)
        view = at.client().get("/v1/key")
        at.data(_render(view), view)


def _render(view: dict[str, Any]) -> str:
    kept = "locked by a passphrase" if view["passphrase"] else "open to whoever can read its file (mode 0600)"
    return f"id {view['peer_id']}\nkey file: {kept}\ndata: {'locked' if view['locked'] else 'open'}"


def _present(at: Session) -> str | None:
    """The present passphrase, asked for when there is one."""
    return read_passphrase("Present passphrase") if at.client().get("/v1/key")["passphrase"] else None


@command.command("passphrase")
@click.option("--remove", is_flag=True, help="Leave the key open to whoever can read its file.")
@json_option
@click.pass_context
def passphrase(ctx: click.Context, remove: bool) -> None:
    """Set or change the passphrase (8 characters or more). Piped in: the present one, then the new one, a line each."""
    at = session(ctx)
    given = {"passphrase": _present(at), "new": None if remove else read_new_passphrase()}
    view = at.client().post("/v1/key/passphrase", given)
    at.data(_render(view), view)
    if not remove:
        at.say("A forgotten passphrase cannot be recovered, and what it locks neither.")


@command.command("rotate")
@json_option
@click.pass_context
def rotate(ctx: click.Context) -> None:
    """Encrypt the databases with a new key. The device keeps its id; if it stops midway, the next start finishes it."""
    at = session(ctx)
    view = at.client().post("/v1/key/rotate", {"passphrase": _present(at)})
    at.data("the data has a new key", view)
