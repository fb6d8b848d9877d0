"""What is wrong with an inbox, compared to what was sent. Pure. Must not know nodes."""

from collections import Counter
from collections.abc import Sequence

__all__ = ["faults"]


def faults(received: Sequence[tuple[int, str]], sent: Sequence[str]) -> list[str]:
    """One line per fault of received, (number, text) in order of arrival, against the texts sent, in order.

    Empty when each text arrived exactly once, in order, under the numbers 1, 2, 3 ...
    """
    texts = [text for _, text in received]
    found = [f"{count} copies of {text!r}" for text, count in Counter(texts).items() if count > 1]
    found += [f"{text!r} never arrived" for text in sent if text not in texts]
    found += [f"{text!r} was never sent" for text in texts if text not in sent]
    known = [sent.index(text) for text in texts if text in sent]
    if known != sorted(known):
        found.append("not in the order of sending")
    numbers = [number for number, _ in received]
    if numbers != list(range(1, len(numbers) + 1)):
        found.append(f"numbered {numbers}")
    return found
