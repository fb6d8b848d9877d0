"""Runs the queue: rows on one side, the schedule in the middle, runs on the other. One per node.

What counts is what the rows say: a run whose request was taken back, expired or claimed anew meanwhile writes nothing.
Must not know models, peers, the guard or screens.
"""

import logging

import trio

from node.clock import Clock, Entropy, to_ms
from node.counting import counted
from node.errors import KithError
from node.intents.errors import IntentSettled, NoSuchIntent, NothingToDecide, QueueFull
from node.intents.ports import Again, GaveUp, Outcome, Parked, Refused, Teller, Upgraded, Upgrader
from node.intents.schedule import Added, Changed, Ended, Event, Found, Gone, Look, Released, Schedule, Start, Tick
from node.store import intents
from node.store.database import Database
from node.store.intents import LIVE, Intent, IntentState

__all__ = ["MOST_WAITING", "IntentQueue", "NewIntent"]

log = logging.getLogger(__name__)

MOST_WAITING = 500
EXPIRY_LOOK_S = 60.0
_S = IntentState


class NewIntent:
    """What add() wants to know of a request. key: the same one again is the same request."""

    __slots__ = ("conversation_id", "expires_ms", "intent_id", "job", "key", "model", "place", "reason", "title")

    def __init__(
        self, *, intent_id: str, key: str, conversation_id: str, place: str, model: str | None, title: str, job: bytes,
        reason: str, expires_ms: int,
    ) -> None:
        self.intent_id = intent_id
        self.key = key
        self.conversation_id = conversation_id
        self.place = place
        self.model = model
        self.title = title
        self.job = job
        self.reason = reason
        self.expires_ms = expires_ms


class IntentQueue:
    """run() must be running for anything to be upgraded; the other methods work without it."""

    def __init__(
        self, database: Database, upgrader: Upgrader, clock: Clock, entropy: Entropy, teller: Teller,
        expiry: Clock | None = None,
    ) -> None:
        """expiry: the time by which requests expire; None: the clock's."""
        self._database = database
        self._upgrader = upgrader
        self._clock = clock
        self._expiry = expiry or clock
        self._entropy = entropy
        self._teller = teller
        self._schedule = Schedule()
        self._scopes: dict[str, trio.CancelScope] = {}
        self._events: list[Event] = []
        self._bell = trio.Event()

    # -- for others ----------------------------------------------------------------------------------------------------

    async def add(self, new: NewIntent, *, held: bool = False) -> Intent:
        """The durable request. held: it is not tried before release(); a restart releases it too. Raises QueueFull."""
        if len(await self._database.read(intents.live)) >= MOST_WAITING:
            raise QueueFull(f"{MOST_WAITING} requests wait for a better answer already.")
        intent = await self._database.write(
            intents.add, intent_id=new.intent_id, key=new.key, conversation_id=new.conversation_id, place=new.place,
            model=new.model, title=new.title, job=new.job, reason=new.reason, now_ms=self._now_ms(),
            expires_ms=new.expires_ms,
        )
        if intent.state is _S.WAITING and intent.intent_id == new.intent_id:
            self._post(Added(intent.intent_id, held))
            self._teller.intent_changed(intent)
        return intent

    def release(self, intent_id: str) -> None:
        """Its draft is where it belongs: it may be tried."""
        self._post(Released(intent_id))

    def changed(self) -> None:
        """Somebody came or went, or the mode changed."""
        self._post(Changed())

    async def find(self, name: str) -> Intent:
        """By id, a unique start of it, or the key. Raises NoSuchIntent, UsageError."""
        found = await self._database.read(intents.find, name)
        if found is None:
            raise NoSuchIntent
        return found

    async def cancel(self, name: str) -> Intent:
        """Take it back, also while it runs. Raises NoSuchIntent, IntentSettled."""
        found = await self.find(name)
        done = await self._move(found.intent_id, _S.CANCELLED, "you took it back")
        if done is None:
            raise IntentSettled(f"This request is {(await self.find(found.intent_id)).state} already.")
        scope = self._scopes.get(found.intent_id)
        if scope is not None:
            scope.cancel()
        return done

    async def decide(self, name: str, *, allow: bool, digest: str, asked: str) -> Intent:
        """The owner's answer to what it was parked with. asked: the digest of the question that it holds.

        Raises NoSuchIntent, NothingToDecide.
        """
        found = await self.find(name)
        if found.state is not _S.NEEDS_CONSENT or not asked or digest != asked:
            raise NothingToDecide
        to, reason = (_S.WAITING, "you allowed it") if allow else (_S.REFUSED, "you said no")
        done = await self._move(found.intent_id, to, reason, allowed_digest=digest if allow else None)
        if done is None:
            raise NothingToDecide
        if allow:
            self._post(Released(done.intent_id))
        return done

    # -- running -------------------------------------------------------------------------------------------------------

    async def run(self, *, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        """Try what waits until cancelled. A disk that fails for a while ends nothing."""
        await self._recover()
        task_status.started()
        async with trio.open_nursery() as nursery:
            while True:
                bell = self._bell
                events, self._events = self._events, []
                await self._expire()
                for event in events or [Tick()]:
                    for command in self._schedule.handle(event, trio.current_time()):
                        match command:
                            case Look(intent_id):
                                nursery.start_soon(self._look, intent_id)
                            case Start(intent_id):
                                nursery.start_soon(self._run_one, intent_id)
                due_s = self._schedule.due_s
                pause_s = EXPIRY_LOOK_S if due_s is None else due_s - trio.current_time()
                with trio.move_on_after(max(0.0, min(EXPIRY_LOOK_S, pause_s))):
                    await bell.wait()

    async def _recover(self) -> None:
        now_ms = self._now_ms()
        try:
            found = await self._database.write(intents.recover, now_ms)
        except KithError as error:
            log.warning("the queue stays as the last stop left it for now: %s", error.code)
        else:
            if found:
                were = counted(found, "queued request was", "queued requests were")
                log.info("%s being answered when the node was stopped", were)
        for intent in await self._database.read(intents.live):
            if intent.state is not _S.NEEDS_CONSENT:
                self._post(Added(intent.intent_id))

    async def _expire(self) -> None:
        try:
            for intent_id in await self._database.write(intents.expire, to_ms(self._expiry.now())):
                self._schedule.handle(Gone(intent_id), trio.current_time())
                await self._tell(intent_id)
        except KithError as error:
            log.warning("the queue cannot be looked through: %s", error.code)

    async def _look(self, intent_id: str) -> None:
        able = False
        try:
            intent = await self._database.read(intents.get, intent_id)
            if intent is not None and intent.state is _S.RUNNING:  # what came of its run could not be written down
                intent = await self._move(intent_id, _S.WAITING, "it could not be written down")
            able = intent is not None and intent.state is _S.WAITING and await self._can_run(intent)
        except KithError as error:
            log.warning("a queued request cannot be looked at: %s", error.code)
        self._post(Found(intent_id, able))

    async def _can_run(self, intent: Intent) -> bool:
        try:
            return await self._upgrader.can_run(intent)
        except Exception as error:  # one request's bug must not end the queue
            log.error("looking for a place for a queued request failed: %s", type(error).__name__, exc_info=error)
            return False

    async def _run_one(self, intent_id: str) -> None:
        again = True
        with trio.CancelScope() as scope:
            self._scopes[intent_id] = scope
            try:
                intent = await self._move(intent_id, _S.RUNNING)
                again = intent is not None and await self._close(intent, await self._outcome(intent))
            except KithError as error:  # a full disk: the next look puts the row back
                log.warning("what came of a queued request cannot be written down: %s", error.code)
            finally:
                del self._scopes[intent_id]
        if scope.cancelled_caught:
            again = False
        self._post(Ended(intent_id, again, int.from_bytes(self._entropy.bytes(2), "big") / 65536))

    async def _outcome(self, intent: Intent) -> Outcome:
        try:
            return await self._upgrader.run(intent)
        except Exception as error:  # one request's bug must not end the queue
            log.error("upgrading a queued request failed: %s", type(error).__name__, exc_info=error)
            return Again(f"it failed ({type(error).__name__})")

    async def _close(self, intent: Intent, outcome: Outcome) -> bool:
        """Write what came of it; True when it shall be tried again."""
        match outcome:
            case Upgraded(turn):
                done = await self._database.write(
                    intents.settle, intent.intent_id, intent.attempts, turn, self._now_ms())
                if done is not None:
                    log.info("a queued request has its answer after %d attempts", intent.attempts)
                    self._teller.intent_changed(done)
                return False
            case Again(reason):
                return await self._move(intent.intent_id, _S.WAITING, reason) is not None
            case Parked(question_json, reason):
                await self._move(intent.intent_id, _S.NEEDS_CONSENT, reason, question=question_json)
            case Refused(reason):
                await self._move(intent.intent_id, _S.REFUSED, reason)
            case GaveUp(reason):
                await self._move(intent.intent_id, _S.FAILED, reason)
        return False

    async def _move(
        self, intent_id: str, to: IntentState, reason: str | None = None, *, question: str | None = None,
        allowed_digest: str | None = None,
    ) -> Intent | None:
        moved = await self._database.write(
            intents.advance, intent_id, to, self._now_ms(), reason=reason, question=question,
            allowed_digest=allowed_digest,
        )
        if moved is not None:
            self._teller.intent_changed(moved)
            if moved.state not in LIVE:
                self._post(Gone(intent_id))
        return moved

    async def _tell(self, intent_id: str) -> None:
        intent = await self._database.read(intents.get, intent_id)
        if intent is not None:
            self._teller.intent_changed(intent)

    def _post(self, event: Event) -> None:
        if not (isinstance(event, Changed) and event in self._events):
            self._events.append(event)
        self._bell.set()
        self._bell = trio.Event()

    def _now_ms(self) -> int:
        return to_ms(self._clock.now())
