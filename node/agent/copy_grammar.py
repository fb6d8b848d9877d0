"""The local model as a second reader: it may only copy a run of the owner's own words, held to that by a grammar.

Small models find where a phrase starts better than where it ends, so they get what the readers left over, never
the whole request, and never today's date. Rules and model agreeing is the sign that a value is right; when they
differ, both are shown. Must not know tools' effects, peers or conversations.
"""

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace

import trio

from node.agent.ports import LocalModel, Message
from node.agent.readers.numbers import fold
from node.agent.slots import SlotValue

__all__ = ["COPY_TOKENS", "Copyist", "agree", "beside", "copy_grammar", "parse_copy"]

COPY_TOKENS = 48
_WORDS_LIMIT = 60
"""More words than this are not offered for copying: the grammar grows with them."""


def copy_grammar(text: str) -> str:
    """A GBNF grammar whose every sentence is {"text": "..."} with a contiguous run of the words of text inside.

    A word's outer punctuation may be left off at the end of the run, a trailing 's too. Linear in the length of text.
    Raises ValueError for a text without words.
    """
    words = text.split()
    if not words:
        raise ValueError("nothing to copy from")
    rules = ['root ::= "{\\"text\\": \\"" w "\\"}"', "w ::= " + " | ".join(f"w{i}" for i in range(len(words)))]
    for index, word in enumerate(words):
        bare = word.rstrip(".,?!;:\"')") or word
        endings = [_literal(bare)] + ([_literal(bare[:-2])] if bare.endswith(("'s", "’s")) and len(bare) > 2 else [])
        if index + 1 < len(words):
            endings.append(f"{_literal(word + ' ')} w{index + 1}")
        rules.append(f"w{index} ::= " + " | ".join(endings))
    return "\n".join(rules) + "\n"


def parse_copy(output: str, text: str) -> str | None:
    """The copied words in output; None when it is no such object or no run of the words of text."""
    try:
        found = json.loads(output)
    except ValueError:
        return None
    copied = found.get("text") if isinstance(found, dict) else None
    return copied if isinstance(copied, str) and copied.strip() and copied in " ".join(text.split()) else None


def _literal(word: str) -> str:
    """A GBNF literal of a word as it stands inside a JSON string: escaped twice."""
    return json.dumps(json.dumps(word, ensure_ascii=False)[1:-1], ensure_ascii=False)


@dataclass(frozen=True, slots=True)
class Copyist:
    """Asks the local model for one span."""

    model: LocalModel
    deadline_s: float = 8.0

    async def copy(self, wanted: str, left_over: str, examples: Sequence[tuple[str, str]]) -> str | None:
        """The model's copy of what is wanted from left_over, or None: nothing to copy, no answer in time, no model."""
        if not left_over.split() or len(left_over.split()) > _WORDS_LIMIT:
            return None
        messages = [Message("system", f"Copy {wanted} from the request, word for word. Answer as JSON.")]
        for request, copied in examples:
            messages += [
                Message("user", request),
                Message("assistant", json.dumps({"text": copied}, ensure_ascii=False)),
            ]
        messages.append(Message("user", left_over))
        with trio.move_on_after(self.deadline_s):
            output = await self.model.complete(messages, grammar=copy_grammar(left_over), max_tokens=COPY_TOKENS)
            return parse_copy(output, left_over)
        return None


def agree(read: SlotValue, copied: str) -> SlotValue:
    """The reader's value, sure of itself when the model copied the same, with the model's as a choice when not."""
    if _same(str(read.value), copied):
        return replace(read, source=f"{read.source}, model agrees", certain=True)
    return replace(read, alternatives=(*read.alternatives, copied))


def beside(read: SlotValue, copied: str | None, left: str | None) -> SlotValue:
    """The reader's value: sure of itself when the model copied the same, otherwise with one other reading beside it.

    left: what is left of the request when all else is taken away, the rules' second way. It finds other faults than the
    cues do and is right more often than the model's copy, so where it differs it is the one that is shown.
    """
    if copied is not None and _same(str(read.value), copied):
        return agree(read, copied)
    other = left if left is not None and not _same(str(read.value), left) else copied
    return read if other is None or other in read.alternatives else agree(read, other)


def _same(a: str, b: str) -> bool:
    def bare(text: str) -> list[str]:
        return [word for word in re.findall(r"\w+", fold(text)) if word not in {"the", "a", "an", "my"}]

    return bare(a) == bare(b)
