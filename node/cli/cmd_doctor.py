"""kith doctor: check this node and say what to do."""

import click

from node.cli.failure import CommandFailure
from node.cli.options import json_option, session

MARKS = {"ok": "ok ", "warning": "!  ", "problem": "x  "}


@click.command("doctor")
@json_option
@click.pass_context
def command(ctx: click.Context) -> None:
    """Check this node and say what to do."""
    at = session(ctx)
    checks = at.client().get("/v1/doctor")["checks"]
    problems = sum(check["state"] == "problem" for check in checks)
    warnings = sum(check["state"] == "warning" for check in checks)
    lines = [
        f"{MARKS[check['state']]}{check['name']}: {check['text']}"
        + (f"\n     -> {check['hint']}" if check["hint"] else "")
        for check in checks
    ]
    lines.append(f"{problems} problems, {warnings} warnings")
    at.data("\n".join(lines), {"checks": checks, "problems": problems, "warnings": warnings})
    if problems:
        raise CommandFailure(
            f"{problems} problems found", hint="Each line above says what to do.", code="doctor", shown=True
        )
