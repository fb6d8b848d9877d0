"""kith offload: where work would run, and why."""

from pathlib import Path
from typing import Any

import click

from node.cli.cmd_ask import read_file
from node.cli.failure import CommandFailure
from node.cli.options import json_option, session
from node.cli.output import table

_HEADINGS = [
    "  PLACE", "CAN", "MODEL", "CONTEXT", "AT WORK", "QUEUE", "LOAD", "READ", "WRITE", "RTT", "DONE IN", "WEIGHED",
    "WHY",
]


def _seconds(value: float | None) -> str:
    return "-" if value is None else f"{value:.1f} s"


def _why(line: dict[str, Any]) -> str:
    held = f"; {line['prefix_tokens']:,} tokens read before" if line["prefix_tokens"] else ""
    return f"{line['reason']}{held}"


def render(view: dict[str, Any]) -> str:
    """The choice and every candidate as text; the chosen one is marked by *."""
    rows = [
        [
            ("* " if line["chosen"] else "  ") + line["name"],
            "yes" if line["able"] else "NO",
            line["model"] or "-",
            f"{line['context_tokens']:,}" if line["context_tokens"] else "-",
            str(line["in_flight"]),
            *(_seconds(line[part]) for part in ("wait_s", "load_s", "prompt_s", "answer_s")),
            "-" if line["rtt_ms"] is None else f"{line['rtt_ms']:.1f} ms",
            _seconds(line["total_s"]),
            _seconds(line["score_s"]),
            _why(line),
        ]
        for line in view["candidates"]
    ]
    where = f"runs on {view['runs_on']}" if view["where"] != "nowhere" else "runs nowhere"
    prompt, answer, room = view["prompt_tokens"], view["answer_tokens"], view["context_tokens"]
    return "\n".join([
        f"{where}: {view['reason']}",
        f"needs about {prompt:,} + {answer:,} = {room:,} tokens of context   ({view['mode']} mode)",
        "DONE IN is queue + load + read + write + way; the least WEIGHED that can is chosen",
        "",
        table(rows, _HEADINGS),
    ])


@click.group("offload")
def command() -> None:
    """Explain where work would run, and why."""


@command.command("explain")
@click.argument("text", nargs=-1, required=True)
@click.option("-f", "--file", "files", multiple=True, type=click.Path(path_type=Path), help="Give a text file along.")
@click.option("--on", metavar="PEER", help="As if this peer were asked for.")
@click.option("--local", is_flag=True, help="As if this device only were asked for.")
@click.option("--model", metavar="NAME", help="As if this model were asked for.")
@json_option
@click.pass_context
def explain(
    ctx: click.Context, text: tuple[str, ...], files: tuple[Path, ...], on: str | None, local: bool, model: str | None
) -> None:
    """Show every place that could run TEXT on a model, with its numbers and the reason. Nothing is run or sent.

    Exit code 1 when it could run nowhere.
    """
    if on and local:
        raise click.UsageError("--on and --local exclude each other.")
    at = session(ctx)
    view = at.client().post("/v1/offload/explain", {
        "text": " ".join(text), "attachments": [read_file(file) for file in files], "on": on, "local": local,
        "model": model,
    })
    at.data(render(view), view)
    if view["where"] == "nowhere":
        raise CommandFailure("it could run nowhere", hint="Each line above says why.", code="nowhere", shown=True)
