"""Looks, when nothing else is to be done, whether peers run the models that they name. Only where the very same model
is here, only greedy answers, seldom.

What is kept for a check is the request as it left and the first token ids of the answer, in memory, of one answer a
peer. Must not know how likelihoods are computed or judged.
"""

import json
import logging
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import trio

from node.daemon.persevering import Persevering, in_words
from node.store import settings
from node.store.database import Database
from offload.errors import OffloadError
from offload.peer_request import engine_request
from offload.ports import GenerateRequest, ModelInfo
from offload.spot_check import SCORED_TOKENS, Evidence, Verdict
from offload.workload import Ahead
from protocol import limits
from protocol.grants import ANY_MODEL, Grant
from protocol.inference import InferRequest, PromptParts

__all__ = ["SpotChecks"]

log = logging.getLogger(__name__)

LOOK_EVERY_S = 5.0
PAUSE_S = 600.0
"""Between two checks of one peer; the first few come quicker, so that there is something to judge by."""
FIRST_PAUSE_S = 60.0
FIRST_CHECKS = 3
FEWEST_TOKENS = 12
MOST_PROMPT_CHARS = 4000
PEERS_KEPT = 32
_KEY = "doubt:"


class Scorer(Protocol):
    """The engine of this device."""

    async def models(self) -> list[ModelInfo]:
        """The models that are here."""
        ...

    async def score(self, request: GenerateRequest, token_ids: Sequence[int]) -> tuple[list[float], list[float]]:
        """Log-probabilities of tokens, and of the likeliest ones. Raises EngineError."""
        ...


@dataclass(slots=True)
class _Sample:
    request: InferRequest
    digest: str
    token_ids: tuple[int, ...]


@dataclass(slots=True)
class _Subject:
    """What is known of one peer's model."""

    evidence: Evidence
    checks: int = 0
    next_s: float = 0.0


class SpotChecks:
    """One per node. note() is told of answers; run() checks."""

    def __init__(
        self, scorer: Scorer, ahead: Callable[[], Ahead], database: Database,
        doubt: Callable[[str, str], None], publish: Callable[[Mapping[str, Any]], None],
        on_battery: Callable[[], bool] = lambda: False,
    ) -> None:
        """ahead(): what the engine here is at. doubt(peer_id, words): the owner's choice leaves this peer out from now
        on; "" ends that. publish: told of each verdict.
        """
        self._scorer = scorer
        self._ahead = ahead
        self._database = database
        self._doubt = doubt
        self._publish = publish
        self._on_battery = on_battery
        self._samples: OrderedDict[str, _Sample] = OrderedDict()
        self._subjects: dict[tuple[str, str], _Subject] = {}
        self._found: dict[str, dict[str, str]] = {}     # peer id -> digest it names -> what is wrong

    def note(self, peer_id: str, digest: str, request: InferRequest, token_ids: Sequence[int]) -> None:
        """A peer's whole answer, as far as its token ids are known. Keeps the latest one that could be checked."""
        if not _can_be_checked(request, token_ids):
            return
        self._samples[peer_id] = _Sample(request, digest, tuple(token_ids[:SCORED_TOKENS]))
        self._samples.move_to_end(peer_id)
        if len(self._samples) > PEERS_KEPT:
            self._samples.popitem(last=False)

    def forget(self, peer_id: str) -> None:
        """The peer is paired no more."""
        self._samples.pop(peer_id, None)
        self._found.pop(peer_id, None)
        self._subjects = {key: one for key, one in self._subjects.items() if key[0] != peer_id}

    async def recall(self, peers: Sequence[str]) -> None:
        """Doubt again whom an earlier start found wanting."""
        for peer_id in peers:
            kept = await self._database.read(settings.get, _KEY + peer_id)
            found = _decoded(kept) if kept else {}
            if found:
                self._found[peer_id] = found
                self._doubt(peer_id, next(iter(found.values())))

    async def run(self, *, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        """Check what was noted while the engine has nothing to do, until cancelled."""
        task_status.started()
        checking = Persevering("keeping what a spot check found")
        while True:
            await trio.sleep(LOOK_EVERY_S)
            ahead = self._ahead()
            if self._samples and not ahead.running and not ahead.queued and not self._on_battery():
                await checking.attempt(self.check_one)

    async def check_one(self) -> Verdict | None:
        """Check the first sample that is due; None when there is none, or it could not be checked."""
        now_s = trio.current_time()
        for peer_id, sample in list(self._samples.items()):
            subject = self._subjects.setdefault((peer_id, sample.digest), _Subject(Evidence()))
            while len(self._subjects) > 2 * PEERS_KEPT:
                self._subjects.pop(next(iter(self._subjects)))
            if now_s < subject.next_s:
                continue
            del self._samples[peer_id]
            subject.checks += 1
            subject.next_s = now_s + (FIRST_PAUSE_S if subject.checks <= FIRST_CHECKS else PAUSE_S)
            return await self._check(peer_id, sample, subject)
        return None

    async def _check(self, peer_id: str, sample: _Sample, subject: _Subject) -> Verdict | None:
        try:
            model = next((one for one in await self._scorer.models() if one.digest == sample.digest), None)
            if model is None or model.broken:
                return None
            request = engine_request(sample.request, "owner", model, _anything(model))
            chosen, best = await self._scorer.score(request, sample.token_ids)
        except (OffloadError, OSError, trio.TooSlowError) as error:
            log.info("an answer of %s could not be checked: %s", peer_id, in_words(error))
            return None
        verdict = subject.evidence.add(chosen, best)
        await self._judge(peer_id, sample.digest, model.name, verdict)
        return verdict

    async def _judge(self, peer_id: str, digest: str, model: str, verdict: Verdict) -> None:
        """A fit speaks for this digest alone: with the right weights for one a peer must not clear itself of another.
        """
        log.info(
            "spot check of %s: a loss of %.3f a token over %d tokens (%s)", peer_id, verdict.mean_loss, verdict.tokens,
            verdict.fits)
        self._publish({
            "event": "spot_check", "peer_id": peer_id, "model": model, "fits": verdict.fits,
            "loss_per_token": round(verdict.mean_loss, 4), "tokens": verdict.tokens,
        })
        if verdict.fits is None:
            return
        found = self._found.setdefault(peer_id, {})
        if verdict.fits:
            found.pop(digest, None)
        else:
            found[digest] = f"its answers are not those of {model}, which it names"
            log.warning("%s does not run %s, which it names; it is asked by name only from now on", peer_id, model)
        self._doubt(peer_id, next(iter(found.values()), ""))
        await self._database.write(settings.put, _KEY + peer_id, json.dumps(found) if found else "")


def _decoded(kept: str) -> dict[str, str]:
    """Digest -> words, as they were kept; of one digest that is not known where words alone were."""
    try:
        found = json.loads(kept)
    except ValueError:
        return {"": kept}
    return {str(digest): str(words) for digest, words in found.items()} if isinstance(found, dict) else {"": kept}


def _can_be_checked(request: InferRequest, token_ids: Sequence[int]) -> bool:
    """A plain greedy answer from its beginning, long enough, behind a prompt that is quickly read."""
    if request.temperature > 0 or request.resume_cursor or request.tools or request.thinking_tokens:
        return False
    if not isinstance(request.prompt, PromptParts) or len(token_ids) < FEWEST_TOKENS:
        return False
    return sum(len(part.text) for part in request.prompt.parts) <= MOST_PROMPT_CHARS


def _anything(model: ModelInfo) -> Grant:
    """No limit: this is this node's own work."""
    return Grant(
        services=("infer",), models=(ANY_MODEL,), tokens_per_day=limits.MAX_TOKENS_PER_DAY,
        max_context=max(1, model.context_tokens), max_concurrency=1, not_after_s=limits.MAX_SEQ, issued_by="",
        issued_to="", epoch=0,
    )
