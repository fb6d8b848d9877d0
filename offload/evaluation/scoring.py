"""How right one answer is, in parts: the tool, the names of its arguments, their values. Pure.

Values are compared as BFCL's checker does: texts without spaces, punctuation and capitals; an integer where a float is
right; lists in order; objects key by key, each with its accepted values. Unlike there, 5.0 is as good as 5. Must not
know models.
"""

import re
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from offload.evaluation.cases import Case
from offload.evaluation.chooser import Choice

__all__ = ["Score", "matches", "score_choice"]

_IGNORED = re.compile(r"[ ,./\-_*^]")
_LEFT_OUT = ""      # as an accepted value: the argument may be missing


class Score(msgspec.Struct, frozen=True, kw_only=True):
    """One case's result. The parts are within 0 to 1 and mean nothing for a case that no tool fits.

    - right: all of it; for a case that no tool fits: no call was made.
    - tool: the right one was called.
    - argument_names: F1 of the names given against those wanted; optional ones that are left out cost nothing.
    - argument_values: the share of wanted or given arguments whose value is accepted.
    """

    right: bool
    tool: float = 0.0
    argument_names: float = 0.0
    argument_values: float = 0.0


def score_choice(case: Case, choice: Choice) -> Score:
    """The score of one answer. Nothing called, or something unreadable, scores nothing where a tool fits."""
    if case.right_tool is None:
        return Score(right=choice.kind in ("none", "ask"))
    if choice.kind != "call" or choice.name != case.right_tool:
        return Score(right=False)
    given = set(choice.arguments)
    wanted = {name for name, values in case.accepted.items() if name in given or _LEFT_OUT not in values}
    fitting = {
        name for name in wanted & given if any(matches(choice.arguments[name], value) for value in case.accepted[name])
    }
    every = wanted | given
    names = 2 * len(wanted & given) / (len(wanted) + len(given)) if every else 1.0
    values = len(fitting) / len(every) if every else 1.0
    return Score(right=fitting == every, tool=1.0, argument_names=names, argument_values=values)


def matches(given: Any, accepted: Any) -> bool:
    """Whether a value is this accepted one."""
    if isinstance(accepted, bool) or isinstance(given, bool) or accepted is None:
        return given is accepted
    if isinstance(accepted, str):
        return isinstance(given, str) and _plain(given) == _plain(accepted)
    if isinstance(accepted, int | float):
        return isinstance(given, int | float) and given == accepted
    if isinstance(accepted, list):
        return isinstance(given, list) and _lists_match(given, accepted)
    return isinstance(given, dict) and isinstance(accepted, dict) and _objects_match(given, accepted)


def _lists_match(given: Sequence[Any], accepted: Sequence[Any]) -> bool:
    return len(given) == len(accepted) and all(map(matches, given, accepted))


def _objects_match(given: Mapping[str, Any], accepted: Mapping[str, Any]) -> bool:
    if not set(given) <= set(accepted):
        return False
    for key, wanted in accepted.items():
        options = wanted if isinstance(wanted, list) else [wanted]
        if key not in given:
            if _LEFT_OUT not in options:
                return False
        elif not any(matches(given[key], option) for option in options):
            return False
    return True


def _plain(text: str) -> str:
    return _IGNORED.sub("", text).lower().replace("'", '"')
