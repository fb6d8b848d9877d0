"""Says where a model's work on a request would run now, with every place considered. Implements
node.api.ports.Offloading.

Runs nothing, sends nothing, writes nothing. Must not know how a place is chosen.
"""

from collections.abc import Callable

from node.agent.heavy import build_job
from node.agent.ports import AUTO, LOCAL
from node.api.ports import AskInput
from node.api.views import CandidateView, ExplainView
from node.daemon.peers import Roster
from node.daemon.thinker import Thinker
from node.privacy.labels import Confidentiality, Integrity, Labeled
from offload.ports import Engine
from offload.prediction import Prediction
from offload.router import Candidate, Choice

__all__ = ["Explainer"]


class Explainer:
    """Over the same router, views and estimates as real work."""

    def __init__(self, thinker: Thinker, engine: Engine, roster: Roster, mode: Callable[[], str]) -> None:
        self._thinker = thinker
        self._engine = engine
        self._roster = roster
        self._mode = mode

    async def explain(self, request: AskInput) -> ExplainView:
        """The choice for this request, were it put to a model now. Raises UnknownPeer, AmbiguousPeer."""
        job = build_job(
            job_id="", conversation_id="", text=request.text, history=(),
            material=[
                (one.name, Labeled(one.text, Confidentiality.PERSONAL, Integrity.LOCAL, f"file:{one.name}", ()))
                for one in request.attachments
            ],
            on_text=_nothing, place=LOCAL if request.local else request.on or AUTO, model=request.model,
        )
        needs, choice = await self._thinker.explain(job)
        health = await self._engine.health()
        busy_here = health.running + health.queued
        here = choice.candidates[0].name
        return ExplainView(
            mode=self._mode(), prompt_tokens=needs.prompt_tokens, answer_tokens=needs.max_tokens,
            context_tokens=needs.context_tokens, where=choice.where,
            runs_on=here if choice.where == "here" else choice.peer_name, model=choice.model_name,
            reason=choice.reason,
            candidates=[self._view(line, choice, busy_here) for line in choice.candidates],
        )

    def _view(self, line: Candidate, choice: Choice, busy_here: int) -> CandidateView:
        here = line.peer_id is None
        return CandidateView(
            name=line.name, peer_id=line.peer_id, able=line.able, reason=line.reason, model=line.model,
            chosen=choice.where == "here" if here else choice.where == "peer" and line.peer_id == choice.peer_id,
            context_tokens=line.context_tokens, in_flight=busy_here if here else line.in_flight,
            refused_lately=line.refused_lately,
            rtt_ms=None if line.peer_id is None else self._roster.rtt_ms(line.peer_id), quantisation=line.quantisation,
            warm=line.warm, prefix_tokens=line.prefix_tokens, score_s=_seconds(line.score_s), **_parts(line.prediction),
        )


def _parts(prediction: Prediction | None) -> dict[str, float]:
    if prediction is None:
        return {}
    return {
        "wait_s": round(prediction.wait_s, 2), "load_s": round(prediction.load_s, 2),
        "prompt_s": round(prediction.prompt_s, 2), "answer_s": round(prediction.answer_s, 2),
        "total_s": round(prediction.total_s, 2),
    }


def _seconds(value: float | None) -> float | None:
    return None if value is None else round(value, 2)


async def _nothing(_: str) -> bool:
    return False
