"""kith share: let named peers search a folder, see what is shared, stop sharing."""

from pathlib import Path
from shlex import quote
from typing import Any

import click

from node.cli.failure import CommandFailure
from node.cli.options import json_option, session
from node.cli.output import table
from node.cli.printable import cell
from node.cli.terminal import confirm
from node.counting import counted


@click.group("share")
def command() -> None:
    """Let named peers search a folder. Its passages go out in clear; those that hold secrets never do."""


def _draw_preview(view: dict[str, Any]) -> str:
    peers = ", ".join(view["peers"])
    documents = counted(view["documents"], "document")
    lines = [f"{documents} in {view['folder']} would be searchable, in clear, by: {peers}."]
    if not view["documents"]:
        lines.append("Only .md and .txt files count, and there is none that can be read; later ones will be shared.")
    if view["withheld"]:
        holding = counted(view["withheld"], "passage holds secrets and is", "passages hold secrets and are")
        lines.append(f"{holding} never handed out.")
    if view["personal_hits"]:
        lines.append("These personal values of yours stand in it:")
        lines += [f"  {cell(hit)}" for hit in view["personal_hits"]]
    return "\n".join(lines)


@command.command("add")
@click.argument("folder", type=click.Path(exists=True, file_okay=False, path_type=Path))
@click.option(
    "--with", "peers", multiple=True, required=True, metavar="PEER", help="Who may search it; may be repeated."
)
@click.option("--yes", is_flag=True, help="Do not ask; you have seen the preview.")
@json_option
@click.pass_context
def add(ctx: click.Context, folder: Path, peers: tuple[str, ...], yes: bool) -> None:
    """Share FOLDER with the named peers."""
    at = session(ctx)
    client = at.client()
    body = {"folder": str(folder.resolve()), "peers": list(peers)}
    at.say(_draw_preview(client.post("/v1/shares", {**body, "preview": True})))
    if not yes:
        if not at.interactive():
            raise CommandFailure(
                "nothing was shared: nobody to ask",
                hint="Look at the preview, then add --yes",
                exit_code=4,
                code="denied",
            )
        if not confirm("Share it?"):
            raise CommandFailure("nothing was shared: you said no", exit_code=4, code="denied")
    view = client.post("/v1/shares", body)
    documents = counted(view["documents"], "document")
    at.data(f"Shared {view['folder']} with {', '.join(view['peers'])}: {documents}.", view)


@command.command("list")
@json_option
@click.pass_context
def list_(ctx: click.Context) -> None:
    """List shared folders."""
    at = session(ctx)
    shares = at.client().get("/v1/shares")
    rows = [
        [share["folder"], ", ".join(share["peers"]), "no folder" if share.get("missing") else str(share["documents"]),
         str(share["withheld"])]
        for share in shares
    ]
    at.data(table(rows, ["FOLDER", "WITH", "DOCUMENTS", "WITHHELD"]) if rows else "Nothing is shared.", shares)
    for share in shares:
        if share.get("missing"):
            at.say(f"{cell(share['folder'])} is not there. Put it back, or: kith share remove {quote(share['folder'])}")


@command.command("remove")
@click.argument("folder", type=click.Path(path_type=Path))
@json_option
@click.pass_context
def remove(ctx: click.Context, folder: Path) -> None:
    """Stop sharing FOLDER."""
    at = session(ctx)
    reply = at.client().delete("/v1/shares", {"folder": str(folder.resolve())})
    at.data(f"No longer shared: {reply['unshared']}", reply)
