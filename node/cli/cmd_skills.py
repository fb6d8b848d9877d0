"""kith skills: what the agent can do in several steps, and how to ask for it."""

import click

from node.cli.options import json_option, session


@click.command("skills")
@json_option
@click.pass_context
def command(ctx: click.Context) -> None:
    """List the agent's skills: work of several steps whose order is code."""
    at = session(ctx)
    items = at.client().get("/v1/skills")
    lines: list[str] = []
    for item in items:
        lines.append(f"{item['name']}: {item['description']}")
        lines += [f'    kith ask "{example}"' for example in item["examples"]]
    at.data("\n".join(lines), items)
