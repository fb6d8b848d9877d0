"""Numbers between two bounds as digits, for schema.py.

Without bounds an integer has at most 15 digits, which every JSON reader keeps exactly, and a decimal at most 6 digits
behind the point and no exponent. Pure: must not know schemas beyond the four words for bounds.
"""

from collections.abc import Mapping
from typing import Any

from offload.errors import BadGrammar
from offload.language import Chars, Choice, Node, Row, Text, Times

__all__ = ["decimal", "integer"]

_LARGEST = 10**15 - 1
_DIGITS = "0123456789"
_FRACTION_DIGITS = 6
_FRACTION = Row((Text("."), Times(Chars(_DIGITS), 1, _FRACTION_DIGITS)))
_FRACTION_ABOVE_ZERO = Row((Text("."), Times(Chars(_DIGITS), 0, _FRACTION_DIGITS - 1), Chars("123456789")))


def integer(schema: Mapping[str, Any]) -> Node:
    """The integers within the schema's bounds. Raises BadGrammar."""
    low, high, above, below = _bounds(schema)
    low, high = low + above, high - below
    options = []
    if high >= 0 and low <= high:
        options.append(_naturals(max(low, 0), high))
    if low < 0 and low <= high:
        options.append(Row((Text("-"), _naturals(max(1, -high), -low))))
    return _any(options)


def decimal(schema: Mapping[str, Any]) -> Node:
    """The decimal numbers within the schema's bounds. Raises BadGrammar."""
    low, high, above, below = _bounds(schema)
    options: list[Node] = []
    if high >= 0:
        options += _decimals(max(low, 0), high, above=above and low >= 0, below=below)
    if low < 0:
        options += [
            Row((Text("-"), option))
            for option in _decimals(max(0, -high), -low, above=below and high <= 0, below=above)]
    return _any(options)


def _bounds(schema: Mapping[str, Any]) -> tuple[int, int, bool, bool]:
    """Lowest, highest, and whether the number must be really above and below them."""
    found: dict[str, int | None] = {}
    for word in ("minimum", "exclusiveMinimum", "maximum", "exclusiveMaximum"):
        value = schema.get(word)
        if value is not None and (isinstance(value, bool) or not isinstance(value, int | float) or value != value // 1):
            raise BadGrammar(f"The schema's {word} must be a whole number.")
        found[word] = None if value is None else max(-_LARGEST, min(_LARGEST, int(value)))
    low, high = -_LARGEST if found["minimum"] is None else found["minimum"], found["maximum"]
    high = _LARGEST if high is None else high
    above, below = found["exclusiveMinimum"], found["exclusiveMaximum"]
    really_above, really_below = above is not None and above >= low, below is not None and below <= high
    return (above if really_above and above is not None else low, below if really_below and below is not None else high,
            really_above, really_below)


def _decimals(low: int, high: int, *, above: bool, below: bool) -> list[Node]:
    """Numbers of size low to high, 0 <= low."""
    options: list[Node] = []
    if low + above <= high - below:
        options.append(_naturals(low + above, high - below))
    if low < high:
        options.append(Row((_naturals(low, high - 1), _FRACTION_ABOVE_ZERO if above else _FRACTION)))
    return options


def _naturals(low: int, high: int) -> Node:
    """The whole numbers from low to high, 0 <= low <= high, without leading zeros."""
    options: list[Node] = []
    full: list[int] = []       # lengths of which every number is allowed
    for length in range(len(str(low)), len(str(high)) + 1):
        smallest = 10 ** (length - 1) if length > 1 else 0
        largest = 10**length - 1
        if length > 1 and low <= smallest and largest <= high:
            full.append(length)
        else:
            options.append(_between(str(max(low, smallest)), str(min(high, largest))))
    if full:
        options.append(Row((Chars("123456789"), Times(Chars(_DIGITS), full[0] - 1, full[-1] - 1))))
    return _any(options)


def _between(low: str, high: str) -> Node:
    """Digit texts from low to high, of the same length."""
    if low == high:
        return Text(low)
    free = len(low) - 1
    if not free:
        return Chars(_DIGITS[int(low):int(high) + 1])
    if low[0] == high[0]:
        return Row((Text(low[0]), _between(low[1:], high[1:])))
    first, last = int(low[0]), int(high[0])
    options: list[Node] = []
    if low[1:] != "0" * free:
        options.append(Row((Text(low[0]), _between(low[1:], "9" * free))))
        first += 1
    if high[1:] != "9" * free:
        options.append(Row((Text(high[0]), _between("0" * free, high[1:]))))
        last -= 1
    if first <= last:
        options.append(Row((Chars(_DIGITS[first:last + 1]), Times(Chars(_DIGITS), free, free))))
    return _any(options)


def _any(options: list[Node]) -> Node:
    if not options:
        raise BadGrammar("The schema allows no number.")
    return options[0] if len(options) == 1 else Choice(tuple(options))


