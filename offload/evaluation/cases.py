"""Function-calling cases out of files in the JSON shape of the Berkeley Function Calling Leaderboard (BFCL). Pure.

A file is one JSON object a line, or one array: id, question (turns of messages), function (one or several), and
ground_truth here or, by id, in a file of answers. An accepted value "" means that the argument may be left out.
Must not know models or how a case is scored.
"""

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Literal, TypeVar

import msgspec

from offload.evaluation.errors import BadCases

__all__ = ["Case", "CaseKind", "Loaded", "Tool", "read_answers", "read_cases", "stratified_sample"]

CaseKind = Literal["simple", "multiple", "irrelevance"]
_CASES_LIMIT = 20_000


class Tool(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One function that is offered; parameters as the file has them."""

    name: str
    description: str = ""
    parameters: dict[str, Any] = {}


class Case(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One request and what counts as right: a tool and, for each argument, the accepted values. None: no tool fits."""

    case_id: str
    kind: CaseKind
    messages: list[tuple[str, str]]
    tools: list[Tool]
    right_tool: str | None = None
    accepted: dict[str, list[Any]] = {}


class Loaded(msgspec.Struct, frozen=True):
    """The usable cases, and how many were left out, by reason."""

    cases: list[Case]
    left_out: dict[str, int]


class _Message(msgspec.Struct):
    role: str
    content: str


class _Function(msgspec.Struct):
    name: str
    description: str = ""
    parameters: dict[str, Any] = {}


class _Line(msgspec.Struct):
    id: str
    question: list[list[_Message]] = []
    function: list[_Function] | _Function = []
    ground_truth: list[dict[str, dict[str, Any]]] | None = None


class _Answer(msgspec.Struct):
    id: str
    ground_truth: list[dict[str, dict[str, Any]]]


T = TypeVar("T")

Truth = Sequence[Mapping[str, Mapping[str, Any]]]


def read_answers(data: bytes) -> dict[str, Truth]:
    """A file of answers by id. Raises BadCases."""
    return {answer.id: answer.ground_truth for answer in _records(data, _Answer)}


def read_cases(data: bytes, answers: Mapping[str, Truth] | None = None) -> Loaded:
    """The cases of one file. answers: for those that have none of their own. Raises BadCases.

    Left out and counted: several turns, several calls at once, no answer known.
    """
    cases: list[Case] = []
    left_out: dict[str, int] = {}
    for line in _records(data, _Line):
        truth = line.ground_truth if line.ground_truth is not None else (answers or {}).get(line.id)
        made = _case(line, truth)
        if isinstance(made, Case):
            cases.append(made)
        else:
            left_out[made] = left_out.get(made, 0) + 1
    if not cases and not left_out:
        raise BadCases()
    return Loaded(cases, left_out)


def stratified_sample(cases: Sequence[Case], size: int) -> list[Case]:
    """At most `size` cases, the kinds in equal parts as far as they reach, always the same ones for the same cases."""
    by_kind: dict[str, list[Case]] = {}
    for case in sorted(cases, key=lambda case: hashlib.sha256(case.case_id.encode()).digest()):
        by_kind.setdefault(case.kind, []).append(case)
    chosen: list[Case] = []
    while len(chosen) < min(size, len(cases)):
        for waiting in by_kind.values():
            if waiting and len(chosen) < size:
                chosen.append(waiting.pop(0))
    wanted = {case.case_id for case in chosen}
    return [case for case in cases if case.case_id in wanted][:size]


def _case(line: _Line, truth: Truth | None) -> Case | str:
    """The case, or why it is left out."""
    functions = line.function if isinstance(line.function, list) else [line.function]
    tools = [Tool(name=one.name, description=one.description, parameters=one.parameters) for one in functions]
    if not tools or not line.question:
        return "no question or no function"
    if len(line.question) > 1:
        return "several turns"
    messages = [(one.role, one.content) for one in line.question[0]]
    if truth is None and "irrelevance" not in line.id:
        return "no answer known"
    if not truth:
        return Case(case_id=line.id, kind="irrelevance", messages=messages, tools=tools)
    if len(truth) > 1 or len(truth[0]) != 1:
        return "several calls at once"
    ((name, accepted),) = truth[0].items()
    if name not in {tool.name for tool in tools}:
        return "the right function is not offered"
    return Case(
        case_id=line.id, kind="simple" if len(tools) == 1 else "multiple", messages=messages, tools=tools,
        right_tool=name,
        accepted={key: values if isinstance(values, list) else [values] for key, values in accepted.items()})


def _records(data: bytes, type_: type[T]) -> Iterable[T]:
    many: Any = list[type_]  # type: ignore[valid-type]
    found: list[T]
    try:
        if data.lstrip()[:1] == b"[":
            found = msgspec.json.decode(data, type=many)
        else:
            found = msgspec.json.Decoder(type_).decode_lines(data)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise BadCases(f"The file holds no function-calling cases: {error}.") from None
    if len(found) > _CASES_LIMIT:
        raise BadCases(f"The file holds more than {_CASES_LIMIT} cases.")
    return found
