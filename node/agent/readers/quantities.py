"""Arithmetic and units in the owner's words: an expression that code can work out, an amount and two units.

Works out expressions over a syntax tree with bounds, never eval. Must not know tools.
"""

import ast
import operator
import re
from collections.abc import Callable
from dataclasses import dataclass

from node.agent.ports import Span
from node.agent.readers.numbers import LARGE_NUMBER, NUMBER, ORDINAL, fold, large_number, number, ordinal

__all__ = ["Conversion", "Expression", "conversion", "convert", "evaluate", "expression"]

_POWER_LIMIT = 64
_VALUE_LIMIT = 1e18
_WORDS = (
    (r"\bdivided\s+by\b|\bover\b|÷", "/"),
    (r"\bmultiplied\s+by\b|\btimes\b|×|(?<=\d)\s*x\s*(?=\d)", "*"),
    (r"\bplus\b", "+"),
    (r"\bminus\b|−|–", "-"),
    (r"\bto\s+the\s+power\s+of\b|\^", "**"),
    (r"\bsquared\b", "**2"),
    (r"\bcubed\b", "**3"),
    (r"(?<=\d),(?=\d{3}\b)", ""),
)
_PERCENT = re.compile(rf"\b(?P<p>{NUMBER})\s*(?:%|percent)\s+(?:of|from)\s+(?P<of>\d+(?:\.\d+)?)")
_ROOT = re.compile(rf"\bsquare\s+root\s+of\s+(?P<n>{NUMBER})")
_SUM = re.compile(r"\b(?:add|sum|total|together)\b")
_AMOUNT_OF_MONEY = r"[$€£]?\s*(?P<of>\d+(?:\.\d+)?)"
_OFF = re.compile(rf"{_AMOUNT_OF_MONEY}\D{{1,40}}?\b(?P<p>{NUMBER})\s*(?:%|percent)\s+off\b")
_AVERAGE = re.compile(rf"\b(?:average|mean)\s+of\s+(?P<list>{NUMBER}(?:\s*(?:,|and|,\s*and)\s*{NUMBER})+)")
_DIVIDE = re.compile(rf"\bdivide\s+(?P<a>{NUMBER})\s+by\s+(?P<b>{NUMBER})\b")
_MULTIPLY = re.compile(rf"\bmultiply\s+(?P<a>{NUMBER})\s+(?:by|with)\s+(?P<b>{NUMBER})\b")
_SUBTRACT = re.compile(rf"\b(?:subtract|take)\s+(?P<a>{NUMBER})\s+(?:away\s+)?from\s+(?P<b>{NUMBER})\b")
_NTH_POWER = re.compile(rf"\b(?P<a>{NUMBER})\s+to\s+the\s+(?P<b>{ORDINAL})\s+power\b")
_RUN = re.compile(r"[\d(.][\d\s+\-*/().]*[\d)]|\d")


@dataclass(frozen=True, slots=True)
class Expression:
    """An expression as it was said and as code writes it."""

    said: Span
    code: str


def expression(text: str) -> Expression | None:
    """The first arithmetic expression with at least one operation in text, or None."""
    plain = re.sub(rf"\b{LARGE_NUMBER}\b", lambda m: f"{large_number(m.group()):d}".ljust(len(m.group())), fold(text))
    low = plain
    if match := _OFF.search(low):
        return Expression(Span(*match.span()), f"{match.group('of')} * (1 - {number(match.group('p')):g} / 100)")
    if match := _AVERAGE.search(low):
        parts = [f"{number(one.group()):g}" for one in re.finditer(rf"\b{NUMBER}\b", match.group("list"))]
        if len(parts) > 1:
            return Expression(Span(*match.span()), f"({' + '.join(parts)}) / {len(parts)}")
    if match := _DIVIDE.search(low):
        return Expression(Span(*match.span()), f"{number(match.group('a')):g} / {number(match.group('b')):g}")
    if match := _MULTIPLY.search(low):
        return Expression(Span(*match.span()), f"{number(match.group('a')):g} * {number(match.group('b')):g}")
    if match := _SUBTRACT.search(low):
        return Expression(Span(*match.span()), f"{number(match.group('b')):g} - {number(match.group('a')):g}")
    if match := _NTH_POWER.search(low):
        return Expression(Span(*match.span()), f"{number(match.group('a')):g} ** {ordinal(match.group('b'))}")
    if match := _PERCENT.search(low):
        return Expression(Span(*match.span()), f"{number(match.group('p')):g} / 100 * {match.group('of')}")
    if match := _ROOT.search(low):
        return Expression(Span(*match.span()), f"{number(match.group('n')):g} ** 0.5")
    joint = rf"(?<=\w)(?:\s*,\s*(?:and\s+)?|\s+and\s+)(?={NUMBER}\b)"
    rewritten = re.sub(joint, " + ", low) if _SUM.search(low) else low
    for pattern, symbol in _WORDS:
        rewritten = re.sub(pattern, f" {symbol} ", rewritten)
    rewritten = re.sub(
        rf"(?<![\w.])({NUMBER})(?![\w]"
        rf")",
        lambda m: f"{number(m.group()):g}" if m.group()[0].isalpha() else m.group(),
        rewritten,
    )
    runs = [m.group().strip() for m in _RUN.finditer(rewritten)]
    runs = [
        run
        for run in runs
        if re.search(
            r"\d\s*(?:[+\-*/]|\*\*)\s*[\d(.]|\)\s*[+\-*/"
            r"]",
            run,
        )
        and evaluate(run) is not None
    ]
    if not runs:
        return None
    digits = [match.start() for match in re.finditer(rf"[\d(]|\b{NUMBER}\b", low)]
    ends = [match.end() for match in re.finditer(rf"[\d)]|\b{NUMBER}\b|\bsquared\b|\bcubed\b", low)]
    return Expression(Span(min(digits), max(ends)), max(runs, key=len))


_BINARY: dict[type[ast.operator], Callable[[float, float], float]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.Pow: operator.pow,
}


def evaluate(code: str) -> float | None:
    """The value of a plain arithmetic expression; None when it is none, divides by zero or leaves the bounds."""
    try:
        return _value(ast.parse(code, mode="eval").body)
    except (SyntaxError, ValueError, ZeroDivisionError, OverflowError, RecursionError, MemoryError):
        return None


def _value(node: ast.expr) -> float:
    if isinstance(node, ast.Constant) and isinstance(node.value, int | float) and not isinstance(node.value, bool):
        return float(node.value)
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        return -_value(node.operand)
    if isinstance(node, ast.BinOp) and type(node.op) in _BINARY:
        left, right = _value(node.left), _value(node.right)
        if isinstance(node.op, ast.Pow) and abs(right) > _POWER_LIMIT:
            raise ValueError("exponent too large")
        result = _BINARY[type(node.op)](left, right)
        if isinstance(result, complex) or abs(result) > _VALUE_LIMIT:
            raise ValueError("out of bounds")
        return result
    raise ValueError("not arithmetic")


_UNITS: dict[str, str] = {
    alias: unit
    for unit, aliases in {
        "meter": "m meter meters metre metres",
        "kilometer": "km kilometer kilometers kilometre kilometres kms",
        "centimeter": "cm centimeter centimeters centimetre centimetres",
        "millimeter": "mm millimeter millimeters millimetre",
        "mile": "mi mile miles",
        "yard": "yd yard yards",
        "foot": "ft foot feet",
        "inch": "inch inches",
        "gram": "g gram grams gramme grammes",
        "kilogram": "kg kilo kilos kilogram kilograms kgs",
        "pound": "lb lbs pound pounds",
        "ounce": "oz ounce ounces",
        "stone": "stone stones",
        "tonne": "tonne tonnes ton tons",
        "liter": "l liter liters litre litres",
        "milliliter": "ml milliliter milliliters millilitre millilitres",
        "cup": "cup cups",
        "pint": "pint pints",
        "quart": "quart quarts",
        "gallon": "gallon gallons",
        "tablespoon": "tbsp tablespoon tablespoons",
        "teaspoon": "tsp teaspoon teaspoons",
        "celsius": "celsius centigrade °c",
        "fahrenheit": "fahrenheit °f",
        "kelvin": "kelvin",
        "hour": "hour hours",
        "minute": "minute minutes",
        "second": "second seconds",
        "day": "day days",
        "week": "week weeks",
    }.items()
    for alias in aliases.split()
}
_UNIT = re.compile(
    r"(?<![\w])(?"
    r":" + "|".join(re.escape(unit) for unit in sorted(_UNITS, key=len, reverse=True)) + r")(?!\w)"
)
_TIME_UNITS = frozenset({"hour", "minute", "second", "day", "week"})
_ASKS_UNITS = re.compile(r"\b(?:convert|conversion|how\s+many|how\s+much)\b")
_AMOUNT = re.compile(rf"(?<![\w.])(?P<n>{NUMBER}|an?)\s*(?:degrees\s+)?$")
_TARGET = re.compile(r"\b(?:to|into|in|as|how\s+many|how\s+much)\s+(?:degrees\s+)?$")


_FACTORS: dict[str, tuple[str, float]] = {
    "meter": ("length", 1.0),
    "kilometer": ("length", 1000.0),
    "centimeter": ("length", 0.01),
    "millimeter": ("length", 0.001),
    "mile": ("length", 1609.344),
    "yard": ("length", 0.9144),
    "foot": ("length", 0.3048),
    "inch": ("length", 0.0254),
    "gram": ("mass", 1.0),
    "kilogram": ("mass", 1000.0),
    "pound": ("mass", 453.59237),
    "ounce": ("mass", 28.349523125),
    "stone": ("mass", 6350.29318),
    "tonne": ("mass", 1e6),
    "liter": ("volume", 1.0),
    "milliliter": ("volume", 0.001),
    "cup": ("volume", 0.2365882365),
    "pint": ("volume", 0.473176473),
    "quart": ("volume", 0.946352946),
    "gallon": ("volume", 3.785411784),
    "tablespoon": ("volume", 0.01478676478125),
    "teaspoon": ("volume", 0.00492892159375),
    "second": ("time", 1.0),
    "minute": ("time", 60.0),
    "hour": ("time", 3600.0),
    "day": ("time", 86400.0),
    "week": ("time", 604800.0),
}
"""Exact by definition (international yard and pound, US customary volumes)."""
_KELVIN: dict[str, tuple[float, float]] = {
    "kelvin": (1.0, 0.0),
    "celsius": (1.0, 273.15),
    "fahrenheit": (5 / 9, 273.15 - 32 * 5 / 9),
}


def convert(amount: float, source: str, target: str) -> float | None:
    """The amount in the other unit; None when the two do not measure the same thing. Cups to gallons are US ones."""
    if source in _KELVIN and target in _KELVIN:
        scale, offset = _KELVIN[source]
        to_scale, to_offset = _KELVIN[target]
        return (amount * scale + offset - to_offset) / to_scale
    if source not in _FACTORS or target not in _FACTORS or _FACTORS[source][0] != _FACTORS[target][0]:
        return None
    return amount * _FACTORS[source][1] / _FACTORS[target][1]


@dataclass(frozen=True, slots=True)
class Conversion:
    """An amount and the two units, as far as they were said."""

    amount: tuple[str, Span] | None
    source: tuple[str, Span] | None
    target: tuple[str, Span] | None


def conversion(text: str) -> Conversion:
    """What text says about converting: the amount with its unit, and the unit wanted."""
    low = fold(text)
    times_meant = _ASKS_UNITS.search(low) is not None
    amount: tuple[str, Span] | None = None
    source: tuple[str, Span] | None = None
    others: list[tuple[str, Span, bool]] = []
    for match in _UNIT.finditer(low):
        unit, before = _UNITS[match.group()], low[: match.start()]
        if unit in _TIME_UNITS and not times_meant:
            continue
        counted = _AMOUNT.search(before)
        if counted and source is None:
            said = counted.group("n")
            value = 1.0 if said in {"a", "an"} else number(said)
            amount = (f"{value:g}", Span(counted.start("n"), counted.end("n")))
            source = (unit, Span(*match.span()))
        else:
            others.append((unit, Span(*match.span()), bool(_TARGET.search(before))))
    target = next(((unit, span) for unit, span, marked in others if marked), None)
    if target is None and others:
        target = others[-1][:2]
    if source is None:
        source = next(((unit, span) for unit, span, _ in others if target is None or span != target[1]), None)
    return Conversion(amount, source, target)
