"""Arguments as the tool's schema wants them, from values that were typed by a format or written as bare text.

Values change type only where that means the same; what fits no schema stays as it is and is named as a fault. Must not
know formats, parsers or models.
"""

import operator
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from offload.engine.deltas import Fault, Repair, ToolCall
from offload.engine.formats.loose_values import read_json
from offload.engine.formats.tools import DEPTH_LIMIT, Schema, Tool, kinds_of

__all__ = ["RawCall", "alternatives", "finish_call", "fixed_values"]

_TRUE, _FALSE, _NULL = frozenset({"true", "True", "TRUE"}), frozenset({"false", "False"}), frozenset({"null", "None"})
_TEXT_LIMIT_DIGITS = 300


@dataclass(frozen=True, slots=True)
class RawCall:
    """A call as a format read it. written: the values are bare text, their types to be found by the schema."""

    name: str
    arguments: Mapping[str, Any]
    positional: tuple[Any, ...] = ()
    written: bool = False
    repairs: tuple[Repair, ...] = ()


@dataclass(frozen=True, slots=True)
class _Fit:
    """A value tried against a schema."""

    value: Any
    fits: bool = True
    changed: bool = False


def finish_call(raw: RawCall, tools: Sequence[Tool]) -> ToolCall:
    """The call with typed arguments; everything wrong with it is in its repairs and faults."""
    tool = next((tool for tool in tools if tool.name == raw.name), None)
    given = dict(raw.arguments)
    repairs = dict.fromkeys(raw.repairs)
    faults: list[Fault] = []
    if tool is None:
        faults.append(Fault("unknown_tool"))
        tool = Tool(raw.name, "", {})
    if raw.positional:
        repairs["positional"] = None
        free = [name for name in tool.properties if name not in given]
        for number, value in enumerate(raw.positional):
            given[free[number] if number < len(free) else f"argument_{number + 1}"] = value
    arguments: dict[str, Any] = {}
    for name, value in given.items():
        schema = tool.properties.get(name)
        if schema is None:
            if tool.properties or not faults:
                faults.append(Fault("unknown_argument", name))
            fit = _Fit(_guess(value) if raw.written else value)
        else:
            fit = _read(value, schema, tool.parameters) if raw.written else _fit(value, schema, tool.parameters)
        if fit.changed:
            repairs["type"] = None
        if not fit.fits:
            faults.append(Fault("bad_value", name))
        arguments[name] = fit.value
    faults += [Fault("missing_argument", name) for name in tool.required if name not in arguments]
    return ToolCall(raw.name, arguments, tuple(repairs), tuple(faults))


def _read(text: Any, schema: Schema, whole: Schema) -> _Fit:
    """A bare text by the first type it fits, in the order of the schema; a text is always text."""
    if not isinstance(text, str):
        return _fit(text, schema, whole)
    options = alternatives(schema, whole)
    fixed = [value for option in options for value in fixed_values(option)]
    for value in fixed:
        if text == value or (not isinstance(value, str) and _same(_guess(text), value)):
            return _Fit(value)
    if fixed:
        return _fit(text.strip(), schema, whole)
    kinds = [kind for option in options for kind in kinds_of(option)]
    if not kinds:
        return _Fit(_guess(text))
    if "null" in kinds and text.strip() in _NULL:
        return _Fit(None)
    value = _guess(text)
    for option in options:
        for kind in kinds_of(option):
            if kind == "string":
                return _Fit(text)
            fit = _typed(value, kind, option, whole, 0)
            if fit.fits:
                return _Fit(fit.value, changed=fit.changed and not isinstance(value, str))
    return _Fit(text, fits=False)


def _guess(text: Any) -> Any:
    """What a bare text most likely is: a JSON or Python value, else itself."""
    if not isinstance(text, str):
        return text
    bare = text.strip()
    if bare in _TRUE or bare in _FALSE:
        return bare in _TRUE
    if bare in _NULL:
        return None
    # Only what looks like a number or a bracketed value; a loose reader would take any word for text anyway.
    if bare[:1] in {"[", "{"} or (bare[:2].lstrip("-")[:1].isdigit() and len(bare) < _TEXT_LIMIT_DIGITS):
        found = read_json(bare)
        if found is not None and not isinstance(found.value, str):
            return found.value
    return text


def _fit(value: Any, schema: Schema, whole: Schema, depth: int = 0) -> _Fit:
    """A typed value against a schema; the first alternative without a change wins, then the first with one."""
    if depth > DEPTH_LIMIT:
        return _Fit(value)
    changed: _Fit | None = None
    for option in alternatives(schema, whole):
        fixed = fixed_values(option)
        kinds = kinds_of(option)
        fits = [_fixed(value, fixed)] if fixed else [_typed(value, kind, option, whole, depth) for kind in kinds]
        for fit in fits or [_Fit(value)]:
            if fit.fits and not fit.changed:
                return fit
            changed = fit if changed is None and fit.fits else changed
    return changed or _Fit(value, fits=False)


def _fixed(value: Any, fixed: Sequence[Any]) -> _Fit:
    for one in fixed:
        if _same(value, one):
            return _Fit(one)
    folded = str(value).strip().casefold()
    close = [one for one in fixed if str(one).casefold() == folded]
    return _Fit(close[0], changed=True) if len(close) == 1 else _Fit(value, fits=False)


def _same(a: Any, b: Any) -> bool:
    """Equal, and neither true for 1 nor false for 0."""
    return isinstance(a, bool) == isinstance(b, bool) and bool(a == b)


def _typed(value: Any, kind: str, schema: Schema, whole: Schema, depth: int) -> _Fit:
    match kind:
        case "string":
            if isinstance(value, str):
                return _Fit(value)
            simple = isinstance(value, (bool, int, float))
            return _Fit(_as_text(value), changed=True) if simple else _Fit(value, fits=False)
        case "integer" | "number":
            return _number(value, kind, schema)
        case "boolean":
            if isinstance(value, str) and value.strip() in _TRUE | _FALSE:
                return _Fit(value.strip() in _TRUE, changed=True)
            return _Fit(value, fits=isinstance(value, bool))
        case "null":
            return _Fit(None, changed=True) if value in ("null", "None") else _Fit(value, fits=value is None)
        case "array":
            return _array(value, schema, whole, depth)
        case _:
            return _object(value, schema, whole, depth)


def _number(value: Any, kind: str, schema: Schema) -> _Fit:
    changed = isinstance(value, str)
    if isinstance(value, str):
        value = _guess(value)
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return _Fit(value, fits=False)
    if kind == "integer" and isinstance(value, float):
        if not (value.is_integer() and abs(value) < 2**53):
            return _Fit(value, fits=False)
        value, changed = int(value), True
    return _Fit(value, _in_range(value, schema), changed)


def _in_range(value: float, schema: Schema) -> bool:
    def holds(name: str, test: Callable[[float, float], bool]) -> bool:
        edge = schema.get(name)
        return isinstance(edge, bool) or not isinstance(edge, (int, float)) or test(value, edge)

    return (holds("minimum", operator.ge) and holds("maximum", operator.le)
        and holds("exclusiveMinimum", operator.gt) and holds("exclusiveMaximum", operator.lt))


def _array(value: Any, schema: Schema, whole: Schema, depth: int) -> _Fit:
    changed = isinstance(value, str)
    if isinstance(value, str):
        value = _guess(value)
    if not isinstance(value, (list, tuple)):
        return _Fit(value, fits=False)
    items = schema.get("items")
    if not isinstance(items, Mapping):
        return _Fit(list(value), changed=changed)
    fits = [_fit(item, items, whole, depth + 1) for item in value]
    return _Fit([fit.value for fit in fits], all(fit.fits for fit in fits), changed or any(fit.changed for fit in fits))


def _object(value: Any, schema: Schema, whole: Schema, depth: int) -> _Fit:
    changed = isinstance(value, str)
    if isinstance(value, str):
        value = _guess(value)
    if not isinstance(value, Mapping):
        return _Fit(value, fits=False)
    properties = schema.get("properties")
    known = properties if isinstance(properties, Mapping) else {}
    found: dict[str, Any] = {}
    fits = True
    for key, item in value.items():
        inner = known.get(key)
        fit = _fit(item, inner, whole, depth + 1) if isinstance(inner, Mapping) else _Fit(item)
        found[key], fits, changed = fit.value, fits and fit.fits, changed or fit.changed
    wanted = schema.get("required")
    missing = [key for key in wanted if key not in found] if isinstance(wanted, (list, tuple)) else []
    return _Fit(found, fits and not missing, changed)


def alternatives(schema: Schema, whole: Schema, depth: int = 0) -> list[Schema]:
    """The schemas of which a value may fit any; references inside the whole schema are followed."""
    reference = schema.get("$ref")
    if isinstance(reference, str) and depth < DEPTH_LIMIT:
        target: Any = whole
        for step in reference.removeprefix("#/").split("/"):
            target = target.get(step) if isinstance(target, Mapping) else None
        return alternatives(target, whole, depth + 1) if isinstance(target, Mapping) else [{}]
    for key in ("anyOf", "oneOf"):
        options = schema.get(key)
        if isinstance(options, (list, tuple)) and options and depth < DEPTH_LIMIT:
            shapes = [option for option in options if isinstance(option, Mapping)]
            return [one for option in shapes for one in alternatives(option, whole, depth + 1)]
    return [schema]


def fixed_values(schema: Schema) -> list[Any]:
    """The values of an enum or constant; empty when any value of the type will do."""
    if "const" in schema:
        return [schema["const"]]
    named = schema.get("enum")
    return list(named) if isinstance(named, (list, tuple)) else []


def _as_text(value: Any) -> str:
    return ("true" if value else "false") if isinstance(value, bool) else str(value)
