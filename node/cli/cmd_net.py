"""kith net: how this node is reached and reaches its peers, and what to do about it."""

from typing import Any

import click

from node.cli.options import json_option, session
from node.cli.output import table
from node.cli.printable import cell
from node.counting import counted


def render(view: dict[str, Any]) -> str:
    """Reachability as text."""
    lines = [f"mode       {view['mode']}"]
    lines += _listed("listening", view["listening"]) or ["listening  nowhere"]
    lines += _listed("told", view["told"])
    lines += _listed("seen at", view["seen_at"])
    lines.append(f"router     {cell(view['mapping'])}" + "".join(f"  {cell(one)}" for one in view["mapped"]))
    lines.append(f"announces  {cell(view['discovery'])}")
    for relay in view["relays"]:
        state = "can be called through it" if relay["place"] else cell(relay["problem"] or "is being asked")
        lines.append(f"relay      {cell(relay['name'])}: {state}")
    if view["carrying"]:
        kept = f", places for {', '.join(map(cell, view['places']))}" if view["places"] else ""
        lines.append(f"carries    {counted(view['circuits'], 'circuit')} for peers that were granted relay{kept}")
    lines += _turned_away(view["turned_away"])
    if view["peers"]:
        lines += ["", table([_row(peer) for peer in view["peers"]], ["PEER", "WAY", "ADDRESS", "RTT"])]
    lines += ["", *(f"- {cell(one)}" for one in view["advice"])] if view["advice"] else []
    return "\n".join(lines)


def _listed(label: str, addresses: list[str]) -> list[str]:
    return [f"{label if not place else '':<10} {cell(one)}" for place, one in enumerate(addresses)]


def _turned_away(away: dict[str, Any]) -> list[str]:
    said = [
        counted(away["calls"], "call") + " that came too fast" if away["calls"] else "",
        counted(away["strangers"], "caller") + " who is not paired" if away["strangers"] else "",
        counted(away["streams"], "stream") + " opened too fast" if away["streams"] else "",
    ]
    return ["turned away " + ", ".join(filter(None, said)) + " since the start"] if any(said) else []


def _row(peer: dict[str, Any]) -> list[str]:
    rtt = "" if peer["rtt_ms"] is None else f"{peer['rtt_ms']:.1f} ms"
    return [peer["name"], peer["route"] or "away", "" if peer["route"].startswith("relayed") else peer["address"], rtt]


@click.command("net")
@json_option
@click.pass_context
def command(ctx: click.Context) -> None:
    """Explain how this node is reached, how it reaches each peer, and what to do next.

    Nothing is sent for it. WAY: lan, direct, or relayed via the peer that carries the sealed traffic.
    """
    at = session(ctx)
    view = at.client().get("/v1/net")
    at.data(render(view), view)
