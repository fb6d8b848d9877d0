"""This node's own rules as a chooser of kith eval: what a model has to beat on the owner's own requests.

Implements offload.evaluation.chooser.Chooser for cases of node.daemon.history_cases; nothing is run. Must not know what
is right.
"""

from collections.abc import Awaitable, Callable
from datetime import datetime, tzinfo
from typing import Any

from node.agent.rehearsal import Rehearsed
from node.agent.tools.registry import Args, ArgValue
from node.daemon.history_cases import request_of
from offload.evaluation.cases import Case
from offload.evaluation.chooser import Choice

__all__ = ["LadderChooser"]


class LadderChooser:
    """Chooses by the ladder, at the moment when the request was said."""

    def __init__(self, rehearse: Callable[[str, datetime], Awaitable[Rehearsed | None]], zone: tzinfo) -> None:
        self._rehearse = rehearse
        self._zone = zone

    async def compared(self, case: Case) -> Choice | None:
        """The choice; None for a case that is not of the owner's history, or that a skill takes."""
        said = request_of(case, self._zone)
        found = await self._rehearse(*said) if said is not None else None
        if found is None:
            return None
        if not found.tool:
            return Choice(kind="none")
        return Choice(kind="call", name=found.tool, arguments=_as_json(found.args, self._zone))


def _as_json(args: Args, zone: tzinfo) -> dict[str, Any]:
    return {name: _value(value, zone) for name, value in args.items()}


def _value(value: ArgValue, zone: tzinfo) -> Any:
    """As the cases ask for it: moments in the owner's zone, windows with a slash."""
    if isinstance(value, datetime):
        return f"{value.astimezone(zone):%Y-%m-%dT%H:%M}"
    if not isinstance(value, tuple):
        return value
    if len(value) == 2 and isinstance(value[0], datetime) and isinstance(value[1], datetime):
        return f"{_value(value[0], zone)}/{_value(value[1], zone)}"
    return [_value(one, zone) for one in value]
