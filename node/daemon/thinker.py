"""Runs heavy work where the router says: at a peer, through the guard, or on this device. The owner reads one
continuous answer.

When a peer refuses, is away, or dies in the middle, the local model goes on from the exact text already shown, on the
masked words;
placeholders are filled in here, while streaming. Implements node.agent.ports.Thinker. Must not know HTTP, tools or
the database.
"""

import logging
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from typing import Protocol

import trio

from node.agent.ports import AUTO, ThinkJob, ThinkResult
from node.errors import KithError, ModelMissing, NotPaired, PeerUnreachable
from node.privacy.consent import ConsentAsker
from node.privacy.egress import Egress, EgressClearance, Part
from node.privacy.errors import EgressDenied
from node.privacy.labels import public_text
from node.privacy.policy import PeerView, Purpose
from offload.client import AnswerBroken, AnswerRefused, ask_peer
from offload.ports import ChatPrompt, Engine, Failed, Finished, GenerateRequest, Message, ModelInfo, Piece
from offload.refusals import break_in_words
from offload.router import Choice, JobNeeds, LocalView, PeerCandidate, choose
from offload.turns import joined_turns
from protocol.channel import FrameChannel
from protocol.errors import ChannelError
from protocol.inference import InferRequest, PromptParts
from protocol.inference import Part as WirePart
from protocol.names import INFER

__all__ = ["PeerDirectory", "ThinkFailed", "Thinker"]

log = logging.getLogger(__name__)

CHARS_PER_TOKEN = 3  # a careful estimate; the engine counts exactly
DEADLINE_S = 600
MAX_ATTEMPTS_AT_PEERS = 2


class ThinkFailed(KithError):
    """No model could answer this."""

    code = "think_failed"
    hint = "See why with: kith status, kith models"


class PeerDirectory(Protocol):
    """Who could compute for us right now."""

    def candidates(self) -> tuple[PeerCandidate, ...]:
        """Every paired peer as seen at this moment."""
        ...

    async def view(self, peer_id: str, model_digest: str | None) -> PeerView | None:
        """The peer as the guard sees it, with the placeholder style of the model it would run."""
        ...

    def find(self, name: str) -> str:
        """The id of the peer that the owner named. Raises UnknownPeer or AmbiguousPeer."""
        ...

    def note_refusal(self, peer_id: str, code: str) -> None:
        """Remember for a moment that this peer refused."""
        ...

    def started(self, peer_id: str) -> None:
        """One more request is at work there."""
        ...

    def ended(self, peer_id: str) -> None:
        """One request less."""
        ...


OpenChannel = Callable[[str, str], Awaitable[FrameChannel]]


@dataclass(slots=True)
class _Shown:
    """What the owner has seen, and the masked text that it stands for."""

    text: str = ""
    masked: str = ""
    wanted: bool = True


class Thinker:
    """One per node; think() may run many times at once."""

    def __init__(
        self,
        *,
        node_name: str,
        engine: Engine,
        egress: Egress,
        peers: PeerDirectory,
        open_channel: OpenChannel,
        ask: ConsentAsker,
        mode: Callable[[], str],
        default_model: Callable[[], Awaitable[ModelInfo | None]],
    ) -> None:
        self._node_name = node_name
        self._engine = engine
        self._egress = egress
        self._peers = peers
        self._open_channel = open_channel
        self._ask = ask
        self._mode = mode
        self._default_model = default_model

    async def think(self, job: ThinkJob) -> ThinkResult:
        """The finished answer. Raises KithError when it can run nowhere, or not where the owner said."""
        needs = self._needs(job)
        place = needs.place
        tried: list[str] = []
        for _ in range(MAX_ATTEMPTS_AT_PEERS):
            here, peers = await self._here(), self._peers.candidates()
            choice = choose(needs, here, peers, mode=self._mode())
            if choice.where == "nowhere":
                kind = _kind_of_failure(place, here, peers, self._mode())
                raise kind(_join(f"This cannot be answered now: {choice.reason}", tried))
            if choice.where == "here":
                return await self._think_here(job, _join(choice.reason, tried), _Shown())
            try:
                return await self._think_there(job, choice)
            except (AnswerRefused, EgressDenied, ChannelError, PeerUnreachable) as failure:
                if place != AUTO:
                    raise _as_kith_error(failure, choice.peer_name) from failure
                tried.append(_in_words(failure, choice.peer_name))
                if isinstance(failure, EgressDenied):
                    break  # what may not leave for one peer may not leave for the next one either
                assert choice.peer_id is not None
                self._peers.note_refusal(choice.peer_id, _in_words(failure, ""))
        return await self._think_here(job, "; ".join(tried), _Shown())

    async def explain(self, job: ThinkJob) -> tuple[JobNeeds, Choice]:
        """What this job needs and where it would go now, with every place considered. Runs and sends nothing.

        Raises UnknownPeer, AmbiguousPeer.
        """
        needs = self._needs(job)
        return needs, choose(needs, await self._here(), self._peers.candidates(), mode=self._mode())

    def _needs(self, job: ThinkJob) -> JobNeeds:
        place = job.place if job.place in ("auto", "local") else self._peers.find(job.place)
        chars = sum(len(part.text.value) for part in job.parts)
        return JobNeeds(place, chars // CHARS_PER_TOKEN + 64, job.max_tokens, job.model)

    async def _here(self) -> LocalView:
        model = await self._default_model()
        if model is None:
            return LocalView(self._node_name, None)
        return LocalView(self._node_name, model.name, model.digest, model.context_tokens)

    async def _think_there(self, job: ThinkJob, choice: Choice) -> ThinkResult:
        """At the chosen peer; goes on here when it dies in mid-answer. Raises only while nothing has been shown."""
        assert choice.peer_id is not None
        peer = await self._peers.view(choice.peer_id, choice.model_digest)
        if peer is None:
            raise PeerUnreachable(f"{choice.peer_name} is no longer paired.")
        stops = (Part("stop", public_text(text, source="kith")) for text in job.stop)
        parts = (*(Part(part.role, part.text) for part in job.parts), *stops)
        clearance = await self._egress.clear(
            peer=peer, purpose=Purpose.INFER, conversation=job.conversation_id, request_id=job.job_id, parts=parts,
            ask=self._ask, why=choice.reason,
        )
        shown = _Shown()
        show = _Rehydrating(job, clearance, shown)
        self._peers.started(peer.peer_id)
        outcome = "failed"
        try:
            finish_reason = await self._stream_from(peer, job, choice, clearance, show)
            outcome = "answered"
            return ThinkResult(
                shown.text, peer.name, choice.reason, finish_reason, choice.model_name or "", peer.peer_id
            )
        except AnswerBroken as broken:
            outcome = f"broken: {broken.reason}"
            log.info("the answer of %s broke off: %s", peer.peer_id, broken.reason)
            why = break_in_words(broken.reason)
            reason = f"{peer.name} stopped in mid-answer ({why}); this device went on from there"
            if not shown.text:
                reason = f"{peer.name} did not answer ({why})"
            rest = replace(job, max_tokens=max(1, broken.resume.tokens_left))
            return await self._go_on_here(rest, clearance, reason, shown, show)
        except trio.Cancelled:
            outcome = "cancelled"
            raise
        finally:
            self._peers.ended(peer.peer_id)
            await _close(clearance, outcome)

    async def _stream_from(
        self, peer: PeerView, job: ThinkJob, choice: Choice, clearance: EgressClearance, show: "_Rehydrating"
    ) -> str:
        channel = await self._open_channel(peer.peer_id, INFER)
        count = len(job.parts)
        texts, stop = clearance.texts[:count], clearance.texts[count:]
        prompt = PromptParts(tuple(WirePart(part.role, text) for part, text in zip(job.parts, texts, strict=True)))
        request = InferRequest(
            request_id=bytes.fromhex(job.job_id), prompt=prompt, model_digest=choice.model_digest,
            max_tokens=job.max_tokens, temperature=job.temperature, stop=stop, deadline_s=DEADLINE_S,
        )
        answer = await ask_peer(channel, request, clearance, show.feed)
        await show.end()
        return answer.finish_reason

    async def _go_on_here(
        self, job: ThinkJob, clearance: EgressClearance, reason: str, shown: _Shown, show: "_Rehydrating"
    ) -> ThinkResult:
        """Continue the masked answer with the local model; the same map fills the names in."""
        messages = joined_turns(
            Message(part.role, text) for part, text in zip(job.parts, clearance.texts, strict=False)
        )
        return await self._run_engine(job, messages, reason, shown, show)

    async def _think_here(self, job: ThinkJob, reason: str, shown: _Shown) -> ThinkResult:
        messages = joined_turns(Message(part.role, part.text.value) for part in job.parts)
        return await self._run_engine(job, messages, reason, shown, _Plain(job, shown))

    async def _run_engine(
        self, job: ThinkJob, messages: tuple[Message, ...], reason: str, shown: _Shown, show: "_Plain | _Rehydrating"
    ) -> ThinkResult:
        model = await self._default_model()
        if model is None:
            raise ModelMissing(_join("There is no model on this device", [reason]))
        request = GenerateRequest(
            request_id=job.job_id, prompt=ChatPrompt(messages), max_tokens=job.max_tokens, temperature=job.temperature,
            stop=job.stop, text_so_far=shown.masked, model=model.digest,
        )
        finish_reason = "stop"
        async with self._engine.stream(request) as events:
            async for event in events:
                match event:
                    case Piece(text) if text:
                        if not await show.feed(text):
                            finish_reason = "stopped"
                            break
                    case Finished(reason_word):
                        finish_reason = reason_word
                    case Failed(message=message, hint=hint):
                        raise ThinkFailed(f"The local model could not answer: {message}", hint=hint or None)
        await show.end()
        return ThinkResult(shown.text, self._node_name, reason, finish_reason, model.name, None)


class _Plain:
    """Shows text as it comes."""

    def __init__(self, job: ThinkJob, shown: _Shown) -> None:
        self._job = job
        self._shown = shown

    async def feed(self, text: str) -> bool:
        self._shown.text += text
        self._shown.masked += text
        self._shown.wanted = await self._job.on_text(text)
        return self._shown.wanted

    async def end(self) -> None:
        """Nothing is held back."""


class _Rehydrating:
    """Fills placeholders in before text is shown; one object serves the whole answer, whoever computes the rest of
    it."""

    def __init__(self, job: ThinkJob, clearance: EgressClearance, shown: _Shown) -> None:
        self._job = job
        self._shown = shown
        self._rehydrator = clearance.rehydrator()

    async def feed(self, text: str) -> bool:
        self._shown.masked += text
        return await self._show(self._rehydrator.feed(text))

    async def end(self) -> None:
        await self._show(self._rehydrator.end())

    async def _show(self, text: str) -> bool:
        if text:
            self._shown.text += text
            self._shown.wanted = await self._job.on_text(text)
        return self._shown.wanted


async def _close(clearance: EgressClearance, outcome: str) -> None:
    """Close the ledger entry. A full disk takes nothing from an answer that is there: the next start closes it."""
    try:
        with trio.CancelScope(shield=True):
            await clearance.close(outcome)
    except (KithError, trio.TooSlowError) as error:
        log.warning("a ledger entry stays open until the next start: %s", getattr(error, "code", type(error).__name__))


def _kind_of_failure(place: str, here: LocalView, peers: tuple[PeerCandidate, ...], mode: str) -> type[KithError]:
    """Which error says best why a job runs nowhere: it decides the exit code."""
    named = next((peer for peer in peers if peer.peer_id == place), None)
    if named is not None and (mode == "offline" or not named.connected):
        return PeerUnreachable
    if named is not None and not named.grants_infer:
        return NotPaired
    if named is None and here.model_name is None:
        return ModelMissing
    return ThinkFailed


def _join(reason: str, tried: list[str]) -> str:
    """What was tried and the reason, without saying the same refusal twice."""
    return "; ".join([*(one for one in tried if one.rpartition(": ")[2] not in reason), reason])


def _in_words(failure: Exception, peer_name: str) -> str:
    said = str(failure)
    return f"{peer_name}: {said}" if peer_name else said


def _as_kith_error(failure: Exception, peer_name: str) -> KithError:
    if isinstance(failure, KithError):
        return failure
    return PeerUnreachable(f"{peer_name} did not answer: {failure}")
