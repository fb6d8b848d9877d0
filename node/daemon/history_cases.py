"""Cases for kith eval out of what the owner asked for, confirmed and kept. They never leave this node.

A case is one request in the conversations and the write that came of it: approved as shown, in place, not taken back.
Values that nobody said may be left out. Must not know models or how a case is scored.
"""

import re
from collections.abc import Mapping, Sequence
from datetime import datetime, tzinfo
from itertools import pairwise
from typing import Any

from node.agent.effect_json import approval_from_json, effect_from_json, record_from_json
from node.agent.effects import Effect, EffectValue, Json, Origin
from node.agent.ports import AnswerKind
from node.agent.tools.registry import Param, Registry, ToolSpec
from node.clock import from_ms
from node.store import conversations, journal
from node.store.connection import Connection
from node.store.conversations import Turn
from node.store.database import Database
from node.store.journal import Step
from offload.evaluation.cases import Case, Loaded, Tool

__all__ = ["HistoryCases", "cases_of", "request_of"]

_CONVERSATIONS_LIMIT = 1000
_STEPS_LIMIT = 2000
_LEFT_OUT = ""
_OWN = "own-"
_SAID = re.compile(r"\(It is \w+, (?P<at>[0-9T:-]+)\.\)\n(?P<text>.+)", re.DOTALL)
_HINTS = {
    "moment": ("string", "as YYYY-MM-DDTHH:MM"), "minutes": ("integer", "in minutes"), "names": ("array", "full names"),
    "window": ("string", "as YYYY-MM-DDTHH:MM/YYYY-MM-DDTHH:MM"),
}
_WITHIN = frozenset({Origin.REQUEST, Origin.COPIED, Origin.SOURCE})


class HistoryCases:
    """Reads one node's own history."""

    def __init__(self, database: Database, registry: Registry, zone: tzinfo) -> None:
        self._database = database
        self._specs = registry.specs()
        self._zone = zone

    async def load(self) -> Loaded:
        """The cases, newest last, and why other confirmed writes make none."""
        turns, steps = await self._database.read(_read)
        return cases_of(turns, steps, self._specs, self._zone)


def _read(tx: Connection) -> tuple[list[list[Turn]], list[Step]]:
    found = conversations.newest(tx, limit=_CONVERSATIONS_LIMIT)
    return [conversations.turns(tx, one.conversation_id) for one in found], journal.applied(tx, limit=_STEPS_LIMIT)


def cases_of(
    talks: Sequence[Sequence[Turn]], steps: Sequence[Step], specs: Sequence[ToolSpec], zone: tzinfo,
) -> Loaded:
    """One case for each write in place whose request is found. Pure."""
    requests = [pair for talk in talks for pair in _requests(talk)]
    tools = [_tool(spec) for spec in specs]
    by_name = {spec.name: spec for spec in specs}
    cases: list[Case] = []
    left_out: dict[str, int] = {}
    for step in steps:
        made = _case(step, requests, by_name, tools, zone)
        if isinstance(made, Case):
            cases.append(made)
        else:
            left_out[made] = left_out.get(made, 0) + 1
    return Loaded(cases, left_out)


def _requests(talk: Sequence[Turn]) -> list[tuple[Turn, Turn]]:
    """Each thing the owner said with the answer to it; what only completes an earlier request is none by itself."""
    found = []
    for at, (said, answer) in enumerate(pairwise(talk)):
        completes = at > 0 and record_from_json(talk[at - 1].detail).get("kind") == AnswerKind.ASKED.value
        if said.role == "user" and answer.role != "user" and not completes:
            found.append((said, answer))
    return found


def _case(
    step: Step, requests: Sequence[tuple[Turn, Turn]], specs: Mapping[str, ToolSpec], tools: list[Tool], zone: tzinfo,
) -> Case | str:
    """The case, or why there is none."""
    effect = effect_from_json(step.plan)
    spec = specs.get(effect.tool)
    if spec is None:
        return "the tool is gone"
    if step.decision is None or approval_from_json(step.decision).chosen:
        return "another value was chosen while approving"
    found = [
        said for said, answer in requests
        if said.at_ms <= step.created_ms <= answer.at_ms and effect.tool in _tools_used(answer)
    ]
    if len(found) != 1:
        return "its request is not in one message"
    said = found[0]
    at = from_ms(said.at_ms).astimezone(zone)
    return Case(
        case_id=f"{_OWN}{step.number}", kind="multiple", tools=tools, right_tool=effect.tool,
        messages=[("user", f"(It is {at:%A}, {at:%Y-%m-%dT%H:%M}.)\n{said.text}")],
        accepted=_accepted(effect, spec, zone))


def request_of(case: Case, zone: tzinfo) -> tuple[str, datetime] | None:
    """What the owner said and when, of a case of this module; None for another case."""
    found = _SAID.fullmatch(case.messages[0][1]) if case.case_id.startswith(_OWN) and case.messages else None
    return (found["text"], datetime.fromisoformat(found["at"]).replace(tzinfo=zone)) if found else None


def _tools_used(answer: Turn) -> Sequence[object]:
    used = record_from_json(answer.detail).get("tools")
    return used if isinstance(used, list) else []


def _accepted(effect: Effect, spec: ToolSpec, zone: tzinfo) -> dict[str, list[Any]]:
    accepted: dict[str, list[Any]] = {}
    for name, param in spec.params.items():
        value = next((one for one in effect.values if one.name == name), None)
        if value is None:
            continue
        forms = _forms(value, param, zone)
        needed = name in spec.required or value.origin in _WITHIN
        accepted[name] = forms if needed else [*forms, _LEFT_OUT]
    return accepted


def _forms(value: EffectValue, param: Param, zone: tzinfo) -> list[Any]:
    """The ways in which a right value may be written."""
    if param.reads == "moment" and isinstance(value.value, str):
        moment = datetime.fromisoformat(value.value)
        local = moment.astimezone(zone)
        return [
            f"{local:%Y-%m-%dT%H:%M}", f"{local:%Y-%m-%dT%H:%M:%S}", local.isoformat(), moment.isoformat(),
            f"{local:%Y-%m-%d %H:%M}",
        ]
    if param.reads == "names" and isinstance(value.value, list | tuple):
        names = [_name(one) for one in value.value]
        return [names, [name.partition(" ")[0] for name in names]]
    return [value.value]


def _name(person: Json) -> str:
    return str(person.get("name", "")) if isinstance(person, Mapping) else str(person)


def _tool(spec: ToolSpec) -> Tool:
    properties: dict[str, Any] = {}
    for name, param in spec.params.items():
        kind, hint = _HINTS.get(param.reads, ("string", ""))
        properties[name] = {"type": kind, "description": f"{param.description}, {hint}" if hint else param.description}
        if kind == "array":
            properties[name]["items"] = {"type": "string"}
        if param.choices:
            properties[name]["enum"] = list(param.choices)
    return Tool(
        name=spec.name, description=spec.description,
        parameters={"type": "dict", "properties": properties, "required": list(spec.required)})
