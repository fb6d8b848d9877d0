"""Draws the node's questions on a terminal and sends the owner's answers back.

Without a terminal nobody is asked and the answer is no. Must not decide anything itself.
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from node.cli.client import NodeClient
from node.cli.failure import CommandFailure
from node.cli.output import Session
from node.cli.printable import cell, printable, quoted
from node.cli.terminal import confirm

__all__ = ["answer_questions", "draw_question"]

Event = dict[str, Any]


def draw_question(event: Mapping[str, Any]) -> str:
    """The whole question as the owner must see it before answering. No text in it can pass for another part of it."""
    kind = event["kind"]
    if kind == "consent":
        return _consent(event)
    if kind == "approval":
        return _approval(event)
    if kind == "pairing":
        return _pairing(event)
    return printable(str(event.get("text", kind)))


def _consent(event: Mapping[str, Any]) -> str:
    lines = [f"This would leave this device for {cell(event['peer'])} ({cell(event['why'])}):", ""]
    for text in event["texts"]:
        lines += quoted(text)
    lines += ["", f"Replaced before sending: {event['substitutions']}. {cell(event['nets'])}"]
    return "\n".join(lines)


def _approval(event: Mapping[str, Any]) -> str:
    lines = [printable(event["text"])]
    for value in event["values"]:
        other = f"  (or: {', '.join(value['alternatives'])})" if value.get("alternatives") else ""
        lines.append(f"  {cell(value['name']):<12} {cell(value['shown']):<40} {cell(value['source'] + other)}")
    lines += [f"  ! {cell(caution)}" for caution in event.get("cautions", ())]
    return "\n".join(lines)


def _pairing(event: Mapping[str, Any]) -> str:
    lines = [
        f"{cell(event['peer_name'])} wants to pair ({cell(event['peer_id'])}).",
        f"You trust it as {event['trust']}; it trusts this node as {event['their_trust']}.",
    ]
    if event.get("emoji"):
        pictures = "   ".join(f"{cell(symbol)} {cell(word)}" for symbol, word in event["emoji"])
        lines.append(f"Both screens must show:  {pictures}")
    return "\n".join(lines)


def _read_reply(event: Mapping[str, Any], session: Session) -> dict[str, Any]:
    if not session.interactive():
        session.say("No terminal to ask on: the answer is no. Run the command in a terminal to decide.")
        return {"allow": False, "by": "no terminal"}
    word = {"consent": "Send it, this once?", "approval": "Do it?", "pairing": "Pair?"}.get(event["kind"], "Agree?")
    # a yes counts for exactly what was shown
    named = {name: event[name] for name in ("digest", "key") if name in event}
    return {"allow": confirm(word, draw_question(event)), "by": "owner, terminal", **named}


def answer_questions(events: Iterable[Event], client: NodeClient, session: Session) -> Iterator[Event]:
    """Pass events through; questions are drawn, asked and answered on the way. Raises CommandFailure for an error
    event."""
    for event in events:
        if event["event"] == "question":
            client.post(f"/v1/questions/{event['id']}", _read_reply(event, session))
        elif event["event"] == "error":
            raise CommandFailure(event["message"], hint=event["hint"], exit_code=event["exit_code"], code=event["code"])
        else:
            yield event
