"""Sums that people share or pay for several: "split 86.40 between 4 people", "7 tickets at 12 euros each".

Read only where the whole request is nothing else, so no number that was said is ever left out. Must not know tools.
"""

import ast
import re

from node.agent.readers.numbers import NUMBER, fold, number
from node.agent.readers.quantities import exact, in_digits

__all__ = ["numbers_used", "sharing"]

_ASKING = (
    r"(?:(?:please|kith|so|ok|hey|can\s+you|could\s+you|if\s+(?:we|you|i)|we|let[’']?s|i\s+(?:want|need)\s+to|calculate|"
    r"work\s+out|tell\s+me|what\s+is|what[’']?s|how\s+much\s+(?:is|does\s+everyone\s+pay\s+if\s+we))\s*,?\s+)*"
)
_MONEY = rf"[$€£]?\s*(?P<sum>{NUMBER})\s*(?:[$€£]|(?:euros?|eur|dollars?|usd|pounds|gbp|francs?|chf)\b)?"
_THING = (
    r"(?:(?:the|a|an|our|this)\s+)?(?:\w+\s+)?(?:bill|costs?|rent|total|sum|amount|check|tab|price|dinner|lunch)"
)
_HEADS = r"people|persons?|friends|heads|kids|children|flatmates|guests|colleagues|of\s+us|parts|shares|ways"
_END = (
    r"(?:,?\s+(?:please|each|equally|evenly|how\s+much\s+(?:is\s+(?:that|it)|does\s+(?:each|everyone)\s+pay)))*"
    r"\s*[?.!]*\s*$"
)
_EVENLY = r"(?:\s+(?:equally|evenly|fairly|up))?"
_SPLIT = re.compile(
    rf"^\s*{_ASKING}(?:split|share|divide)(?:\s+up)?\s+(?:{_THING}\s+(?:of|for)\s+)?{_MONEY}{_EVENLY}\s+"
    rf"(?:(?:between|among|amongst|by|into|in|over|for)\s+)?(?P<me>(?:me|myself)\s+and\s+)?(?:(?:us|the)\s+)?"
    rf"(?P<heads>{NUMBER})(?:\s+(?:{_HEADS}))?{_END}")
_OF_EACH = re.compile(
    rf"^\s*{_ASKING}(?:each\s+(?:share|person|one)|(?:each|everyone)[’']?s\s+share)\s+(?:if|when)\s+(?P<heads>{NUMBER})"
    rf"\s+(?:{_HEADS})\s+(?:split|share)\s+{_MONEY}{_EVENLY}{_END}")
_BETWEEN = re.compile(
    rf"^\s*{_ASKING}{_MONEY}\s+(?:(?:split|shared|divided)\s+)?(?:between|among|amongst)\s+(?P<heads>{NUMBER})"
    rf"(?:\s+(?:{_HEADS}))?{_END}")
_EACH = re.compile(
    rf"^\s*{_ASKING}{_MONEY}\s+(?:each|apiece|per\s+(?:person|head))\s+for\s+(?P<heads>{NUMBER})(?:\s+(?:{_HEADS}))?{_END}")
_AT = re.compile(rf"^\s*{_ASKING}(?P<heads>{NUMBER})\s+\w+\s+at\s+{_MONEY}\s+(?:each|apiece){_END}")


def sharing(text: str) -> str | None:
    """The division or multiplication that the whole text asks for, as code writes it; None when it is anything else."""
    low = in_digits(fold(text))
    for pattern, sign in ((_SPLIT, "/"), (_OF_EACH, "/"), (_BETWEEN, "/"), (_EACH, "*"), (_AT, "*")):
        if match := pattern.match(low):
            heads = number(match["heads"]) + bool(match.groupdict().get("me"))
            if heads == int(heads) and heads > 0:
                return f"{exact(number(match['sum']))} {sign} {exact(heads)}"
    return None


def numbers_used(said: str, code: str) -> bool:
    """Whether every number in the words stands in the code: what leaves one out is no answer to them."""
    known = {float(node.value) for node in ast.walk(ast.parse(code, mode="eval"))
             if isinstance(node, ast.Constant) and isinstance(node.value, int | float)}
    found = re.finditer(rf"(?<![\w.]){NUMBER}(?!\w)", in_digits(fold(said)))
    return all(number(match.group()) in known for match in found)
