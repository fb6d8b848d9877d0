"""Two pairing machines that meet: what the tests of pairing share."""

from collections.abc import Callable
from typing import Any

import msgspec
from fixed import SeededEntropy
from frame_samples import PEER_A, PEER_B
from spake2 import SPAKE2_A

from protocol import canonical, names
from protocol.machine import FinishSending, Received, Send
from protocol.pairing import (
    AskOwner,
    BurnTry,
    CardBody,
    NoTriesLeft,
    OpenPairing,
    OwnerAccepts,
    OwnerDeclines,
    Paired,
    PairingFailed,
    PairingMachine,
    SpendCode,
    TryBurned,
)

__all__ = [
    "CODE", "PC", "PHONE", "SECRET", "Meeting", "Tamper", "frames_of_a_meeting", "initiator", "responder",
    "stranger_share",
]


CODE = "7-crossover-clockwork"
SECRET = bytes(range(16))
PHONE = CardBody("phone", "self", (), b"")
PC = CardBody("home-pc", "home", ("/ip4/192.0.2.7/tcp/4001",), b"grant")


def initiator(own: str = PEER_A, peer: str = PEER_B, seed: int = 1, **proof: Any) -> PairingMachine:
    return PairingMachine.initiate(own_id=own, peer_id=peer, card=PHONE, entropy=SeededEntropy(seed), **proof)


def responder(own: str = PEER_B, peer: str = PEER_A, seed: int = 2, **proof: Any) -> PairingMachine:
    return PairingMachine.respond(own_id=own, peer_id=peer, card=PC, entropy=SeededEntropy(seed), **proof)


Tamper = Callable[[str, msgspec.Struct], msgspec.Struct | None]


class Meeting:
    """Both machines, their owners and a try counter, joined by real bytes that `tamper` may change or swallow."""

    def __init__(
        self, near: PairingMachine, far: PairingMachine, *, tries: int = 3, tamper: Tamper | None = None
    ) -> None:
        self.machines = {"initiator": near, "responder": far}
        self.tries, self.burnt, self.spent = tries, 0, 0
        self.tamper = tamper or (lambda side, frame: frame)
        self.told: dict[str, list[Any]] = {"initiator": [], "responder": []}
        self.answered_before_burning = False
        self.yes = {"initiator": True, "responder": True}
        self._queue: list[tuple[str, object]] = [("initiator", OpenPairing())]

    def run(self) -> "Meeting":
        while self._queue:
            side, event = self._queue.pop(0)
            for command in self.machines[side].handle(event, 0.0):
                self._carry_out(side, command)
        return self

    def _carry_out(self, side: str, command: Any) -> None:
        other = "responder" if side == "initiator" else "initiator"
        match command:
            case Send(frame):
                self.answered_before_burning |= side == "responder" and self.burnt == 0 and self.tries > 0
                changed = self.tamper(side, frame)
                if changed is not None:
                    again = canonical.decode(canonical.encode(changed), names.FRAMES[names.PAIR])
                    self._queue.append((other, Received(again)))
            case BurnTry():
                assert side == "responder"
                if self.tries:
                    self.tries, self.burnt = self.tries - 1, self.burnt + 1
                    self._queue.insert(0, (side, TryBurned(self.tries)))
                else:
                    self._queue.insert(0, (side, NoTriesLeft()))
            case SpendCode():
                self.spent += 1
            case AskOwner():
                self.told[side].append(command)
                self._queue.append((side, OwnerAccepts() if self.yes[side] else OwnerDeclines()))
            case Paired() | PairingFailed():
                self.told[side].append(command)
            case FinishSending():
                pass
            case _:
                raise AssertionError(command)

    def paired(self) -> bool:
        return any(isinstance(told, Paired) for side in self.told.values() for told in side)


def stranger_share(code: bytes = b"8-other-words", a: str = PEER_A, b: str = PEER_B) -> bytes:
    share: bytes = SPAKE2_A(code, idA=a.encode(), idB=b.encode(), entropy_f=lambda n: b"\x07" * n).start()
    return share


def frames_of_a_meeting(**proof: Any) -> dict[str, list[msgspec.Struct]]:
    seen: dict[str, list[msgspec.Struct]] = {"initiator": [], "responder": []}

    def record(side: str, frame: msgspec.Struct) -> msgspec.Struct:
        seen[side].append(frame)
        return frame

    assert Meeting(initiator(**proof), responder(**proof), tamper=record).run().paired()
    return seen
