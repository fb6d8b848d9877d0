"""kith offload: where work would run, and why."""

from pathlib import Path
from typing import Any

import click

from node.cli.cmd_ask import read_file
from node.cli.failure import CommandFailure
from node.cli.options import json_option, session
from node.cli.output import table


def render(view: dict[str, Any]) -> str:
    """The choice and every candidate as text; the chosen one is marked by *."""
    rows = [
        [
            ("* " if line["chosen"] else "  ") + line["name"],
            "yes" if line["able"] else "NO",
            line["model"] or "-",
            f"{line['context_tokens']:,}" if line["context_tokens"] else "-",
            str(line["in_flight"]),
            "-" if line["rtt_ms"] is None else f"{line['rtt_ms']:.1f} ms",
            line["reason"],
        ]
        for line in view["candidates"]
    ]
    where = f"runs on {view['runs_on']}" if view["where"] != "nowhere" else "runs nowhere"
    prompt, answer, room = view["prompt_tokens"], view["answer_tokens"], view["context_tokens"]
    return "\n".join([
        f"{where}: {view['reason']}",
        f"needs about {prompt:,} + {answer:,} = {room:,} tokens of context   ({view['mode']} mode)",
        "",
        table(rows, ["  PLACE", "CAN", "MODEL", "CONTEXT", "AT WORK", "RTT", "WHY"]),
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
