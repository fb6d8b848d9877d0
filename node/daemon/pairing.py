"""Pairing as the owner meets it: a window with code and link on one side, code or link typed on the other.

Opens the local network for the window and keeps it after a success; says so. Implements node.api.ports.Pairing. Must
not know the
exchange itself.
"""

import contextlib
import logging
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeVar

import trio

from node.api.ports import Emit
from node.clock import Clock, to_ms
from node.daemon.networking import Networking
from node.daemon.owner import OwnerDesk
from node.daemon.peers import Roster
from node.errors import KithError, PairingClosed, PairingError, UsageError
from node.identity.pair import PairingDriver, PairQuestion
from node.identity.trust import Trust
from node.net.gate import Gate
from node.store.peers import Peer
from protocol import limits
from protocol.channel import FrameChannel
from protocol.names import PAIR
from protocol.pairlink import PairLink, parse_link
from protocol.words import parse_code

__all__ = ["Pairing", "join_addresses"]

log = logging.getLogger(__name__)
T = TypeVar("T")

MEET_TIMEOUT_S = 10.0
TRUSTS = ("home", "self", "friend")
LOOK_EVERY_S = 0.5
TICK_EVERY_S = 30.0
"""A client that hears nothing for a minute or more believes the node dead; a window lasts ten."""
EXPIRED = "Nobody paired before the window closed."
USED_UP = "Nobody paired, and the code is used up: by wrong tries, or by a pairing that was not finished."
FAILED_TRY = "Somebody tried to pair and failed, with a wrong code or by breaking off: {} of {} tries are left."
NO_ADDRESS = "A spoken code carries no address."


@dataclass(frozen=True, slots=True)
class _Asker:
    """Shows the pairing question to whoever listens on this side."""

    desk: OwnerDesk

    async def confirm(self, question: PairQuestion) -> bool:
        """The owner's yes or no."""
        payload: dict[str, Any] = {
            "peer_id": question.peer_id, "peer_name": question.name, "trust": question.our_trust.value,
            "their_trust": question.their_trust.value, "emoji": [list(pair) for pair in question.emoji],
            "fingerprint": list(question.fingerprint),
        }
        reply = await self.desk.check_pairing(payload, limits.PAIRING_OWNER_TIMEOUT_S)
        return reply.get("allow") is True


class Pairing:
    """Windows and joinings of one node; one window at a time."""

    def __init__(
        self, driver: PairingDriver, networking: Networking, gate: Gate, roster: Roster, desk: OwnerDesk, clock: Clock,
        *, lan: Callable[[], Sequence[str]], keep_lan: Callable[[Sequence[str]], None],
        shown: Callable[[], Sequence[str]] | None = None,
        find_windows: Callable[[], Awaitable[list[tuple[str, ...]]]] | None = None,
    ) -> None:
        """lan: the local network's addresses to open for a window. keep_lan: remember them for the next start. shown:
        where this node can be called now, wildcards spelled out. find_windows: nodes of the local network that show a
        code.
        """
        self._driver = driver
        self._networking = networking
        self._gate = gate
        self._roster = roster
        self._desk = desk
        self._asker = _Asker(desk)
        self._emit: Emit | None = None
        self._clock = clock
        self._lan = lan
        self._keep_lan = keep_lan
        self._shown = shown or networking.addresses
        self._find_windows = find_windows
        self._paired: trio.MemorySendChannel[Peer] | None = None
        self._exchanges = 0
        self._tries_left = 0
        self._joining = False

    # -- the side that shows the code --

    async def open(self, trust: str | None, emit: Emit) -> None:
        """Hold a window open until someone paired, its time or its tries ran out, or the owner went away."""
        if self._networking.mode == "offline":
            raise PairingError("This node is offline.", hint="Switch with: kith mode lan")
        await _with_ticks(emit, partial(self._hold_window, _trust(trust), emit))

    async def _hold_window(self, level: Trust, emit: Emit) -> None:
        if self._paired is not None:
            raise PairingError("A pairing window is open already.", hint="Finish or stop the other: kith pair")
        self._paired, arrivals = trio.open_memory_channel[Peer](1)
        self._emit = emit
        added: list[str] = []
        kept = False
        try:
            await self._open_lan(added, emit)
            self._gate.open_pairing()
            opened = await self._driver.open_window(level)
            self._tries_left = opened.tries_left
            remaining_s = max(0.0, (opened.expires_ms - to_ms(self._clock.now())) / 1000)
            await emit({
                "event": "waiting", "code": opened.code, "link": opened.link, "at": self._shown_at(),
                "trust": level.value, "expires_s": remaining_s, "addresses": list(self._shown()),
                "note": _lan_note(added),
            })
            peer, text = None, EXPIRED
            with trio.move_on_after(remaining_s):
                peer, text = await self._next(arrivals), USED_UP
            if peer is None:
                await emit({"event": "expired", "text": text})
                return
            kept = True
            await _tell_paired(peer, emit)
        finally:
            self._paired = self._emit = None
            self._gate.close_pairing()  # first: a disk that fails may not leave it open
            with trio.CancelScope(shield=True):
                try:
                    await self._driver.close_window()
                finally:
                    await self._settle_lan(added, kept=kept)

    async def _next(self, arrivals: trio.MemoryReceiveChannel[Peer]) -> Peer | None:
        """The peer that paired; None once the code is used up and nobody is in the middle of pairing."""
        while True:
            with trio.move_on_after(LOOK_EVERY_S):
                return await arrivals.receive()
            if await self._driver.window() is None and not self._exchanges:
                with contextlib.suppress(trio.WouldBlock):
                    return arrivals.receive_nowait()
                return None

    async def serve(self, channel: FrameChannel) -> None:
        """A stranger's pairing stream. Never raises for what it does."""
        report, emit = self._paired, self._emit
        if report is None or emit is None:
            await channel.reset()
            return
        self._desk.speak_to(emit)  # the stream has a task of its own; its question goes to who opened the window
        self._exchanges += 1
        try:
            peer = await self._driver.respond(channel, self._asker)
            await self._roster.welcome(peer)
            report.send_nowait(peer)
        except PairingError as error:
            log.info("a pairing attempt ended: %s", error.code)
            await self._tell_failed_try(emit)
        except (trio.WouldBlock, trio.BrokenResourceError):
            log.info("paired with %s after the window's owner had left", channel.peer_id)
        finally:
            self._exchanges -= 1

    async def _tell_failed_try(self, emit: Emit) -> None:
        """What the owner of the window should know; its end is told by who holds it open."""
        window = await self._driver.window()
        if window is not None and window.tries_left < self._tries_left and self._emit is emit:
            self._tries_left = window.tries_left
            await emit({"event": "status", "text": FAILED_TRY.format(window.tries_left, limits.PAIRING_TRIES)})

    # -- the side that types it --

    async def join(self, code: str, at: str | None, trust: str | None, emit: Emit) -> None:
        """Prove a code or link to the node that shows it."""
        if self._networking.mode == "offline":
            raise PairingError("This node is offline.", hint="Switch with: kith mode lan")
        if self._joining:
            raise PairingError("This node is joining another one already.", hint="Wait a moment and try again.")
        level = _trust(trust)
        link, spoken = parse_link(code), parse_code(code)
        if link is None and spoken is None:
            raise UsageError("That is neither a pairing code nor a link.", hint="It looks like: 7-crossover-clockwork")
        addresses = join_addresses(at) if at else (link.addresses if link is not None else ())
        if not addresses:
            addresses = await self._look_around(emit)
        if not addresses:
            raise UsageError(NO_ADDRESS, hint="Say where: kith pair CODE --at HOST:PORT")
        self._joining = True
        try:
            with self._gate.meeting(link.peer_id if link is not None else None):
                peer = await _with_ticks(emit, partial(self._prove, addresses, link, spoken, level, emit))
                await self._roster.welcome(peer)
            await _tell_paired(peer, emit)
        except PairingClosed:
            raise PairingClosed("The other node shows no code right now.", hint="Run there: kith pair") from None
        finally:
            self._joining = False

    async def _look_around(self, emit: Emit) -> tuple[str, ...]:
        """Where the one node of the local network is that shows a code; nothing when there is none."""
        if self._find_windows is None:
            return ()
        await emit({"event": "status", "text": "Looking for a node that shows a code on the local network ..."})
        found = await self._find_windows()
        if len(found) > 1:
            raise UsageError(
                f"{len(found)} nodes of this network show a code now.", hint="Say where: kith pair CODE --at HOST:PORT"
            )
        return found[0] if found else ()

    async def _prove(
        self, addresses: Sequence[str], link: PairLink | None, spoken: str | None, level: Trust, emit: Emit
    ) -> Peer:
        """Connect, and take the exchange to its end."""
        await emit({"event": "status", "text": "Connecting ..."})
        peer_id = await self._networking.meet(
            addresses, peer_id=link.peer_id if link is not None else None, timeout_s=MEET_TIMEOUT_S
        )
        channel = await self._networking.open_channel(peer_id, PAIR)
        return await self._driver.initiate(
            channel, self._asker, level, code=None if link is not None else spoken,
            secret=link.secret if link is not None else None,
        )

    # -- the local network during a window --

    async def _open_lan(self, added: list[str], emit: Emit) -> None:
        """Listen on the local network's addresses for the window; added gets those that could be added."""
        present = set(self._networking.addresses())
        for address in self._lan():
            if address in present:
                continue
            try:
                added.append(await self._networking.add_listener(address))
            except KithError as error:
                await emit({"event": "status", "text": f"Not listening on {address}: {error.text}"})

    async def _settle_lan(self, added: Sequence[str], *, kept: bool) -> None:
        if kept:
            if added:
                self._keep_lan(added)
            return
        for address in added:
            try:
                await self._networking.remove_listener(address)
            except KithError as error:
                log.info("a listener was gone before the window closed: %s", error.code)

    def _shown_at(self) -> str:
        """HOST:PORT for the line that the other owner types; the local network's address before loopback."""
        listening = sorted(self._shown(), key=lambda one: "/127." in one or "/::1/" in one)
        for address in listening:
            _, kind, host, _, port, *_ = address.split("/")
            if kind == "ip4":
                return f"{host}:{port}"
        return ""


async def _tell_paired(peer: Peer, emit: Emit) -> None:
    await emit({
        "event": "paired", "name": peer.name, "peer_id": peer.peer_id, "trust": peer.trust,
        "their_trust": peer.their_trust,
    })


async def _with_ticks(emit: Emit, work: Callable[[], Awaitable[T]]) -> T:
    """What work() gives or raises; while it runs the listener hears from this node every TICK_EVERY_S."""
    results: list[T] = []
    failure: Exception | None = None

    async def tick() -> None:
        while True:
            await trio.sleep(TICK_EVERY_S)
            await emit({"event": "tick"})

    async with trio.open_nursery() as nursery:
        nursery.start_soon(tick)
        try:
            results.append(await work())
        except Exception as error:  # raised below, outside the nursery, so that it stays one plain error
            failure = error
        nursery.cancel_scope.cancel()
    if failure is not None:
        raise failure
    return results[0]


def _trust(word: str | None) -> Trust:
    if word is not None and word not in TRUSTS:
        raise UsageError(f"{word!r} is no trust for a pairing.", hint=f"Choose one of: {', '.join(TRUSTS)}")
    return Trust(word or "friend")


def _lan_note(added: Sequence[str]) -> str:
    if not added:
        return ""
    return (
        "This node now also listens on the local network, for this window; a successful pairing keeps it: "
        + ", ".join(added)
    )


def join_addresses(at: str) -> tuple[str, ...]:
    """HOST:PORT or a multiaddr as addresses to dial. Raises UsageError."""
    if at.startswith("/"):
        return (at,)
    host, _, port = at.rpartition(":") if at.count(":") == 1 or at.startswith("[") else (at, "", "")
    host = host.strip("[]")
    if not port.isdecimal() or not 0 < int(port) < 65536 or not host:
        raise UsageError(f"{at!r} names no port.", hint="Say where: kith pair CODE --at HOST:PORT")
    kind = "ip6" if ":" in host else "ip4" if host.replace(".", "").isdecimal() else "dns"
    return (f"/{kind}/{host}/tcp/{port}",)
