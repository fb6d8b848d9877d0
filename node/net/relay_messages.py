"""Messages of circuit relay v2 and of hole punching, as frozen records and back. Pure; must not know streams or peers.

The bytes are made and read by libp2p's generated classes; everything is checked here before anyone acts on it. Sources:
libp2p specifications relay/circuit-v2.md and relay/DCUtR.md. Every message travels behind its length as a varint.
"""

import ipaddress
from dataclasses import dataclass
from enum import IntEnum
from typing import Any, Literal

from google.protobuf.message import DecodeError
from libp2p.peer.id import ID
from libp2p.relay.circuit_v2.pb import circuit_pb2 as circuit
from libp2p.relay.circuit_v2.pb import dcutr_pb2 as dcutr

from node.net.addresses import Address
from node.net.errors import WireError
from protocol.errors import BadFrame
from protocol.ids import public_key_from_peer_id

__all__ = [
    "DCUTR", "HOP", "MAX_MESSAGE_BYTES", "STOP", "BadRelayMessage", "HopReply", "HopRequest", "Punch", "Status",
    "StopRequest", "decode_hop", "decode_hop_reply", "decode_punch", "decode_stop", "decode_stop_reply", "encode_hop",
    "encode_hop_reply", "encode_punch", "encode_stop", "encode_stop_reply",
]

HOP = "/libp2p/circuit/relay/0.2.0/hop"
STOP = "/libp2p/circuit/relay/0.2.0/stop"
DCUTR = "/libp2p/dcutr"
MAX_MESSAGE_BYTES = 4096
MAX_PUNCH_ADDRESSES = 8
_IP4, _IP6, _TCP = b"\x04", b"\x29", b"\x06"


class BadRelayMessage(WireError):
    """A message of a relay, or for one, that breaks the rules."""


class Status(IntEnum):
    """How a request ended, as the specification numbers it."""

    OK = 100
    RESERVATION_REFUSED = 200
    RESOURCE_LIMIT_EXCEEDED = 201
    PERMISSION_DENIED = 202
    CONNECTION_FAILED = 203
    NO_RESERVATION = 204
    MALFORMED_MESSAGE = 400
    UNEXPECTED_MESSAGE = 401


@dataclass(frozen=True, slots=True)
class HopRequest:
    """What a peer asks of a relay: keep a place for it, or a circuit to peer_id."""

    kind: Literal["reserve", "connect"]
    peer_id: str = ""


@dataclass(frozen=True, slots=True)
class HopReply:
    """The relay's answer. expire_s: until when (UTC seconds) a place is kept; 0 limits mean none."""

    status: Status
    expire_s: int = 0
    duration_s: int = 0
    data_bytes: int = 0


@dataclass(frozen=True, slots=True)
class StopRequest:
    """What a relay tells the peer that is called: who calls, and how long and much it will carry."""

    peer_id: str
    duration_s: int = 0
    data_bytes: int = 0


@dataclass(frozen=True, slots=True)
class Punch:
    """One message of the exchange before both sides dial at once."""

    kind: Literal["connect", "sync"]
    addresses: tuple[Address, ...] = ()


def encode_hop(request: HopRequest) -> bytes:
    """For the relay."""
    message: Any = circuit.HopMessage()
    message.type = circuit.HopMessage.RESERVE if request.kind == "reserve" else circuit.HopMessage.CONNECT
    if request.kind == "connect":
        message.peer.id = _peer_bytes(request.peer_id)
    return bytes(message.SerializeToString())


def decode_hop(data: bytes) -> HopRequest:
    """Raises BadRelayMessage."""
    message = _parsed(circuit.HopMessage(), data)
    if message.type == circuit.HopMessage.RESERVE:
        return HopRequest("reserve")
    if message.type == circuit.HopMessage.CONNECT and message.HasField("peer"):
        return HopRequest("connect", _peer_id(message.peer.id))
    raise BadRelayMessage("no request to a relay")


def encode_hop_reply(reply: HopReply) -> bytes:
    """For the peer that asked."""
    message: Any = circuit.HopMessage()
    message.type = circuit.HopMessage.STATUS
    message.status = int(reply.status)
    if reply.expire_s:
        message.reservation.expire = reply.expire_s
    if reply.duration_s or reply.data_bytes:
        message.limit.duration, message.limit.data = reply.duration_s, reply.data_bytes
    return bytes(message.SerializeToString())


def decode_hop_reply(data: bytes) -> HopReply:
    """Raises BadRelayMessage."""
    message = _parsed(circuit.HopMessage(), data)
    if message.type != circuit.HopMessage.STATUS:
        raise BadRelayMessage("no answer of a relay")
    expire_s = message.reservation.expire if message.HasField("reservation") else 0
    limit = message.limit if message.HasField("limit") else circuit.Limit()
    return HopReply(_status(message.status), min(expire_s, 1 << 40), limit.duration, min(limit.data, 1 << 62))


def encode_stop(request: StopRequest) -> bytes:
    """For the peer that is called."""
    message: Any = circuit.StopMessage()
    message.type = circuit.StopMessage.CONNECT
    message.peer.id = _peer_bytes(request.peer_id)
    message.limit.duration, message.limit.data = request.duration_s, request.data_bytes
    return bytes(message.SerializeToString())


def decode_stop(data: bytes) -> StopRequest:
    """Raises BadRelayMessage."""
    message = _parsed(circuit.StopMessage(), data)
    if message.type != circuit.StopMessage.CONNECT or not message.HasField("peer"):
        raise BadRelayMessage("no call through a relay")
    limit = message.limit if message.HasField("limit") else circuit.Limit()
    return StopRequest(_peer_id(message.peer.id), limit.duration, min(limit.data, 1 << 62))


def encode_stop_reply(status: Status) -> bytes:
    """For the relay."""
    message: Any = circuit.StopMessage()
    message.type, message.status = circuit.StopMessage.STATUS, int(status)
    return bytes(message.SerializeToString())


def decode_stop_reply(data: bytes) -> Status:
    """Raises BadRelayMessage."""
    message = _parsed(circuit.StopMessage(), data)
    if message.type != circuit.StopMessage.STATUS:
        raise BadRelayMessage("no answer to a call through a relay")
    return _status(message.status)


def encode_punch(punch: Punch) -> bytes:
    """For the other side; at most 8 addresses are sent."""
    message: Any = dcutr.HolePunch()
    message.type = dcutr.HolePunch.CONNECT if punch.kind == "connect" else dcutr.HolePunch.SYNC
    message.ObsAddrs.extend(_address_bytes(one) for one in punch.addresses[:MAX_PUNCH_ADDRESSES])
    return bytes(message.SerializeToString())


def decode_punch(data: bytes) -> Punch:
    """Addresses that are no IP with a TCP port are left out; 8 are read at most. Raises BadRelayMessage."""
    message = _parsed(dcutr.HolePunch(), data)
    kind: Literal["connect", "sync"] = "connect" if message.type == dcutr.HolePunch.CONNECT else "sync"
    found = (_address(raw) for raw in list(message.ObsAddrs)[:MAX_PUNCH_ADDRESSES])
    return Punch(kind, tuple(one for one in found if one is not None))


def _parsed(message: Any, data: bytes) -> Any:
    if len(data) > MAX_MESSAGE_BYTES:
        raise BadRelayMessage("a message of a relay is too long")
    try:
        message.ParseFromString(data)
        complete = message.IsInitialized() and message.HasField("type")
    except DecodeError as error:
        raise BadRelayMessage("not a message of a relay") from error
    if not complete:
        raise BadRelayMessage("a message of a relay without its kind")
    return message


def _status(number: int) -> Status:
    try:
        return Status(number)
    except ValueError:
        raise BadRelayMessage(f"the relay answered {number}") from None


def _peer_bytes(peer_id: str) -> bytes:
    return bytes(ID.from_string(peer_id).to_bytes())


def _peer_id(raw: bytes) -> str:
    peer_id = str(ID(raw))
    try:
        public_key_from_peer_id(peer_id)
    except BadFrame:
        raise BadRelayMessage("no id of a peer") from None
    return peer_id


def _address_bytes(address: Address) -> bytes:
    ip = ipaddress.ip_address(address.host)
    return (_IP4 if ip.version == 4 else _IP6) + ip.packed + _TCP + address.port.to_bytes(2, "big")


def _address(raw: bytes) -> Address | None:
    size = {_IP4: 4, _IP6: 16}.get(raw[:1])
    if size is None or len(raw) != size + 4 or raw[1 + size : 2 + size] != _TCP:
        return None
    ip = ipaddress.ip_address(raw[1 : 1 + size])
    return Address(f"ip{ip.version}", str(ip), int.from_bytes(raw[-2:], "big"))
