"""The life of a node: the API first, then data, services and network, all in one nursery; and the way down in order.

On the way down answers for peers may end first, then the peers are told, then work is cancelled, then the workers end,
then the databases are closed. Must not know what a part does.
"""

import logging
import signal
from collections.abc import Callable, Sequence
from functools import partial

import trio

from node import log as log_lines
from node.agent.described import DescribedChooser
from node.api.app import build_app
from node.api.events import Events
from node.api.questions import Questions
from node.api.server import serve_api
from node.api.services import Services
from node.clock import new_id
from node.config import Config, set_value
from node.counting import counted
from node.daemon.asking import Asking
from node.daemon.bench import Bench
from node.daemon.composition import Composition
from node.daemon.control import Control, Figures
from node.daemon.doctor import MISSING_KEY
from node.daemon.door import Door, Ending
from node.daemon.evaluation import Evaluating
from node.daemon.ladder_chooser import LadderChooser
from node.daemon.lan import lan_addresses
from node.daemon.metrics import Metrics, MetricSources
from node.daemon.net_desk import NetDesk, turned_away
from node.daemon.pairing import Pairing
from node.daemon.parts import Parts, build_parts
from node.daemon.persevering import Persevering
from node.daemon.plan_permission import Permissions
from node.daemon.secrets_desk import SecretsDesk
from node.identity.keystore import Identity
from node.identity.pair import PairingDriver
from node.net.addresses import parse
from node.paths import Paths
from node.store import approvals, intents, mail, settings, usage
from node.store.database import Database
from node.store.schema import INDEX, KITH
from node.store.usage import DayUsage
from node.zone import owner_zone
from offload.errors import OffloadError
from offload.ports import EngineHealth

__all__ = ["Node"]

log = logging.getLogger(__name__)

PORT_KEY = "net.port"
REFRESH_S = 1.0
RETRY_S = 30.0
ADVERT_EVERY = 5
GOODBYE_S = 1.0
GOODBYE_IN_A_HURRY_S = 0.3  # it has left by then; a peer that does not answer it is not waited for
LISTEN_WAIT_S = 3.0
CLOSE_S = 5.0
# a message's entry stays open until it is delivered
CRASHED_PURPOSES = frozenset({"infer", "query", "answer", "hub", "relay", "model"})


class Node:
    """One node; run() is its whole life."""

    def __init__(
        self, config: Config, paths: Paths, door: Door, composition: Composition, on_ready: Callable[[], None]
    ) -> None:
        self._config = config
        self._paths = paths
        self._door = door
        self._composition = composition
        self._on_ready = on_ready
        self._stopping = trio.Event()
        self._hurried = trio.Event()
        self._drained = trio.Event()
        node = config.settings.node
        self._control = Control(node.name, door.peer_id, node.mode, composition.clock, self._stop)
        self._control.stopping = self._stopping.is_set
        self._control.locked = lambda: not door.is_open
        self._ending = trio.Event()
        self._questions = Questions(lambda: new_id(composition.entropy))
        self._events = Events()
        self._services = Services(
            node=self._control, keys=door, locked=self._control.locked, events=self._events)

    async def run(self) -> None:
        """Live until told to stop by a signal or over the API. Raises KithError when it cannot start."""
        async with trio.open_nursery() as outer:
            outer.start_soon(self._watch_signals)
            app = build_app(self._services, self._questions)
            await outer.start(serve_api, app, self._paths.socket, self._drained.wait)
            try:
                while not self._stopping.is_set():
                    await self._one_life()
            finally:
                self._stopping.set()
                self._drained.set()
            outer.cancel_scope.cancel()

    async def _one_life(self) -> None:
        """From unlocked to locked, rotated or stopped. While it is locked, this waits."""
        async with trio.open_nursery() as waiting:
            waiting.start_soon(_cancel_after, self._stopping, waiting.cancel_scope)
            identity = await self._door.enter()
            waiting.cancel_scope.cancel()
        if self._stopping.is_set():
            return
        self._ending = trio.Event()
        if self._stopping.is_set():
            self._ending.set()
        database = await Database.open(self._paths.database, identity.storage_key("database"), KITH)
        index = await Database.open_rebuildable(self._paths.index_database, identity.storage_key("index"), INDEX)
        try:
            await self._live(identity, database, index)
        finally:
            self._services.detach()
            self._control.detach()
            log_lines.scrub_with(None)
            with trio.move_on_after(CLOSE_S, shield=True):
                await index.close()
                await database.close()
            self._door.over()

    def _stop(self) -> None:
        self._stopping.set()
        self._ending.set()

    def _end(self, why: Ending) -> None:
        """The door wants this life to end."""
        log.info("closing the data: %s", why.value)
        self._ending.set()

    async def _watch_signals(self) -> None:
        with trio.open_signal_receiver(signal.SIGINT, signal.SIGTERM) as signals:
            async for number in signals:
                if self._hurried.is_set():
                    signal.signal(signal.SIGINT, signal.SIG_DFL)  # one more ends the process at once
                    signal.raise_signal(signal.SIGINT)
                if number == signal.SIGINT or self._stopping.is_set():
                    self._hurried.set()  # Ctrl-C, or a second signal: somebody waits at a terminal
                self._stop()

    async def _live(self, identity: Identity, database: Database, index: Database) -> None:
        parts = build_parts(
            config=self._config, paths=self._paths, identity=identity, database=database, index=index,
            questions=self._questions, composition=self._composition, mode=self._config.settings.node.mode,
            events=self._events,
        )
        now_ms = int(self._composition.clock.now().timestamp() * 1000)
        await parts.dates.begin()
        await database.write(approvals.close_pending, now_ms)
        await parts.outbox.close_left_open()
        crashed = await parts.ledger.close_crashed(purposes=CRASHED_PURPOSES)
        if crashed:
            log.info("the last stop cut off %s", counted(crashed, "request"))
        await self._note_missing(parts, database)
        await parts.decisions.load()
        await parts.credentials.begin()
        log_lines.scrub_with(parts.credentials.scrub)
        await parts.roster.load()
        paired = [peer_id for peer_id, _ in parts.roster.known()]
        await parts.spot_checks.recall(paired)
        await parts.persons.load(paired)
        async with trio.open_nursery() as nursery:
            self._attach_control(parts)
            for run in (
                parts.engine.run, parts.scan.run, parts.detecting.run, parts.deliverer.run, parts.receipts.run,
                parts.tidying.run, parts.dates.run,
                parts.reaching.run, parts.discovering.run, parts.mapping.run,
                parts.serving.run, parts.adverts.run, parts.spot_checks.run,
            ):
                await nursery.start(run)
            if parts.outside is not None:
                await nursery.start(parts.outside.run)
            await Persevering("reading the models").attempt(parts.serving.refresh_adverts)
            finished = await parts.desk.unattended(parts.agent.start)
            if finished:
                log.info("finished %s that a stop had interrupted", counted(finished, "write"))
            self._attach_services(identity, parts, database)
            nursery.start_soon(self._keep_figures, parts, database)
            nursery.start_soon(self._index, parts)
            listen = await self._listen_addresses(database)
            await nursery.start(partial(parts.networking.run, listen, any_port=not self._config.settings.net.port))
            nursery.start_soon(parts.mode_desk.run)
            nursery.start_soon(parts.queued.queue.run)
            nursery.start_soon(self._go_on, parts)
            nursery.start_soon(parts.queued.notices.run)
            nursery.start_soon(parts.reminding.run)
            nursery.start_soon(self._keep_port, parts, database)
            self._door.begun(self._end)
            await self._ending.wait()
            log.info("stopping")
            parts.answers.stopping = True
            if self._stopping.is_set():
                await self._let_answers_end(parts)
                self._drained.set()
            else:       # to be locked is urgent; peers are told and go on elsewhere
                parts.serving.withdraw()
                await parts.inference.drain(0)
            with trio.move_on_after(GOODBYE_IN_A_HURRY_S if self._hurried.is_set() else GOODBYE_S):
                await parts.networking.leave("shutdown")
            parts.credentials.forget()
            await parts.upkeep.close()
            nursery.cancel_scope.cancel()

    async def _note_missing(self, parts: Parts, database: Database) -> None:
        """Notice a database that was emptied or replaced, and keep it in mind: the next ledger entry hides it."""
        missing = await parts.ledger.missing_at_end()
        if missing:
            log.warning("the database was emptied or replaced: %d ledger entries are missing", missing)
            before = int(await database.read(settings.get, MISSING_KEY) or 0)
            await database.write(settings.put, MISSING_KEY, str(max(before, missing)))

    async def _let_answers_end(self, parts: Parts) -> None:
        """Give running answers for peers node.drain_s seconds, none in a hurry; refuse new ones meanwhile. Whom an
        answer is broken off for is told, and goes on elsewhere.
        """
        parts.serving.withdraw()
        async with trio.open_nursery() as nursery:
            nursery.start_soon(_cancel_after, self._hurried, nursery.cancel_scope)
            left = await parts.inference.drain(self._config.settings.node.drain_s)
            if left:
                log.info("broke off %s for peers", counted(left, "answer"))
            nursery.cancel_scope.cancel()
        if self._hurried.is_set():
            await parts.inference.drain(0)

    # -- wiring to the API --

    def _attach_control(self, parts: Parts) -> None:
        control, networking = self._control, parts.networking
        control.stage = lambda: networking.stage
        control.mode = lambda: networking.mode
        control.addresses = networking.addresses
        control.turned_away = partial(turned_away, networking)
        control.switch = parts.mode_desk.switch
        control.mode_view = parts.mode_desk.view
        control.look, control.dates = parts.doctor.look, parts.dates
        control.readiness = parts.readiness
        control.peers = lambda: tuple(parts.roster.screens(self._waiting))
        self._waiting: dict[str, int] = {}

    def _attach_services(self, identity: Identity, parts: Parts, database: Database) -> None:
        composition = self._composition
        driver = PairingDriver(
            database=database, identity=identity, clock=composition.clock, entropy=composition.entropy,
            node_name=lambda: self._config.settings.node.name, addresses=parts.reaching.addresses_to_show,
        )
        pairing = Pairing(
            driver, parts.networking, parts.gate, parts.roster, parts.desk, composition.clock,
            lan=lambda: self._lan(parts), keep_lan=lambda added: self._keep_lan(added),
            shown=parts.reaching.addresses_to_show, find_windows=parts.discovering.find_windows,
        )
        parts.pair.serve = pairing.serve
        services = self._services
        services.asking = Asking(
            parts.agent, parts.conversations, parts.queued.drafting, parts.queued.desk, parts.answers,
            lambda: new_id(self._composition.entropy), adapter_named=parts.shelf.adapter_named)
        services.following = parts.answers
        services.queue = parts.queued.desk
        services.pairing = pairing
        services.peers = parts.roster
        services.waking = parts.waking
        services.reachability = NetDesk(
            parts.networking, parts.reaching, parts.discovering, parts.mapping, parts.roster,
            self._config.settings.net,
        )
        services.reminders = parts.reminding
        services.lessons = parts.lessons
        services.measuring = self._metrics(parts, database)
        services.granting = parts.grant_desk
        services.offloading = parts.explainer
        services.ledger = parts.ledger_desk
        services.privacy = parts.privacy_desk
        services.secrets = SecretsDesk(parts.credentials)
        services.auditing = parts.auditor
        services.models = parts.shelf
        services.bench = Bench(parts.engine)
        services.evaluating = Evaluating(
            parts.engine, parts.history.load, permissions=Permissions(database), clock=composition.clock,
            ladder=LadderChooser(
                parts.agent.rehearse, owner_zone(self._config.settings.sources.time_zone)).compared,
            choosing=DescribedChooser(parts.scan))
        services.messages = parts.messages
        services.searching = parts.searching
        services.conversations = parts.conversations

    def _metrics(self, parts: Parts, database: Database) -> Metrics:
        async def restarts() -> int:
            health = await _health(parts)
            return health.restarts if health else 0

        async def used_today() -> list[DayUsage]:
            return await database.read(usage.days, self._composition.clock.now().date().isoformat())

        return Metrics(MetricSources(
            status=self._control.status, health=partial(self._control.health, probe=False), restarts=restarts,
            traffic=parts.traffic.by_kind, used_today=used_today, turned_away=self._control.turned_away,
        ))

    # -- listening --

    async def _listen_addresses(self, database: Database) -> list[str]:
        """The configured hosts with the configured port, or the one that was chosen on an earlier start."""
        net = self._config.settings.net
        port = net.port or int(await database.read(settings.get, PORT_KEY) or 0)
        return [f"/ip{6 if ':' in host else 4}/{host}/tcp/{port}" for host in net.listen]

    async def _keep_port(self, parts: Parts, database: Database) -> None:
        """Remember the port that was chosen, so that peers find this node again after a restart."""
        await parts.networking.listening.wait()
        listening = parts.networking.addresses()
        if not listening:
            return
        port = str(parse(listening[0]).port)
        put = partial(database.write, settings.put, PORT_KEY, port)
        await Persevering("keeping the port").until_done(put, every_s=RETRY_S)

    def _lan(self, parts: Parts) -> list[str]:
        if not self._config.settings.net.pair_lan:
            return []
        listening = parts.networking.addresses()
        return lan_addresses(parse(listening[0]).port) if listening else []

    def _keep_lan(self, added: Sequence[str]) -> None:
        """A successful pairing keeps the local network's listeners for the next start too."""
        hosts = [*self._config.settings.net.listen, *(parse(address).host for address in added)]
        set_value(self._paths.config_file, "net.listen", ",".join(dict.fromkeys(hosts)))

    # -- background --

    async def _go_on(self, parts: Parts) -> None:
        """Go on with what the last stop cut off, once the network listens."""
        with trio.move_on_after(LISTEN_WAIT_S):
            await parts.networking.listening.wait()
        await Persevering("going on with answers that were cut off").attempt(parts.restarted.run)

    async def _index(self, parts: Parts) -> None:
        await Persevering("bringing the index up to date").until_done(parts.searching.start, every_s=RETRY_S)

    async def _keep_figures(self, parts: Parts, database: Database) -> None:
        """Refresh what status shows, expire old messages, and tell peers of changed models."""
        reading, expiring, telling, tending = map(Persevering, (
            "reading the figures", "expiring old messages", "reading the models", "looking after the machine's sleep",
        ))
        ready = False
        rounds = 0
        while True:
            if not ready and parts.networking.stage == "ready":
                ready = True
                self._on_ready()
            await reading.attempt(partial(self._read_figures, parts, database))
            await tending.attempt(parts.upkeep.tick)
            if rounds % ADVERT_EVERY == 0:
                await expiring.attempt(parts.outbox.expire)
                await telling.attempt(partial(_tell_of_models, parts))
            rounds += 1
            await trio.sleep(REFRESH_S)

    async def _read_figures(self, parts: Parts, database: Database) -> None:
        self._waiting = await database.read(mail.waiting)
        queued = await database.read(intents.counts)
        entries, left, kept_back = await parts.ledger_desk.today()
        health = await _health(parts)
        self._control.figures = Figures(
            waiting_requests=sum(queued.get(state, 0) for state in intents.LIVE),
            undecided_requests=queued.get("needs_consent", 0), new_answers=queued.get("new", 0),
            queued_messages=sum(self._waiting.values()), left_entries=entries, left_bytes=left, kept_back=kept_back,
            model=health.model.name if health and health.model else None,
            model_state=health.state if health else "unknown",
        )


async def _tell_of_models(parts: Parts) -> None:
    if await parts.serving.refresh_adverts():
        parts.networking.readvertise()


async def _cancel_after(event: trio.Event, scope: trio.CancelScope) -> None:
    await event.wait()
    scope.cancel()


async def _health(parts: Parts) -> EngineHealth | None:
    try:
        return await parts.engine.health()
    except OffloadError as error:
        log.warning("the engine's health is unknown: %s", error.code)
        return None


