"""kith ask: put a request to the agent and stream the answer.

Reads files and standard input here, so that the node opens nothing it is not given.
"""

import sys
from pathlib import Path
from typing import Any

import click

from node.cli.client import named
from node.cli.failure import CommandFailure
from node.cli.options import json_option, session
from node.cli.output import Session
from node.cli.printable import cell
from node.cli.prompts import answer_questions

MAX_FILE_BYTES = 1_000_000


def read_file(path: Path) -> dict[str, str]:
    try:
        if path.stat().st_size > MAX_FILE_BYTES:
            raise CommandFailure(
                f"{path} is larger than {MAX_FILE_BYTES} bytes", hint="Give a part of it.", exit_code=2, code="usage"
            )
        return {"name": path.name, "text": path.read_text(encoding="utf-8")}
    except (OSError, UnicodeDecodeError) as error:
        raise CommandFailure(
            f"{path} cannot be read as text: {_why(error)}", hint="Give the path of a UTF-8 text file.", exit_code=2,
            code="usage",
        ) from None


def _why(error: OSError | UnicodeDecodeError) -> str:
    return error.strerror or type(error).__name__ if isinstance(error, OSError) else "it is not UTF-8"


def _read_stdin() -> list[dict[str, str]]:
    if sys.stdin.isatty():
        return []
    try:
        text = sys.stdin.read(MAX_FILE_BYTES + 1)
        text.encode()       # bytes that a locale such as C lets through
    except UnicodeError:
        raise CommandFailure(
            "standard input is not UTF-8", hint="Give UTF-8 text, as by: iconv -t utf-8", exit_code=2, code="usage",
        ) from None
    if len(text) > MAX_FILE_BYTES:
        raise CommandFailure(
            f"standard input is larger than {MAX_FILE_BYTES} characters", hint="Give a part of it.", exit_code=2,
            code="usage",
        )
    return [{"name": "stdin", "text": text}] if text.strip() else []


def _show(event: dict[str, Any], at: Session, streamed: list[str]) -> None:
    kind = event["event"]
    if kind == "status":
        at.say(f"[{cell(event['text'])}]")
    elif kind == "delta":
        streamed.append(event["text"])
        at.piece(event["text"])
    elif kind == "tool" and at.verbose:
        at.say(f"[{cell(event['tool'])}: {cell(event['text'])}]")


@click.command("ask")
@click.argument("text", nargs=-1)
@click.option("-f", "--file", "files", multiple=True, type=click.Path(path_type=Path), help="Give a text file along.")
@click.option("--continue", "continued", is_flag=True, help="Go on with the last conversation.")
@click.option("--conversation", metavar="ID", help="Go on with this conversation.")
@click.option("--on", metavar="PEER", help="Run the model part on this peer.")
@click.option("--local", is_flag=True, help="Never leave this device; fails if impossible.")
@click.option("--model", metavar="NAME", help="Use this model.")
@click.option("--adapter", metavar="NAME", help="Use this LoRA adapter of the model here; never leaves this device.")
@click.option("--later", is_flag=True, help="Draft it here now, and queue it for a better answer.")
@click.option("--now", "now", is_flag=True, help="Fail rather than queue it when the peer is away.")
@click.option("--exact", is_flag=True, help="Word for word the same, whichever machine of this model writes; slower.")
@click.option("--hedge", is_flag=True, help="Ask the two best places at once; whoever writes first is read.")
@click.option("--clear", is_flag=True, help="Without placeholders, this once; the exact text is shown first.")
@click.option("--attach", metavar="ID", is_flag=False, flag_value="last", help="Read along with an answer under way.")
@click.option("--dry-run", is_flag=True, help="Show what would be written; write nothing.")
@json_option
@click.pass_context
def command(
    ctx: click.Context,
    text: tuple[str, ...],
    files: tuple[Path, ...],
    continued: bool,
    conversation: str | None,
    on: str | None,
    local: bool,
    model: str | None,
    adapter: str | None,
    later: bool,
    now: bool,
    exact: bool,
    hedge: bool,
    clear: bool,
    attach: str | None,
    dry_run: bool,
) -> None:
    """Ask the agent. Text may also come from standard input.

    When the peer named by --on is away, this device drafts an answer, exits with 5, and queues the request: see kith
    queue. The same, with 4, when nobody says whether the text may leave.
    """
    at = session(ctx)
    if attach is not None:
        if text or files or on or local:
            raise click.UsageError("--attach takes no text and no place: the answer is under way.")
        _finish(_read(at, f"/v1/answers/{named(attach)}/follow", {}), at, drafted=True)
        return
    attachments = [*map(read_file, files), *_read_stdin()]
    words = " ".join(text)
    if not words and attachments and attachments[-1]["name"] == "stdin":
        words = attachments.pop()["text"].strip()
    if not words:
        raise click.UsageError('Say what you want: kith ask "..."')
    if on and local:
        raise click.UsageError("--on and --local exclude each other.")
    if hedge and (on or local or later):
        raise click.UsageError("--hedge goes with none of --on, --local and --later: two places are asked, now.")
    if later and (now or local):
        raise click.UsageError("--later goes with neither --now nor --local.")
    if adapter and (on or hedge or later):
        raise click.UsageError("--adapter goes with none of --on, --hedge and --later: it is on this device.")
    body = {
        "text": words,
        "attachments": attachments,
        "conversation": "last" if continued else conversation,
        "on": on,
        "local": local,
        "model": model,
        "adapter": adapter,
        "dry_run": dry_run,
        "later": later,
        "now": now,
        "exact": exact,
        "clear": clear,
        "hedge": hedge,
    }
    _finish(_read(at, "/v1/ask", body), at, drafted=later)


def _read(at: Session, path: str, body: dict[str, Any]) -> tuple[dict[str, Any], list[str]]:
    """The answer, and the pieces of it that were shown as they came."""
    client, streamed = at.client(), list[str]()
    try:
        for event in answer_questions(client.stream(path, body), client, at):
            if event["event"] == "answer":
                return event, streamed
            _show(event, at, streamed)
    except CommandFailure as failure:
        if streamed and failure.code == "hung_up":
            failure.hint = f"{failure.hint}; once the node is back the answer goes on: kith ask --attach"
        raise
    hint = "It goes on once the node is back: kith ask --attach" if streamed else "See: kith logs"
    raise CommandFailure("the node ended the request without an answer", hint=hint, code="no_answer")


def _finish(read: tuple[dict[str, Any], list[str]], at: Session, *, drafted: bool) -> None:
    """Show what is left of the answer, and where it came from. drafted: the owner expects a draft."""
    answer, streamed = read
    if streamed:
        at.piece("\n")
    at.data("" if "".join(streamed).strip() == answer["text"].strip() else answer["text"], answer)
    if answer.get("caution"):
        at.say(cell(answer["caution"]))
    at.say(f"[{cell(answer['ran_on'])}: {cell(answer['reason'])}]")
    if answer["kind"] == "draft":
        name = answer["intent"][:8]
        at.say(f"[see it come: kith queue show {name}, take it back: kith queue cancel {name}]")
        if not drafted:  # a script that named a peer must notice that another machine answered
            code = 4 if answer["missing"] == "consent" else 5
            raise CommandFailure("only a draft", exit_code=code, code="draft", shown=True)
    if answer["kind"] == "denied" and not at.interactive():
        hint = "See what would be done, and decide in a terminal: kith ask --dry-run '...'"
        message = "not done: there was no terminal to ask you at"
        raise CommandFailure(message, hint=hint, exit_code=4, code="denied", shown=True)
    if answer["kind"] == "denied":
        raise CommandFailure("not done: you said no", exit_code=4, code="denied", shown=True)
    broken = any(leg["ended"] for leg in answer.get("legs", [])[-1:])
    if answer["kind"] == "stopped" and (broken or not streamed):  # a model's answer that was cut by us is an answer
        raise CommandFailure("not done", code="stopped", shown=True)
