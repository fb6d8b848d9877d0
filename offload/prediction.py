"""When a place would have finished a job: its queue, loading, reading what it has not read yet, writing, and the way.

Plain arithmetic over measured times; the unit is the second. Must not know peers, choices or how anything is measured.
"""

from dataclasses import dataclass

__all__ = ["ASSUMED", "EXPECTED_ANSWER_TOKENS", "UNKNOWN", "PlaceFacts", "Prediction", "Speed", "predict"]

EXPECTED_ANSWER_TOKENS = 256
"""What an answer is taken to have where its limit is higher: most end long before their limit."""


@dataclass(frozen=True, slots=True)
class Speed:
    """What one model takes at one place, an answer at a time; 0 is not known."""

    prompt_token_s: float = 0.0
    output_token_s: float = 0.0
    load_s: float = 0.0

    def filled(self, other: "Speed") -> "Speed":
        """This one, with what is not known taken from the other."""
        return Speed(
            self.prompt_token_s or other.prompt_token_s, self.output_token_s or other.output_token_s,
            self.load_s or other.load_s,
        )


UNKNOWN = Speed()
ASSUMED = Speed(prompt_token_s=0.01, output_token_s=0.06, load_s=3.0)
"""For a model that nobody has measured yet: a small one on an ordinary CPU."""


@dataclass(frozen=True, slots=True)
class PlaceFacts:
    """One place and one model there, at this moment. wait_s: until the work that is there already is done."""

    speed: Speed
    warm: bool = True
    wait_s: float = 0.0
    rtt_s: float = 0.0
    prefix_tokens: int = 0
    """Tokens at the beginning of the prompt that the place has read already and is likely to remember."""


@dataclass(frozen=True, slots=True)
class Prediction:
    """The parts of the time until the last word."""

    wait_s: float
    load_s: float
    prompt_s: float
    answer_s: float
    rtt_s: float

    @property
    def total_s(self) -> float:
        """All of it."""
        return self.wait_s + self.work_s + self.rtt_s

    @property
    def work_s(self) -> float:
        """How long the place itself is at work: what others that come later wait for."""
        return self.load_s + self.prompt_s + self.answer_s


def predict(facts: PlaceFacts, *, prompt_tokens: int, max_tokens: int) -> Prediction:
    """The times for a prompt of this length and an answer of the expected one, at most max_tokens."""
    speed = facts.speed.filled(ASSUMED)
    to_read = max(0, prompt_tokens - facts.prefix_tokens)
    return Prediction(
        wait_s=facts.wait_s, load_s=0.0 if facts.warm else speed.load_s, prompt_s=to_read * speed.prompt_token_s,
        answer_s=min(max_tokens, EXPECTED_ANSWER_TOKENS) * speed.output_token_s, rtt_s=facts.rtt_s,
    )
