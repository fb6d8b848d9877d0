"""kith doctor: check this node and say what to do. Without a running node, what can be checked from here."""

import os
from dataclasses import asdict
from pathlib import Path
from typing import Any

import click

from node.cli.failure import CommandFailure, NotRunning
from node.cli.options import json_option, session
from node.cli.resting import check_resting
from node.clock import SystemClock
from node.counting import counted
from node.paths import Paths

MARKS = {"ok": "ok ", "warning": "!  ", "problem": "x  "}


def _checks(ctx: click.Context) -> list[dict[str, Any]]:
    try:
        found: list[dict[str, Any]] = session(ctx).client().get("/v1/doctor")["checks"]
        return found
    except NotRunning:
        paths = Paths.from_env(os.environ, Path.home())
        return [asdict(check) for check in check_resting(paths, os.environ, SystemClock())]


@click.command("doctor")
@click.option("--clock-is-right", is_flag=True, help="The date is right: let what is old by it expire and be removed.")
@json_option
@click.pass_context
def command(ctx: click.Context, clock_is_right: bool) -> None:
    """Check this node and say what to do. Exit code 1 when there are problems.

    Without a running node: the packages, files, disk, clock, settings and the data folder's lock.
    """
    at = session(ctx)
    if clock_is_right:
        at.client().post("/v1/clock/confirm", {})
    checks = _checks(ctx)
    problems = sum(check["state"] == "problem" for check in checks)
    warnings = sum(check["state"] == "warning" for check in checks)
    lines = [
        f"{MARKS[check['state']]}{check['name']}: {check['text']}"
        + (f"\n     -> {check['hint']}" if check["hint"] else "")
        for check in checks
    ]
    lines.append(f"{counted(problems, 'problem')}, {counted(warnings, 'warning')}")
    at.data("\n".join(lines), {"checks": checks, "problems": problems, "warnings": warnings})
    if problems:
        raise CommandFailure(
            f"{counted(problems, 'problem')} found", hint="Each line above says what to do.", code="doctor", shown=True
        )
