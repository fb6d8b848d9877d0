"""kith history: list, show, export or delete conversations."""

import os
from pathlib import Path
from typing import Any

import click

from node.cli.client import named
from node.cli.failure import CommandFailure
from node.cli.options import json_option, session
from node.cli.output import table


def _render(conversation: dict[str, Any]) -> str:
    parts = [
        f"conversation {conversation['conversation_id']}   {conversation['created']}   label {conversation['label']}"
    ]
    for turn in conversation["turns"]:
        ran_on = f" ({turn['ran_on']})" if turn["ran_on"] else ""
        parts.append(f"\n{turn['role']}{ran_on}: {turn['text']}")
    return "\n".join(parts)


def _write(path: Path, text: str, force: bool) -> None:
    """Write a file that only its owner can read. Replaces one that is there only by force."""
    try:
        if force:
            path.unlink(missing_ok=True)
        with open(path, "x", encoding="utf-8", errors="backslashreplace", opener=_private) as file:
            file.write(text)
    except FileExistsError:
        raise CommandFailure(
            f"{path} exists", hint="Choose another name, or add --force", exit_code=2, code="usage"
        ) from None
    except OSError as error:
        raise CommandFailure(
            f"{path} cannot be written: {error.strerror}", hint=f"Check: ls -ld {path.parent}", code="storage"
        ) from None


def _private(path: str, flags: int) -> int:
    return os.open(path, flags, 0o600)


@click.command("history")
@click.argument("conversation", required=False)
@click.option("--delete", "delete", is_flag=True, help="Erase this conversation.")
@click.option(
    "--export", "export", type=click.Path(path_type=Path), metavar="FILE", help="Write it to a file in clear."
)
@click.option("--force", is_flag=True, help="Let --export replace a file that is there.")
@json_option
@click.pass_context
def command(ctx: click.Context, conversation: str | None, delete: bool, export: Path | None, force: bool) -> None:
    """List conversations, or show CONVERSATION (an id, its beginning, or "last")."""
    if conversation is None and (delete or export):
        raise click.UsageError('Name a conversation: an id, its beginning, or "last".')
    if delete and export:
        raise click.UsageError("--delete and --export exclude each other.")
    at = session(ctx)
    client = at.client()
    if conversation is None:
        found = client.get("/v1/conversations")
        rows = [[item["conversation_id"][:8], item["created"], item["label"], item["title"]] for item in found]
        at.data(table(rows, ["ID", "BEGUN", "LABEL", "TITLE"]) if rows else "No conversations yet.", found)
    elif delete:
        reply = client.delete(f"/v1/conversations/{named(conversation)}")
        at.data(f"Erased conversation {reply['deleted']}.", reply)
    else:
        whole = client.get(f"/v1/conversations/{named(conversation)}")
        if export is None:
            at.data(_render(whole), whole)
        else:
            _write(export, _render(whole) + "\n", force)
            at.data(f"Wrote {export} in clear; it is yours to protect.", {"file": str(export)})
