"""The texts of a language: a Hypothesis strategy that makes them, and a regular expression that knows them.

Both are built from the expression itself, so grammars and automata made of it can be checked against them.
"""

import re

from hypothesis import strategies as st

from offload.language import Chars, Choice, Node, Row, Text, Times, Unicode

__all__ = ["pattern", "sentences"]

_LONGEST = 4
_INTERESTING = "abcXYZ 0159<>/&'\"\\|[](){}=,:;`\n\täöüß漢🙂\u200bpr"


def sentences(node: Node) -> st.SearchStrategy[str]:
    """Texts of this language, with short repetitions."""
    match node:
        case Text(text=text):
            return st.just(text)
        case Chars(chars=chars):
            return st.sampled_from(chars)
        case Unicode(without=without):
            return st.sampled_from([char for char in _INTERESTING if char not in without])
        case Row(parts=parts):
            return st.tuples(*map(sentences, parts)).map("".join)
        case Choice(options=options):
            return st.one_of(*map(sentences, options))
        case Times(part=part, least=least, most=most):
            top = least + _LONGEST if most is None else min(most, least + _LONGEST)
            return st.lists(sentences(part), min_size=least, max_size=top).map("".join)


def pattern(node: Node) -> str:
    """A regular expression that matches exactly the texts of the language."""
    match node:
        case Text(text=text):
            return re.escape(text)
        case Chars(chars=chars):
            return f"[{_escaped(chars)}]"
        case Unicode(without=without):
            return f"[^{_escaped(without)}]"
        case Row(parts=parts):
            return "".join(map(pattern, parts))
        case Choice(options=options):
            return f"(?:{'|'.join(map(pattern, options))})"
        case Times(part=part, least=least, most=most):
            return f"(?:{pattern(part)}){{{least},{'' if most is None else most}}}"


def _escaped(chars: str) -> str:
    return "".join(f"\\U{ord(char):08x}" for char in chars)
