"""Links to all known peers: one each, kept up for as long as the peer can be reached. Must not know libp2p or the
guard.

A peer is present when its link is up, and only then: presence follows real contact. Both sides call each other; which
connection stays is the network's rule (connections.py), which link stays when there are two is the same rule here: the
one opened by the smaller peer id. The side that dialled opens the link.
"""

import logging
from collections.abc import Awaitable, Callable, Sequence

import trio

from node.clock import Entropy
from node.errors import KithError, PeerUnreachable
from node.net.backoff import Backoff
from node.net.errors import RefusedByPeer, reason_of, root_cause
from node.net.events import AddressesTold, GrantReceived, LinkDown, LinkUp, ModelsAdvertised, NetEvent
from node.net.limits import LinkTiming
from node.net.link import Link, News
from node.net.link_ports import Connector, Started
from protocol.channel import FrameChannel
from protocol.errors import ProtocolError
from protocol.frames.link import IDLE, ByeCode, Hello, Load
from protocol.link import AddressesChanged, GrantChanged, ModelsChanged, PeerUp, RoundTrip
from protocol.names import LINK

__all__ = ["Links"]

_log = logging.getLogger(__name__)
_STEADY_S = 5.0
_MAX_HINTS = 4
_HINT_PAUSE_S = 1.0  # whoever is on the local network can invent one; each new one means calls
_MAX_ADDRESSES = 16
_PROBE_PAUSE_S = 0.1  # a peer drops a link that brings more than 50 frames a second


class _Peer:
    """What is known of one peer, and its links (two for a moment, when both sides opened one)."""

    def __init__(self, peer_id: str, backoff: Backoff) -> None:
        self.peer_id = peer_id
        self.known: tuple[str, ...] = ()
        self.hinted: tuple[str, ...] = ()
        self.hinted_s = -_HINT_PAUSE_S
        self.backoff = backoff
        self.links: list[Link] = []
        self.greeted: dict[Link, PeerUp] = {}
        self.early: list[NetEvent] = []
        self.present: LinkUp | None = None
        self.seen_s = trio.current_time()
        self.changed = trio.Event()
        self.echoed = trio.Event()
        self.probed_s = -_PROBE_PAUSE_S
        self.failure = ""
        self.scope = trio.CancelScope()

    @property
    def addresses(self) -> tuple[str, ...]:
        """Where it is called: hints first, they are newer."""
        return tuple(dict.fromkeys((*self.hinted, *self.known)))[:_MAX_ADDRESSES]

    def wake(self) -> None:
        self.changed.set()
        self.changed = trio.Event()


class Links:
    """Keeps a link to every peer it is told of, from run() on. All its methods but run() and serve() return at once or
    within leave_s."""

    def __init__(
        self,
        network: Connector,
        open_channel: Callable[[str, str], Awaitable[FrameChannel]],
        hello: Callable[[str], Hello],
        on_event: Callable[[NetEvent], None],
        entropy: Entropy,
        timing: LinkTiming | None = None,
    ) -> None:
        """open_channel(peer_id, protocol): a channel on the live connection. hello(peer_id): what we say to this peer
        now. on_event must not block or raise."""
        self._network = network
        self._open_channel = open_channel
        self._hello = hello
        self._on_event = on_event
        self._entropy = entropy
        self._timing = timing or LinkTiming()
        self._peers: dict[str, _Peer] = {}
        self._nursery: trio.Nursery | None = None
        self._whereabouts = b""

    async def run(self, *, task_status: Started = trio.TASK_STATUS_IGNORED) -> None:
        """Call all known peers and keep calling, until cancelled."""
        try:
            async with trio.open_nursery() as nursery:
                self._nursery = nursery
                for peer in self._peers.values():
                    nursery.start_soon(self._keep, peer)
                task_status.started()
                await trio.sleep_forever()
        finally:
            self._nursery = None

    # -- what others tell --

    def know(self, peer_id: str, addresses: Sequence[str]) -> None:
        """Keep a link to this peer, at these addresses from now on; they replace the ones known before."""
        peer = self._peers.get(peer_id)
        if peer is None:
            peer = self._peers[peer_id] = _Peer(peer_id, Backoff(self._entropy, self._timing))
            peer.known = tuple(addresses)
            if self._nursery is not None:
                self._nursery.start_soon(self._keep, peer)
        elif peer.addresses != tuple(addresses):
            peer.known, peer.hinted = tuple(addresses), ()
            self.wake(peer_id)

    def hint(self, peer_id: str, addresses: Sequence[str]) -> None:
        """A known peer may be at these addresses now: they are tried with the others until it is known anew, or there
        is another hint. Nobody vouches for one: it drives out no more than the last one, and one a second is
        enough."""
        peer = self._peers.get(peer_id)
        now_s = trio.current_time()
        if peer is None or set(addresses) <= set(peer.addresses) or now_s < peer.hinted_s + _HINT_PAUSE_S:
            return
        peer.hinted, peer.hinted_s = tuple(addresses[:_MAX_HINTS]), now_s
        if peer.present is None:
            self.wake(peer_id)

    async def forget(self, peer_id: str) -> None:
        """End the link for good, telling the peer; it is not called again. Fine for a peer nobody knows."""
        peer = self._peers.pop(peer_id, None)
        if peer is not None:
            await self._leave([peer], "forgotten")
            peer.scope.cancel()

    def wake(self, peer_id: str | None = None) -> None:
        """Something changed (a network came, a message waits): call this peer, or all, without waiting any longer."""
        for peer in list(self._peers.values()):
            if peer_id not in (None, peer.peer_id):
                continue
            peer.backoff.reset()
            peer.wake()

    async def leave_all(self, code: ByeCode) -> None:
        """Say goodbye on every link, within leave_s. For the moment before the network is switched off."""
        await self._leave(list(self._peers.values()), code)

    def readvertise(self, load: Load = IDLE, *, peer_id: str | None = None) -> None:
        """Tell every present peer, or this one, the models that hello() names for it now, and how busy we are."""
        for peer in self._peers.values():
            if peer.links and peer_id in (None, peer.peer_id):
                hello = self._hello(peer.peer_id)
                for link in peer.links:
                    link.readvertise(hello.models, load if "infer" in hello.capabilities else IDLE)

    def regrant(self, peer_id: str) -> None:
        """Tell this peer, if it is here, the grant that hello() names for it now, and the models that come with it."""
        peer = self._peers.get(peer_id)
        if peer is not None and peer.links:
            grant = self._hello(peer_id).grant
            for link in peer.links:
                link.regrant(grant)

    def addresses(self, peer_id: str) -> Sequence[str]:
        """Where a known peer is called."""
        peer = self._peers.get(peer_id)
        return peer.addresses if peer is not None else ()

    def relocate(self, addresses: bytes) -> None:
        """Tell every present peer where this node can be reached now, and where we see it; and each new link from now
        on."""
        self._whereabouts = addresses
        for peer in self._peers.values():
            for link in peer.links:
                if link.up:
                    self._locate(peer, link)

    def _locate(self, peer: _Peer, link: Link) -> None:
        route = self._network.connection(peer.peer_id)
        seen_at = route.address if route is not None and route.via is None and not route.dialled else None
        link.relocate(self._whereabouts, seen_at)

    def reroute(self, peer_id: str) -> None:
        """There is a better connection to this peer: open its link anew on it; the old one ends once the new one
        beats, so the peer stays present. The side that opened the old link does it."""
        peer = self._peers.get(peer_id)
        if peer is not None and peer.links and peer.links[-1].opened_here and self._nursery is not None:
            self._nursery.start_soon(self._move, peer)

    def failure(self, peer_id: str) -> str:
        """Why the last call of this peer failed; empty when it is here, or was never called."""
        peer = self._peers.get(peer_id)
        return peer.failure if peer is not None and peer.present is None else ""

    async def ping(self, peer_id: str, *, timeout_s: float) -> LinkUp:
        """The peer's presence with a round trip that was measured just now; an absent peer is called first.

        At most ten measurements a second reach one peer. Raises PeerUnreachable when nothing came back in time.
        """
        peer = self._peers.get(peer_id)
        with trio.move_on_after(timeout_s):
            while peer is not None:
                echoed = peer.echoed
                if peer.present is None:
                    self.wake(peer_id)
                else:
                    await trio.sleep_until(peer.probed_s + _PROBE_PAUSE_S)
                    self._probe(peer)
                await echoed.wait()
                if peer.present is not None:
                    return peer.present
        raise PeerUnreachable(f"The peer did not answer within {timeout_s:g} s.")

    @staticmethod
    def _probe(peer: _Peer) -> None:
        """One beat for all who wait for an echo at this moment."""
        if trio.current_time() >= peer.probed_s + _PROBE_PAUSE_S:
            peer.probed_s = trio.current_time()
            for link in peer.links:
                if link.up:
                    link.probe()

    def regreet(self, peer_id: str, *, only_outdated: bool = False) -> None:
        """What hello() says to this peer changed: make its link anew. Connection and other streams stay.

        only_outdated: a link that was greeted with the grant that hello() names now stays.
        """
        peer = self._peers.get(peer_id)
        if peer is not None:
            peer.backoff.reset()
            grant = self._hello(peer_id).grant
            for link in peer.links:
                if not only_outdated or link.hello.grant != grant:
                    link.leave("idle")

    def present(self) -> dict[str, LinkUp]:
        """The peers that are here now, with the event that said so (its rtt_ms is the latest)."""
        return {peer_id: peer.present for peer_id, peer in self._peers.items() if peer.present is not None}

    async def serve(self, channel: FrameChannel) -> None:
        """The answering side: keep a link that the peer opened, until it is over. A peer that is not known is reset."""
        peer = self._peers.get(channel.peer_id)
        if peer is None or self._nursery is None:
            await channel.reset()
            return
        await self._hold(peer, channel, opened_here=False)

    # -- one peer --

    async def _keep(self, peer: _Peer) -> None:
        with trio.CancelScope() as peer.scope:
            while True:
                began_s = trio.current_time()
                shortest_s = 0.0
                try:
                    await self._once(peer)
                except (KithError, ProtocolError, OSError, trio.TooSlowError) as error:
                    shortest_s = self._timing.refused_s if isinstance(error, RefusedByPeer) else 0.0
                    peer.failure = error.text if isinstance(error, KithError) else reason_of(error)
                    _log.debug("no link to %s: %s", peer.peer_id, reason_of(error))
                except Exception as error:  # a bug on the way to one peer must not take the other links with it
                    _log.error("calling %s failed: %s", peer.peer_id, type(root_cause(error)).__name__)
                now_s = trio.current_time()
                if now_s - began_s > _STEADY_S and peer.seen_s >= began_s:
                    peer.backoff.reset()
                pause_s = max(shortest_s, peer.backoff.next_s(now_s - peer.seen_s))
                with trio.move_on_after(pause_s):
                    await peer.changed.wait()

    async def _move(self, peer: _Peer) -> None:
        try:
            with trio.fail_after(self._timing.open_s):
                channel = await self._open_channel(peer.peer_id, LINK)
        except (KithError, ProtocolError, OSError, trio.TooSlowError) as error:
            _log.info("the link to %s stays where it is: %s", peer.peer_id, reason_of(error))
        else:
            await self._hold(peer, channel, opened_here=True)

    async def _once(self, peer: _Peer) -> None:
        """One link from call to end; or the wait for the end of one that the peer opened."""
        if not peer.links:
            route = await self._network.connect(peer.peer_id, peer.addresses, timeout_s=self._timing.connect_s)
            if not route.dialled and not peer.links:
                with trio.move_on_after(self._timing.accept_s):
                    await peer.changed.wait()
        if peer.links:
            await peer.links[-1].over.wait()
            return
        with trio.fail_after(self._timing.open_s):
            channel = await self._open_channel(peer.peer_id, LINK)
        await self._hold(peer, channel, opened_here=True)

    async def _hold(self, peer: _Peer, channel: FrameChannel, *, opened_here: bool) -> None:
        link = Link(
            channel, self._hello(peer.peer_id), opened_here=opened_here,
            tell=lambda link, news: self._on_news(peer, link, news), timing=self._timing,
        )
        peer.links.append(link)
        peer.wake()
        reason = "lost"
        try:
            reason = await link.run()
        finally:
            peer.links.remove(link)
            peer.greeted.pop(link, None)
            self._on_end(peer, link, reason)
            peer.wake()
        if reason in ("silent", "no_hello", "protocol") and not peer.links:
            await self._network.disconnect(peer.peer_id)  # whatever stands there is of no use; dial afresh

    def _on_news(self, peer: _Peer, link: Link, news: News) -> None:
        match news:
            case PeerUp():
                peer.greeted[link] = news
            case RoundTrip(rtt_s):
                peer.seen_s = trio.current_time()
                self._on_echo(peer, link, rtt_s * 1000)
            case ModelsChanged(models, load):
                self._tell(peer, ModelsAdvertised(peer.peer_id, models, load))
            case GrantChanged(grant):
                self._tell(peer, GrantReceived(peer.peer_id, grant))
            case AddressesChanged(addresses, seen_at):
                self._tell(peer, AddressesTold(peer.peer_id, addresses, seen_at))

    def _tell(self, peer: _Peer, event: ModelsAdvertised | GrantReceived | AddressesTold) -> None:
        """Pass news on; what comes between greeting and first echo waits until the peer is present."""
        if peer.present is not None:
            self._on_event(event)
        else:
            peer.early = [*(one for one in peer.early if type(one) is not type(event)), event]

    def _on_echo(self, peer: _Peer, link: Link, rtt_ms: float) -> None:
        greeting = peer.greeted[link]
        route = self._network.connection(peer.peer_id)
        address = route.address if route is not None else ""
        before = peer.present
        first_echo, link.up = not link.up, True
        peer.echoed.set()
        peer.echoed = trio.Event()
        peer.present = LinkUp(
            peer.peer_id, greeting.hello, greeting.protocols, greeting.capabilities, address, rtt_ms,
            dialled=route is not None and route.dialled,
        )
        if before is None or (first_echo and before.hello != greeting.hello):
            self._on_event(peer.present)
            early, peer.early = peer.early, []
            for event in early:
                self._on_event(event)
        if first_echo:
            if self._whereabouts:
                self._locate(peer, link)
            self._drop_duplicate(peer, link)

    def _drop_duplicate(self, peer: _Peer, newest: Link) -> None:
        ours_stay = self._network.peer_id < peer.peer_id
        for other in peer.links:
            if other is newest or not other.up:
                continue
            if other.opened_here == newest.opened_here:
                loser = other if other.opened_here else None  # its opener has opened it anew, and drops it
            else:
                loser = other if other.opened_here != ours_stay else newest
            if loser is not None:
                loser.leave("duplicate")

    def _on_end(self, peer: _Peer, link: Link, reason: str) -> None:
        _log.debug("link to %s over: %s", peer.peer_id, reason)
        if not peer.links:
            peer.early = []
        if peer.present is not None and not any(other.up for other in peer.links):
            peer.present = None
            peer.seen_s = trio.current_time()
            self._on_event(LinkDown(peer.peer_id, reason))

    async def _leave(self, peers: Sequence[_Peer], code: ByeCode) -> None:
        leaving = [link for peer in peers for link in peer.links]
        for link in leaving:
            link.leave(code)
        with trio.move_on_after(self._timing.leave_s):
            for link in leaving:
                await link.over.wait()
