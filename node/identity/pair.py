"""Drives protocol.pairing over a channel, either side: durable tries, the owner's yes, and both peers stored at once.

The machine decides what is said; this module carries out its commands and keeps time. It must not know the network: the
channel comes from the caller, and so do the addresses to tell.
"""

import logging
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

import trio

from node.clock import Clock, Entropy, to_ms
from node.errors import PairingClosed, PairingError, PairingInterrupted, PairingRefused, UsageError
from node.identity import granting
from node.identity.keystore import Identity
from node.identity.peerbook import free_name
from node.identity.trust import DEFAULT_TERMS, Trust
from node.store import grants, pairing, peers
from node.store.connection import Connection
from node.store.database import Database
from node.store.pairing import Window
from node.store.peers import Peer
from protocol import limits
from protocol import pairing as machine
from protocol.channel import FrameChannel
from protocol.errors import ChannelClosed, ChannelError, DeadlinePassed, ProtocolError
from protocol.grants import Grant
from protocol.ids import fingerprint_words
from protocol.machine import ChannelBroken, FinishSending, PeerFinished, Received, Send, Tick
from protocol.pairing import PairingMachine
from protocol.pairlink import PairLink, format_link
from protocol.words import new_code

__all__ = ["OpenedWindow", "PairAsker", "PairQuestion", "PairingDriver"]

log = logging.getLogger(__name__)

MAX_EXCHANGES = 3
_RESET_S = 2.0
_FINISH_S = 5.0
_ANSWER_MARGIN_S = 1.0  # our no leaves before the other side gives up waiting for it
_EVENT_LIMIT = 8

_NO_MATCH_HINT = "If another code is shown there, or none, open a new window there: kith pair"

_FAILURES: dict[str, tuple[type[PairingError], str]] = {
    "no_match": (
        PairingRefused, "The codes do not match; nothing was stored. Check what is shown on the other device; it takes "
        "a few tries at most.",
    ),
    "no_tries": (PairingRefused, "Too many wrong tries. The pairing window is closed; open a new one."),
    "closed": (PairingClosed, "The other device is not waiting for this kind of pairing."),
    "expired": (PairingInterrupted, "The pairing took too long and was given up; nothing was stored."),
    "declined": (PairingRefused, "The pairing was declined; nothing was stored."),
    "protocol": (PairingRefused, "The other device did not follow the pairing protocol; nothing was stored."),
    "lost": (PairingInterrupted, "The connection broke before both devices had confirmed; nothing was stored."),
}


@dataclass(frozen=True, slots=True)
class PairQuestion:
    """What the owner confirms: who it is, what each will be to the other, and the pictures to compare."""

    peer_id: str
    name: str
    their_trust: Trust
    """What we will be to them."""
    our_trust: Trust
    emoji: tuple[tuple[str, str], ...]
    """(picture, word) after a spoken code; both screens must show the same. Empty after a scanned link."""
    fingerprint: tuple[str, ...]


class PairAsker(Protocol):
    """Asks the owner; no answer in time counts as no."""

    async def confirm(self, question: PairQuestion) -> bool:
        """Whether the owner wants this pairing. Cancelled when the other side gives up first."""
        ...


@dataclass(frozen=True, slots=True)
class OpenedWindow:
    """What to show: the code to read out and the link for the picture."""

    code: str
    link: str
    trust: Trust
    tries_left: int
    expires_ms: int


class PairingDriver:
    """Opens windows, answers and starts pairings of one node."""

    def __init__(
        self, *, database: Database, identity: Identity, clock: Clock, entropy: Entropy, node_name: Callable[[], str],
        addresses: Callable[[], Sequence[str]],
    ) -> None:
        """node_name and addresses: what our card says, asked when it is made."""
        self._database = database
        self._identity = identity
        self._clock = clock
        self._entropy = entropy
        self._node_name = node_name
        self._addresses = addresses
        self._running = 0

    async def open_window(self, trust: Trust) -> OpenedWindow:
        """A window of 10 minutes and 3 tries for one new peer, `trust` to the owner. Replaces an open window."""
        _check_trust(trust)
        now_ms = to_ms(self._clock.now())
        code, secret = new_code(self._entropy), self._entropy.bytes(limits.SECRET_BYTES)
        expires_ms = now_ms + int(limits.PAIRING_WINDOW_S * 1000)
        window = Window(code, secret, trust, limits.PAIRING_TRIES, now_ms, expires_ms)
        await self._database.write(pairing.open_window, window)
        link = format_link(PairLink(self._identity.peer_id, secret, self._told_addresses()))
        return OpenedWindow(code, link, trust, window.tries_left, expires_ms)

    async def close_window(self) -> None:
        """Close the window if one is open; its code and link are void."""
        await self._database.write(pairing.close)

    async def window(self) -> Window | None:
        """The window that is open now."""
        return await self._database.read(pairing.current, to_ms(self._clock.now()))

    async def respond(self, channel: FrameChannel, asker: PairAsker) -> Peer:
        """The new peer, stored, after a stranger's stream was taken through the whole exchange.

        Raises PairingClosed without a word to the stranger when no window is open or too many try at once; any other
        PairingError when nothing came of it. The channel is finished or reset afterwards.
        """
        window = await self.window()
        if window is None or self._running >= MAX_EXCHANGES:
            await channel.reset()
            raise PairingClosed
        trust = Trust(window.trust)
        self._running += 1
        try:
            card, grant = await self._make_card(channel.peer_id, trust)
            exchange = PairingMachine.respond(
                own_id=self._identity.peer_id, peer_id=channel.peer_id, card=card, entropy=self._entropy,
                code=window.code, secret=window.secret,
            )
            return await _Exchange(self, channel, exchange, asker, trust, grant, window).run(())
        finally:
            self._running -= 1

    async def initiate(
        self, channel: FrameChannel, asker: PairAsker, trust: Trust, *, code: str | None = None,
        secret: bytes | None = None,
    ) -> Peer:
        """The new peer, stored, after proving the code that was heard or the secret that was scanned.

        Raises a PairingError when nothing came of it. The channel is finished or reset afterwards.
        """
        _check_trust(trust)
        card, grant = await self._make_card(channel.peer_id, trust)
        exchange = PairingMachine.initiate(
            own_id=self._identity.peer_id, peer_id=channel.peer_id, card=card, entropy=self._entropy, code=code,
            secret=secret,
        )
        return await _Exchange(self, channel, exchange, asker, trust, grant, None).run((machine.OpenPairing(),))

    async def burn_try(self, window: Window) -> int | None:
        """Tries left after this one, durable when it returns; None when this attempt is not allowed."""
        return await self._database.write(pairing.burn_try, to_ms(self._clock.now()), window)

    async def spend(self, window: Window) -> bool:
        """Whether this window's secrets had not been used yet; durably used when it returns."""
        return await self._database.write(pairing.spend, window)

    def read_grant(self, card: machine.CardBody, peer_id: str) -> Grant | None:
        """The grant in a peer's card. None when there is none. Raises PairingRefused when it is not genuine."""
        if not card.grant:
            return None
        own = self._identity.peer_id
        grant = granting.read(card.grant, issuer=peer_id, holder=own, now=self._clock.now())
        if grant is None:
            raise PairingRefused("The other device's permission is not valid; compare the clocks of both devices.")
        return grant

    async def store(
        self, peer_id: str, card: machine.CardBody, trust: Trust, issued: tuple[int, bytes], received: Grant | None,
    ) -> Peer:
        """The paired peer with both grants, in one transaction."""
        return await self._database.write(self._store, peer_id, card, trust, issued, received)

    def question(self, peer_id: str, ask: machine.AskOwner, trust: Trust) -> PairQuestion:
        """What the owner is asked about this peer."""
        return PairQuestion(
            peer_id, ask.card.node_name, Trust(ask.card.trust), trust, ask.emoji, fingerprint_words(peer_id),
        )

    def _store(
        self, tx: Connection, peer_id: str, card: machine.CardBody, trust: Trust, issued: tuple[int, bytes],
        received: Grant | None,
    ) -> Peer:
        now_ms = to_ms(self._clock.now())
        name = free_name(tx, card.node_name, peer_id)
        peer = Peer(peer_id, name, trust, Trust(card.trust), tuple(card.addresses), now_ms, now_ms)
        peers.add(tx, peer)
        grants.put(tx, peer_id, "issued", issued[0], issued[1], now_ms)
        grants.drop_received(tx, peer_id)
        if received is not None:
            grants.put(tx, peer_id, "received", received.epoch, card.grant, now_ms)
        return peer

    async def _make_card(self, peer_id: str, trust: Trust) -> tuple[machine.CardBody, tuple[int, bytes]]:
        epoch = await self._database.write(grants.reserve_epoch)
        blob = granting.issue(self._identity, peer_id, DEFAULT_TERMS[trust], epoch, self._clock.now())
        card = machine.CardBody(self._node_name(), trust.value, self._told_addresses(), blob)  # type: ignore[arg-type]
        return card, (epoch, blob)

    def _told_addresses(self) -> tuple[str, ...]:
        return tuple(self._addresses())[: limits.MAX_CARD_ADDRESSES]


class _Exchange:
    """One run of the machine over one channel."""

    def __init__(
        self, driver: PairingDriver, channel: FrameChannel, exchange: PairingMachine, asker: PairAsker, trust: Trust,
        issued: tuple[int, bytes], window: Window | None,
    ) -> None:
        self._driver, self._channel, self._machine, self._asker = driver, channel, exchange, asker
        self._trust, self._issued, self._window = trust, issued, window
        self._received: Grant | None = None
        self._bad_grant: PairingRefused | None = None
        self._proven: machine.CardBody | None = None
        self._failed: Exception | None = None
        self._broken = self._finished = False
        self._report, self._events = trio.open_memory_channel[object](_EVENT_LIMIT)

    async def run(self, first: Sequence[object]) -> Peer:
        """The stored peer; raises the PairingError that ended it. Leaves no task behind."""
        try:
            async with trio.open_nursery() as nursery:
                nursery.start_soon(self._read)
                try:
                    await self._until_over((*first, Tick()), nursery)
                except Exception as error:  # handed on below, outside the nursery, so that it stays one plain error
                    self._failed = error
                nursery.cancel_scope.cancel()
            if self._failed is not None:
                raise self._failed
            assert self._proven is not None
            return await self._driver.store(
                self._channel.peer_id, self._proven, self._trust, self._issued, self._received,
            )
        except BaseException as error:
            with trio.move_on_after(_RESET_S, shield=True):
                if not (self._finished and isinstance(error, PairingError)):  # a refusal on its way must arrive
                    await self._channel.reset()
            raise

    async def _until_over(self, first: Sequence[object], nursery: trio.Nursery) -> None:
        """Until the peer is proven and both owners agreed; raises PairingError otherwise.

        At the end wait for the peer to finish, which it does when it agreed too: a link that breaks at the last step
        then leaves nothing at either side.
        """
        for event in first:
            await self._handle(event, nursery)
        while self._proven is None:
            await self._handle(await self._next_event(), nursery)
        event = None
        with trio.move_on_after(_FINISH_S):
            event = await self._events.receive()
        if self._broken or not isinstance(event, PeerFinished):
            raise _failure("lost")

    async def _next_event(self) -> object:
        due_s = self._machine.due_s
        with trio.move_on_at(trio.current_time() + limits.PAIRING_STEP_TIMEOUT_S if due_s is None else due_s):
            return await self._events.receive()
        return Tick()

    async def _handle(self, event: object, nursery: trio.Nursery) -> None:
        for command in self._machine.handle(event, trio.current_time()):
            await self._carry_out(command, nursery)

    async def _carry_out(self, command: object, nursery: trio.Nursery) -> None:
        match command:
            case Send(frame):
                await self._try(self._channel.send(frame))
            case FinishSending():
                self._finished = True
                await self._try(self._channel.finish())
            case machine.BurnTry():
                assert self._window is not None
                left = await self._driver.burn_try(self._window)
                await self._handle(machine.NoTriesLeft() if left is None else machine.TryBurned(left), nursery)
            case machine.SpendCode():
                assert self._window is not None
                if not await self._driver.spend(self._window):
                    raise _failure("closed")  # another exchange was faster; this one gets no proof of ours
            case machine.AskOwner():
                nursery.start_soon(self._ask, command)
            case machine.Paired(card):
                self._proven = card
            case machine.PairingFailed(reason, by_peer):
                raise self._bad_grant or _failure(reason, by_peer=by_peer)
            case _:
                raise TypeError(f"a command that this driver does not know: {type(command).__name__}")

    async def _try(self, action: Awaitable[None]) -> None:
        """Send within the step's time. A peer that takes nothing shows as a broken channel to the reader, too."""
        try:
            with trio.fail_after(limits.PAIRING_STEP_TIMEOUT_S):
                await action
        except (ChannelError, trio.TooSlowError):
            self._broken = True

    async def _ask(self, ask: machine.AskOwner) -> None:
        peer_id = self._channel.peer_id
        try:
            self._received = self._driver.read_grant(ask.card, peer_id)
        except PairingRefused as error:
            self._bad_grant = error
            await self._report.send(machine.OwnerDeclines())
            return
        accepted = False
        with trio.move_on_after(limits.PAIRING_OWNER_TIMEOUT_S - _ANSWER_MARGIN_S):
            try:
                accepted = await self._asker.confirm(self._driver.question(peer_id, ask, self._trust))
            except Exception as error:  # whoever shows the question may fail in any way; that is a no, not a crash
                log.warning("the pairing question could not be shown: %s", error)
        await self._report.send(machine.OwnerAccepts() if accepted else machine.OwnerDeclines())

    async def _read(self) -> None:
        """Turn what comes over the channel into events until it ends."""
        while True:
            try:
                event: object = Received(await self._channel.receive(deadline_s=limits.PAIRING_WINDOW_S))
            except ChannelClosed:
                event = PeerFinished()
            except (ChannelError, DeadlinePassed):
                event = ChannelBroken()
            except ProtocolError:
                event = machine.Garbage()
            await self._report.send(event)
            if not isinstance(event, Received):
                return


def _failure(reason: str, *, by_peer: bool = False) -> PairingError:
    kind, text = _FAILURES[reason]
    if by_peer and reason == "declined":
        text = "The other device's owner declined; nothing was stored."
    return kind(text, hint=_NO_MATCH_HINT) if reason == "no_match" else kind(text)


def _check_trust(trust: Trust) -> None:
    if trust is Trust.NONE:
        raise UsageError("A peer that you do not trust cannot be paired.", hint="Choose self, home or friend.")
