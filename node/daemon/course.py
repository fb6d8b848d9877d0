"""The course of one answer: which machine writes next, until it is whole or nobody can go on.

The model that began goes on where there is one; another one only when there is none, and the result says so. Must not
know how a machine is asked, how text is shown, or where anything is kept.
"""

from collections.abc import Awaitable, Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from typing import Protocol

import trio

from node.agent.ports import AUTO, LOCAL, ThinkResult
from node.daemon.delivery import Delivery
from node.daemon.legs import HandOver, Legs, LocalFailure, parts_of
from node.daemon.under_way import UnderWay
from node.errors import KithError, ModelMissing, NotPaired, PeerUnreachable
from node.privacy.carrying import Carried
from node.privacy.consent import ConsentAnswer, ConsentAsker, ConsentQuestion
from node.privacy.egress import Egress
from node.privacy.errors import EgressDenied, HoldsPersonal, NeverForPeer
from node.privacy.policy import PeerView
from offload.client import AnswerBroken, AnswerRefused
from offload.ports import ModelInfo
from offload.refusals import break_in_words
from offload.router import Choice, JobNeeds, LocalView, PeerCandidate, choose
from protocol.errors import ChannelError

__all__ = ["Course", "PeersNow", "Places", "ThinkFailed", "Unasked", "asked_again", "could_go_on"]

MOST_REFUSALS = 2  # of peers, before one of them wrote
MOST_BREAKS = 8  # at peers; after that the answer is finished here
MOST_HAND_OVERS = 2
LEAST_TO_HAND_OVER = 16  # tokens: fewer are written quicker than they are handed over
RETURN_WAIT_S = 60.0  # so long an answer with which nobody can go on waits for somebody who can
LOOK_EVERY_S = 0.25
HAND_OVER_LOOK_S = 0.5
OWN_DEVICES = frozenset({"home", "self"})
GRANT_ENDED = frozenset({"revoked", "grant_expired"})  # or changed: a named peer is asked at once which it is
NO_GRANT = frozenset({"not_granted", "grant_expired"})  # refusals that only a decision of the peer's owner ends


class ThinkFailed(KithError):
    """No model could answer this."""

    code = "think_failed"
    hint = "See why with: kith status, kith models"


class PeersNow(Protocol):
    """Who could compute for us right now."""

    def candidates(self) -> tuple[PeerCandidate, ...]:
        """Every paired peer as seen at this moment."""
        ...

    def served(self, peer_id: str) -> frozenset[str]:
        """The digests of the models that a peer served when it was last here, also while it is away."""
        ...

    async def view(self, peer_id: str, model_digest: str | None) -> PeerView | None:
        """The peer as the guard sees it, with the placeholder style of the model it would run."""
        ...

    def note_refusal(self, peer_id: str, code: str) -> None:
        """Leave this peer alone for a moment, or until it greets again."""
        ...

    def reserved(self, peer_id: str, seconds: float) -> AbstractContextManager[None]:
        """The peer is at work for us for about so long: others that choose meanwhile see it."""
        ...


class Unasked:
    """A ConsentAsker for when nobody shall be asked: no."""

    async def ask(self, question: ConsentQuestion) -> ConsentAnswer:
        """No."""
        return ConsentAnswer(False, question.digest)


@dataclass(frozen=True, slots=True)
class Places:
    """Where an answer can be written, and what is known of that. One for all answers of a node."""

    node_name: str
    legs: Legs
    egress: Egress
    peers: PeersNow
    mode: Callable[[], str]
    default_model: Callable[[], Awaitable[ModelInfo | None]]
    go_on_at_home: bool
    measure: Callable[[LocalView], LocalView] = lambda view: view
    """Adds what is known of this device's speed and work."""
    stopping: Callable[[], bool] = lambda: False
    """Whether the node is about to end."""

    async def here(self) -> LocalView:
        """This device, for the router."""
        model = await self.default_model()
        if model is None:
            return LocalView(self.node_name, None)
        return self.measure(LocalView(
            self.node_name, model.name, model.digest, model.context_tokens, warm=model.loaded))


def could_go_on(places: Places, peer: PeerCandidate, digest: str) -> bool:
    """Whether this peer is here and serves exactly this model."""
    needs = JobNeeds(peer.peer_id, 0, 0, digest)
    return choose(needs, LocalView("", None), (peer,), mode=places.mode()).where == "peer"


def asked_again(peers: Sequence[PeerCandidate], place: str) -> tuple[PeerCandidate, ...]:
    """The peers, where the one that the owner named is asked whatever it said a moment ago."""
    return tuple(replace(peer, refused_lately="") if peer.peer_id == place else peer for peer in peers)


class Course:
    """One answer from its first machine to its last."""

    def __init__(
        self, places: Places, answer: UnderWay, delivery: Delivery, needs: JobNeeds, *, ask: ConsentAsker | None = None,
    ) -> None:
        """ask: who decides instead of the owner what may leave."""
        self._at = places
        self._answer = answer
        self._delivery = delivery
        self._needs = needs
        self._ask = ask
        self._tried: list[str] = []
        self._barred: set[str] = set()
        self._kept_here: set[str] = set()       # peers to whom it is not handed over
        self._only_here = False
        self._refusals = self._breaks = self._hand_overs = 0
        self._look_s = 0.0

    async def run(self) -> ThinkResult:
        """The whole answer, or what there is of it when nobody could go on. Raises KithError when it never began."""
        while True:
            choice = await self._choose()
            if choice.where == "nowhere":
                if not self._answer.has_begun:
                    raise await self._failure(choice)
                found = await self._wait()
                if found is None:
                    return self._broken(choice)
                choice = found
            finish_reason = await self._write(choice)
            if finish_reason is not None:
                return self._result(choice, finish_reason)
            if self._at.stopping() and self._answer.job.keep:
                await trio.sleep_forever()      # the node is about to end: it goes on from here at the next start

    # -- choosing --

    async def _choose(self) -> Choice:
        """The next machine: of those that have the model that wrote so far, else of all."""
        here, peers = await self._at.here(), self._candidates()
        if self._answer.has_begun and self._answer.ids_of:
            same = replace(self._needs, model=self._answer.ids_of)
            choice = choose(same, here, peers, mode=self._at.mode())
            if choice.where != "nowhere":
                return choice
        return choose(self._needs, here, peers, mode=self._at.mode())

    def _candidates(self) -> tuple[PeerCandidate, ...]:
        read_in_clear = self._answer.has_begun and self._answer.carried is None
        if self._only_here or read_in_clear:
            return ()
        peers = tuple(peer for peer in self._at.peers.candidates() if peer.peer_id not in self._barred)
        return peers if self._answer.has_begun else asked_again(peers, self._needs.place)

    async def _wait(self) -> Choice | None:
        """Somebody who can go on, when there is one in time."""
        if not self._may_return():
            return None
        await self._note("Nobody is here to go on with this answer; waiting for a machine that can.")
        with trio.move_on_after(RETURN_WAIT_S):
            while (choice := await self._choose()).where == "nowhere":
                if not self._may_return():
                    return None
                await trio.sleep(LOOK_EVERY_S)
            return choice
        return None

    def _may_return(self) -> bool:
        """Whether anybody could still come who may go on; offline nobody does."""
        if self._at.mode() == "offline":
            return False
        peers = self._candidates()
        if self._needs.place in (AUTO, LOCAL):
            return bool(peers)
        # one that is here and has taken its grant back is not waited for
        return any(peer.peer_id == self._needs.place and (peer.grants_infer or not peer.connected) for peer in peers)

    # -- writing --

    async def _write(self, choice: Choice, *, ask: ConsentAsker | None = None) -> str | None:
        """The finish reason when the answer is whole; None when somebody else has to go on."""
        if self._answer.legs:
            await self._note(f"{self._name_of(choice)} goes on with this answer.")
        try:
            if choice.where == "peer":
                with self._at.peers.reserved(choice.peer_id or "", choice.work_s):  # from the choice on
                    return await self._at.legs.at_peer(self._answer, self._delivery, choice, ask=ask or self._ask)
            return await self._write_here()
        except AnswerBroken as broken:
            self._note_break(choice, broken)
        except (AnswerRefused, EgressDenied, ChannelError, PeerUnreachable) as failure:
            self._note_refusal(choice, failure)
        return None

    async def _write_here(self) -> str | None:
        """As _write(); hands over to the owner's other machine when that is back."""
        model = await self._at.default_model()
        if model is None:
            raise ModelMissing(_join("There is no model on this device", self._tried))
        prepared = await self._prepare(model)
        while True:
            try:
                return await self._at.legs.here(
                    self._answer, self._delivery, model, prepared=prepared, better=self._better)
            except HandOver as better:
                peer_id = better.choice.peer_id or ""
                tried, barred, only_here = list(self._tried), set(self._barred), self._only_here
                before = self._answer.pieces
                finish_reason = await self._write(better.choice, ask=Unasked())
                if finish_reason is not None or self._answer.pieces != before:
                    self._hand_overs += 1
                    self._handed_to = better.choice
                    return finish_reason
                self._kept_here.add(peer_id)      # it was not to be: as if nothing had happened
                self._tried, self._barred, self._only_here = tried, barred, only_here
            except LocalFailure as failure:
                if self._fits_elsewhere(model, failure):
                    return None
                if not (failure.code == "lane_unsupported" and self._answer.has_begun and self._answer.exact):
                    raise ThinkFailed(str(failure), hint=failure.hint or None) from failure
                self._answer.exact = False

    def _fits_elsewhere(self, model: ModelInfo, failure: LocalFailure) -> bool:
        """Whether a prompt that is longer than was thought, and too long for this device, fits at a peer."""
        if failure.code != "prompt_too_long" or self._answer.has_begun:
            return False
        longer = replace(self._needs, prompt_tokens=max(self._needs.prompt_tokens, model.context_tokens))
        if choose(longer, LocalView("", None), self._candidates(), mode=self._at.mode()).where != "peer":
            return False
        self._needs = longer
        self._answer.drop_leg()
        self._tried.append(f"too long for the model of {self._at.node_name}")
        return True

    async def _prepare(self, model: ModelInfo) -> Carried | None:
        """The masked form, when a machine of the owner is away that could go on with this model's answer later."""
        if self._answer.has_begun or not self._may_hand_over() or self._at.egress.always_asks:
            return None
        for peer in self._at.peers.candidates():
            if peer.trust not in OWN_DEVICES or model.digest not in self._at.peers.served(peer.peer_id):
                continue
            view = await self._at.peers.view(peer.peer_id, model.digest)
            if view is None:
                continue
            try:
                return await self._at.egress.prepare(
                    peer=view, conversation=self._answer.job.conversation_id, parts=parts_of(self._answer.job))
            except EgressDenied:
                return None     # it could not go there either way
        return None

    def _may_hand_over(self) -> bool:
        return (
            self._at.go_on_at_home and self._needs.place == AUTO and not self._only_here
            and self._hand_overs < MOST_HAND_OVERS
        )

    def _better(self) -> Choice | None:
        """A machine of the owner that came back and serves the very model that writes here."""
        answer, now_s = self._answer, trio.current_time()
        if now_s < self._look_s or answer.carried is None or not self._may_hand_over():
            return None
        self._look_s = now_s + HAND_OVER_LOOK_S
        if answer.tokens_left < LEAST_TO_HAND_OVER or self._at.egress.always_asks:
            return None
        for peer in self._candidates():
            if peer.trust in OWN_DEVICES and peer.peer_id not in self._kept_here:
                needs = replace(self._needs, place=peer.peer_id, model=answer.ids_of)
                choice = choose(needs, LocalView("", None), (peer,), mode=self._at.mode())
                if choice.where == "peer":
                    return replace(choice, reason=f"{peer.name} is back and has the same model")
        return None

    # -- what went wrong --

    def _note_break(self, choice: Choice, broken: AnswerBroken) -> None:
        why = break_in_words(broken.reason)
        said = "stopped in mid-answer" if self._answer.has_begun else "did not answer"
        self._tried.append(f"{choice.peer_name} {said} ({why})")
        self._breaks += 1
        self._only_here = self._only_here or self._breaks >= MOST_BREAKS
        if not (self._needs.place != AUTO and broken.reason in GRANT_ENDED):
            self._at.peers.note_refusal(choice.peer_id or "", why)
        if not self._answer.has_begun and self._needs.place != AUTO:
            raise PeerUnreachable(f"{choice.peer_name} did not answer: {why}.") from broken

    def _note_refusal(self, choice: Choice, failure: Exception) -> None:
        answer, peer_id = self._answer, choice.peer_id or ""
        if answer.has_begun and answer.exact and getattr(failure, "code", "") == "lane_unsupported":
            answer.exact = False
            return
        if self._needs.place != AUTO and not answer.has_begun:
            raise _as_kith_error(failure, choice.peer_name) from failure
        self._tried.append(f"{choice.peer_name}: {failure}")
        self._refusals += 1
        if isinstance(failure, EgressDenied):
            # what may not leave for one peer may, as a rule, not leave for the next one either
            self._barred.add(peer_id)
            may_differ = answer.has_begun and isinstance(failure, NeverForPeer | HoldsPersonal)
            self._only_here = self._only_here or not may_differ
            return
        self._at.peers.note_refusal(peer_id, str(failure))
        if self._needs.place != AUTO and getattr(failure, "code", "") in NO_GRANT:
            self._barred.add(peer_id)       # it may have been told of the end of the grant before this device was
        if not answer.has_begun and self._refusals >= MOST_REFUSALS:
            self._only_here = True

    async def _failure(self, choice: Choice) -> KithError:
        """Which error says best why it runs nowhere: it decides the exit code."""
        peers = self._at.peers.candidates()
        here = await self._at.here()
        named = next((peer for peer in peers if peer.peer_id == self._needs.place), None)
        text = _join(f"This cannot be answered now: {choice.reason}", self._tried)
        if named is not None and (self._at.mode() == "offline" or not named.connected):
            return PeerUnreachable(text)
        if named is not None and not named.grants_infer:
            return NotPaired(text, hint="Its owner may allow it: kith grant edit; see: kith peers")
        if named is None and here.model_name is None:
            return ModelMissing(text)
        if named is not None and named.hindrance:
            return ThinkFailed(text, hint="See why with: kith offload explain, kith privacy; or stay here: --local")
        return ThinkFailed(text)

    # -- results --

    def _result(self, choice: Choice, finish_reason: str) -> ThinkResult:
        answer = self._answer
        last = answer.legs[-1]
        if len(answer.legs) > 1:
            switched = any(leg.digest != last.digest for leg in answer.legs)
            model = f" with another model, {last.model}" if switched else ""
            stopped = [f"{leg.ran_on} was cut off ({leg.ended})" for leg in answer.legs[:-1]]
            reason = "; ".join([*(self._tried or stopped), f"{last.ran_on} went on from there{model}"])
        elif self._tried and self._breaks:
            reason = "; ".join(self._tried)
        else:
            reason = _join(choice.reason, self._tried) or "; ".join(self._tried)
        away = bool(self._tried) or any(line.peer_id is not None and not line.able for line in choice.candidates)
        return ThinkResult(
            answer.shown, last.ran_on, reason, finish_reason, last.model, last.peer_id, tuple(answer.legs),
            exact=answer.exact, draft=away and last.peer_id is None and self._needs.place == AUTO,
        )

    def _broken(self, choice: Choice) -> ThinkResult:
        answer = self._answer
        last = answer.legs[-1] if answer.legs else None
        reason = _join(f"nobody could go on: {choice.reason}", self._tried)
        return ThinkResult(
            answer.shown, last.ran_on if last else self._at.node_name, reason, "broken", last.model if last else "",
            last.peer_id if last else None, tuple(answer.legs),
        )

    def _name_of(self, choice: Choice) -> str:
        return choice.peer_name if choice.where == "peer" else "This device"

    async def _note(self, text: str) -> None:
        if self._answer.job.on_note is not None:
            await self._answer.job.on_note(text)


def _join(reason: str, tried: list[str]) -> str:
    """What was tried and the reason, without saying the same refusal twice."""
    return "; ".join([*(one for one in tried if one.rpartition(": ")[2] not in reason), reason])


def _as_kith_error(failure: Exception, peer_name: str) -> KithError:
    if isinstance(failure, KithError):
        return failure
    return PeerUnreachable(f"{peer_name} did not answer: {failure}")
