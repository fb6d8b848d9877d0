"""Requests to the node's own tools (tests/data/agent/own_tools.jsonl) through the whole agent; the owner says no.

What a tool was called with is taken where it is called: a read's run, a write's plan. Must not know how anything is
chosen or read.
"""

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import agent_bank as bank
from agent_memory import Owner
from agent_node import World, fill_folder, world

from node.agent.ports import Answer, AnswerKind
from node.agent.tools.reminders import KeptReminder

__all__ = ["Call", "Household", "Request", "judge", "load", "settle", "state_of"]


@dataclass(frozen=True)
class Request:
    """What is asked and what is right. tool: a tool's or a skill's name; None: nothing here can do it."""

    text: str
    tool: str | None
    args: Mapping[str, Any]
    """The exact arguments; of a skill's write those that the request fixes. A list of texts: any of them."""
    missing: str | None


@dataclass
class Call:
    """One call of a tool."""

    tool: str
    args: dict[str, Any]


@dataclass
class Household:
    """The agent with what it looks after, and the calls of its tools as they come."""

    world: World
    calls: list[Call] = field(default_factory=list)

    async def ask(self, text: str) -> Answer:
        """Ask in a conversation of its own; calls holds what this one called."""
        self.calls.clear()
        return await self.world.ask(text)


def load() -> list[Request]:
    """The hand-checked requests."""
    lines = (bank.DATA / "own_tools.jsonl").read_text(encoding="utf-8").splitlines()
    return [Request(row["text"], row["tool"], row["args"], row["missing"]) for row in map(json.loads, lines)]


async def settle(root: Path) -> Household:
    """A household in an empty folder: calendars, contacts, notes, files, two reminders, two messages."""
    fill_folder(root)
    (root / "notes" / "Party guests.md").write_text("Dana Whitfield\nPriya Nair\nMarcus Oduya\n")
    (root / "files" / "warranty.txt").write_text("Serial number 4711, two years from May.\n")
    (root / "files" / "lease.md").write_text("The deposit is 1,200 euros.\n")
    one = world(root, owner=Owner(lambda effect: False))
    for name, text, due in (("v", "call the vet", datetime(2026, 3, 18, 17, tzinfo=UTC)),
                            ("r", "pay the rent", datetime(2026, 4, 1, 7, tzinfo=UTC))):
        await one.reminders.put(KeptReminder(name, text, due))
    one.postbox.receive("dana", "Is Friday all right for you?")
    one.postbox.receive("priya-phone", "The tickets are here.")
    found = Household(one)
    for tool in one.agent._parts.registry:
        for kind in ("run", "plan"):
            if (real := getattr(tool, kind, None)) is not None:
                setattr(tool, kind, _noting(found.calls, tool.spec.name, real))
    return found


def _noting(calls: list[Call], name: str, real: Any) -> Any:
    async def call(args: Any, *more: Any, **named: Any) -> Any:
        calls.append(Call(name, {key: bank._plain(value, key) for key, value in args.items()}))
        return await real(args, *more, **named)

    return call


def judge(request: Request, answer: Answer, calls: Sequence[Call]) -> tuple[bool, list[str]]:
    """Whether the right tool was found, and what is wrong with the rest; right and nothing wrong is exact."""
    if request.tool is None:
        right = answer.kind is AnswerKind.DECLINED and not calls
        return right, [] if right else [f"{answer.kind}: {answer.tools_used}"]
    if request.missing is not None:
        asked = answer.kind is AnswerKind.ASKED and answer.missing == request.missing
        right = answer.kind is AnswerKind.ASKED and answer.missing != "tool"
        return right, [] if asked else [f"{answer.kind} {answer.missing}, not asked for {request.missing}"]
    right = request.tool in answer.tools_used
    of_skill = not any(call.tool == request.tool for call in calls)
    given = calls[-1].args if calls else {}
    names = set(request.args) if of_skill else {*request.args, *given}
    wrong = [f"{name}: {given.get(name)!r} not {request.args.get(name)!r}" for name in sorted(names)
             if not _fits(given.get(name), request.args.get(name))]
    return right, wrong


def _fits(given: Any, gold: Any) -> bool:
    if isinstance(given, tuple):
        return sorted(given) == sorted(gold or ())
    options = gold if isinstance(gold, list) else [gold]
    return any(str(given).casefold() == str(option).casefold() for option in options)


def state_of(one: World) -> str:
    """A digest of everything that a write would change."""
    parts = [f"{path.relative_to(one.root)}:".encode() + path.read_bytes()
             for path in sorted(one.root.rglob("*")) if path.is_file()]
    memory = repr((sorted(one.reminders.kept), sorted(one.reminders.cancelled), one.postbox.sent,
                   [entry.applied for entry in one.journal.entries.values() if entry.applied]))
    return hashlib.sha256(b"\0".join([*parts, memory.encode()])).hexdigest()
