"""kith mode: show, follow or switch between offline, lan and online."""

import contextlib
import sys
from typing import Any

import click

from node.cli.options import json_option, session
from node.cli.output import Session, print_json
from node.cli.printable import cell
from node.cli.prompts import answer_questions


def render(view: dict[str, Any]) -> str:
    """The mode, why, and what it means right now, as text."""
    chosen = "" if view["effective"] == view["chosen"] else f"you chose {view['chosen']}   "
    lines = [f"{view['effective']}   {chosen}({cell(view['why'])})"]
    if view["listening"]:
        lines.append("listening " + "  ".join(map(cell, view["listening"])))
    if view["effective"] != "offline":
        lines.append(f"peers here: {view['peers_here']}")
    hints = [one["text"] for one in view["in_the_way"]]
    if view["on_battery"] and not any("battery" in hint for hint in hints):
        lines.append(f"on battery: {view['battery_percent']} %")
    lines.extend(map(_line, view["changes"][-5:]))
    return "\n".join(lines)


def _line(change: dict[str, Any]) -> str:
    return f"{change['at']}  {change['before']} -> {change['effective']}  ({cell(change['why'])})"


@click.command("mode")
@click.argument("mode", required=False, type=click.Choice(["offline", "lan", "online"]))
@click.option("--watch", is_flag=True, help="Print every change until stopped, and peers that come and go.")
@json_option
@click.pass_context
def command(ctx: click.Context, mode: str | None, watch: bool) -> None:
    """Show the mode and why it is so, follow it, or switch it.

    offline: no internet socket at all. lan: trusted peers on the local network. online: anywhere.
    """
    at = session(ctx)
    client = at.client()
    if mode is not None and watch:
        raise click.UsageError("--watch shows changes; it goes without a mode.")
    if mode is not None:
        reply = client.put("/v1/mode", {"mode": mode})
        at.data(f"mode: {reply['from']} -> {reply['to']} ({reply['text']})", reply)
        return
    view = client.get("/v1/mode")
    at.data(render(view), {"mode": view["effective"], **view})
    if watch:
        _follow(at)


def _follow(at: Session) -> None:
    client = at.client()
    sys.stdout.flush()
    with contextlib.closing(client.stream("/v1/events?kinds=mode,peer", {})) as events:
        for event in answer_questions(events, client, at):
            if at.as_json:
                print_json(event)
            elif event["event"] == "mode":
                at.data(_line(event))
            elif event["event"] == "peer":
                at.data(f"{event['at']}  {cell(event['peer'])} is {'here' if event['here'] else 'gone'}")
            sys.stdout.flush()  # whoever reads a pipe wants each change when it happens
