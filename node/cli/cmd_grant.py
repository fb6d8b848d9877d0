"""kith grant: what a peer may do here, how much of it was used, changing it, taking it back."""

from datetime import datetime
from typing import Any

import click

from node.cli.client import named
from node.cli.options import json_option, session
from node.counting import counted


def render(view: dict[str, Any]) -> str:
    """One grant as text; times in this machine's zone."""
    head = f"{view['peer']}   trusted as {view['trust']}   "
    if view["state"] == "none":
        lines = [head + "may do nothing here"]
    else:
        over = "until" if view["state"] == "in force" else "RAN OUT"
        lines = [
            head + f"grant {view['epoch']}",
            f"  services       {', '.join(view['services']) or 'none'}",
            f"  {over:<14} {_local(view['until'])}",
        ]
        if view["hours"] != "all":
            lines.append(f"  hours          {view['hours']} ({view['zone']})")
        if "infer" in view["services"]:
            lines += [
                f"  models         {', '.join('all' if one == '*' else one for one in view['models']) or 'none'}",
                f"  tokens a day   {view['tokens_per_day']:,}",
                f"  context        {view['max_context']:,} tokens",
                f"  at once        {view['max_concurrency']:,}",
            ]
    lines.append(
        f"  used today     {counted(view['tokens_today'], 'token')} in "
        f"{counted(view['requests_today'], 'request')}; "
        f"{view['running']:,} running"
    )
    if view["counts_with"]:
        lines.append(f"  together with  {', '.join(view['counts_with'])}")
    lines += [f"  refused        {_refusal(refusal)}" for refusal in view["refusals"][-5:]]
    if view["allows_us"] is not None:
        lines.append(f"  it allows us   {', '.join(view['allows_us']) or 'nothing'}")
    if view.get("allowed_us"):
        label = "it allows us" if view["allows_us"] is None else ""
        lines.append(f"  {label:<14} {_terms(view['allowed_us'])}")
    return "\n".join(lines)


def _terms(view: dict[str, Any]) -> str:
    hours = "" if view["hours"] == "all" else f", at {view['hours']} ({view['zone']})"
    infer = (
        f"{view['tokens_per_day']:,} tokens a day, {view['max_context']:,} of context, "
        f"{view['max_concurrency']:,} at once"
        if "infer" in view["services"] else ", ".join(view["services"]) or "nothing"
    )
    return f"{infer}{hours}, until {_local(view['until'])}"


def _refusal(view: dict[str, Any]) -> str:
    times = f" ({view['times']:,} times)" if view["times"] > 1 else ""
    return f"{_local(view['at'])}  {view['service']}: {view['text']}{times}"


def _local(moment: str) -> str:
    return datetime.fromisoformat(moment).astimezone().strftime("%Y-%m-%d %H:%M")


def _names(_: click.Context, __: click.Parameter, value: str | None) -> list[str] | None:
    return None if value is None else [name.strip() for name in value.split(",") if name.strip()]


@click.group("grant")
def command() -> None:
    """Show, change or revoke what a peer may do here."""


@command.command("show")
@click.argument("peer")
@json_option
@click.pass_context
def show(ctx: click.Context, peer: str) -> None:
    """What PEER may do here, and what it used today (UTC)."""
    at = session(ctx)
    view = at.client().get(f"/v1/peers/{named(peer)}/grant")
    at.data(render(view), view)


@command.command("edit")
@click.argument("peer")
@click.option("--services", callback=_names, metavar="LIST", help="Of infer, search, mail, models, relay; '' for none.")
@click.option("--models", callback=_names, metavar="LIST", help="Names or digests, with commas; * for all.")
@click.option("--tokens-per-day", type=click.IntRange(min=0), help="Prompt and answer together, per UTC day.")
@click.option("--max-context", type=click.IntRange(min=0), metavar="TOKENS", help="Longest prompt with its answer.")
@click.option("--max-concurrency", type=click.IntRange(min=0), metavar="N", help="Requests at once.")
@click.option("--hours", metavar="SPANS", help="22:00-07:00,12:00-13:30 by this machine's clock; all; none.")
@click.option("--counts-with", metavar="PEER", help="Another device of the same person; '' for none.")
@click.option("--until", metavar="DATE", help="2027-01-31 (its end) or 2027-01-31T18:00.")
@json_option
@click.pass_context
def edit(ctx: click.Context, /, peer: str, **given: Any) -> None:
    """Change what PEER may do here. What is not said stays as it is.

    PEER is told at once. Running answers that the new grant does not cover are cut.
    """
    at = session(ctx)
    view = at.client().patch(f"/v1/peers/{named(peer)}/grant", {key: it for key, it in given.items() if it is not None})
    at.data(render(view), view)


@command.command("revoke")
@click.argument("peer")
@json_option
@click.pass_context
def revoke(ctx: click.Context, peer: str) -> None:
    """Take PEER's grant back and cut what runs. It stays paired, and may do nothing."""
    at = session(ctx)
    view = at.client().delete(f"/v1/peers/{named(peer)}/grant")
    name = view["peer"]
    again = f"kith grant edit {name} --services LIST"
    at.data(f"{name} may do nothing here now. To grant it something again: {again}", view)
