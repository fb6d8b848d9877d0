"""The requests in other languages with what is right, and what the agent makes of one; nothing is run."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

import agent_bank as bank
from agent_node import World

from node.agent.foreign import understand
from node.agent.tools.registry import ArgValue

__all__ = ["LANGUAGES", "Outcome", "Request", "load", "outcome"]

LANGUAGES = ("German", "French", "Spanish", "Italian")


@dataclass(frozen=True)
class Request:
    """One request. tool None: it is not served in this language, and must lead to no call."""

    language: str
    text: str
    tool: str | None
    args: Mapping[str, str]


@dataclass(frozen=True)
class Outcome:
    """What the agent makes of a request."""

    right_tool: bool
    exact: bool
    called: str


def load() -> Sequence[Request]:
    lines = (Path(bank.DATA) / "languages.jsonl").read_text(encoding="utf-8").splitlines()
    return [Request(**json.loads(line)) for line in lines]


async def outcome(one: World, request: Request) -> Outcome:
    """The tool that would be called, and whether its values are the right ones too."""
    foreign = understand(request.text)
    called, args = "", {}
    if foreign is None or foreign.english:
        found = await one.agent.rehearse(foreign.english if foreign else request.text, bank.NOW)
        assert found is not None, "a skill takes it"
        called, args = found.tool, dict(found.args)
    right = called == (request.tool or "")
    exact = right and all(_same(args.get(name), value) for name, value in request.args.items())
    return Outcome(right, exact, called)


def _same(found: ArgValue | None, gold: str) -> bool:
    if isinstance(found, datetime):
        return _local(found) == gold
    if isinstance(found, tuple):
        return "/".join(_local(edge) for edge in found if isinstance(edge, datetime)) == gold
    return isinstance(found, str) and found.strip(" .?").casefold() == gold.casefold()


def _local(moment: datetime) -> str:
    return f"{moment.astimezone(bank.ZONE):%Y-%m-%dT%H:%M}"
