"""What example sentences teach about asking: which words speak for which tool, and the frame of a sentence.

A request is a frame ("remind me at ... to ...") around content (six, the bins). Content says little about the tool, so
sentences are also compared by their frames alone; and runs of up to three words that examples share speak for the tools
whose examples have them, learnt by counting. Both work for a tool with eight examples as for one with forty. Must not
know tools, vectors or gates.
"""

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from math import log

from node.agent.readers.courtesy import core
from node.agent.readers.numbers import fold

__all__ = ["WordOdds", "frame", "unlike"]

_QUOTED = re.compile(r"\"[^\"]+\"|“[^”]+”|«[^»]+»")
_AFTER_COLON = re.compile(r":\s.*$", re.DOTALL)
_WORD = re.compile(r"[^\W\d_][\w'’-]*")
_TIMES = frozenset((
    "monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday", "mon", "tue", "tues", "wed",
    "thu", "thur", "thurs", "fri", "sat", "sun", "january", "february", "march", "april", "june", "july", "august",
    "september", "october", "november", "december", "today", "tomorrow", "tonight", "yesterday", "morning",
    "afternoon", "evening", "noon", "midnight", "night", "weekend", "week", "month", "year", "hour", "hours",
    "minute", "minutes", "min", "mins", "half", "quarter", "past", "oclock", "am", "pm", "next", "first", "second",
    "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve", "fifteen",
    "twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety", "hundred", "thousand",
))
_LONGEST_RUN = 3
_SMOOTHING = 0.5
"""Counted for every run of words beside what the examples have, spread over five tools."""
_ALIKE = 0.5
_SHARED = 2
"""A run of words in one example alone teaches nothing: it may be content."""


def frame(text: str) -> str:
    """text in small letters without what is said about: quoted words, what follows a colon, numbers, days and times,
    capitalised words inside. All of text when nothing else is in it."""
    text = core(text).of(text)
    bare = _AFTER_COLON.sub(":", _QUOTED.sub(" ", text))
    kept: list[str] = []
    for number, match in enumerate(_WORD.finditer(bare)):
        word = match.group()
        low = fold(word).replace("’", "'")
        name = number and word[0].isupper() and len(word) > 1 and not low.startswith("i'")
        if not name and low not in _TIMES:
            kept.append(low)
    return " ".join(kept) or text


def unlike(sentences: Sequence[str], examples: Iterable[str]) -> tuple[str, ...]:
    """The sentences that share less than half of their words with each example: what no tool with these examples is
    asked for."""
    sets = [frozenset(_words(example)) for example in examples]
    holding: dict[str, list[int]] = {}
    for index, words in enumerate(sets):
        for word in words:
            holding.setdefault(word, []).append(index)
    kept: list[str] = []
    for sentence in sentences:
        words = frozenset(_words(sentence))
        shared = Counter(index for word in words for index in holding.get(word, ()))
        if all(count < _ALIKE * (len(words) + len(sets[index]) - count) for index, count in shared.items()):
            kept.append(sentence)
    return tuple(kept)


class WordOdds:
    """For each run of words that examples share, how strongly it speaks for each tool."""

    def __init__(self, examples: Mapping[str, Sequence[str]]) -> None:
        """examples: the sentences by tool."""
        runs = {tool: [_runs(sentence) for sentence in sentences] for tool, sentences in examples.items() if sentences}
        counts = {tool: Counter(run for sentence in found for run in sentence) for tool, found in runs.items()}
        total: Counter[str] = Counter()
        for counted in counts.values():
            total.update(counted)
        self._odds: dict[str, dict[str, float]] = {}
        for run, times in total.items():
            if times < _SHARED:
                continue
            rates = {
                tool: (counted[run] + _SMOOTHING / 5) / (len(runs[tool]) + _SMOOTHING)
                for tool, counted in counts.items()
            }
            everywhere = sum(rates.values())
            self._odds[run] = {tool: log(rate * len(rates) / everywhere) for tool, rate in rates.items()}

    def of(self, text: str) -> dict[str, float]:
        """By tool: the sum of the log odds of all runs of words in text that examples share. Empty when none is."""
        found: dict[str, float] = {}
        for run in _runs(text):
            for tool, odds in self._odds.get(run, {}).items():
                found[tool] = found.get(tool, 0.0) + odds
        return found


def _runs(text: str) -> set[str]:
    """Every run of one to three words; the edges of the sentence count as words in the longer runs."""
    words = ["<", *_words(text), ">"]
    return {*words[1:-1], *_joined(words, 2), *_joined(words, _LONGEST_RUN)}


def _words(text: str) -> list[str]:
    return re.findall(r"[^\W_]+(?:'[^\W_]+)*", fold(core(text).of(text)).replace("’", "'"))


def _joined(words: Sequence[str], length: int) -> Iterable[str]:
    return (" ".join(words[at : at + length]) for at in range(len(words) - length + 1))
