"""Reaching a peer: every address it was given is tried at once, the first that gets through wins. Must not know libp2p.

libp2p's own connect() tries one address per transport, drops loopback addresses beside others, waits 250 ms first and
remembers a failure for 60 s. And it dials addresses that the peer told it. This dials what it is given and nothing
else.
"""

import os
import socket
from collections.abc import Awaitable, Callable, Sequence
from typing import TypeVar

import trio

from node.errors import KithError
from node.net.addresses import Address
from node.net.errors import BadAddress, DialFailed, RefusedByPeer, reason_of, root_cause
from node.net.outgoing import OutgoingPort

__all__ = ["open_tcp", "race"]

T = TypeVar("T")
W = TypeVar("W")
_MAX_ADDRESSES = 16


async def race(
    candidates: Sequence[W],
    reach: Callable[[W], Awaitable[T]],
    *,
    each_s: float,
    timeout_s: float,
    discard: Callable[[T], None],
) -> T:
    """What reach() returned for the first address that got through; the others are cancelled, late winners discarded.

    Raises RefusedByPeer when some address reached the peer and it hung up on us, else DialFailed; both with the reason
    of each address. A candidate is an address or another way, told apart by its text. At most 16; each_s bounds one of
    them, timeout_s all.
    """
    if not candidates:
        raise DialFailed("No address of this peer is known.")
    winners: list[T] = []
    reasons = {str(address): "no answer in time" for address in candidates[:_MAX_ADDRESSES]}
    refused = False

    async def attempt(address: W) -> None:
        nonlocal refused
        try:
            with trio.fail_after(each_s):
                reached = await reach(address)
        except Exception as error:  # an address that fails in whatever way is one reason in the report
            leaf = root_cause(error)
            refused = refused or isinstance(leaf, RefusedByPeer)
            if not isinstance(leaf, trio.TooSlowError):
                reasons[str(address)] = _in_words(leaf)
            return
        if winners:
            discard(reached)
        else:
            winners.append(reached)
            nursery.cancel_scope.cancel()

    with trio.move_on_after(timeout_s):
        async with trio.open_nursery() as nursery:
            for address in candidates[:_MAX_ADDRESSES]:
                nursery.start_soon(attempt, address)
    if winners:
        return winners[0]
    if refused:
        raise RefusedByPeer(reasons=reasons)
    raise DialFailed(reasons=reasons)


async def open_tcp(address: Address, port: OutgoingPort) -> trio.SocketStream:
    """A TCP connection to this address; a name is looked up first. Raises OSError. The caller sets the deadline."""
    if not address.port:
        raise BadAddress(f"{address} has no port to dial.")
    if not address.is_name:
        return await port.connect(address.family, (address.host, address.port))
    found = await trio.socket.getaddrinfo(
        address.host, address.port, family=address.family, type=socket.SOCK_STREAM
    )
    problem: OSError = OSError(f"{address.host} has no address")
    for family, _kind, _proto, _name, where in found[:4]:
        try:
            return await port.connect(family, where)
        except OSError as error:
            problem = error
    raise problem


def _in_words(leaf: BaseException) -> str:
    if isinstance(leaf, KithError):
        return leaf.text
    if isinstance(leaf, OSError) and leaf.errno is not None and leaf.errno > 0:
        return os.strerror(leaf.errno)
    return reason_of(leaf)
