"""kith bench: how fast a model is on this machine."""

from typing import Any

import click

from node.cli.failure import CommandFailure
from node.cli.options import json_option, session
from node.cli.output import table

HEADER = ["STREAMS", "PROMPT", "READ tok/s", "FIRST TOKEN", "SLOWEST", "OUTPUT", "WRITE tok/s"]


def _row(row: dict[str, Any]) -> list[str]:
    return [
        str(row["streams"]),
        str(row["prompt_tokens"]),
        f"{row['prompt_tokens_per_s']:.1f}",
        f"{row['first_token_s'] * 1000:.0f} ms",
        f"{row['slowest_first_token_s'] * 1000:.0f} ms",
        str(row["output_tokens"]),
        f"{row['output_tokens_per_s']:.1f}",
    ]


def _head(report: dict[str, Any]) -> str:
    load = "loaded before" if report["load_s"] is None else f"{report['load_s']:.2f} s"
    memory = "unknown" if report["memory_bytes"] is None else f"{report['memory_bytes'] / 2**20:.0f} MiB"
    engine = f"{report['threads']} threads  {report['backend']}" if report["threads"] else "another program"
    return "\n".join([
        f"model     {report['model']}  {report['quantisation']}  {report['size_bytes'] / 1e6:.0f} MB",
        f"engine    {engine}",
        f"context   {report['context_tokens']} tokens",
        f"load      {load}",
        f"memory    {memory}",
    ])


def _streams(_: click.Context, __: click.Parameter, value: str) -> list[int]:
    try:
        return [int(part) for part in value.split(",")]
    except ValueError:
        raise click.BadParameter("write numbers with commas between them, such as 1,4,8") from None


@click.command("bench")
@click.argument("model", required=False)
@click.option("--streams", default="1,4,8", show_default=True, callback=_streams, help="Answers at once, one row each.")
@click.option("--prompt", "prompt_tokens", default=128, show_default=True, help="Tokens of each prompt.")
@click.option("--output", "output_tokens", default=32, show_default=True, help="Tokens of each answer.")
@click.option("--rounds", default=3, show_default=True, help="Rounds per row; medians are shown.")
@click.option("--long", "long_", is_flag=True, help="Also fill the model's whole context once.")
@json_option
@click.pass_context
def command(
    ctx: click.Context, model: str | None, streams: list[int], prompt_tokens: int, output_tokens: int, rounds: int,
    long_: bool,
) -> None:
    """Measure speed, memory and load time of MODEL (the default one when left out).

    READ is prompt tokens, WRITE answer tokens per second, all streams together.
    """
    at = session(ctx)
    plan = {
        "model": model, "streams": streams, "prompt_tokens": prompt_tokens, "output_tokens": output_tokens,
        "rounds": rounds, "long": long_,
    }
    report: dict[str, Any] | None = None
    for event in at.client().stream("/v1/bench", plan):
        if event["event"] == "row":
            at.say(f"[{event['streams']} at once: {event['output_tokens_per_s']:.1f} tokens/s]")
        elif event["event"] == "bench":
            report = {key: value for key, value in event.items() if key not in ("event", "schema")}
        elif event["event"] == "error":
            raise CommandFailure(event["message"], hint=event["hint"], exit_code=event["exit_code"], code=event["code"])
    if report is None:
        raise CommandFailure("the node ended the measurement early", hint="See: kith logs", code="no_answer")
    rows = [*report["rows"], *([report["long_row"]] if report["long_row"] else [])]
    at.data(f"{_head(report)}\n\n{table([_row(row) for row in rows], HEADER)}", report)
