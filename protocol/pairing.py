"""Pairing, /kith/pair/1: a scanned secret or a spoken code becomes a proven peer and its card. Runs inside the Noise
channel.

    initiator  IDLE --Open: Start--> OPENED --Reply: PairConfirm--> PROVING --PairConfirm ok----------+
    responder  LISTENING --Start: BurnTry--> BURNING --TryBurned: Reply--> PROVING --PairConfirm ok---+
                                                                                                      v
               DONE <--both accepted-- ASKING <--PairCard ok: AskOwner-- AGREED (key proven, card sent)
    any state  wrong proof or card, wrong frame, refusal, stream closed, time over, owner says no --> FAILED

- One guess per try, and the try is burnt (durably: the driver reports TryBurned) before the first answer. Whatever a
stranger sends first, even garbage, costs a try. Nothing is ever answered in LISTENING or BURNING. - The initiator
proves itself first, so a stranger learns nothing from a responder it cannot convince. - A code or secret is good for
one success: SpendCode comes before the responder's proof. A machine is good for one exchange; a failed code is never
tried again, the owner asks for a new one. - A reflected SPAKE2 message or nonce, a replayed or early frame: FAILED,
refused with a code that says nothing more.

Must not know the try counter's store, trust levels' meaning, or how a person is asked.
"""

import enum
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final, Literal, TypeAlias

import msgspec
from spake2 import SPAKE2_A, SPAKE2_B, SPAKEError
from spake2.ed25519_basic import NotOnCurve

from protocol import canonical, limits
from protocol.errors import LocalProtocolError
from protocol.frames.pairing import (
    CardBody,
    PairAccept,
    PairCard,
    PairConfirm,
    PairFrame,
    PairRefusalCode,
    PairRefused,
    ReplyCode,
    ReplySecret,
    StartCode,
    StartSecret,
)
from protocol.ids import Entropy
from protocol.machine import ChannelBroken, FinishSending, PeerFinished, Received, Send, Tick
from protocol.pairing_keys import Method, PairingKeys, Side, macs_equal
from protocol.words import emoji_check

__all__ = [
    "AskOwner", "BurnTry", "CardBody", "Garbage", "NoTriesLeft", "OpenPairing", "OwnerAccepts", "OwnerDeclines",
    "PairAccept",
    "PairCard", "PairConfirm", "PairFrame", "PairRefusalCode", "PairRefused", "Paired", "PairingFailed",
    "PairingFailure",
    "PairingMachine", "PairingState", "ReplyCode", "ReplySecret", "SpendCode", "StartCode", "StartSecret", "TryBurned",
]

PairingFailure = Literal["no_match", "no_tries", "closed", "expired", "declined", "protocol", "lost"]


class PairingState(enum.Enum):
    """See the drawing above."""

    IDLE = enum.auto()
    OPENED = enum.auto()
    LISTENING = enum.auto()
    BURNING = enum.auto()
    PROVING = enum.auto()
    AGREED = enum.auto()
    ASKING = enum.auto()
    DONE = enum.auto()
    FAILED = enum.auto()


@dataclass(frozen=True, slots=True)
class OpenPairing:
    """Event, initiator: the stream is open."""


@dataclass(frozen=True, slots=True)
class TryBurned:
    """Event, responder: one try was taken off the durable counter; so many are left after it."""

    tries_left: int


@dataclass(frozen=True, slots=True)
class NoTriesLeft:
    """Event, responder: the counter was at zero before."""


@dataclass(frozen=True, slots=True)
class Garbage:
    """Event: the peer sent bytes that are no frame."""


@dataclass(frozen=True, slots=True)
class OwnerAccepts:
    """Event: our owner compared the pictures, read the card and said yes."""


@dataclass(frozen=True, slots=True)
class OwnerDeclines:
    """Event: our owner said no."""


@dataclass(frozen=True, slots=True)
class BurnTry:
    """Command, responder: take one try off the counter, durably, then report TryBurned or NoTriesLeft."""


@dataclass(frozen=True, slots=True)
class SpendCode:
    """Command, responder: the code or secret was proven; make it useless for anyone else, durably, before what
    follows.
    """


@dataclass(frozen=True, slots=True)
class AskOwner:
    """Command: show the peer's card and (after a spoken code) the pictures; report the owner's decision."""

    card: CardBody
    emoji: tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class Paired:
    """Command: both owners accepted; store the peer. The last one."""

    card: CardBody


@dataclass(frozen=True, slots=True)
class PairingFailed:
    """Command: tell that nothing came of it. `by_peer`: the other side said so. The last one."""

    reason: PairingFailure
    by_peer: bool = False


PairingCommand: TypeAlias = Send | FinishSending | BurnTry | SpendCode | AskOwner | Paired | PairingFailed
Commands: TypeAlias = tuple[PairingCommand, ...]

_S = PairingState
_OVER: Final = frozenset({_S.DONE, _S.FAILED})
_BAD_SHARE: Final = (SPAKEError, NotOnCurve, ValueError)


class PairingMachine:
    """One exchange over one stream, either side. Make it with `initiate` or `respond`.

    Events: OpenPairing, Received, TryBurned, NoTriesLeft, Garbage, OwnerAccepts, OwnerDeclines, PeerFinished,
    ChannelBroken, Tick.
    """

    def __init__(
        self,
        side: Side,
        *,
        own_id: str,
        peer_id: str,
        card: CardBody,
        entropy: Entropy,
        code: str | None,
        secret: bytes | None,
    ) -> None:
        """Called by initiate and respond. own_id and peer_id are those that the encrypted channel proved."""
        if own_id == peer_id:
            raise LocalProtocolError("a node cannot pair with itself")
        if secret is not None and len(secret) != limits.SECRET_BYTES:
            raise LocalProtocolError(f"a pairing secret has {limits.SECRET_BYTES} bytes")
        self._side: Side = side
        self._other: Side = "responder" if side == "initiator" else "initiator"
        self._ids = (own_id, peer_id) if side == "initiator" else (peer_id, own_id)
        self._card, self._card_bytes = card, canonical.encode(card)
        self._entropy, self._code, self._secret = entropy, code, secret
        self._method: Method = "secret" if code is None else "code"
        self._spake: Any = None
        self._own_message = b""
        self._keys: PairingKeys | None = None
        self._first: msgspec.Struct | None = None
        self._peer_card: CardBody | None = None
        self._we_accept = self._peer_accepts = False
        self._due_s: float | None = None
        self._may_answer = side == "initiator"
        self.state = _S.IDLE if side == "initiator" else _S.LISTENING

    @classmethod
    def initiate(
        cls,
        *,
        own_id: str,
        peer_id: str,
        card: CardBody,
        entropy: Entropy,
        code: str | None = None,
        secret: bytes | None = None,
    ) -> "PairingMachine":
        """The side that types the code or scans the secret: exactly one of them."""
        if (code is None) == (secret is None):
            raise LocalProtocolError("either a code or a secret")
        return cls("initiator", own_id=own_id, peer_id=peer_id, card=card, entropy=entropy, code=code, secret=secret)

    @classmethod
    def respond(
        cls,
        *,
        own_id: str,
        peer_id: str,
        card: CardBody,
        entropy: Entropy,
        code: str | None = None,
        secret: bytes | None = None,
    ) -> "PairingMachine":
        """The side that shows a code, a secret, or both (the peer chooses)."""
        if code is None and secret is None:
            raise LocalProtocolError("a code or a secret")
        return cls("responder", own_id=own_id, peer_id=peer_id, card=card, entropy=entropy, code=code, secret=secret)

    @property
    def due_s(self) -> float | None:
        """When the present step is given up."""
        return None if self.state in _OVER else self._due_s

    def handle(self, event: object, now_s: float) -> Commands:
        """The commands that follow from one event. A peer's fault never raises: it costs a try and fails the
        pairing.
        """
        if self.state in _OVER:
            return ()
        before = self.state
        commands = self._handle(event, now_s)
        if self.state is not before:
            is_personal = self.state is _S.ASKING
            self._due_s = now_s + (limits.PAIRING_OWNER_TIMEOUT_S if is_personal else limits.PAIRING_STEP_TIMEOUT_S)
        return commands

    def _handle(self, event: object, now_s: float) -> Commands:
        match event:
            case OpenPairing() if self.state is _S.IDLE:
                return self._open()
            case Received(PairRefused(code)) if self.state is not _S.LISTENING:
                return self._fail(code, by_peer=True)
            case Received() | Garbage() if self.state is _S.LISTENING:
                self.state = _S.BURNING
                self._first = event.frame if isinstance(event, Received) else None
                return (BurnTry(),)
            case Received(frame):
                return self._receive(frame)
            case Garbage():
                return self._refuse("protocol")
            case TryBurned() if self.state is _S.BURNING:
                self._may_answer = True
                return self._reply()
            case NoTriesLeft() if self.state is _S.BURNING:
                self._may_answer = True
                return self._refuse("no_tries")
            case OwnerAccepts() if self.state is _S.ASKING and not self._we_accept:
                self._we_accept = True
                return (Send(PairAccept(self._accept_mac(self._side))), *self._complete())
            case OwnerDeclines():
                return self._refuse("declined")
            case PeerFinished() | ChannelBroken():
                return self._fail("lost")
            case Tick():
                if self._due_s is None:  # the first one starts the clock
                    self._due_s = now_s + limits.PAIRING_STEP_TIMEOUT_S
                return self._refuse("expired") if now_s >= self._due_s else ()
        raise LocalProtocolError(f"{type(event).__name__} in state {self.state.name}")

    def _receive(self, frame: msgspec.Struct) -> Commands:
        match frame:
            case ReplyCode(second) | ReplySecret(second) if self.state is _S.OPENED:
                is_expected = isinstance(frame, ReplyCode) == (self._method == "code")
                if not is_expected or not self._agree(self._own_message, second, theirs=second):
                    return self._refuse("no_match")
                self.state = _S.PROVING
                return (Send(PairConfirm(self._known_keys.confirm_mac(self._side))),)
            case PairConfirm(mac) if self.state is _S.PROVING:
                if not macs_equal(mac, self._known_keys.confirm_mac(self._other)):
                    return self._refuse("no_match")
                self.state = _S.AGREED
                card = PairCard(self._card, self._known_keys.card_mac(self._side, self._card_bytes))
                if self._side == "initiator":
                    return (Send(card),)
                return (SpendCode(), Send(PairConfirm(self._known_keys.confirm_mac(self._side))), Send(card))
            case PairCard(body, mac) if self.state is _S.AGREED:
                if not macs_equal(mac, self._known_keys.card_mac(self._other, canonical.encode(body))):
                    return self._refuse("protocol")
                self.state, self._peer_card = _S.ASKING, body
                emoji = emoji_check(self._known_keys.emoji_bytes()) if self._method == "code" else ()
                return (AskOwner(body, emoji),)
            case PairAccept(mac) if self.state is _S.ASKING and not self._peer_accepts:
                if not macs_equal(mac, self._accept_mac(self._other)):
                    return self._refuse("protocol")
                self._peer_accepts = True
                return self._complete()
        return self._refuse("protocol")

    def _open(self) -> Commands:
        self.state = _S.OPENED
        self._own_message = self._make_message()
        start = StartCode(self._own_message) if self._method == "code" else StartSecret(self._own_message)
        return (Send(start),)

    def _reply(self) -> Commands:
        """The responder's answer to the first frame, only now that the try is burnt."""
        match self._first:
            case StartCode(first) if self._code is not None:
                self._method = "code"
            case StartSecret(first) if self._secret is not None:
                self._method = "secret"
            case StartCode() | StartSecret():
                return self._refuse("closed")
            case _:
                return self._refuse("protocol")
        self._own_message = self._make_message()
        if not self._agree(first, self._own_message, theirs=first):
            return self._refuse("no_match")
        self.state = _S.PROVING
        reply = ReplyCode(self._own_message) if self._method == "code" else ReplySecret(self._own_message)
        return (Send(reply),)

    def _make_message(self) -> bytes:
        """Our opening message: a fresh SPAKE2 share for a code, a fresh nonce for a secret."""
        if self._method == "secret":
            return self._entropy.bytes(limits.NONCE_BYTES)
        make: Callable[..., Any] = SPAKE2_A if self._side == "initiator" else SPAKE2_B
        id_a, id_b = (peer_id.encode() for peer_id in self._ids)
        self._spake = make((self._code or "").encode(), idA=id_a, idB=id_b, entropy_f=self._entropy.bytes)
        message: bytes = self._spake.start()
        return message

    def _agree(self, first: bytes, second: bytes, *, theirs: bytes) -> bool:
        """Derive the keys from both opening messages; False when theirs is unusable or our own thrown back."""
        if theirs == self._own_message:
            return False
        try:
            shared = self._secret if self._method == "secret" else self._spake.finish(theirs)
        except _BAD_SHARE:
            return False
        assert shared is not None
        self._keys = PairingKeys(
            shared,
            method=self._method,
            initiator_id=self._ids[0],
            responder_id=self._ids[1],
            first=first,
            second=second,
        )
        return True

    @property
    def _known_keys(self) -> PairingKeys:
        assert self._keys is not None  # set before any state that uses it
        return self._keys

    def _accept_mac(self, side: Side) -> bytes:
        assert self._peer_card is not None
        cards = (self._card_bytes, canonical.encode(self._peer_card))
        initiator_card, responder_card = cards if self._side == "initiator" else reversed(cards)
        return self._known_keys.accept_mac(side, initiator_card, responder_card)

    def _complete(self) -> Commands:
        if not (self._we_accept and self._peer_accepts):
            return ()
        assert self._peer_card is not None
        self.state = _S.DONE
        return (FinishSending(), Paired(self._peer_card))

    def _refuse(self, code: PairRefusalCode) -> Commands:
        answer = (Send(PairRefused(code)),) if self._may_answer else ()
        return (*answer, FinishSending(), *self._fail(code))

    def _fail(self, reason: PairingFailure, *, by_peer: bool = False) -> Commands:
        self.state = _S.FAILED
        return (PairingFailed(reason, by_peer),)
