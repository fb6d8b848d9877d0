"""Where a heavy job runs: here, at a peer, or nowhere - and why, in words the owner reads.

A pure choice over what is known at this moment: no clock, no network, no engine. Ranking by predicted finish time and
by
energy takes the place of `_rank` later; the shape of a Choice stays.
"""

from dataclasses import dataclass, field
from typing import Literal

__all__ = ["Candidate", "Choice", "JobNeeds", "LocalView", "PeerCandidate", "choose"]

Where = Literal["here", "peer", "nowhere"]

TRUST_ORDER = {"home": 0, "self": 1, "friend": 2}


@dataclass(frozen=True, slots=True)
class JobNeeds:
    """What the job asks for. place: "auto", "local", or a peer's id; prompt_tokens is an estimate."""

    place: str
    prompt_tokens: int
    max_tokens: int
    model: str | None = None

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


@dataclass(frozen=True, slots=True)
class PeerCandidate:
    """One paired peer as seen now. models: (name, digest, context tokens) it offers us."""

    peer_id: str
    name: str
    trust: str
    connected: bool
    grants_infer: bool
    models: tuple[tuple[str, str, int], ...] = ()
    refused_lately: str = ""
    in_flight: int = 0


@dataclass(frozen=True, slots=True)
class Candidate:
    """One line of `kith offload explain`: a place, whether it can, and why. peer_id None is this device.

    model: the one that would run, or the roomiest one there when none can; context_tokens is its room, 0 not known.
    """

    name: str
    able: bool
    reason: str
    peer_id: str | None = None
    model: str | None = None
    context_tokens: int = 0
    in_flight: int = 0
    refused_lately: str = ""


@dataclass(frozen=True, slots=True)
class Choice:
    """Where the job goes. reason is a whole phrase for the owner."""

    where: Where
    reason: str
    peer_id: str | None = None
    peer_name: str = ""
    model_name: str | None = None
    model_digest: str | None = None
    candidates: tuple[Candidate, ...] = field(default=())


def choose(needs: JobNeeds, here: LocalView, peers: tuple[PeerCandidate, ...], *, mode: str) -> Choice:
    """The place for one job. Never raises: "nowhere" carries the reason and what could be done."""
    fits_here, why_here = _here(needs, here)
    judged = [(peer, *_peer(needs, peer, mode)) for peer in peers]
    lines = (
        Candidate(here.node_name, fits_here, why_here, None, here.model_name, here.context_tokens),
        *(_line(peer, able, why, model) for peer, able, why, model in judged),
    )
    able = sorted(
        ((peer, model) for peer, can, _, model in judged if can and model is not None), key=lambda pair: _rank(pair[0])
    )
    if needs.place not in ("auto", "local"):
        return _named(needs, judged, lines)
    if needs.place == "auto" and able:
        peer, model = able[0]
        return Choice(
            "peer", f"heavy work, and {peer.name} is reachable", peer.peer_id, peer.name, model[0], model[1], lines
        )
    if fits_here:
        return Choice("here", _why_local(needs, judged), None, "", here.model_name, here.model_digest, lines)
    elsewhere = "" if needs.place == "local" else "".join(f"; {peer.name}: {why}" for peer, _, why, _ in judged[:3])
    return Choice("nowhere", f"{here.node_name}: {why_here}{elsewhere}", candidates=lines)


Judged = tuple[PeerCandidate, bool, str, tuple[str, str, int] | None]


def _line(peer: PeerCandidate, able: bool, why: str, model: tuple[str, str, int] | None) -> Candidate:
    shown = model or max(peer.models, key=lambda one: one[2], default=(None, "", 0))
    return Candidate(peer.name, able, why, peer.peer_id, shown[0], shown[2], peer.in_flight, peer.refused_lately)


def _here(needs: JobNeeds, here: LocalView) -> tuple[bool, str]:
    if here.model_name is None:
        return False, "no model on this device"
    if needs.model not in (None, here.model_name, here.model_digest):
        return False, f"the model {needs.model} is not on this device"
    if here.context_tokens and needs.context_tokens > here.context_tokens:
        return False, f"needs a context of {needs.context_tokens} tokens, the local model has {here.context_tokens}"
    return True, f"runs {here.model_name}"


def _peer(needs: JobNeeds, peer: PeerCandidate, mode: str) -> tuple[bool, str, tuple[str, str, int] | None]:
    if mode == "offline":
        return False, "this node is offline", None
    if not peer.connected:
        return False, "not reachable now", None
    if not peer.grants_infer:
        return False, "has not granted inference", None
    if peer.refused_lately:
        return False, f"refused a moment ago: {peer.refused_lately}", None
    wanted = [model for model in peer.models if needs.model in (None, model[0], model[1])]
    if not wanted:
        return False, f"does not offer {needs.model}" if needs.model else "offers no model", None
    roomy = [model for model in wanted if model[2] >= needs.context_tokens]
    if not roomy:
        return False, f"its context is too short ({max(model[2] for model in wanted)} tokens)", None
    return True, f"offers {roomy[0][0]}", roomy[0]


def _rank(peer: PeerCandidate) -> tuple[int, int, str]:
    return (peer.in_flight, TRUST_ORDER.get(peer.trust, 9), peer.peer_id)


def _named(needs: JobNeeds, judged: list[Judged], lines: tuple[Candidate, ...]) -> Choice:
    for peer, able, why, model in judged:
        if peer.peer_id == needs.place:
            if able and model is not None:
                return Choice("peer", "you named it", peer.peer_id, peer.name, model[0], model[1], lines)
            return Choice("nowhere", f"{peer.name}: {why}", candidates=lines)
    return Choice("nowhere", "that peer is not paired", candidates=lines)


def _why_local(needs: JobNeeds, judged: list[Judged]) -> str:
    if needs.place == "local":
        return "you asked for this device only"
    if not judged:
        return "no peer is paired"
    return "; ".join(f"{peer.name}: {why}" for peer, _, why, _ in judged[:3])
