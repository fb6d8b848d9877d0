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

__all__ = ["Conversion", "Expression", "conversion", "convert", "evaluate", "exact", "expression", "in_digits"]

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
)
_PERCENT = re.compile(rf"\b(?P<p>{NUMBER})\s*(?:%|percent)\s+(?:of|from)\s+[$€£]?\s*(?P<of>\d+(?:\.\d+)?)")
_ROOT = re.compile(rf"\b(?P<kind>square|cube|cubic)\s+root\s+of\s+(?P<n>{NUMBER})")
_TIMES = re.compile(rf"\b(?P<by>double|twice|triple|treble)\s+(?P<n>{NUMBER})\b")
_GOES_INTO = re.compile(rf"\btimes\s+(?:does|do|will)\s+(?P<a>{NUMBER})\s+(?:go|goes|fit)\s+into\s+(?P<b>{NUMBER})\b")
_SUM = re.compile(r"\b(?:add|sum|total|together)\b")
_AMOUNT_OF_MONEY = r"[$€£]?\s*(?P<of>\d+(?:\.\d+)?)"
_OFF = re.compile(rf"{_AMOUNT_OF_MONEY}\D{{1,40}}?\b(?P<p>{NUMBER})\s*(?:%|percent)\s+off\b")
_TIP = re.compile(rf"\b(?P<p>{NUMBER})\s*(?:%|percent)\s+(?:tip|tax|discount|interest|commission|fee)\s+(?:on|for"
                  rf"|of)\s+(?:an?\s+|the\s+)?"
                  rf"[$€£]?\s*(?P<of>{NUMBER})\b")
_FRACTION = re.compile(r"\b(?P<a>\d+)\s*/\s*(?P<b>\d+)\s+of\s+(?:an?\s+)?[$€£]?\s*(?P<of>\d+(?:\.\d+)?)")
_AREA = re.compile(rf"\b(?P<a>{NUMBER})\s*(?:\w+\s+)?by\s+(?P<b>{NUMBER})\b")
_OFF_FIRST = re.compile(rf"\b(?P<p>{NUMBER})\s*(?:%|percent)\s+off\s+(?:of\s+)?(?:an?\s+)?[$€£]?\s*(?P<of>{NUMBER})\b")
_SPLIT = re.compile(r"\b(?:split|splitting|share|shared|sharing|divide|divided)\b")
_HEADS = re.compile(rf"\b(?P<n>{NUMBER})\s*(?:of\s+us|people|persons|friends|ways|heads|kids|flatmates)\b|\b"
                    rf"(?:between|among)\s+"
                    rf"(?:the\s+)?(?P<m>{NUMBER})\b")
_MORE = re.compile(
    rf"\badd(?:ing)?\s+(?P<p>{NUMBER})\s*(?:%|percent)\s+(?:on(?:to)?|to)\s+{_AMOUNT_OF_MONEY}|"
    rf"\b(?P<q>{NUMBER})\s*(?:%|percent)\s+on\s+top\s+of\s+[$€£]?\s*(?P<on>\d+(?:\.\d+)?)"
)
_THOUSANDS = re.compile(r"\b\d{1,3}(?:,\d{3})+\b")
_REST_OF_WORD = re.compile(r"(?<=\w)\w+")
_PART = re.compile(rf"\b(?:(?:an?|one)\s+)?(?P<part>half|third|quarter|fifth|tenth)\s+of\s+(?P<of>{NUMBER})\b(?!\s*%)")
_PARTS = {"half": 2, "third": 3, "quarter": 4, "fifth": 5, "tenth": 10}
_RESUMED = re.compile(r"(?<=\d),?\s+(?:that|this|it|which|and\s+that)(?:\s+is|[’']s)?(?=\s+(?:divided|times|multiplied|"
                      r"plus|minus))")
"""138, that divided by 6"""
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
    found = _expression(_RESUMED.sub(lambda m: " " * len(m.group()), in_digits(fold(text))))
    if found is None:
        return None
    rest = _REST_OF_WORD.match(text, found.said.end)
    return Expression(Span(found.said.start, rest.end() if rest else found.said.end), found.code)


def _expression(low: str) -> Expression | None:
    if match := _OFF.search(low):
        return Expression(Span(*match.span()), f"{match.group('of')} * (1 - {_said(match, 'p')} / 100)")
    if match := _TIP.search(low):
        return Expression(Span(*match.span()), f"{_said(match, 'p')} / 100 * {_said(match, 'of')}")
    if match := _FRACTION.search(low):
        return Expression(Span(*match.span()), f"{match.group('a')} / {match.group('b')} * {match.group('of')}")
    if "area" in low and (match := _AREA.search(low)):
        return Expression(Span(*match.span()), f"{_said(match, 'a')} * {_said(match, 'b')}")
    if match := _OFF_FIRST.search(low):
        base, share = number(match.group("of")), number(match.group("p"))
        return Expression(Span(*match.span()), f"{exact(base)} * (1 - {exact(share)} / 100)")
    if _SPLIT.search(low) and (heads := _HEADS.search(low)):
        numbers = re.finditer(rf"(?<![\w.]){NUMBER}(?!\w)", low)
        sums = [one for one in numbers if not heads.start() <= one.start() < heads.end()]
        sums = [one for one in sums if one.group()[0].isdigit()] or sums
        if len(sums) == 1:
            ends = [heads.start(), heads.end(), *sums[0].span()]
            count = number(heads.group("n") or heads.group("m"))
            return Expression(Span(min(ends), max(ends)), f"{exact(number(sums[0].group()))} / {exact(count)}")
    if match := _AVERAGE.search(low):
        parts = [f"{exact(number(one.group()))}" for one in re.finditer(rf"\b{NUMBER}\b", match.group("list"))]
        if len(parts) > 1:
            return Expression(Span(*match.span()), f"({' + '.join(parts)}) / {len(parts)}")
    if match := _MORE.search(low):
        share, base = number(match.group("p") or match.group("q")), number(match.group("of") or match.group("on"))
        return Expression(Span(*match.span()), f"{exact(base)} * (1 + {exact(share)} / 100)")
    if match := _DIVIDE.search(low):
        return Expression(Span(*match.span()), f"{_said(match, 'a')} / {_said(match, 'b')}")
    if match := _MULTIPLY.search(low):
        return Expression(Span(*match.span()), f"{_said(match, 'a')} * {_said(match, 'b')}")
    if match := _SUBTRACT.search(low):
        return Expression(Span(*match.span()), f"{_said(match, 'b')} - {_said(match, 'a')}")
    if match := _NTH_POWER.search(low):
        return Expression(Span(*match.span()), f"{_said(match, 'a')} ** {ordinal(match.group('b'))}")
    if match := _PERCENT.search(low):
        return Expression(Span(*match.span()), f"{_said(match, 'p')} / 100 * {match.group('of')}")
    if match := _PART.search(low):
        return Expression(Span(*match.span()), f"{_said(match, 'of')} / {_PARTS[match.group('part')]}")
    if match := _GOES_INTO.search(low):
        return Expression(Span(*match.span()), f"{_said(match, 'b')} / {_said(match, 'a')}")
    if match := _TIMES.search(low):
        factor = 2 if match.group("by") in {"double", "twice"} else 3
        return Expression(Span(*match.span()), f"{factor} * {_said(match, 'n')}")
    if match := _ROOT.search(low):
        power = "0.5" if match.group("kind") == "square" else "(1 / 3)"
        return Expression(Span(*match.span()), f"{_said(match, 'n')} ** {power}")
    joint = rf"(?<=\w)(?:\s*,\s*(?:and\s+)?|\s+and\s+)(?={NUMBER}\b)"
    rewritten = re.sub(joint, " + ", low) if _SUM.search(low) else low
    for pattern, symbol in _WORDS:
        rewritten = re.sub(pattern, f" {symbol} ", rewritten)
    rewritten = re.sub(
        rf"(?<![\w.])({NUMBER})(?![\w]"
        rf")",
        lambda m: f"{exact(number(m.group()))}" if m.group()[0].isalpha() else m.group(),
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
    begins = [match.start() for match in re.finditer(rf"[\d(]|\b{NUMBER}\b", low)]
    stops = [match.end() for match in re.finditer(rf"[\d)]|\b{NUMBER}\b|\bsquared\b|\bcubed\b", low)]
    return Expression(Span(min(begins), max(stops)), max(runs, key=len))


def _said(match: re.Match[str], name: str) -> str:
    return exact(number(match.group(name)))


def exact(value: float) -> str:
    """A number as it was said, however long."""
    return f"{value:.0f}" if value == int(value) else repr(value)


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
        "millimeter": "mm millimeter millimeters millimetre millimetres",
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
_ASKS_UNITS = re.compile(r"\b(?:convert|conversion|how\s+many|how\s+much|turn\s+.+\s+into|change\s+.+\s+into)\b")
_AMOUNT = re.compile(
    rf"(?<![\w.])(?:(?P<whole>{NUMBER})\s+and\s+a\s+(?P<part>half|quarter)|(?P<half>half|quarter)(?:\s+of)?(?:\s+an?)?|"
    rf"(?P<n>{NUMBER}|an?))\s*(?:degrees\s+)?$")
_TAKEN_BACK = re.compile(r"\b(?:no|sorry|i\s+meant?|rather|make\s+that|wait)\b")
_BARE_AMOUNT = re.compile(r"\b(?:convert|change|turn|make)\s+(?P<n>\d+(?:\.\d+)?)\s+(?:in)?to\b")
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


def _counted(said: re.Match[str]) -> float:
    parts = {"half": 0.5, "quarter": 0.25, None: 0.0}
    if said.group("whole"):
        return number(said.group("whole")) + parts[said.group("part")]
    if said.group("half"):
        return parts[said.group("half")]
    return 1.0 if said.group("n") in {"a", "an"} else number(said.group("n"))


def in_digits(low: str) -> str:
    """Number words of a hundred and more as digits, every other character where it was."""
    low = _THOUSANDS.sub(lambda m: m.group().replace(",", "").ljust(len(m.group())), low)
    return re.sub(rf"\b{LARGE_NUMBER}\b", lambda m: f"{large_number(m.group()):d}".ljust(len(m.group())), low)


def conversion(text: str) -> Conversion:
    """What text says about converting: the amount with its unit, and the unit wanted."""
    low = in_digits(fold(text))
    times_meant = _ASKS_UNITS.search(low) is not None
    amount: tuple[str, Span] | None = None
    source: tuple[str, Span] | None = None
    others: list[tuple[str, Span, bool]] = []
    for match in _UNIT.finditer(low):
        unit, before = _UNITS[match.group()], low[: match.start()]
        if unit in _TIME_UNITS and not times_meant:
            continue
        counted = _AMOUNT.search(before)
        again = amount is not None and _TAKEN_BACK.search(low[amount[1].end : match.start()]) is not None
        if counted and (source is None or again):
            amount = (f"{_counted(counted):g}", Span(counted.start(), counted.end()))
            source = (unit, Span(*match.span()))
        else:
            others.append((unit, Span(*match.span()), bool(_TARGET.search(before))))
    if amount is None and (bare := _BARE_AMOUNT.search(low)):     # "convert 250 to ounces": of what is asked for
        amount = (f"{number(bare.group('n')):g}", Span(*bare.span("n")))
    target = next(((unit, span) for unit, span, marked in others if marked), None)
    if target is None and others:
        target = others[-1][:2]
    if source is None:
        source = next(((unit, span) for unit, span, _ in others if target is None or span != target[1]), None)
    return Conversion(amount, source, target)
