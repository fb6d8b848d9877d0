"""kith status: the node and its peers on one screen."""

from typing import Any

import click

from node.cli.options import json_option, session
from node.cli.output import table
from node.counting import counted


def _duration(seconds: float) -> str:
    minutes = int(seconds // 60)
    return f"{minutes // 60} h {minutes % 60} min" if minutes >= 60 else f"{minutes} min {int(seconds % 60)} s"


def render(view: dict[str, Any]) -> str:
    """The screen as text."""
    stage = "" if view["stage"] == "ready" else f"   ({view['stage']})"
    lines = [
        f"{view['name']}   {view['mode']} mode   up {_duration(view['uptime_s'])}   "
        f"model {view['model'] or 'none'} {view['model_state']}   {view['queued_messages']} queued{stage}",
        f"id {view['peer_id']}",
    ]
    if view["addresses"]:
        lines.append("listening " + "  ".join(view["addresses"]))
    if view["stage"] == "locked":     # nothing else is known while the databases are closed
        return "\n".join([*lines, "", "The data is closed. Unlock it: kith unlock"])
    if view["peers"]:
        rows = [
            [peer["name"], peer["trust"], peer["route"], peer["model"] or "-", peer["last_contact"] or "never"]
            for peer in view["peers"]
        ]
        lines += ["", table(rows, ["PEER", "TRUST", "STATE", "MODEL", "LAST"])]
    else:
        lines += ["", "No peers yet. Pair with: kith pair"]
    if view["waiting_requests"] or view["new_answers"]:
        lines += ["", _queue(view)]
    if view["clock_doubt"]:
        lines += ["", f"DATE   {view['clock_doubt']}      details: kith doctor"]
    lines += [
        "",
        f"LEFT THIS DEVICE TODAY   {counted(view['left_today_entries'], 'request')}, "
        f"{counted(view['left_today_bytes'], 'byte')}; "
        f"personal values kept back: {view['kept_back_today']}      details: kith ledger",
    ]
    return "\n".join(lines)


def _queue(view: dict[str, Any]) -> str:
    waiting, undecided, new = view["waiting_requests"], view["undecided_requests"], view["new_answers"]
    parts = [counted(waiting, "request waits", "requests wait") + " for a better answer"] if waiting else []
    parts += [f"{undecided} of them for your word"] if undecided else []
    parts += [counted(new, "better answer is", "better answers are") + " new"] if new else []
    return f"{', '.join(parts)}      details: kith queue"


@click.command("status")
@json_option
@click.pass_context
def command(ctx: click.Context) -> None:
    """The node and its peers on one screen."""
    at = session(ctx)
    view = at.client().get("/v1/status")
    at.data(render(view), view)
