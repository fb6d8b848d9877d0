"""kith queue: requests that wait for a better answer: list, show, answer, cancel, clear, follow."""

import contextlib
import sys
from typing import Any

import click

from node.cli.client import named
from node.cli.failure import CommandFailure
from node.cli.options import json_option, session
from node.cli.output import print_json, table
from node.cli.printable import cell, quoted
from node.cli.prompts import answer_questions, draw_question
from node.cli.terminal import confirm

ID_CHARS = 8


def _row(item: dict[str, Any]) -> list[str]:
    state = item["state"] + (" *" if item["new"] else "")
    wants = item["wants"] or "any peer"
    return [item["intent_id"][:ID_CHARS], state, item["model"] or wants, item["text"], item["reason"]]


def render(items: list[dict[str, Any]]) -> str:
    """The list as text. A star: an answer not looked at yet."""
    if not items:
        return "Nothing is queued."
    return table([_row(item) for item in items], ["ID", "STATE", "WAITS FOR", "REQUEST", "WHY"])


@click.group("queue", invoke_without_command=True)
@json_option
@click.pass_context
def command(ctx: click.Context) -> None:
    """Requests that were drafted here and wait for a better answer."""
    if ctx.invoked_subcommand is None:
        _list(ctx, 50)


@command.command("list")
@click.option("-n", "--limit", default=50, show_default=True, help="How many at most.")
@json_option
@click.pass_context
def list_command(ctx: click.Context, limit: int) -> None:
    """List them: those that wait first, then the newest that are over. A star marks an answer you have not seen."""
    _list(ctx, limit)


def _list(ctx: click.Context, limit: int) -> None:
    at = session(ctx)
    items = at.client().get("/v1/queue", limit=limit)
    at.data(render(items), items)


@command.command("show")
@click.argument("name", metavar="ID")
@json_option
@click.pass_context
def show(ctx: click.Context, name: str) -> None:
    """Show one: its draft, its answer, and what it waits for."""
    at = session(ctx)
    view = at.client().get(f"/v1/queue/{named(name)}")
    item = view["queued"]
    lines = [
        f"{item['intent_id'][:ID_CHARS]}   {item['state']}   {cell(item['reason'])}",
        f"asked {item['created']}   waits for {cell(item['wants'] or 'any peer')}   until {item['expires']}",
        "", *quoted(item["text"]),
    ]
    if view["answer"]:
        lines += ["", f"Answer by {cell(item['ran_on'])}:", *quoted(view["answer"])]
    if view["draft"]:
        lines += ["", "Draft:", *quoted(view["draft"])]
    if view["question"]:
        lines += ["", draw_question(view["question"]), "", f"Decide with: kith queue answer {name}"]
    at.data("\n".join(lines), view)


@command.command("answer")
@click.argument("name", metavar="ID")
@json_option
@click.pass_context
def answer(ctx: click.Context, name: str) -> None:
    """Say whether exactly what one holds may leave. Needs a terminal."""
    at = session(ctx)
    client = at.client()
    question = client.get(f"/v1/queue/{named(name)}")["question"]
    if question is None:
        raise CommandFailure(
            "this request waits for no answer of yours", hint="See: kith queue", code="nothing_to_decide")
    if not at.interactive():
        raise CommandFailure(
            "only you can answer this, on a terminal", hint=f"See what would leave: kith queue show {name}",
            exit_code=4, code="no_terminal")
    allow = confirm("Send it, this once?", draw_question(question))
    item = client.post(f"/v1/queue/{named(name)}/decision", {"allow": allow, "digest": question["digest"]})
    at.data(f"{item['intent_id'][:ID_CHARS]}: {item['state']} ({cell(item['reason'])})", item)


@command.command("cancel")
@click.argument("name", metavar="ID")
@json_option
@click.pass_context
def cancel(ctx: click.Context, name: str) -> None:
    """Take one back; also while it is being answered. Its draft stays in the conversation."""
    at = session(ctx)
    item = at.client().delete(f"/v1/queue/{named(name)}")
    at.data(f"{item['intent_id'][:ID_CHARS]}: {item['state']}", item)


@command.command("clear")
@json_option
@click.pass_context
def clear(ctx: click.Context) -> None:
    """Remove what is over from the list; answers stay in their conversations."""
    at = session(ctx)
    view = at.client().delete("/v1/queue")
    at.data(f"{view['removed']} removed", view)


@command.command("watch")
@json_option
@click.pass_context
def watch(ctx: click.Context) -> None:
    """Print every change until stopped."""
    at = session(ctx)
    client = at.client()
    with contextlib.closing(client.stream("/v1/events?kinds=intent", {})) as events:
        for event in answer_questions(events, client, at):
            if at.as_json:
                print_json(event)
            elif event["event"] == "intent":
                at.data(f"{event['at']}  {event['id'][:ID_CHARS]}  {event['state']}")
            sys.stdout.flush()
