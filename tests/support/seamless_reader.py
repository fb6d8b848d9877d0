"""A reader of one answer who acts in the middle of it, and what the machines of a household are at meanwhile."""

import contextlib
import json
import signal
from collections.abc import Callable
from typing import Any

import psutil
from running_nodes import Household, until

from node.cli.demo.owner import Event
from node.cli.failure import CommandFailure

__all__ = ["Reader", "decodes", "frozen", "ran_on"]


class Reader:
    """Reads one answer, and does something once when so many characters are there."""

    def __init__(self, house: Household, text: str, **options: Any) -> None:
        self.house, self.text, self.options = house, text, options
        self.shown = ""
        self.request_id = ""
        self.answer: Event | None = None
        self.failure: CommandFailure | None = None
        self.notes: list[str] = []

    def read(self, after_chars: int, act: Callable[[], None]) -> "Reader":
        """Until the answer, or the end of the node that was asked."""
        acted = False
        owner = self.house.owner
        try:
            with contextlib.closing(owner.follow(self.text, **self.options)) as events:
                for event in events:
                    self._take(event)
                    if not acted and len(self.shown) >= after_chars:
                        acted = True
                        act()
        except CommandFailure as failure:
            self.failure = failure
        assert acted, f"the answer was too short for the test: {self.failure} {self.answer} {self.notes}"
        return self

    def go_on(self) -> "Reader":
        """Read along from the character where the reading stopped."""
        path = f"/v1/answers/{self.request_id}/follow"
        for event in self.house.phone.client().stream(path, {"from_char": len(self.shown)}):
            self._take(event)
        return self

    def _take(self, event: Event) -> None:
        kind = event["event"]
        if kind == "request":
            self.request_id = event["id"]
        elif kind == "delta":
            self.shown += event["text"]
        elif kind == "status":
            self.notes.append(event["text"])
        elif kind == "answer":
            self.answer = event

    def whole(self) -> Event:
        """The answer, after what must hold for every one."""
        assert self.failure is None, self.failure
        answer = self.answer
        assert answer is not None
        assert answer["text"] == self.shown
        turns = self.house.phone.client().get(f"/v1/conversations/{answer['conversation_id']}")["turns"]
        assert [turn["text"] for turn in turns if turn["role"] == "assistant"][-1] == self.shown
        assert self.house.phone.client().get("/v1/answers") == []
        return answer


def frozen(house: Household, process: psutil.Process) -> Callable[[], None]:
    """Something that stops a process."""
    return lambda: process.send_signal(signal.SIGSTOP)


def ran_on(answer: Event) -> list[str]:
    return [leg["ran_on"] for leg in answer["legs"]]


def decodes(house: Household) -> int:
    """Decodes of the home PC's worker so far, once nothing is at work there."""
    def look() -> int | None:
        path = house.home_pc.home / "decodes.jsonl"
        lines = [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []
        told = [line for line in lines if line["what"] == "pong"]
        return told[-1]["decodes"] if told and told[-1]["running"] == 0 else None

    return until(look, "the home PC's engine rests")
