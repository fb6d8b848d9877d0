"""kith pair: open a window and show code and link, or answer the other side's."""

import math
from typing import Any

import click

from node.cli.failure import CommandFailure
from node.cli.options import json_option, session
from node.cli.output import Session
from node.cli.prompts import answer_questions
from node.cli.terminal import choose


def _draw_waiting(event: dict[str, Any], at: Session) -> None:
    at.say("On the other device, type:")
    where = f" --at {event['at']}" if event.get("at") else ""
    at.say(f"\n    kith pair {event['code']}{where}\n")
    at.say("or scan, or paste this link there:")
    if at.interactive():
        import segno

        segno.make(event["link"], error="l").terminal(compact=True)
    at.say(f"\n    kith pair '{event['link']}'\n")
    if event.get("note"):
        at.say(event["note"])
    minutes = math.ceil(event["expires_s"] / 60)
    at.say(f"The code works once and for {minutes} minute{'' if minutes == 1 else 's'}. Waiting...")


@click.command("pair")
@click.argument("code", required=False)
@click.option("--at", metavar="HOST:PORT", help="Where the other node listens; needed with a spoken code.")
@click.option(
    "--trust",
    type=click.Choice(["self", "home", "friend"]),
    help="Trust the other side as this; you are asked otherwise.",
)
@json_option
@click.pass_context
def command(ctx: click.Context, code: str | None, at: str | None, trust: str | None) -> None:
    """Pair with another node.

    Without CODE: open a window of ten minutes here and show a code. With CODE (spoken code or link): join the other
    side. Both sides ask on their terminal before anything is kept.
    """
    here = session(ctx)
    client = here.client()
    if not here.interactive():      # before a code is used up: without a yes on both sides there is no pairing
        raise CommandFailure(
            "nobody was called, and no code was used: pairing asks you to compare the pictures on both screens, and "
            "there is no terminal to ask on",
            hint="Run the same in a terminal", exit_code=4, code="no_terminal")
    if trust is None:
        trust = choose("Trust the other node as", ("home", "self", "friend"), "friend")
    path, body = (
        ("/v1/pair/join", {"code": code, "at": at, "trust": trust}) if code else ("/v1/pair/open", {"trust": trust})
    )
    for event in answer_questions(client.stream(path, body), client, here):
        if event["event"] == "waiting":
            _draw_waiting(event, here)
            if here.as_json:
                here.data("", event)
        elif event["event"] == "status":
            here.say(event["text"])
        elif event["event"] == "paired":
            here.data(
                f"Paired with {event['name']} as {event['trust']}. It trusts this node as {event['their_trust']}.",
                event,
            )
            return
        elif event["event"] == "expired":
            raise CommandFailure(
                event["text"], hint="Open a new window with: kith pair", exit_code=6, code="pairing_expired"
            )
    raise CommandFailure(
        "the pairing ended without a result", hint="Try again with a new code: kith pair", exit_code=6, code="pairing"
    )
