"""Draws the node's questions on a terminal and sends the owner's answers back.

Without a terminal nobody is asked and the answer is no. Must not decide anything itself.
"""

import sys
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from node.cli.client import NodeClient
from node.cli.failure import CommandFailure
from node.cli.output import Session

__all__ = ["answer_questions", "draw_question"]

Event = dict[str, Any]


def draw_question(event: Mapping[str, Any]) -> str:
    """The whole question as the owner must see it before answering."""
    kind = event["kind"]
    if kind == "consent":
        return _consent(event)
    if kind == "approval":
        return _approval(event)
    if kind == "pairing":
        return _pairing(event)
    return str(event.get("text", kind))


def _consent(event: Mapping[str, Any]) -> str:
    lines = [f"This would leave this device for {event['peer']} ({event['why']}):", ""]
    for text in event["texts"]:
        lines += [f"  | {line}" for line in text.splitlines() or [""]]
    lines += ["", f"Replaced before sending: {event['substitutions']}. {event['nets']}"]
    return "\n".join(lines)


def _approval(event: Mapping[str, Any]) -> str:
    lines = [event["text"]]
    for value in event["values"]:
        other = f"  (or: {', '.join(value['alternatives'])})" if value.get("alternatives") else ""
        lines.append(f"  {value['name']:<12} {value['shown']:<40} {value['source']}{other}")
    return "\n".join(lines)


def _pairing(event: Mapping[str, Any]) -> str:
    lines = [
        f"{event['peer_name']} wants to pair ({event['peer_id']}).",
        f"You trust it as {event['trust']}; it trusts this node as {event['their_trust']}.",
    ]
    if event.get("emoji"):
        lines.append("Both screens must show:  " + "   ".join(f"{symbol} {word}" for symbol, word in event["emoji"]))
    return "\n".join(lines)


def _read_reply(event: Mapping[str, Any], session: Session) -> dict[str, Any]:
    if not session.interactive():
        session.say("No terminal to ask on: the answer is no. Run the command in a terminal to decide.")
        return {"allow": False, "by": "no terminal"}
    print(draw_question(event), file=sys.stderr)
    word = {"consent": "Send it, this once?", "approval": "Do it?", "pairing": "Pair?"}.get(event["kind"], "Agree?")
    # a yes counts for exactly what was shown
    named = {name: event[name] for name in ("digest", "key") if name in event}
    return {"allow": _yes(word), "by": "owner, terminal", **named}


def _yes(question: str) -> bool:
    return _line(f"{question} [y/N] ").strip().lower() in {"y", "yes"}


def _line(prompt: str) -> str:
    print(prompt, end="", file=sys.stderr, flush=True)
    line = sys.stdin.readline()
    if not line:
        raise CommandFailure("the terminal closed before an answer", exit_code=4, code="denied")
    return line


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
