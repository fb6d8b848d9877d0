"""What this node does for peers: sends each stream to its service, greets with what it grants, follows who is here.

Must not know how a service does its work.
"""

import logging
from collections.abc import Awaitable, Callable
from functools import partial
from importlib.metadata import version
from typing import cast

import trio

from node.daemon.adverts import advert_of
from node.daemon.grants import Grants
from node.daemon.networking import Networking
from node.daemon.peers import Roster
from node.daemon.persevering import Persevering
from node.mail.deliver import Deliverer
from node.mail.receive import Receiver
from node.net.events import GrantReceived, LinkDown, LinkUp, ModelsAdvertised, NetEvent, NotServed, Refused
from node.privacy.receipts import ReceiptDesk
from offload.model_server import ModelServer
from offload.ports import Engine
from offload.prediction import UNKNOWN, Speed
from offload.server import InferenceServer
from protocol.channel import FrameChannel
from protocol.fields import Trust
from protocol.frames.link import Hello, Load, ModelAdvert
from protocol.grants import Grant, Service, permits
from protocol.names import INFER, LINK, MAIL, MODEL, PAIR, PROTOCOLS, QUERY, RECEIPT
from search.server import QueryServer

__all__ = ["Serving"]

log = logging.getLogger(__name__)

_MODEL_SERVICES: tuple[Service, ...] = ("infer", "models")


class Serving:
    """The services of one node. attach() once they exist; run() keeps the advert fresh."""

    def __init__(self, node_name: str, engine: Engine, grants: Grants, roster: Roster) -> None:
        self._node_name = node_name
        self._engine = engine
        self._grants = grants
        self._roster = roster
        self._adverts: tuple[ModelAdvert, ...] = ()
        self._leaving = False
        self._networking: Networking | None = None
        self._notes, self._noted = trio.open_memory_channel[Callable[[], Awaitable[None]]](512)
        self._routes: dict[str, Callable[[FrameChannel], Awaitable[None]]] = {}
        self._deliverer: Deliverer | None = None
        self._receipts: ReceiptDesk | None = None
        self.on_breach: Callable[[str, str, str], None] = lambda peer_id, protocol, code: None
        """Told what a peer tried that no peer may: (peer id, protocol, code)."""
        self.speed_of: Callable[[str], Speed] = lambda digest: UNKNOWN
        """How fast this node's engine is with a model."""
        self.on_contact: Callable[[str], Awaitable[None]] = self._roster.note_contact
        """What is written down of a peer that has just greeted."""

    def attach(
        self, *, networking: Networking, inference: InferenceServer, queries: QueryServer, receiver: Receiver,
        deliverer: Deliverer, pair: Callable[[FrameChannel], Awaitable[None]], model_files: ModelServer,
        receipts: ReceiptDesk,
        on_refusal: Callable[[str, str], None] = lambda peer_id, code: None,
    ) -> None:
        """Wire the services to their protocol ids. on_refusal(peer_id, code): mail was refused."""
        self._on_refusal = on_refusal
        self._deliverer = deliverer
        self._networking = networking
        self._receiver = receiver
        self._routes = {
            LINK: networking.serve_link, INFER: inference.serve, QUERY: queries.serve, MAIL: self._take_mail,
            PAIR: pair, MODEL: model_files.serve, RECEIPT: receipts.serve,
        }
        self._receipts = receipts

    async def on_channel(self, channel: FrameChannel) -> None:
        """Serve one stream that a peer opened."""
        route = self._routes.get(channel.protocol)
        if route is None:
            await channel.reset()
        else:
            await route(channel)

    async def _take_mail(self, channel: FrameChannel) -> None:
        grant = self._grants.grant_for(channel.peer_id)
        if grant is None or not permits(grant, "mail"):
            self._on_refusal(channel.peer_id, "not_granted")
            await self._receiver.refuse(channel, "not_granted")
        else:
            await self._receiver.serve(channel)

    def hello(self, peer_id: str) -> Hello:
        """What this node says of itself to this peer: only what the peer may use."""
        grant = self._grants.promised_to(peer_id)
        services = grant.services if grant is not None else ()
        models = tuple(
            advert for advert in self._adverts
            if grant is not None and _may_use(grant, advert)
        )
        blob = self._grants.blob_for(peer_id)
        trust = self._roster.trust_of(peer_id)
        return Hello(
            self._node_name, version("kith-node"), PROTOCOLS, tuple(services), models, blob,
            None if trust == "none" else cast("Trust", trust))

    def withdraw(self) -> None:
        """Offer no model any more: this node is about to leave. Peers are told, and ask others."""
        self._leaving = True
        self._adverts = ()
        if self._networking is not None:
            self._networking.readvertise()

    async def tell_load(self, load: Load) -> None:
        """Tell peers how busy this node is now, and how fast."""
        await self.refresh_adverts()
        if self._networking is not None and not self._leaving:
            self._networking.load = load
            self._networking.readvertise()

    async def refresh_adverts(self) -> bool:
        """Read what the engine can serve; True when it changed."""
        found = tuple(
            advert_of(info, self.speed_of(info.digest))
            for info in await self._engine.models() if not info.broken
        )
        if self._leaving:
            return False
        changed, self._adverts = found != self._adverts, found
        return changed

    def on_event(self, event: NetEvent) -> None:
        """One fact of the network."""
        match event:
            case LinkUp():
                log.info("%s is here (%.1f ms)", event.peer_id, event.rtt_ms)
                self._roster.link_up(event)
                if self._deliverer is not None:
                    self._deliverer.peer_up(event.peer_id)
                if self._receipts is not None:
                    self._receipts.peer_up(event.peer_id)
                self._note(partial(self.on_contact, event.peer_id))
                self._note(partial(self._roster.keep_grant, event.peer_id, event.hello.grant))
                if self._networking is not None:
                    self._networking.readvertise(event.peer_id)
            case LinkDown():
                log.info("%s is gone (%s)", event.peer_id, event.reason)
                self._roster.link_down(event)
                if self._deliverer is not None:
                    self._deliverer.peer_down(event.peer_id)
            case ModelsAdvertised():
                self._roster.models_changed(event)
            case GrantReceived(peer_id, grant):
                self._roster.grant_heard(event)
                self._note(partial(self._roster.keep_grant, peer_id, grant))
                if self._deliverer is not None:
                    self._deliverer.peer_up(peer_id)
            case NotServed(peer_id, protocol):
                self.on_breach(peer_id, protocol, "not_served")
            case Refused():
                log.info("refused %s, who is not paired", event.peer_id)
            case _:
                log.debug("network: %s", type(event).__name__)

    async def run(self, *, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        """Note contacts and grants durably, until cancelled. What cannot be written down is at the next greeting."""
        task_status.started()
        noting = Persevering("noting a contact")
        async for note in self._noted:
            await noting.attempt(note)

    def _note(self, note: Callable[[], Awaitable[None]]) -> None:
        try:
            self._notes.send_nowait(note)
        except trio.WouldBlock:
            log.info("a contact was not noted: too many at once")


def _may_use(grant: Grant, advert: ModelAdvert) -> bool:
    """Whether the peer may ask this model, or copy its file."""
    return any(
        permits(grant, service, model_name=advert.name, model_digest=advert.digest) for service in _MODEL_SERVICES)
