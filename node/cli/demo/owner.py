"""Plays the owner over the normal API: looks at each question, checks what it shows, and answers.

Says no to anything that shows a planted value to a peer or an effect that was not asked for. There is no way round
the questions:
this is an owner with good eyes, not a switch. Must not know the steps.
"""

import contextlib
import threading
from collections.abc import Generator, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from node.cli.client import NodeClient
from node.cli.demo.checks import find_canaries
from node.cli.failure import CommandFailure

__all__ = ["Owner", "pair_two"]

Event = dict[str, Any]
PAIRING_TIMEOUT_S = 60.0


@dataclass
class Owner:
    """Answers the questions of one node and remembers what was shown and decided."""

    client: NodeClient
    decisions: list[str] = field(default_factory=list)
    events: list[Event] = field(default_factory=list)

    def ask(self, text: str, *, expect: Mapping[str, str] | None = None, **options: Any) -> Event:
        """Put a request to the agent; the answer event comes back. expect: values that an approval must show."""
        for event in self.follow(text, expect=expect, **options):
            if event["event"] == "answer":
                return event
        raise AssertionError("follow() ends in an answer or raises")

    def follow(
        self, text: str, *, expect: Mapping[str, str] | None = None, **options: Any
    ) -> Generator[Event, None, None]:
        """The events of one request as they come, each question answered; the answer is the last. Closing it ends the
        request at the node. Raises CommandFailure when there will be no answer."""
        with contextlib.closing(self.client.stream("/v1/ask", {"text": text, **options})) as events:
            for event in events:
                self.events.append(event)
                if event["event"] == "question":
                    self.client.post(f"/v1/questions/{event['id']}", self._decide(event, expect or {}))
                elif event["event"] == "error":
                    raise CommandFailure(
                        event["message"], hint=event["hint"], exit_code=event["exit_code"], code=event["code"]
                    )
                yield event
                if event["event"] == "answer":
                    return
        raise CommandFailure("the node ended the request without an answer", hint="See: kith logs", code="no_answer")

    def _decide(self, event: Event, expect: Mapping[str, str]) -> dict[str, Any]:
        if event["kind"] == "consent":
            shown = find_canaries("\n".join(event["texts"]))
            allow = not shown
            self.decisions.append(
                f"consent for {event['peer']}: {event['substitutions']} values replaced in the shown text, "
                + ("none of the planted values in it: allowed" if allow else f"it shows {shown}: denied")
            )
            return {"allow": allow, "digest": event["digest"], "by": "demo owner"}
        if event["kind"] == "approval":
            values = {value["name"]: value["shown"] for value in event["values"]}
            wrong = [name for name, part in expect.items() if part.lower() not in values.get(name, "").lower()]
            self.decisions.append(
                f"approval of {event['tool']}: "
                + ("shows what was asked for: approved" if not wrong else f"{wrong} differ: denied")
            )
            return {"allow": not wrong, "key": event["key"], "by": "demo owner"}
        return {"allow": False, "by": "demo owner"}


def pair_two(
    shower: NodeClient, typist: NodeClient, *, by_address: bool = True
) -> tuple[Event, Event, list[str]]:
    """Pair two nodes by spoken code, comparing the pictures on both screens. Raises CommandFailure. by_address: the
    owner types the address as well; otherwise the node looks for the window on the local network.

    Returns the paired events of the side that showed the code and the side that typed it, and the pictures both saw.
    """
    pictures: dict[str, list[str]] = {}
    seen = threading.Barrier(2, timeout=PAIRING_TIMEOUT_S)
    results: dict[str, Event] = {}
    faults: list[Exception] = []
    waiting = threading.Event()
    shown: dict[str, str] = {}

    def answer(side: str, client: NodeClient, event: Event) -> None:
        pictures[side] = [word for _, word in event["emoji"]]
        seen.wait()
        same = pictures["shower"] == pictures["typist"] and len(pictures[side]) > 0
        client.post(f"/v1/questions/{event['id']}", {"allow": same, "by": "demo owner"})

    def follow(side: str, client: NodeClient, events: Iterator[Event]) -> None:
        try:
            for event in events:
                if event["event"] == "waiting":
                    shown.update(code=event["code"], at=event["at"])
                    waiting.set()
                elif event["event"] == "question":
                    answer(side, client, event)
                elif event["event"] == "paired":
                    results[side] = event
                    return
                elif event["event"] in ("error", "expired"):
                    raise CommandFailure(event.get("message") or event["text"])
        except (CommandFailure, OSError, threading.BrokenBarrierError) as fault:
            faults.append(fault)
            waiting.set()
            seen.abort()

    first = threading.Thread(
        target=follow, args=("shower", shower, shower.stream("/v1/pair/open", {"trust": "self"})), daemon=True
    )
    first.start()
    if not waiting.wait(PAIRING_TIMEOUT_S) or faults:
        raise CommandFailure(f"no pairing code was shown: {faults[0] if faults else 'time ran out'}")
    body = {"code": shown["code"], "at": shown["at"] if by_address else None, "trust": "home"}
    follow("typist", typist, typist.stream("/v1/pair/join", body))
    first.join(PAIRING_TIMEOUT_S)
    if faults or set(results) != {"shower", "typist"}:
        raise CommandFailure(f"the nodes did not pair: {faults[0] if faults else 'no result'}")
    return results["shower"], results["typist"], pictures["shower"]
