"""The asking machine against a provider that does anything at any time, over as many providers as one answer takes.

The model of truth is the list of what each provider sent rightly; Hypothesis looks for an order of events in which the
machine shows something else, ends well without a fitting End, or lets time pass for ever.
"""

import hashlib
from typing import Any

from frame_samples import DIGEST, ID, OTHER_ID
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from protocol import limits
from protocol.errors import OutOfOrder
from protocol.inference import (
    Accepted,
    Begin,
    BrokeOff,
    Cancelled,
    CancelWanted,
    Completed,
    Declined,
    End,
    ErrorFrame,
    InferRequest,
    Part,
    Progress,
    PromptParts,
    Refused,
    RequesterMachine,
    RequesterState,
    TextArrived,
    TokenFrame,
)
from protocol.machine import ChannelBroken, PeerFinished, Received, Tick

MAX_TOKENS = 40
STATES = ("queued", "loading", "prefill", "decoding")
_S = RequesterState


def blake(text: str) -> bytes:
    return hashlib.blake2b(text.encode(), digest_size=16).digest()


class Requesting(RuleBasedStateMachine):
    """One answer; after a break a new machine goes on from the resume point."""

    @initialize()
    def begin(self) -> None:
        self.now_s = 50.0
        self.shown = ""             # what was delivered, over all providers
        self.ids: list[int] = []
        self.used = 0
        self.outcomes: list[Any] = []
        self.ended_well = False
        self.legs = 0
        self._ask(InferRequest(
            request_id=ID, prompt=PromptParts((Part("user", "hi"),)), max_tokens=MAX_TOKENS, deadline_s=12,
            model_digest=DIGEST))

    def _ask(self, request: InferRequest) -> None:
        self.request = request
        self.machine = RequesterMachine(request)
        self.machine.handle(Begin(), self.now_s)
        self.legs += 1
        self.accepted = self.cancelled = self.spoiled = False
        self.seq, self.text, self.count = request.resume_cursor, request.text_so_far, 0
        self.moved_s = self.now_s
        self.state, self.counters = "prefill", (0, 0, 0, 0)

    @property
    def live(self) -> bool:
        return self.machine.state in (_S.WAITING, _S.STREAMING, _S.CANCELLING)

    def _feed(self, event: object) -> None:
        try:
            commands = self.machine.handle(event, self.now_s)
        except OutOfOrder:
            assert self.spoiled, f"{event} is within the rules"
            return
        for command in commands:
            if isinstance(command, TextArrived):
                assert not self.cancelled, "nothing is delivered after a cancel"
                self.shown += command.text
                self.ids += command.token_ids
                self.used += command.tokens
            elif isinstance(command, Completed | Declined | BrokeOff | Cancelled):
                self.outcomes.append(command)
                self.ended_well = isinstance(command, Completed)

    # -- a provider that keeps to the rules --

    @precondition(lambda self: self.live and not self.accepted)
    @rule(position=st.integers(0, 3))
    def accept(self, position: int) -> None:
        self.accepted = True
        self.moved_s, self.state, self.counters = self.now_s, "queued" if position else "prefill", (position, 0, 0, 0)
        self._feed(Received(Accepted(ID, DIGEST, position)))

    @precondition(lambda self: self.live and self.accepted and self.used + self.count < MAX_TOKENS - 3)
    @rule(text=st.text("ab☕", max_size=4), tokens=st.integers(0, 3))
    def write(self, text: str, tokens: int) -> None:
        if not text and not tokens:
            return
        if self.count + tokens > self.request.max_tokens:
            return
        self.text += text
        self.count += tokens
        ids = tuple(range(100, 100 + tokens))
        frame = TokenFrame(ID, self.seq, text, tokens, ids, blake(self.text))
        self.seq += 1
        self.moved_s, self.state = self.now_s, "decoding"
        self.counters = (self.counters[0], self.counters[1], self.counters[2], max(self.counters[3], self.count))
        self._feed(Received(frame))

    @precondition(lambda self: self.live and self.accepted)
    @rule(state=st.sampled_from(STATES), position=st.integers(0, 2), done=st.integers(0, 3), written=st.integers(0, 4))
    def beat(self, state: Any, position: int, done: int, written: int) -> None:
        was_position, was_total, was_done, was_written = self.counters
        reads = state == "prefill" and (done > was_done or was_total != 9)
        if state != self.state or position < was_position or reads or written > was_written:
            self.moved_s = self.now_s
        self.state, self.counters = state, (position, 9, done, max(was_written, written))
        self._feed(Received(Progress(ID, state, position, done, 9, written)))

    @precondition(lambda self: self.live and self.accepted)
    @rule(times=st.integers(1, 6))
    def beat_on(self, times: int) -> None:
        """The same sign of life, again and again."""
        position, _, done, written = self.counters
        self.beat(self.state, position, done, written)
        for _ in range(times):
            if self.live:
                self.let_time_pass(0.9)
            if self.live:
                self.beat(self.state, position, done, written)

    @precondition(lambda self: self.live and self.accepted)
    @rule(reason=st.sampled_from(["stop", "length", "loop"]))
    def end(self, reason: Any) -> None:
        self._feed(Received(End(ID, reason, self.count, blake(self.text), DIGEST)))
        assert not self.live

    # -- a provider that does not, and a world that breaks --

    @precondition(lambda self: self.live)
    @rule(what=st.sampled_from(["count", "digest", "model", "seq", "text", "id", "double"]))
    def lie(self, what: str) -> None:
        good = End(ID, "stop", self.count, blake(self.text), DIGEST)
        lies: dict[str, Any] = {
            "count": End(ID, "stop", self.count + 1, good.digest, DIGEST),
            "digest": End(ID, "stop", self.count, blake(self.text + "x"), DIGEST),
            "model": End(ID, "stop", self.count, good.digest, "cd" * 32),
            "seq": TokenFrame(ID, self.seq + 1, "x", 1, (7,), blake(self.text + "x")),
            "text": TokenFrame(ID, self.seq, "x", 1, (7,), blake(self.text + "y")),
            "id": Progress(OTHER_ID, "decoding", 0, 0, 0, 0),
            "double": Accepted(ID, DIGEST, 0) if self.accepted else good,
        }
        self.spoiled = True
        self._feed(Received(lies[what]))
        assert self.machine.state is _S.FAILED

    @precondition(lambda self: self.live)
    @rule(event=st.sampled_from([PeerFinished(), ChannelBroken(), Received(ErrorFrame(ID, "engine_failed"))]))
    def break_off(self, event: object) -> None:
        self._feed(event)
        assert not self.live

    @precondition(lambda self: self.live and not self.accepted)
    @rule()
    def refuse(self) -> None:
        self._feed(Received(Refused(ID, "busy", None)))
        assert not self.live

    @precondition(lambda self: self.live)
    @rule()
    def cancel(self) -> None:
        self._feed(CancelWanted())
        self.cancelled = True

    @precondition(lambda self: self.live)
    @rule(seconds=st.floats(0.1, 2.9))
    def let_time_pass(self, seconds: float) -> None:
        """The driver wakes when it is due, never later."""
        due_s = self.machine.due_s
        assert due_s is not None
        self.now_s = min(self.now_s + seconds, due_s)
        self._feed(Tick())
        if self.now_s >= due_s:
            assert not self.live, "what is due happens"

    @precondition(lambda self: not self.live and self.machine.state is not _S.FAILED)
    @rule()
    def trickle(self) -> None:
        """What comes behind the outcome changes nothing."""
        assert self.machine.handle(Received(Progress(ID, "decoding", 0, 0, 0, 9)), self.now_s) == ()
        assert self.machine.handle(PeerFinished(), self.now_s) == ()
        assert self.machine.due_s is None

    @precondition(lambda self: self.machine.state is _S.FAILED)
    @rule()
    def stay_failed(self) -> None:
        assert self.machine.due_s is None

    @precondition(lambda self: self.machine.state in (_S.BROKEN, _S.FAILED) and not self.cancelled and self.legs < 6)
    @rule()
    def go_on_elsewhere(self) -> None:
        """From exactly what was delivered."""
        resume = self.machine.resume_point
        assert resume.text == self.shown
        assert resume.tokens_left == MAX_TOKENS - self.used
        assert resume.token_ids in ((), tuple(self.ids))
        if resume.tokens_left < 1:
            return
        self._ask(InferRequest(
            request_id=ID, prompt=PromptParts((Part("user", "hi"),)), max_tokens=resume.tokens_left, deadline_s=12,
            model_digest=DIGEST, text_so_far=resume.text, resume_cursor=max(1, resume.cursor) if resume.text or
            resume.token_ids else 0, token_ids_so_far=resume.token_ids))
        self.seq = self.request.resume_cursor

    # -- what holds at every moment --

    @invariant()
    def what_was_shown_was_sent(self) -> None:
        assert self.text.startswith(self.shown)
        if not self.cancelled and self.live:
            assert self.shown == self.text

    @invariant()
    def a_machine_ends_once_and_well_only_by_an_end(self) -> None:
        assert len(self.outcomes) <= self.legs
        if self.ended_well:
            assert self.machine.state is _S.COMPLETED
            assert self.shown == self.text

    @invariant()
    def nothing_stands_still_for_longer_than_it_may(self) -> None:
        if self.live:
            patience = {"queued": limits.QUEUED_STILL_S, "loading": limits.LOADING_STILL_S}
            assert self.now_s < self.moved_s + patience.get(self.state, limits.STALL_S)


TestRequesting = Requesting.TestCase
TestRequesting.settings = settings(max_examples=150, stateful_step_count=40, deadline=None)
