"""kith ask: put a request to the agent and stream the answer.

Reads files and standard input here, so that the node opens nothing it is not given.
"""

import sys
from pathlib import Path
from typing import Any

import click

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
    text = sys.stdin.read(MAX_FILE_BYTES + 1)
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
    dry_run: bool,
) -> None:
    """Ask the agent. Text may also come from standard input."""
    at = session(ctx)
    attachments = [*map(read_file, files), *_read_stdin()]
    words = " ".join(text)
    if not words and attachments and attachments[-1]["name"] == "stdin":
        words = attachments.pop()["text"].strip()
    if not words:
        raise click.UsageError('Say what you want: kith ask "..."')
    if on and local:
        raise click.UsageError("--on and --local exclude each other.")
    body = {
        "text": words,
        "attachments": attachments,
        "conversation": "last" if continued else conversation,
        "on": on,
        "local": local,
        "model": model,
        "dry_run": dry_run,
    }
    client, streamed = at.client(), list[str]()
    answer: dict[str, Any] | None = None
    for event in answer_questions(client.stream("/v1/ask", body), client, at):
        if event["event"] == "answer":
            answer = event
        else:
            _show(event, at, streamed)
    if answer is None:
        raise CommandFailure("the node ended the request without an answer", hint="See: kith logs", code="no_answer")
    if streamed:
        at.piece("\n")
    at.data("" if "".join(streamed).strip() == answer["text"].strip() else answer["text"], answer)
    at.say(f"[{cell(answer['ran_on'])}: {cell(answer['reason'])}]")
    if answer["kind"] == "denied":
        raise CommandFailure("not done: you said no", exit_code=4, code="denied", shown=True)
    if answer["kind"] == "stopped" and not streamed:  # a tool gave up; a model's answer that was cut is an answer
        raise CommandFailure("not done", code="stopped", shown=True)
