"""Where a heavy job runs: here, at a peer, or nowhere - and why, in words the owner reads.

A pure choice over what is known at this moment: no clock, no network, no engine. Who can run it is a matter of rules
(mode, grant, model, context, privacy); which of those does is a matter of the predicted finish, weighed by whose energy
it costs. Must not know how anything was measured.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Literal

from offload.prediction import UNKNOWN, PlaceFacts, Prediction, Speed, predict

__all__ = ["Candidate", "Choice", "JobNeeds", "LocalView", "Offer", "PeerCandidate", "choose", "duration_in_words"]

Where = Literal["here", "peer", "nowhere"]

TRUST_ORDER = {"home": 0, "self": 1, "friend": 2}

FRIEND_WEIGHT = 1.5
"""A friend's machine is used when it is clearly better than one's own: its energy is a favour."""
BATTERY_WEIGHT = 2.0
"""A place that runs on its battery counts as slower by this."""
HERE_WEIGHT = 2.0
HERE_MARGIN_S = 30.0
"""This device takes a job from an able peer only when the same model would finish here in less than half the time and
half a minute sooner: its energy and quickness are the owner's."""
LOW_BATTERY = 0.2
SWITCH_GAIN = 0.15
SWITCH_GAIN_S = 0.5
"""A conversation moves to another peer for a finish that is sooner by at least this share and these seconds."""


@dataclass(frozen=True, slots=True)
class JobNeeds:
    """What the job asks for. place: "auto", "local", or a peer's id; prompt_tokens is an estimate.

    held: (peer id or None for here, model digest) -> tokens of this prompt that were read there before. last: where the
    conversation was answered last, "" for nowhere yet.
    """

    place: str
    prompt_tokens: int
    max_tokens: int
    model: str | None = None
    held: Mapping[tuple[str | None, str], int] = field(default_factory=lambda: MappingProxyType({}))
    last: str | None = ""

    @property
    def context_tokens(self) -> int:
        """Room that the model's context must have."""
        return self.prompt_tokens + self.max_tokens


@dataclass(frozen=True, slots=True)
class LocalView:
    """This device: its name, and the model it would use (name None: there is none)."""

    node_name: str
    model_name: str | None
    model_digest: str = ""
    context_tokens: int = 0
    speed: Speed = UNKNOWN
    warm: bool = True
    wait_s: float = 0.0
    battery: float | None = None
    """What is left of the battery, 0 to 1, while the device runs on it; None on mains."""


@dataclass(frozen=True, slots=True)
class Offer:
    """One model that a peer offers this node."""

    name: str
    digest: str
    context_tokens: int
    quantisation: str = "unknown"
    warm: bool = True
    speed: Speed = UNKNOWN


@dataclass(frozen=True, slots=True)
class PeerCandidate:
    """One paired peer as seen now. hindrance: why it may not have this work now, in words, beyond what else is here.

    wait_s: the work that is there already, what this node sent lately included. doubted: a spot check found that it
    does not run the model that it names.
    """

    peer_id: str
    name: str
    trust: str
    connected: bool
    grants_infer: bool
    models: tuple[Offer, ...] = ()
    refused_lately: str = ""
    in_flight: int = 0
    wait_s: float = 0.0
    rtt_s: float = 0.0
    saving: bool = False
    max_context: int | None = None
    hindrance: str = ""
    doubted: str = ""


@dataclass(frozen=True, slots=True)
class Candidate:
    """One line of `kith offload explain`: a place, whether it can, and why. peer_id None is this device.

    model: the one that would run, or the roomiest one there when none can; context_tokens is its room, 0 not known.
    score_s: the predicted seconds, weighed; the least one wins.
    """

    name: str
    able: bool
    reason: str
    peer_id: str | None = None
    model: str | None = None
    context_tokens: int = 0
    in_flight: int = 0
    refused_lately: str = ""
    quantisation: str = ""
    warm: bool | None = None
    prefix_tokens: int = 0
    prediction: Prediction | None = None
    score_s: float | None = None


@dataclass(frozen=True, slots=True)
class Choice:
    """Where the job goes. reason is a whole phrase for the owner. work_s: how long the place is at work for it, the
    work that is there already not counted: what a reservation holds."""

    where: Where
    reason: str
    peer_id: str | None = None
    peer_name: str = ""
    model_name: str | None = None
    model_digest: str | None = None
    candidates: tuple[Candidate, ...] = field(default=())
    work_s: float = 0.0


@dataclass(frozen=True, slots=True)
class _Judged:
    """A peer with the model that it would run, or the reason why not."""

    peer: PeerCandidate
    why: str
    offer: Offer | None = None
    prediction: Prediction | None = None
    score_s: float = 0.0
    prefix_tokens: int = 0


def choose(needs: JobNeeds, here: LocalView, peers: tuple[PeerCandidate, ...], *, mode: str) -> Choice:
    """The place for one job. Never raises: "nowhere" carries the reason and what could be done."""
    fits_here, why_here = _here(needs, here)
    own = _predict_here(needs, here)
    judged = [_judge(needs, peer, here, mode) for peer in peers]
    able = sorted((one for one in judged if one.offer is not None), key=_rank)
    lines = (_own_line(here, fits_here, why_here, own, needs), *map(_line, judged))
    if needs.place not in ("auto", "local"):
        return _named(needs, judged, lines)
    local = Choice("here", "", None, "", here.model_name, here.model_digest, lines, own.work_s if own else 0.0)
    if needs.place == "auto" and able:
        best = _keep_or_switch(needs, able)
        if fits_here and own is not None and _better_here(own, here, best):
            gain = duration_in_words(best.prediction.total_s - own.total_s if best.prediction else 0.0)
            return _with_reason(local, f"the same model here is done {gain} before {best.peer.name}")
        return _at(best, _why(best, able, needs), lines)
    if fits_here:
        return _with_reason(local, _why_local(needs, judged))
    elsewhere = "" if needs.place == "local" else "".join(f"; {one.peer.name}: {one.why}" for one in judged[:3])
    return Choice("nowhere", f"{here.node_name}: {why_here}{elsewhere}", candidates=lines)


def duration_in_words(seconds: float) -> str:
    """Seconds as the owner reads them."""
    return f"{seconds:.1f} s" if seconds < 10 else f"{seconds:.0f} s" if seconds < 120 else f"{seconds / 60:.0f} min"


# -- who can --


def _here(needs: JobNeeds, here: LocalView) -> tuple[bool, str]:
    if here.model_name is None:
        return False, "no model on this device"
    if needs.model not in (None, here.model_name, here.model_digest):
        return False, f"the model {needs.model} is not on this device"
    if here.context_tokens and needs.context_tokens > here.context_tokens:
        return False, f"needs a context of {needs.context_tokens} tokens, the local model has {here.context_tokens}"
    return True, f"runs {here.model_name}"


def _judge(needs: JobNeeds, peer: PeerCandidate, here: LocalView, mode: str) -> _Judged:
    why = _hindrance(needs, peer, mode)
    if why:
        return _Judged(peer, why)
    wanted = [offer for offer in peer.models if needs.model in (None, offer.name, offer.digest)]
    if not wanted:
        return _Judged(peer, f"does not offer {needs.model}" if needs.model else "offers no model")
    roomy = [offer for offer in wanted if offer.context_tokens >= needs.context_tokens]
    if not roomy:
        return _Judged(peer, f"its context is too short ({max(one.context_tokens for one in wanted)} tokens)")
    offer = roomy[0]
    prefix = needs.held.get((peer.peer_id, offer.digest), 0)
    same_here = here.speed if offer.digest == here.model_digest else UNKNOWN
    prediction = predict(
        PlaceFacts(offer.speed.filled(same_here), offer.warm, peer.wait_s, peer.rtt_s, prefix),
        prompt_tokens=needs.prompt_tokens, max_tokens=needs.max_tokens,
    )
    weight = (FRIEND_WEIGHT if peer.trust == "friend" else 1.0) * (BATTERY_WEIGHT if peer.saving else 1.0)
    score_s = prediction.total_s * weight
    return _Judged(peer, f"offers {offer.name}", offer, prediction, score_s, prefix)


def _hindrance(needs: JobNeeds, peer: PeerCandidate, mode: str) -> str:
    if mode == "offline":
        return "this node is offline"
    if not peer.connected:
        return "not reachable now"
    if not peer.grants_infer:
        return "has not granted inference"
    if peer.hindrance:
        return peer.hindrance
    if peer.refused_lately:
        return f"refused a moment ago: {peer.refused_lately}"
    if peer.doubted and (needs.place != peer.peer_id or needs.model is not None):
        return peer.doubted     # asked by name it may answer, but not as the model that it was found not to run
    if peer.max_context is not None and needs.context_tokens > peer.max_context:
        return f"the text and its answer are longer than the {peer.max_context:,} tokens it allows this device"
    return ""


# -- which of them --


def _predict_here(needs: JobNeeds, here: LocalView) -> Prediction | None:
    if here.model_name is None:
        return None
    prefix = needs.held.get((None, here.model_digest), 0)
    return predict(
        PlaceFacts(here.speed, here.warm, here.wait_s, 0.0, prefix), prompt_tokens=needs.prompt_tokens,
        max_tokens=needs.max_tokens,
    )


def _here_weight(here: LocalView) -> float:
    return HERE_WEIGHT * (BATTERY_WEIGHT if here.battery is not None else 1.0)


def _better_here(own: Prediction, here: LocalView, best: _Judged) -> bool:
    """Whether the owner's device should do it although a peer can: the same model, and much sooner."""
    if best.offer is None or best.offer.digest != here.model_digest:
        return False
    if here.battery is not None and here.battery < LOW_BATTERY:
        return False
    return own.total_s * _here_weight(here) + HERE_MARGIN_S < best.score_s


def _rank(one: _Judged) -> tuple[float, int, int, str]:
    return (round(one.score_s, 3), one.peer.in_flight, TRUST_ORDER.get(one.peer.trust, 9), one.peer.peer_id)


def _keep_or_switch(needs: JobNeeds, able: list[_Judged]) -> _Judged:
    """The best one; the conversation's last place while nothing is clearly better."""
    best = able[0]
    for one in able:
        if one.peer.peer_id == needs.last and one.peer.trust == best.peer.trust:
            gain_s = one.score_s - best.score_s
            return best if gain_s > SWITCH_GAIN_S and gain_s > SWITCH_GAIN * one.score_s else one
    return best


def _named(needs: JobNeeds, judged: list[_Judged], lines: tuple[Candidate, ...]) -> Choice:
    for one in judged:
        if one.peer.peer_id == needs.place:
            if one.offer is not None:
                return _at(one, "you named it", lines)
            return Choice("nowhere", f"{one.peer.name}: {one.why}", candidates=lines)
    return Choice("nowhere", "that peer is not paired", candidates=lines)


# -- in words --


def _at(one: _Judged, reason: str, lines: tuple[Candidate, ...]) -> Choice:
    assert one.offer is not None
    assert one.prediction is not None
    return Choice(
        "peer", reason, one.peer.peer_id, one.peer.name, one.offer.name, one.offer.digest, lines,
        one.prediction.work_s,
    )


def _with_reason(choice: Choice, reason: str) -> Choice:
    return Choice(
        choice.where, reason, choice.peer_id, choice.peer_name, choice.model_name, choice.model_digest,
        choice.candidates, choice.work_s,
    )


def _why(best: _Judged, able: list[_Judged], needs: JobNeeds) -> str:
    name = best.peer.name
    if len(able) == 1:
        return f"heavy work, and {name} is reachable"
    if best.peer.peer_id == needs.last and best.prefix_tokens:
        return f"heavy work, and {name} has read this conversation already"
    assert best.prediction is not None
    return f"heavy work, and {name} is the first of {len(able)} to be done, in about " \
        f"{duration_in_words(best.prediction.total_s)}"


def _why_local(needs: JobNeeds, judged: list[_Judged]) -> str:
    if needs.place == "local":
        return "you asked for this device only"
    if not judged:
        return "no peer is paired"
    return "; ".join(f"{one.peer.name}: {one.why}" for one in judged[:3])


def _own_line(
    here: LocalView, fits: bool, why: str, own: Prediction | None, needs: JobNeeds
) -> Candidate:
    score_s = None if own is None else own.total_s * _here_weight(here) + HERE_MARGIN_S
    return Candidate(
        here.node_name, fits, why, None, here.model_name, here.context_tokens, warm=here.warm, prediction=own,
        prefix_tokens=needs.held.get((None, here.model_digest), 0), score_s=score_s,
    )


def _line(one: _Judged) -> Candidate:
    peer = one.peer
    shown = one.offer or max(peer.models, key=lambda offer: offer.context_tokens, default=None)
    return Candidate(
        peer.name, one.offer is not None, one.why, peer.peer_id, shown.name if shown else None,
        shown.context_tokens if shown else 0, peer.in_flight, peer.refused_lately, shown.quantisation if shown else "",
        shown.warm if shown else None, one.prefix_tokens, one.prediction, one.score_s if one.offer else None,
    )
