"""kith ledger: what left this device, exactly, and whether the other side says the same."""

import base64
import json
import os
import stat
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from node.cli.failure import CommandFailure
from node.cli.options import json_option, session
from node.cli.output import Session, table
from node.cli.printable import cell, quoted
from node.counting import counted

if TYPE_CHECKING:
    from node.cli.client import NodeClient

_SHOWN = (
    "entry_id", "at", "peer", "purpose", "level", "outcome", "size_bytes", "substitutions", "approved_by", "receipt",
    "digest",
)


@click.group("ledger", invoke_without_command=True)
@click.option("--since", metavar="TIME", help="Only from this time on: ISO time, or 1d, 2h, 30m.")
@click.option("--peer", metavar="PEER", help="Only to this peer.")
@click.option("-n", "--limit", default=50, show_default=True, help="How many at most.")
@json_option
@click.pass_context
def command(ctx: click.Context, since: str | None, peer: str | None, limit: int) -> None:
    """What left this device, newest first."""
    if not ctx.invoked_subcommand:
        _list(session(ctx), since, peer, limit)


@command.command("list")
@click.option("--since", metavar="TIME", help="Only from this time on: ISO time, or 1d, 2h, 30m.")
@click.option("--peer", metavar="PEER", help="Only to this peer.")
@click.option("-n", "--limit", default=50, show_default=True, help="How many at most.")
@json_option
@click.pass_context
def list_(ctx: click.Context, since: str | None, peer: str | None, limit: int) -> None:
    """List what left, newest first; RECEIPT is what the peer signed for."""
    _list(session(ctx), since, peer, limit)


def _list(at: Session, since: str | None, peer: str | None, limit: int) -> None:
    entries = at.client().get("/v1/ledger", since=since, peer=peer, limit=limit)
    rows = [
        [
            str(item["entry_id"]), item["at"], item["peer"], item["purpose"], f"{item['size_bytes']} B",
            item["outcome"], f"{item['substitutions']} replaced", item["receipt"], item["digest"][:8],
        ]
        for item in entries
    ]
    header = ["ENTRY", "AT", "PEER", "PURPOSE", "SIZE", "OUTCOME", "KEPT BACK", "RECEIPT", "DIGEST"]
    at.data(table(rows, header) if rows else "Nothing has left this device.", entries)


@command.command("show")
@click.argument("entry", type=int)
@click.option("--bytes", "as_bytes", is_flag=True, help="Also the exact bytes, in hexadecimal.")
@json_option
@click.pass_context
def show(ctx: click.Context, entry: int, as_bytes: bool) -> None:
    """Show ENTRY with the exact text that left."""
    at = session(ctx)
    view: dict[str, Any] = at.client().get(f"/v1/ledger/{entry}")
    lines = [f"{key:<14} {cell(str(view[key]))}" for key in _SHOWN]
    if view["texts"] is None:
        lines += ["", f"The text is no longer kept ({view['dropped']}); its digest still stands in the chain."]
    else:
        lines += ["", "exactly this left:", *[line for text in view["texts"] for line in quoted(text)]]
    if as_bytes:
        lines += ["", "as these bytes, length prefixes included:" if view["frames"] else "the bytes are not kept"]
        lines += [f"  {base64.b64decode(one).hex()}" for one in view["frames"] or []]
    at.data("\n".join(lines), view)


@command.command("verify")
@click.option("--with", "peer", metavar="PEER", help="Ask this peer for receipts that are missing, first.")
@json_option
@click.pass_context
def verify(ctx: click.Context, peer: str | None) -> None:
    """Check the whole chain against its signed head, and what peers signed for against what left."""
    at = session(ctx)
    report = at.client().post("/v1/ledger/verify", {"peer": peer} if peer else None)
    if report["ok"]:
        at.data(_intact(report), report)
        return
    at.data("\n".join([*report["problems"], *report["disputes"]]), report)
    if report["problems"]:
        raise CommandFailure(
            "the ledger does not verify", hint="Keep the data folder as it is and see docs/explain/ledger.md",
            code="ledger", shown=True,
        )
    raise CommandFailure(
        "a peer signed for other bytes than those that left", hint="See the entry: kith ledger show NUMBER",
        code="ledger_dispute", shown=True,
    )


def _intact(report: dict[str, Any]) -> str:
    if not report["entries"]:
        return "no entries"
    lines = [f"{counted(report['entries'], 'entry', 'entries')}, chain intact, head {report['head'][:16]}"]
    if report["first"] > 1:
        lines.append(f"entries 1 to {report['first'] - 1} were removed by age; a signed checkpoint stands for them")
    if report["asked"]:
        lines.append(f"asked for {counted(report['asked'], 'receipt')}, {report['came']} came")
    stands = ", ".join(f"{count} {standing}" for standing, count in report["receipts"].items())
    return "\n".join([*lines, f"the peers' side: {stands}"])


@command.command("export")
@click.argument("file", type=click.Path(dir_okay=False, path_type=Path))
@click.option("--texts", is_flag=True, help="With the texts and bytes that left. They are personal.")
@json_option
@click.pass_context
def export(ctx: click.Context, file: Path, texts: bool) -> None:
    """Write the whole chain to FILE, a line of JSON per entry, readable by you alone."""
    at = session(ctx)
    client = at.client()
    page = _page(client, 0, texts)      # asked for before the file is made: a node that is down leaves none behind
    try:
        handle = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, stat.S_IRUSR | stat.S_IWUSR)
    except FileExistsError:
        raise CommandFailure(
            f"{file} exists already", hint="Choose another name.", exit_code=2, code="usage") from None
    except OSError as error:
        raise CommandFailure(
            f"{file} cannot be written: {error.strerror}", hint="Choose another place.", code="usage") from None
    count = 0
    try:
        with os.fdopen(handle, "w", encoding="utf-8") as out:
            while True:
                for entry in page["entries"]:
                    out.write(json.dumps({"of": page["peer_id"], **entry}, ensure_ascii=False) + "\n")
                count += len(page["entries"])
                if page["next"] is None:
                    break
                page = _page(client, page["next"], texts)
    except BaseException:       # half a chain is none
        file.unlink(missing_ok=True)
        raise
    at.data(f"{counted(count, 'entry', 'entries')} written to {cell(str(file))}", {"entries": count, "file": str(file)})


def _page(client: "NodeClient", after: int, texts: bool) -> dict[str, Any]:
    """The entries behind this number."""
    page: dict[str, Any] = client.get("/v1/ledger/export", after=after, texts="yes" if texts else None)
    return page
