"""What the engine is at, whoever asked: how long all that will take yet, and how fast its models are.

Looks at the events of every answer as they pass. Speeds are measured on answers that had the engine to themselves, and
smoothed. Must not know who asked, what the answers say, or where speeds are kept.
"""

from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace

from offload.ports import ChatPrompt, Event, Finished, GenerateRequest, Piece, Queued, Started, TokenPrompt
from offload.prediction import ASSUMED, EXPECTED_ANSWER_TOKENS, UNKNOWN, Speed

__all__ = ["Ahead", "Workload"]

SMOOTHING_SLOWER = 0.2
SMOOTHING_FASTER = 0.6
"""The weight of a new measurement beside all before it: whatever else the machine does can only make it slower."""
FEWEST_PROMPT_TOKENS = 64
FEWEST_OUTPUT_TOKENS = 8
SHORTEST_LOAD_S = 0.3
"""A start that takes less is no loading."""
LEAST_LEFT_TOKENS = 16
CHARS_PER_TOKEN = 3


@dataclass(frozen=True, slots=True)
class Ahead:
    """Answers at work, answers waiting, and how long all of them will take together."""

    running: int
    queued: int
    ahead_s: float


@dataclass(slots=True)
class _Answer:
    digest: str
    prompt_tokens: int
    max_tokens: int
    begun_s: float
    alone: bool
    cached_tokens: int = 0
    waited: bool = False
    started_s: float | None = None
    first_s: float | None = None
    written: int = 0


class Workload:
    """One per engine. speeds: what was measured before, by model digest."""

    def __init__(self, now_s: Callable[[], float], speeds: Mapping[str, Speed] | None = None) -> None:
        self._now_s = now_s
        self._speeds = dict(speeds or {})
        self._answers: list[_Answer] = []
        self.changed: Callable[[], None] = lambda: None
        """Told when answers come, go or move on from waiting, and when a speed was measured. Must not block."""

    def speed_of(self, digest: str) -> Speed:
        """What was measured of a model; zeros where nothing was."""
        return self._speeds.get(digest, UNKNOWN)

    def speeds(self) -> Mapping[str, Speed]:
        """All that was measured, for keeping."""
        return dict(self._speeds)

    def recall(self, speeds: Mapping[str, Speed]) -> None:
        """Take in what was kept; what was measured since stays."""
        self._speeds = {**speeds, **self._speeds}

    def ahead(self) -> Ahead:
        """The work that is there now."""
        queued = sum(one.started_s is None for one in self._answers)
        return Ahead(len(self._answers) - queued, queued, sum(map(self._left_s, self._answers)))

    @contextmanager
    def watch(self, request: GenerateRequest, events: AsyncIterator[Event]) -> Iterator[AsyncIterator[Event]]:
        """The same events, looked at, while the block lasts."""
        answer = self.begin(request)
        try:
            yield _Watched(self, answer, events)
        finally:
            self.end(answer)

    def begin(self, request: GenerateRequest) -> "_Answer":
        """An answer is wanted. end() must follow."""
        for other in self._answers:
            other.alone = False
        answer = _Answer(
            request.model or "", _estimate(request), request.max_tokens, self._now_s(), alone=not self._answers)
        self._answers.append(answer)
        self.changed()
        return answer

    def end(self, answer: "_Answer") -> None:
        """The answer is over, or was left."""
        self._answers = [one for one in self._answers if one is not answer]
        self.changed()

    def note(self, answer: "_Answer", event: Event) -> None:
        """One event of an answer passed."""
        now_s = self._now_s()
        match event:
            case Queued():
                answer.waited = True
            case Started(prompt_tokens, cached_tokens, model_digest):
                answer.digest, answer.started_s = model_digest or answer.digest, now_s
                answer.prompt_tokens, answer.cached_tokens = prompt_tokens or answer.prompt_tokens, cached_tokens
                if answer.alone and not answer.waited and now_s - answer.begun_s >= SHORTEST_LOAD_S:
                    self._measured(answer.digest, load_s=now_s - answer.begun_s)
                self.changed()
            case Piece(text, token_ids):
                if answer.first_s is None and (text or token_ids):
                    answer.first_s = now_s
                    self._measure_reading(answer, now_s)
                answer.written += len(token_ids) or int(bool(text))
            case Finished():
                self._measure_writing(answer, now_s)
            case _:
                pass

    def _measure_reading(self, answer: _Answer, now_s: float) -> None:
        read = answer.prompt_tokens - answer.cached_tokens
        if answer.alone and answer.started_s is not None and read >= FEWEST_PROMPT_TOKENS:
            self._measured(answer.digest, prompt_token_s=(now_s - answer.started_s) / read)

    def _measure_writing(self, answer: _Answer, now_s: float) -> None:
        written = answer.written - 1
        if answer.alone and answer.first_s is not None and written >= FEWEST_OUTPUT_TOKENS:
            self._measured(answer.digest, output_token_s=(now_s - answer.first_s) / written)

    def _measured(self, digest: str, **found: float) -> None:
        if digest:
            before = self.speed_of(digest)
            smooth = {
                name: _smoothed(getattr(before, name), value) for name, value in found.items()
            }
            self._speeds[digest] = replace(before, **smooth)
            self.changed()

    def _left_s(self, answer: _Answer) -> float:
        speed = self.speed_of(answer.digest).filled(ASSUMED)
        to_read = 0 if answer.first_s is not None else max(0, answer.prompt_tokens - answer.cached_tokens)
        expected = min(answer.max_tokens, EXPECTED_ANSWER_TOKENS)
        to_write = max(expected - answer.written, min(LEAST_LEFT_TOKENS, answer.max_tokens - answer.written), 0)
        return to_read * speed.prompt_token_s + to_write * speed.output_token_s


class _Watched:
    """Passes events on."""

    def __init__(self, load: Workload, answer: _Answer, events: AsyncIterator[Event]) -> None:
        self._load = load
        self._answer = answer
        self._events = events

    def __aiter__(self) -> AsyncIterator[Event]:
        return self

    async def __anext__(self) -> Event:
        event = await anext(self._events)
        self._load.note(self._answer, event)
        return event


def _smoothed(before: float, now: float) -> float:
    weight = SMOOTHING_SLOWER if now > before else SMOOTHING_FASTER
    return weight * now + (1 - weight) * before if before else now


def _estimate(request: GenerateRequest) -> int:
    """Tokens of a prompt that the engine has not counted yet."""
    match request.prompt:
        case TokenPrompt(ids):
            return len(ids)
        case ChatPrompt(messages):
            chars = sum(len(message.content) for message in messages)
        case prompt:
            chars = len(prompt.text)
    return (chars + len(request.text_so_far)) // CHARS_PER_TOKEN
