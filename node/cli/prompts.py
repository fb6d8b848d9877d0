"""Draws the node's questions on a terminal and sends the owner's answers back.

Without a terminal nobody is asked and the answer is no. Must not decide anything itself.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from node.cli.client import NodeClient
from node.cli.failure import CommandFailure
from node.cli.output import Session
from node.cli.printable import cell, printable, quoted
from node.cli.terminal import confirm, pick

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
    clear = event.get("level") == "clear"
    lines = [
        f"This would leave this device for {cell(event['peer'])} ({cell(event['why'])})"
        + (", IN CLEAR:" if clear else ":"), "",
    ]
    for text in event.get("diff") or [{"leaves": one, "marks": []} for one in event["texts"]]:
        lines += quoted(text["leaves"]) if clear else _diff(text["leaves"], text["marks"])
    named = [f"{item['stands_for']} ({item['type'].lower()})" for item in event["replaced"]] if clear else []
    if named:
        lines += ["", f"In clear in it: {cell(', '.join(dict.fromkeys(named)))}."]
    lines += ["", f"Replaced before sending: {0 if clear else event['substitutions']}. {cell(event['nets'])}"]
    return "\n".join(lines)


def _diff(leaves: str, marks: Sequence[Mapping[str, Any]]) -> list[str]:
    """The text as it would leave; a line with placeholders in it stands below the line as it is here."""
    lines: list[str] = []
    start = 0
    for line in leaves.removesuffix("\n").split("\n"):
        end = start + len(line)
        here = line
        for mark in sorted(marks, key=lambda mark: -int(mark["start"])):
            if start <= mark["start"] and mark["end"] <= end:
                here = here[: mark["start"] - start] + mark["stands_for"] + here[mark["end"] - start :]
        if here == line:
            lines += quoted(line)
        else:
            lines += [f"  - {cell(here)}", f"  + {cell(line)}"]
        start = end + 1
    return lines


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
    # a yes counts for exactly what was shown
    named = {name: event[name] for name in ("digest", "key") if name in event}
    if event["kind"] == "consent":
        return {"by": "owner, terminal", **named, **_read_consent(event)}
    word = {"approval": "Do it?", "pairing": "Pair?"}.get(event["kind"], "Agree?")
    return {"allow": confirm(word, draw_question(event)), "by": "owner, terminal", **named}


def _read_consent(event: Mapping[str, Any]) -> dict[str, Any]:
    """Once, no, never again, or the same in clear, which is asked about once more."""
    words = ["never", *(["clear"] if "clear" in event.get("choices", ()) else [])]
    more = ("; clear: without placeholders" if "clear" in words else "") + "; never: no, and do not ask again"
    picked = pick(f"Send it, this once? (y: yes{more})", words, draw_question(event))
    choice = {"never": "deny_always", "clear": "clear"}.get(picked, "once")
    return {"allow": picked in ("yes", "clear"), "choice": choice}


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
