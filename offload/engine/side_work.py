"""What the decoding thread does beside answers, one decode at a time between theirs: embedding texts, scoring tokens.

Must not know answers or the pipe.
"""

from collections import deque
from dataclasses import dataclass, field

from offload.engine.embedding import TextEmbedder
from offload.engine.library import Model
from offload.engine.scoring import Scoring
from offload.errors import EngineError
from offload.worker_frames import Embedded, Scored

__all__ = ["SideWork", "Texts", "Tokens"]


@dataclass(frozen=True, slots=True)
class Texts:
    """Texts to embed, as token ids in groups of one decode each."""

    embed_id: int
    groups: list[list[list[int]]]
    vectors: list[list[float]] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Tokens:
    """Tokens to score behind a prompt."""

    score_id: int
    prompt: list[int]
    answer: list[int]


class SideWork:
    """Of one model; in the order in which it came."""

    def __init__(self, model: Model, threads: int) -> None:
        self._model = model
        self._threads = threads
        self._embedder: TextEmbedder | None = None
        self._scoring: Scoring | None = None
        self._waiting: deque[Texts | Tokens] = deque()

    @property
    def has_work(self) -> bool:
        """Whether anything waits."""
        return bool(self._waiting)

    def put(self, work: Texts | Tokens) -> None:
        """Take work in."""
        self._waiting.append(work)

    def step(self) -> Embedded | Scored | None:
        """One decode; the report once a piece of work is done."""
        if not self._waiting:
            return None
        work = self._waiting[0]
        report = self._embed(work) if isinstance(work, Texts) else self._score(work)
        if report is not None:
            self._waiting.popleft()
        return report

    def _embed(self, texts: Texts) -> Embedded | None:
        try:
            if texts.groups:
                self._embedder = self._embedder or TextEmbedder(self._model, threads=self._threads)
                texts.vectors.extend(self._embedder.embed(texts.groups.pop(0)))
        except EngineError as error:
            return Embedded(texts.embed_id, code=error.code, message=str(error))
        return None if texts.groups else Embedded(texts.embed_id, texts.vectors)

    def _score(self, tokens: Tokens) -> Scored | None:
        try:
            if self._scoring is None:
                self._scoring = Scoring(self._model, tokens.prompt, tokens.answer, threads=self._threads)
            if not self._scoring.step():
                return None
            report = Scored(tokens.score_id, self._scoring.chosen, self._scoring.best)
        except EngineError as error:
            report = Scored(tokens.score_id, code=error.code, message=str(error))
        if self._scoring is not None:
            self._scoring.close()
            self._scoring = None
        return report
