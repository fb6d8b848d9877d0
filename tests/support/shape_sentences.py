"""The sentences of a shape: a Hypothesis strategy that makes them, and a regular expression that knows them.

Both are built from the tree itself, not from the grammar text, so the grammar text can be checked against them.
"""

import re

from hypothesis import strategies as st

from offload.engine.formats.shape import Chars, Choice, Literal, Repeat, Row, Shape

__all__ = ["pattern", "sentences"]

_LONGEST = 6
_INTERESTING = "abcXYZ 0159<>/&'\"\\|[](){}=,:;`\n\täöüß漢🙂\u200bpr"


def sentences(shape: Shape) -> st.SearchStrategy[str]:
    """Texts of this shape, with short repetitions."""
    match shape:
        case Literal(text):
            return st.just(text)
        case Chars():
            fitting = [char for char in _INTERESTING if shape.holds(char)]
            fitting += [low for low, _ in shape.ranges] if not shape.negated else []
            return st.sampled_from(fitting)
        case Row(parts):
            return st.tuples(*map(sentences, parts)).map("".join)
        case Choice(options):
            return st.one_of(*map(sentences, options))
        case Repeat(part, least, most):
            top = least + _LONGEST if most is None else min(most, least + _LONGEST)
            return st.lists(sentences(part), min_size=least, max_size=top).map("".join)


def pattern(shape: Shape) -> str:
    """A regular expression that matches exactly the sentences of the shape."""
    match shape:
        case Literal(text):
            return re.escape(text)
        case Chars(ranges, negated):
            inside = "".join(f"{_escape(low)}-{_escape(high)}" for low, high in ranges)
            return f"[{'^' if negated else ''}{inside}]"
        case Row(parts):
            return "".join(map(pattern, parts))
        case Choice(options):
            return f"(?:{'|'.join(map(pattern, options))})"
        case Repeat(part, least, most):
            return f"(?:{pattern(part)}){{{least},{'' if most is None else most}}}"


def _escape(char: str) -> str:
    return f"\\U{ord(char):08x}"
