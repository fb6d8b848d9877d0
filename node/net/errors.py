"""Every error of the network, drawn as a tree below the node's own, and the way to the cause inside nested groups.

    KithError
    +-- NetError
    |   +-- ListenError             an address cannot be listened on
    |   |   +-- AddressInUse            another program holds the port
    |   +-- NetworkStopped          the network is not serving now (offline, or shutting down)
    +-- UsageError
    |   +-- BadAddress              text that is no address this node can listen on or dial
    +-- PeerUnreachable
    |   +-- DialFailed              every address failed; the reason of each is kept
    |   +-- NotConnected            no live connection to this peer
    |   +-- OpenFailed              the connection lives, but the peer opened no stream in time
    +-- NotPaired
        +-- RefusedByPeer           the peer proved who it is and hung up: it does not know this node
        +-- ProtocolNotServed       one side does not serve this protocol to the other

    Below them, seen by this package only:
    WireError
    +-- MuxViolation                the peer broke a rule of the multiplexer; its connection is closed
    +-- NegotiationFailed           no protocol was agreed on
    +-- GateRefused                 the peer is not on the allow-list
    +-- TooManyCalls                more handshakes were begun than this node makes in a while

Must not import libp2p: the daemon loads this before the network.
"""

from collections.abc import Mapping

from node.errors import KithError, NotPaired, PeerUnreachable, UsageError
from protocol.errors import ProtocolError

__all__ = [
    "AddressInUse", "BadAddress", "DialFailed", "GateRefused", "ListenError", "MuxViolation", "NegotiationFailed",
    "NetError", "NetworkStopped", "NotConnected", "OpenFailed", "ProtocolNotServed", "RefusedByPeer",
    "TooManyCalls", "WireError", "reason_of", "root_cause",
]


class NetError(KithError):
    """The network failed."""

    code = "net"
    hint = "Run: kith doctor"


class ListenError(NetError):
    """This address cannot be listened on."""

    code = "listen"
    hint = "See the addresses of this machine with: ip -brief address"


class AddressInUse(ListenError):
    """Another program already listens on this address."""

    code = "address_in_use"
    hint = "Choose another port, or port 0 for any free one: kith config explain"


class NetworkStopped(NetError):
    """The network is switched off."""

    code = "network_stopped"
    hint = "Switch it on with: kith mode lan"


class BadAddress(UsageError):
    """This is no network address."""

    code = "bad_address"
    hint = "Write it like /ip4/192.168.1.7/tcp/4711 or /ip6/fd00::7/tcp/4711"


class DialFailed(PeerUnreachable):
    """The peer does not answer on any of its addresses."""

    code = "dial_failed"

    def __init__(self, text: str | None = None, *, reasons: Mapping[str, str] | None = None) -> None:
        """reasons: address -> why it failed, in words."""
        self.reasons = dict(reasons or {})
        listed = "; ".join(f"{address}: {reason}" for address, reason in self.reasons.items())
        super().__init__(text or (f"The peer does not answer. {listed}" if listed else None))


class NotConnected(PeerUnreachable):
    """There is no connection to this peer now."""

    code = "not_connected"


class OpenFailed(PeerUnreachable):
    """The peer is connected but does not answer on a new stream."""

    code = "open_failed"


class RefusedByPeer(NotPaired):
    """The peer is there but hung up: it does not know this device, or has forgotten it."""

    code = "refused_by_peer"
    hint = "Pair the two devices again: kith pair"

    def __init__(self, text: str | None = None, *, reasons: Mapping[str, str] | None = None) -> None:
        """reasons: address -> why it failed, in words."""
        self.reasons = dict(reasons or {})
        super().__init__(text)


class ProtocolNotServed(NotPaired):
    """The peer does not offer this service to this device."""

    code = "protocol_not_served"
    hint = "Compare kith --version on both, and what was granted: kith peers"


class WireError(Exception):
    """A peer broke the rules below the streams."""


class MuxViolation(WireError):
    """The peer broke a rule of the multiplexer; its connection is closed."""


class NegotiationFailed(WireError):
    """The two sides agreed on no protocol."""


class GateRefused(WireError):
    """The peer is not on the allow-list."""


class TooManyCalls(WireError):
    """More handshakes were begun from there, or from anywhere, than this node makes in a while."""


def root_cause(error: BaseException) -> BaseException:
    """The leaf that started it: first members of nested groups, then the chain of causes to its end, or to an error of
    ours, which already says what happened.

    libp2p raises ordinary failures wrapped four to six groups deep; matching a type before unwrapping never matches.
    """
    seen: set[int] = set()
    while id(error) not in seen:
        seen.add(id(error))
        if isinstance(error, BaseExceptionGroup):
            error = error.exceptions[0]
        elif error.__cause__ is not None and not isinstance(error, KithError | ProtocolError):
            error = error.__cause__
    return error


def reason_of(error: BaseException) -> str:
    """A short line for logs and status: the root cause's text, and its type unless it is ours; up to 160 characters."""
    leaf = root_cause(error)
    told = f"{leaf}" if isinstance(leaf, KithError | ProtocolError | WireError) else f"{type(leaf).__name__}: {leaf}"
    return " ".join(told.split())[:160].rstrip(": ")
