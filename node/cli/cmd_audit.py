"""kith audit: what the agent may reach, who may see what, and a test of the guard on this machine."""

from typing import Any

import click

from node.cli.failure import CommandFailure
from node.cli.options import json_option, session
from node.cli.output import table
from node.cli.printable import cell

MARKS = {"ok": "ok ", "warning": "!  ", "problem": "x  "}
PURPOSES = ["infer", "query", "mail", "answer"]


def render(view: dict[str, Any]) -> str:
    """Tools, peers, and checks with what to do about each."""
    lines = ["THE AGENT MAY"]
    for tool in view["tools"]:
        asks = "shows its effect and waits for your yes" if tool["consequential"] else "reads"
        lines.append(f"  {cell(tool['name']):<22} {asks}")
    lines += ["", "IT READS"] + [f"  {cell(name):<10} {cell(place)}" for name, place in view["folders"].items()]
    lines += ["", "PEERS"]
    if view["peers"]:
        rows = [
            [one["peer"], one["trust"], ", ".join(one["may_ask_for"]) or "nothing",
             *(one["levels"][purpose] for purpose in PURPOSES)]
            for one in view["peers"]
        ]
        header = ["PEER", "TRUST", "MAY ASK YOU FOR", "GETS PROMPTS", "QUERIES", "MESSAGES", "YOUR SHARES"]
        lines += [f"  {line}" for line in table(rows, header).splitlines()]
    else:
        lines.append("  nobody is paired")
    lines += [f"  {one['purpose']} to {cell(one['peer'])} is {one['level']} in conversation {one['conversation'][:8]}"
              for one in view["conversations"]]
    lines += [f"  {one['purpose']} to {cell(one['peer'])} is refused for good (number {one['number']})"
              for one in view["denials"]]
    lines += ["", "CHECKS"]
    for check in view["checks"]:
        lines.append(f"{MARKS[check['state']]}{cell(check['name'])}: {cell(check['text'])}")
        if check["hint"]:
            lines.append(f"     -> {cell(check['hint'])}")
    return "\n".join(lines)


@click.command("audit")
@json_option
@click.pass_context
def command(ctx: click.Context) -> None:
    """Show what the agent may reach and who may see what; verify the ledger; test the guard with planted values.

    The test sends made-up values through the real guard to nobody and searches what comes out. Exit code 1 when
    something is wrong.
    """
    at = session(ctx)
    view = at.client().post("/v1/audit")
    at.data(render(view), view)
    if not view["ok"]:
        raise CommandFailure("the audit found problems", hint="Each x above says what to do.", code="audit", shown=True)
