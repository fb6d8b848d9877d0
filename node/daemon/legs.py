"""Lets one machine write on an answer, from wherever it stands: a peer, through the guard, or the model here.

Each leg ends in one of four ways: the answer is whole, the machine refused before it wrote, it broke off, or a better
one appeared. Which machine comes next is not decided here. Must not know the router, HTTP, tools or the database.
"""

import hashlib
import logging
from collections.abc import Awaitable, Callable, Sequence
from typing import Protocol

import trio

from node.agent.ports import Leg, ThinkJob
from node.daemon.delivery import Delivery
from node.daemon.under_way import UnderWay
from node.errors import KithError, PeerUnreachable
from node.privacy.carrying import Carried
from node.privacy.consent import ConsentAsker
from node.privacy.egress import Egress, EgressClearance, Part
from node.privacy.labels import owner_text
from node.privacy.policy import PeerView, Purpose
from node.store.answers import KeptPiece
from offload.client import AnswerBroken, ask_peer
from offload.ports import (
    ChatPrompt,
    Engine,
    Failed,
    Finished,
    GenerateRequest,
    Lane,
    Message,
    ModelInfo,
    Piece,
    Queued,
)
from offload.refusals import break_in_words
from offload.router import Choice
from offload.spot_check import SCORED_TOKENS
from offload.turns import joined_turns
from protocol.channel import FrameChannel
from protocol.inference import Admitted, InferRequest, Progress, Progressed, PromptParts, TextArrived
from protocol.inference import Part as WirePart
from protocol.names import INFER

__all__ = ["HandOver", "Legs", "LocalFailure", "OpenChannel", "PeersAtWork", "parts_of"]

log = logging.getLogger(__name__)

DEADLINE_S = 600
OpenChannel = Callable[[str, str], Awaitable[FrameChannel]]
NoteAnswer = Callable[[str, str, InferRequest, Sequence[int]], None]
NoteLeg = Callable[[UnderWay], Awaitable[None]]


class LocalFailure(Exception):
    """The engine here could not write (on). code: the engine's."""

    def __init__(self, failed: Failed) -> None:
        super().__init__(f"The local model could not answer: {failed.message}")
        self.code = failed.code
        self.hint = failed.hint


class HandOver(Exception):
    """A better machine is here now; the leg stopped for it at a definite point."""

    def __init__(self, choice: Choice) -> None:
        super().__init__(choice.reason)
        self.choice = choice


class PeersAtWork(Protocol):
    """What a leg needs to know of peers."""

    async def view(self, peer_id: str, model_digest: str | None) -> PeerView | None:
        """The peer as the guard sees it, with the placeholder style of the model it would run."""
        ...

    def started(self, peer_id: str) -> None:
        """One more request is at work there."""
        ...

    def ended(self, peer_id: str) -> None:
        """One request less."""
        ...


class Legs:
    """Runs legs; any number at once."""

    def __init__(
        self, *, node_name: str, engine: Engine, egress: Egress, peers: PeersAtWork, open_channel: OpenChannel,
        ask: ConsentAsker, note_leg: NoteLeg,
    ) -> None:
        """note_leg: make durable who writes now, before the first byte leaves."""
        self._node_name = node_name
        self._engine = engine
        self._egress = egress
        self._peers = peers
        self._open_channel = open_channel
        self._ask = ask
        self._note_leg = note_leg
        self.note_answer: NoteAnswer = _nobody
        """Told of each whole answer of a peer: its id, the model's digest, the request as it left, the first token ids.
        """

    async def at_peer(
        self, answer: UnderWay, delivery: Delivery, choice: Choice, *, ask: ConsentAsker | None = None,
    ) -> str:
        """The finish reason, once the answer is whole.

        Raises AnswerRefused, EgressDenied, ChannelError, PeerUnreachable while this peer has written nothing, and
        AnswerBroken afterwards. ask: who decides instead of the owner.
        """
        assert choice.peer_id is not None
        peer = await self._peers.view(choice.peer_id, choice.model_digest)
        if peer is None:
            raise PeerUnreachable(f"{choice.peer_name} is no longer paired.")
        job = answer.job
        request_id = _leg_id(job.job_id, len(answer.legs))
        going_on = answer.going_on() if answer.has_begun else None
        clearance = await self._egress.clear(
            peer=peer, purpose=Purpose.INFER, conversation=job.conversation_id, request_id=request_id,
            parts=parts_of(job), ask=ask or self._ask, why=choice.reason, like=going_on,
            in_clear=job.in_clear,
        )
        self._peers.started(peer.peer_id)
        leg = Leg(peer.name, choice.model_name or "", choice.model_digest or "", len(answer.shown),
                  peer_id=peer.peer_id)
        request = _request(answer, clearance, choice, request_id)
        answer.begin_leg(leg, carried=clearance.carried())
        outcome = "failed"
        before = answer.pieces
        try:
            await self._note_leg(answer)
            channel = await self._open_channel(peer.peer_id, INFER)
            ids: list[int] = []
            reply = await ask_peer(
                channel, request, clearance, _unused, _telling(job, peer.name), on_output=_feeding(delivery, ids))
            await delivery.finish()
            outcome = "answered"
            self.note_answer(peer.peer_id, reply.model_digest, request, ids)
            return reply.finish_reason
        except AnswerBroken as broken:
            outcome = f"broken: {broken.reason}"
            log.info("the answer of %s broke off: %s", peer.peer_id, broken.reason)
            answer.end_leg(break_in_words(broken.reason))
            await delivery.settle()
            if answer.pieces == before:
                answer.drop_leg()
            raise
        except trio.Cancelled:
            outcome = "cancelled"
            raise
        except BaseException:
            if answer.pieces == before:
                answer.drop_leg()
            raise
        finally:
            self._peers.ended(peer.peer_id)
            await _close(clearance, outcome)

    async def here(
        self, answer: UnderWay, delivery: Delivery, model: ModelInfo, *, prepared: Carried | None,
        better: Callable[[], Choice | None],
    ) -> str:
        """The finish reason, once the answer is whole. prepared: the masked form, for an answer that begins here and
        may go on at a peer; better: a place to hand over to. Raises LocalFailure, HandOver.
        """
        job = answer.job
        leg = Leg(self._node_name, model.name, model.digest, len(answer.shown))
        lane: Lane = "exact" if answer.stays_exact(model.digest) else "normal"
        ids = answer.ids_for(model.digest)
        answer.begin_leg(leg, carried=prepared)
        await self._note_leg(answer)
        texts = answer.carried.texts if answer.carried is not None else _clear_texts(job)
        count = len(job.parts)
        messages = joined_turns(
            Message(part.role, text) for part, text in zip(job.parts, texts[:count], strict=True))
        request = GenerateRequest(
            request_id=f"{job.job_id}/{len(answer.legs)}", prompt=ChatPrompt(messages), model=model.digest,
            max_tokens=answer.tokens_left, temperature=job.temperature, stop=texts[count:], lane=lane,
            text_so_far=answer.text, thought_so_far=answer.thought, token_ids_so_far=ids,
            calls_so_far=answer.calls if ids else 0, adapter=job.adapter,
        )
        finish_reason = "stop"
        async with self._engine.stream(request) as events:
            async for event in events:
                match event:
                    case Queued(position, expected_s) if position and job.on_note is not None:
                        await job.on_note(_place_here(position, expected_s))
                    case Piece(text, token_ids, thought):
                        tokens = len(token_ids) or int(bool(text or thought))
                        if not await delivery.feed(KeptPiece(text, thought, tokens, token_ids)):
                            finish_reason = "stopped"
                            break
                        if (choice := better()) is not None:
                            await delivery.settle()
                            raise HandOver(choice)
                    case Finished(reason_word):
                        finish_reason = reason_word
                    case Failed() as failed:
                        await delivery.settle()
                        raise LocalFailure(failed)
        await delivery.finish()
        return finish_reason


def parts_of(job: ThinkJob) -> tuple[Part, ...]:
    """Everything of a job that would leave: the prompt's parts, then the stop texts."""
    stops = (Part("stop", owner_text(text)) for text in job.stop)    # words of whoever asks: every net looks at them
    return (*(Part(part.role, part.text) for part in job.parts), *stops)


def _request(answer: UnderWay, clearance: EgressClearance, choice: Choice, request_id: str) -> InferRequest:
    job = answer.job
    count = len(job.parts)
    texts = clearance.texts
    prompt = PromptParts(tuple(WirePart(part.role, text) for part, text in zip(job.parts, texts[:count], strict=True)))
    digest = choice.model_digest or ""
    ids = answer.ids_for(digest) if digest else ()
    return InferRequest(
        request_id=bytes.fromhex(request_id), prompt=prompt, model_digest=choice.model_digest,
        lane="exact" if digest and answer.stays_exact(digest) else "normal", max_tokens=answer.tokens_left,
        temperature=job.temperature, stop=texts[count : count + len(job.stop)], deadline_s=DEADLINE_S,
        text_so_far=answer.text, thought_so_far=answer.thought, token_ids_so_far=ids,
        calls_so_far=answer.calls if ids else 0, resume_cursor=max(1, answer.pieces) if answer.has_begun else 0,
    )


def _leg_id(job_id: str, number: int) -> str:
    """The id of a leg's own request: each is cleared, entered and signed for by itself."""
    if number == 0:
        return job_id
    return hashlib.blake2b(f"{job_id}/{number}".encode(), digest_size=16, person=b"kith-leg").hexdigest()


def _clear_texts(job: ThinkJob) -> tuple[str, ...]:
    return (*(part.text.value for part in job.parts), *job.stop)


def _feeding(delivery: Delivery, ids: list[int]) -> Callable[[TextArrived], Awaitable[bool]]:
    """Passes outputs on; the first of their token ids are kept in ids."""

    async def take(output: TextArrived) -> bool:
        if len(ids) < SCORED_TOKENS:
            ids.extend(output.token_ids)
        return await delivery.feed(KeptPiece(output.text, output.thought, output.tokens, output.token_ids))

    return take


def _nobody(peer_id: str, digest: str, request: InferRequest, token_ids: Sequence[int]) -> None:
    """Nobody checks answers."""


def _telling(job: ThinkJob, name: str) -> Callable[[Admitted | Progressed], Awaitable[None]]:
    """Tells the owner the place in a peer's queue when it changes."""
    told: tuple[int, int | None] = (0, None)

    async def tell(state: Admitted | Progressed) -> None:
        nonlocal told
        expected_s = state.progress.expected_s if isinstance(state, Progressed) else None
        match state:
            case Admitted(queue_position=position) | Progressed(Progress(state="queued", queue_position=position)):
                if (position, expected_s) != told and position and job.on_note is not None:
                    await job.on_note(_in_line(f"{name}: number {position + 1} in its queue", expected_s))
                told = (position, expected_s)
            case Progressed():
                told = (0, None)

    return tell


def _place_here(position: int, expected_s: float | None) -> str:
    """The place in this device's own queue, and when its turn may come, where that is known."""
    return _in_line(f"This device is busy: number {position + 1} in its queue", expected_s)


def _in_line(place: str, expected_s: float | None) -> str:
    return f"{place}." if expected_s is None else f"{place}, about {max(1, round(expected_s))} s."


async def _unused(_: str) -> bool:
    raise AssertionError("outputs are taken whole")  # pragma: no cover


async def _close(clearance: EgressClearance, outcome: str) -> None:
    """Close the ledger entry. A full disk takes nothing from an answer that is there: the next start closes it."""
    try:
        with trio.CancelScope(shield=True):
            await clearance.close(outcome)
    except (KithError, trio.TooSlowError) as error:
        log.warning("a ledger entry stays open until the next start: %s", getattr(error, "code", type(error).__name__))
