"""kith privacy: what may leave for whom, in which form; changing it; what you refused for good."""

from typing import Any

import click

from node.cli.options import json_option, session
from node.cli.output import table
from node.cli.printable import cell

PURPOSES = ["infer", "query", "mail", "answer"]
LEVELS = ["never", "masked", "public", "clear", "default"]


def render(view: dict[str, Any]) -> str:
    """Levels as a table, then what holds for single conversations, then refusals and the nets that look."""
    if not view["peers"]:
        return "Nobody is paired, so nothing can leave. Pair with: kith pair"
    rows = [[peer["peer"], peer["trust"], *(peer["levels"][purpose] for purpose in PURPOSES)]
            for peer in view["peers"]]
    lines = [table(rows, ["PEER", "TRUST", "TO ITS MODEL", "QUERY", "MESSAGE", "YOUR SHARES"])]
    lines += [
        f"  in conversation {cell(one['conversation'][:8])}: {one['purpose']} to {cell(one['peer'])} is {one['level']}"
        for one in view["conversations"]
    ]
    lines += [_denial(one) for one in view["denials"]]
    nets = f"looked through by: {', '.join(view['nets'])}"
    if view["nets_missing"]:
        nets += f"; missing: {', '.join(view['nets_missing'])}, so you are asked each time"
    return "\n".join([*lines, "", nets])


def _denial(one: dict[str, Any]) -> str:
    return f"  refusal {one['number']}: {one['purpose']} to {cell(one['peer'])} never leaves, since {one['since']}"


@click.group("privacy", invoke_without_command=True)
@json_option
@click.pass_context
def command(ctx: click.Context) -> None:
    """What may leave this device, for whom and in which form."""
    if not ctx.invoked_subcommand:
        at = session(ctx)
        view = at.client().get("/v1/privacy")
        at.data(render(view), view)


@command.command("show")
@click.argument("peer", required=False)
@json_option
@click.pass_context
def show(ctx: click.Context, peer: str | None) -> None:
    """Show the levels of PEER, or of everybody."""
    at = session(ctx)
    view = at.client().get("/v1/privacy", peer=peer)
    at.data(render(view), view)


@command.command("set")
@click.argument("peer")
@click.argument("level", type=click.Choice(LEVELS))
@click.option("--for", "purpose", type=click.Choice(PURPOSES), default="infer", show_default=True,
              help="infer: a prompt to its model; query: a search; mail: a message; answer: your shares.")
@click.option("--conversation", metavar="ID", help="Only in this conversation (or: last).")
@json_option
@click.pass_context
def set_(ctx: click.Context, peer: str, level: str, purpose: str, conversation: str | None) -> None:
    """Let what goes to PEER leave as LEVEL.

    never: not at all. masked: with placeholders for personal values. public: only what holds none. clear: as it is,
    for your own devices; secrets are refused at every level. default: what the trust in PEER gives.
    """
    at = session(ctx)
    change = {"peer": peer, "level": level, "purpose": purpose, "conversation": conversation}
    view = at.client().post("/v1/privacy", change)
    at.data(render(view), view)


@command.command("denials")
@json_option
@click.pass_context
def denials(ctx: click.Context) -> None:
    """List what you refused for good."""
    at = session(ctx)
    found = at.client().get("/v1/privacy")["denials"]
    at.data("\n".join(map(_denial, found)) or "You refused nothing for good.", found)


@command.command("undeny")
@click.argument("number", type=int)
@json_option
@click.pass_context
def undeny(ctx: click.Context, number: int) -> None:
    """Take refusal NUMBER back: you are asked again."""
    at = session(ctx)
    view = at.client().delete(f"/v1/privacy/denials/{number}")
    at.data(render(view), view)
