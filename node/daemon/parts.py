"""Builds every part of a node over its opened database, and wires them. Pure construction: nothing runs yet.

Must not know the life of the node: who starts, in what order, and how it ends.
"""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import UTC, date, timedelta
from functools import partial

from node.agent.loop import Agent
from node.api.events import Events
from node.api.questions import Questions
from node.clock import new_id
from node.config import Config, set_value
from node.daemon.adverts import Adverts
from node.daemon.agent_parts import build_agent
from node.daemon.answers import Answers
from node.daemon.audit import Auditor
from node.daemon.audit_parts import build_audit
from node.daemon.composition import Composition
from node.daemon.conversations import Conversations
from node.daemon.discovering import Discovering
from node.daemon.doctor import Doctor
from node.daemon.engine_parts import build_engine
from node.daemon.explainer import Explainer
from node.daemon.grant_desk import GrantDesk
from node.daemon.grants import Grants
from node.daemon.guarding import build_detectors
from node.daemon.history_cases import HistoryCases
from node.daemon.hub import HubDesk
from node.daemon.lan import own_and_gateway
from node.daemon.ledger import LedgerDesk
from node.daemon.ledger_upkeep import LedgerUpkeep
from node.daemon.lessons import LessonDesk
from node.daemon.logind import LogindBlocker
from node.daemon.machine_sleep import AwakeWhileServing, SleepWatch
from node.daemon.mapping import Mapping
from node.daemon.messages import Messages
from node.daemon.mode_desk import ModeDesk
from node.daemon.model_copies import CatalogueFiles, CopyDesk
from node.daemon.models import ModelShelf
from node.daemon.networking import Networking, Wiring
from node.daemon.outside import Outside, outside_id
from node.daemon.outside_ids import outside_ids
from node.daemon.own_folders import OwnFolders
from node.daemon.owner import OwnerDesk
from node.daemon.owner_sources import open_sources
from node.daemon.peers import Roster
from node.daemon.persons import Persons
from node.daemon.privacy_desk import PrivacyDesk
from node.daemon.privacy_parts import build_privacy, build_receipts
from node.daemon.queue_parts import QueueParts, build_queue
from node.daemon.reaching import Reaching
from node.daemon.readiness import Readiness
from node.daemon.reminding import Reminding
from node.daemon.removal_clock import RemovalClock
from node.daemon.restarted import Restarted
from node.daemon.searching import Openings, PassageGuard, QueryDesk, Searching
from node.daemon.self_test import NULL_PEER
from node.daemon.serving import Serving
from node.daemon.spot_checks import SpotChecks
from node.daemon.style_trial import StyleTrial
from node.daemon.thinker import Thinker
from node.daemon.tidying import Tidying
from node.daemon.upgrading import LaterConsent
from node.daemon.upkeep import Upkeep
from node.daemon.usage import StoredUsage, day_left_s
from node.daemon.vault import FollowingVault
from node.daemon.waking import Waking
from node.identity.keystore import Identity
from node.identity.peerbook import PeerBook
from node.mail.deliver import Deliverer
from node.mail.outbox import Outbox
from node.mail.receive import Receiver
from node.modes.looking import addresses_up
from node.net.gate import Gate
from node.paths import Paths
from node.privacy.accounting import AnswerAccounts
from node.privacy.credentials import CredentialsNet, CredentialStore
from node.privacy.decisions import Decisions
from node.privacy.ledger import Ledger
from node.privacy.nets import SecretsNet
from node.privacy.receipts import ReceiptDesk
from node.privacy.traffic import Traffic
from node.scan.client import ScanWorker
from node.scan.detecting import DetectWorker
from node.sources.searchable import SearchableFolders
from node.store.database import Database
from node.store.fts import FtsIndex
from node.zone import owner_zone
from offload.joined_engine import JoinedEngine
from offload.model_server import ModelServer
from offload.quota import QuotaBook
from offload.server import InferenceServer
from protocol.channel import FrameChannel
from protocol.names import MAIL
from search.client import SearchClient
from search.indexer import Indexer
from search.server import QueryServer

__all__ = ["Parts", "build_parts"]


@dataclass(frozen=True, slots=True)
class Parts:
    """Every part that runs, is asked by the API, or must be closed."""

    engine: JoinedEngine
    scan: ScanWorker
    detecting: DetectWorker
    gate: Gate
    networking: Networking
    mode_desk: ModeDesk
    queued: QueueParts
    answers: Answers
    restarted: Restarted
    roster: Roster
    serving: Serving
    adverts: Adverts
    spot_checks: SpotChecks
    persons: Persons
    deliverer: Deliverer
    outbox: Outbox
    messages: Messages
    agent: Agent
    conversations: Conversations
    ledger: Ledger
    ledger_desk: LedgerDesk
    shelf: ModelShelf
    searching: Searching
    doctor: Doctor
    desk: OwnerDesk
    vault: FollowingVault
    pair: "PairSlot"
    grant_desk: GrantDesk
    inference: InferenceServer
    explainer: Explainer
    readiness: Readiness
    outside: Outside | None
    history: HistoryCases
    upkeep: Upkeep
    reminding: Reminding
    lessons: LessonDesk
    traffic: Traffic
    waking: Waking
    reaching: Reaching
    discovering: Discovering
    mapping: Mapping
    receipts: ReceiptDesk
    tidying: Tidying
    dates: RemovalClock
    decisions: Decisions
    credentials: CredentialStore
    privacy_desk: PrivacyDesk
    auditor: Auditor


class PairSlot:
    """Where the pairing service is put once it exists: strangers' streams go to it, and are dropped before that."""

    def __init__(self) -> None:
        self.serve: Callable[[FrameChannel], Awaitable[None]] = _refuse


async def _refuse(channel: FrameChannel) -> None:
    await channel.reset()


def build_parts(
    *, config: Config, paths: Paths, identity: Identity, database: Database, index: Database, questions: Questions,
    composition: Composition, mode: str, events: Events,
) -> Parts:
    """All parts of one node. Raises ConfigError for settings that name nothing usable."""
    clock, entropy = composition.clock, composition.entropy
    settings = config.settings
    name = settings.node.name
    dates = RemovalClock(clock, database)

    def fresh_id() -> str:
        return new_id(entropy)

    sources = open_sources(config, paths)
    desk = OwnerDesk(questions, clock)
    vault = FollowingVault(sources.calendars, sources.contacts, clock)
    credentials = CredentialStore(database, identity.subkey("credentials"), clock)
    secrets = CredentialsNet(SecretsNet(), credentials)
    detecting = DetectWorker()
    detectors = build_detectors(detecting, settings.privacy.public_names, clock, entropy)
    inspector = composition.make_inspector(vault, secrets, detectors)
    built = build_engine(config, paths, identity, entropy, credentials)
    engine = built.engine
    digest_cache = paths.state_dir / "digests.json"
    model_files = CatalogueFiles(built.model_folders, digest_cache)
    privacy = build_privacy(
        paths=paths, identity=identity, database=database, composition=composition, inspector=inspector,
        blobs=model_files, ask_first=settings.privacy.ask_first,
        never_sign=frozenset({NULL_PEER}) | outside_ids(
            paths.state_dir / "outside.json", outside_id(built.elsewhere.url) if built.elsewhere else None),
    )
    egress, ledger, shares = privacy.egress, privacy.ledger, privacy.shares

    scan = ScanWorker()

    async def style_of(digest: str | None) -> str:
        found = [info.placeholder_style for info in await engine.models() if info.digest == digest]
        return found[0] if found else "brackets"

    async def cut(peer_id: str) -> None:
        await privacy.decisions.load()
        await roster.cut(peer_id)
        if await book.get(peer_id) is None:
            await engine.forget(peer_id)
            await waking.forget(peer_id)
            spot_checks.forget(peer_id)
            await persons.forget(peer_id)

    roster: Roster
    book = PeerBook(
        database, identity, clock, cut=cut,
        widened=lambda peer_id: roster.widened(peer_id), narrowed=lambda peer_id: roster.narrowed(peer_id),
    )
    grants = Grants(book, clock)
    roster = Roster(database, book, grants, clock, style_of)
    serving = Serving(name, engine, grants, roster)
    adverts = Adverts(built.workload, database)
    adverts.tell, serving.speed_of = serving.tell_load, adverts.speed_of
    gate = Gate()
    reaching = Reaching(
        identity, settings.net, grants, roster, database, AnswerAccounts(ledger), egress.traffic, clock, fresh_id,
        addresses_up,
    )
    networking = Networking(
        identity, gate, egress, entropy, Wiring(serving.on_channel, serving.on_event, serving.hello, roster.known),
        mode=mode, relay=reaching,
    )
    roster.networking = networking
    reaching.attach(networking)
    discovering = Discovering(
        settings.net, networking, gate, identity.peer_id, roster.known, lambda: reaching.told, addresses_up, entropy)
    mapping = Mapping(settings.net, networking, reaching.set_mapped, own_and_gateway)

    shelf = ModelShelf(
        engine, built.model_folders, digest_cache,
        HubDesk(settings.models.hub, ledger, lambda: networking.mode, fresh_id),
        CopyDesk(networking, roster, entropy, name),
        lambda model: set_value(paths.config_file, "models.default", model), StyleTrial(engine, fresh_id).choose,
    )
    outside: Outside | None = None
    if built.elsewhere is not None:
        outside = Outside(
            built.elsewhere, roster, networking.open_channel, egress.channel, lambda: networking.mode, identity.peer_id)
    receipts = build_receipts(
        privacy, identity=identity, database=database, composition=composition, open_channel=networking.open_channel,
        not_a_peer=outside.peer_id if outside else "", removal=dates,
    )
    answers = Answers(database, clock)
    consent = LaterConsent(database, desk)
    thinker = Thinker(
        node_name=name, engine=engine, egress=egress, peers=outside or roster,
        open_channel=outside.open_channel if outside else networking.open_channel, ask=consent,
        mode=lambda: networking.mode, default_model=shelf.default, answers=answers,
        go_on_at_home=settings.offload.go_on_at_home, measure=adverts.measure,
    )
    queued = build_queue(
        thinker, consent, database=database, roster=roster, settings=settings, events=events, clock=clock,
        entropy=entropy, expiry=dates,
    )
    roster.work.kept_back = privacy.decisions.keeps_prompts_from
    mode_desk = ModeDesk(networking, roster, settings, paths.config_file, clock, events)
    adverts.battery = mode_desk.battery
    spot_checks = SpotChecks(
        engine, built.workload.ahead, database, roster.work.doubt, events.publish,
        lambda: mode_desk.battery() is not None)
    thinker.legs.note_answer = spot_checks.note
    mode_desk.on_change = roster.on_offer = queued.queue.changed
    fts = FtsIndex(index)
    own_folders = OwnFolders(paths, sources.notes.root, [one.root for one in sources.files.values()])
    folders = SearchableFolders(never=own_folders.all)
    indexer = Indexer(folders, fts)
    client = SearchClient(fts, Openings(networking), QueryDesk(egress, inspector, roster, desk), entropy)
    searching = Searching(
        client, indexer, folders, sources.notes.root, database, roster, inspector, clock, own_folders)
    guard = PassageGuard(egress, roster, desk)
    deliverer = Deliverer(
        database, egress, lambda peer_id: networking.open_channel(peer_id, MAIL), roster.view, dates.stamps
    )
    outbox = Outbox(
        database, egress, clock, entropy, keep=timedelta(days=settings.mail.keep_days), expiry=dates,
        latest=dates.latest)
    messages = Messages(database, outbox, deliverer, roster, desk, dates.stamps)
    def keep_learning(on: bool) -> None:
        set_value(paths.config_file, "agent.learn", "true" if on else "false")

    acting = build_agent(
        settings=settings, sources=sources, database=database, roster=roster, engine=engine, scan=scan,
        thinker=queued.drafting, desk=desk, messages=messages, events=events, notice=queued.notices.tell, clock=clock,
        entropy=entropy, new_id=fresh_id,
        keep_learning=keep_learning, absorb=lambda conversation, texts: egress.absorb(conversation, *texts),
    )
    pair = PairSlot()

    def today() -> date:
        return clock.now().astimezone(UTC).date()

    persons = Persons(database, roster.own_devices)
    quota = QuotaBook(
        StoredUsage(database), today, devices_of=persons.devices_of, day_left_s=lambda: day_left_s(clock.now()))
    grant_desk = GrantDesk(
        roster=roster, book=book, quota=quota, database=database, clock=clock, today=today, held=grants.granted_by,
        zone=owner_zone(settings.sources.time_zone).key, publish=events.publish, persons=persons,
    )
    egress.note_breach = serving.on_breach = grant_desk.note_breach

    def refused(peer_id: str, code: str, *, service: str) -> None:
        grant_desk.note_refusal(peer_id, code, None, service=service)

    inference = InferenceServer(engine, grants, quota, grant_desk.note_refusal)
    roster.end_streams = inference.cut
    roster.review_streams = inference.review
    serving.attach(
        networking=networking,
        inference=inference,
        queries=QueryServer(fts, grants, shares, guard, guard, partial(refused, service="search")),
        on_refusal=partial(refused, service="mail"),
        receiver=Receiver(database, clock, lambda peer_id, message_id: None),
        deliverer=deliverer,
        pair=lambda channel: pair.serve(channel),
        model_files=ModelServer(model_files, grants, partial(refused, service="models")),
        receipts=receipts,
    )
    waking = Waking(database, roster, egress.traffic, clock, lambda: networking.mode)

    async def note_contact(peer_id: str) -> None:
        await roster.note_contact(peer_id)
        await waking.note(peer_id)

    serving.on_contact = note_contact
    upkeep = Upkeep(
        AwakeWhileServing(LogindBlocker(), clock) if settings.node.keep_awake else None, SleepWatch(),
        serving=lambda: inference.active > 0, call_everyone=networking.wake_all,
    )
    conversations = Conversations(
        database, egress.forget, lambda: engine.forget("owner"),
        erase=(ledger.drop_conversation, privacy.decisions.forget_conversation),
    )
    privacy_desk = PrivacyDesk(privacy.decisions, roster, inspector, conversations.resolve)
    doctor = Doctor(
        paths=paths, clock=clock, database=database, ledger=ledger, engine=engine, scan=scan, detecting=detecting,
        calendars=sources.calendars, contacts=sources.contacts, vault=vault, unknown_env=config.unknown_env,
        dates=dates, texts=(sources.notes, *sources.files.values()),
        waiting_writes=lambda: acting.agent.approvals.waiting,
    )
    return Parts(
        engine=engine, scan=scan, detecting=detecting, gate=gate, networking=networking, mode_desk=mode_desk,
        roster=roster, serving=serving, adverts=adverts, spot_checks=spot_checks, persons=persons,
        deliverer=deliverer, outbox=outbox, messages=messages, agent=acting.agent,
        conversations=conversations, ledger=ledger, decisions=privacy.decisions,
        credentials=credentials,
        privacy_desk=privacy_desk,
        auditor=build_audit(
            privacy, paths=paths, settings=settings, registry=acting.registry, desk=privacy_desk, grants=grant_desk,
            credentials=credentials, sources=sources, entropy=entropy, own_id=identity.peer_id,
        ),
        ledger_desk=LedgerDesk(
            ledger, roster, clock, {NULL_PEER: "self-test"} | ({outside.peer_id: outside.name} if outside else {}),
            receipts=receipts,
            own_id=identity.peer_id,
        ),
        dates=dates,
        tidying=Tidying(
            LedgerUpkeep(
                ledger, database, dates, texts_days=settings.ledger.texts_days,
                entries_days=settings.ledger.entries_days),
            database, dates, messages_days=settings.mail.history_days, steps_days=settings.agent.undo_days,
            dates=dates),
        shelf=shelf, searching=searching, doctor=doctor, desk=desk, vault=vault, pair=pair,
        grant_desk=grant_desk, inference=inference,
        explainer=Explainer(thinker, engine, roster, lambda: networking.mode),
        readiness=Readiness(engine, clock, fresh_id), outside=outside,
        upkeep=upkeep, reminding=acting.reminding, lessons=acting.lessons, traffic=egress.traffic, waking=waking,
        reaching=reaching, discovering=discovering, mapping=mapping,
        receipts=receipts, queued=queued, answers=answers,
        restarted=Restarted(database, answers, thinker, acting.agent, name),
        history=HistoryCases(database, acting.registry, owner_zone(settings.sources.time_zone)),
    )
