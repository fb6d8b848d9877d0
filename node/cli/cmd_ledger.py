"""kith ledger: what left this device, exactly."""

from typing import Any

import click

from node.cli.failure import CommandFailure
from node.cli.options import json_option, session
from node.cli.output import table
from node.cli.printable import cell, quoted


@click.group("ledger", invoke_without_command=True)
@click.option("--since", metavar="TIME", help="Only from this time on: ISO time, or 1d, 2h, 30m.")
@click.option("--peer", metavar="PEER", help="Only to this peer.")
@click.option("-n", "--limit", default=50, show_default=True, help="How many at most.")
@json_option
@click.pass_context
def command(ctx: click.Context, since: str | None, peer: str | None, limit: int) -> None:
    """What left this device, newest first."""
    if ctx.invoked_subcommand:
        return
    at = session(ctx)
    entries = at.client().get("/v1/ledger", since=since, peer=peer, limit=limit)
    rows = [
        [
            str(item["entry_id"]),
            item["at"],
            item["peer"],
            item["purpose"],
            f"{item['size_bytes']} B",
            item["outcome"],
            f"{item['substitutions']} replaced",
            item["digest"][:8],
        ]
        for item in entries
    ]
    header = ["ENTRY", "AT", "PEER", "PURPOSE", "SIZE", "OUTCOME", "KEPT BACK", "DIGEST"]
    at.data(table(rows, header) if rows else "Nothing has left this device.", entries)


@command.command("show")
@click.argument("entry", type=int)
@json_option
@click.pass_context
def show(ctx: click.Context, entry: int) -> None:
    """Show ENTRY with the exact text that left."""
    at = session(ctx)
    view: dict[str, Any] = at.client().get(f"/v1/ledger/{entry}")
    lines = [
        f"{key:<14} {cell(str(view[key]))}"
        for key in (
            "entry_id",
            "at",
            "peer",
            "purpose",
            "level",
            "outcome",
            "size_bytes",
            "substitutions",
            "approved_by",
            "digest",
        )
    ]
    lines += ["", "exactly this left:", *[line for text in view["texts"] or [] for line in quoted(text)]]
    at.data("\n".join(lines), view)


@command.command("verify")
@json_option
@click.pass_context
def verify(ctx: click.Context) -> None:
    """Check the whole chain against its signed head."""
    at = session(ctx)
    report = at.client().post("/v1/ledger/verify")
    if report["ok"] and not report["entries"]:
        at.data("no entries", report)
    elif report["ok"]:
        at.data(f"{report['entries']} entries, chain intact, head {report['head'][:16]}", report)
    else:
        at.data("\n".join(report["problems"]), report)
        raise CommandFailure(
            "the ledger does not verify",
            hint="Keep the data folder as it is and see docs/explain/architecture.md",
            code="ledger",
            shown=True,
        )
