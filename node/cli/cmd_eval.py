"""kith eval: how well a model calls tools, on cases from files. Reads the files here: the node opens none."""

from pathlib import Path
from typing import Any

import click
import msgspec

from node.cli.failure import CommandFailure
from node.cli.options import json_option, session
from node.cli.output import table
from offload.evaluation.cases import Case, read_answers, read_cases, stratified_sample
from offload.evaluation.errors import BadCases

MAX_FILE_BYTES = 64 * 1024 * 1024
ANSWERS_FOLDER = "possible_answer"
HEADER = ["CASES", "N", "RIGHT", "ACCURACY", "95 %", "TOOL", "ARG NAMES", "ARG VALUES", "NONE", "ASKED", "BROKEN"]


def _bytes(path: Path) -> bytes:
    try:
        if path.stat().st_size > MAX_FILE_BYTES:
            raise CommandFailure(f"{path} is larger than {MAX_FILE_BYTES} bytes", exit_code=2, code="usage")
        return path.read_bytes()
    except OSError as error:
        raise CommandFailure(f"{path} cannot be read: {error.strerror}", exit_code=2, code="usage") from None


def _load(files: tuple[Path, ...], answers: Path | None) -> tuple[list[Case], dict[str, int]]:
    """All cases. A file's answers are its own, those of --answers, or those beside it as BFCL keeps them."""
    cases: list[Case] = []
    left_out: dict[str, int] = {}
    for file in files:
        beside = file.parent / ANSWERS_FOLDER / file.name
        found = answers or (beside if beside.is_file() else None)
        try:
            loaded = read_cases(_bytes(file), read_answers(_bytes(found)) if found else None)
        except BadCases as error:
            raise CommandFailure(f"{file}: {error}", hint=error.hint, exit_code=2, code=error.code) from None
        cases += loaded.cases
        for reason, count in loaded.left_out.items():
            left_out[reason] = left_out.get(reason, 0) + count
    return cases, left_out


def _row(kind: dict[str, Any]) -> list[str]:
    scored = kind["kind"] != "irrelevance"
    parts = [f"{kind[part]:.3f}" if scored else "-" for part in ("tool", "argument_names", "argument_values")]
    return [
        kind["kind"], str(kind["cases"]), str(kind["right"]), f"{kind['accuracy']:.3f}",
        f"{kind['low']:.2f}-{kind['high']:.2f}", *parts, str(kind["abstained"]), str(kind["asked"]),
        str(kind["broken"]),
    ]


def _draw(report: dict[str, Any]) -> str:
    per_right = "-"
    if report["right"]:
        per_right = f"{report['output_tokens_per_right']:.1f} tokens, {report['retries_per_right']:.2f} retries"
    return "\n".join([
        f"model     {report['model']}  {report['quantisation']}  {report['digest'][:12]}",
        f"chooser   {report['chooser']}",
        f"cost      {report['prompt_tokens']} tokens read, {report['output_tokens']} written; for each right case "
        f"{per_right}",
        f"planning  {_planning(report['planning'])}",
        "",
        table([_row(kind) for kind in report["kinds"]], HEADER),
    ])


def _planning(found: dict[str, Any]) -> str:
    return "allowed: it may choose steps itself" if found["allowed"] else f"not allowed: {found['why_not']}"


@click.command("eval")
@click.argument("files", nargs=-1, type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option("--answers", type=click.Path(exists=True, dir_okay=False, path_type=Path), help="File of right answers.")
@click.option("--model", metavar="NAME", help="Use this model, not the default one.")
@click.option("--cases", "most", default=60, show_default=True, help="A fixed sample of so many, all kinds alike.")
@click.option("--all", "whole", is_flag=True, help="Every case.")
@click.option("--from-history", "own", is_flag=True, help="Cases of what you asked for, confirmed and kept here.")
@click.option("--must-call", is_flag=True, help="Offer no way to decline: measures the calls themselves.")
@click.option("--may-ask", is_flag=True, help="Let the model ask back instead of calling.")
@click.option("--own-format", is_flag=True, help="Calls as the model's own template teaches them.")
@click.option("--gated", is_flag=True, help="Vectors choose the tool or none; the model only fills in the call.")
@json_option
@click.pass_context
def command(
    ctx: click.Context, files: tuple[Path, ...], answers: Path | None, model: str | None, most: int, whole: bool,
    own: bool, must_call: bool, may_ask: bool, own_format: bool, gated: bool,
) -> None:
    """Run function-calling cases of FILES (BFCL JSON shape) through a model of this node.

    Shows how often all of a call was right, and apart from that the tool, the names of its arguments and their values;
    for cases that no tool fits, how often none was called. Cases never leave this device.
    """
    at = session(ctx)
    cases, left_out = _load(files, answers)
    if not whole:
        cases = stratified_sample(cases, most)
    for reason, count in left_out.items():
        at.say(f"[{count} left out: {reason}]")
    if not files and not own:
        raise click.UsageError("Name files with cases, or say --from-history.")
    if not cases and not own:
        raise CommandFailure("there is no usable case", hint="See: kith eval --help", exit_code=2, code="bad_cases")
    body = {
        "cases": msgspec.to_builtins(cases), "model": model, "may_decline": not must_call, "may_ask": may_ask,
        "own": own, "most": None if whole else most, "own_format": own_format, "gated": gated,
    }
    report: dict[str, Any] | None = None
    done = 0
    for event in at.client().stream("/v1/eval", body):
        if event["event"] == "case":
            done += 1
            if at.verbose or done % 10 == 0:
                at.say(f"[{done}: {event['id']} {'right' if event['right'] else 'wrong'}]")
        elif event["event"] == "left_out":
            left_out[event["reason"]] = left_out.get(event["reason"], 0) + event["count"]
            at.say(f"[{event['count']} left out: {event['reason']}]")
        elif event["event"] == "eval":
            report = {key: value for key, value in event.items() if key not in ("event", "schema")}
        elif event["event"] == "error":
            raise CommandFailure(event["message"], hint=event["hint"], exit_code=event["exit_code"], code=event["code"])
    if report is None:
        raise CommandFailure("the node ended the evaluation early", hint="See: kith logs", code="no_answer")
    at.data(_draw(report), {**report, "left_out": left_out})
