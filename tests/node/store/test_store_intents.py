"""The queue's rows: the table of states, one answer per request, and a walk at random with crashes in it."""

import json
import tempfile
from pathlib import Path

import pytest
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, consumes, invariant, rule

from node.errors import UsageError
from node.store import conversations, intents
from node.store.connection import Connection, open_connection
from node.store.conversations import Turn
from node.store.intents import LIVE, IntentState
from node.store.migrations import migrate
from node.store.schema import KITH

S = IntentState
KEY = bytes(range(32))
TALK = "c" * 32
REACHED_BY = {
    S.WAITING: (), S.RUNNING: (S.RUNNING,), S.NEEDS_CONSENT: (S.RUNNING, S.NEEDS_CONSENT), S.CANCELLED: (S.CANCELLED,),
    S.EXPIRED: (S.EXPIRED,), S.REFUSED: (S.RUNNING, S.REFUSED), S.FAILED: (S.FAILED,),
}
# hand-drawn, as the owner is told in docs/howto/queue.md
MAY = {
    S.WAITING: {S.RUNNING, S.CANCELLED, S.EXPIRED, S.FAILED},
    S.RUNNING: {S.WAITING, S.NEEDS_CONSENT, S.CANCELLED, S.REFUSED, S.FAILED},
    S.NEEDS_CONSENT: {S.WAITING, S.CANCELLED, S.EXPIRED, S.REFUSED},
    S.CANCELLED: set(), S.EXPIRED: set(), S.REFUSED: set(), S.FAILED: set(),
}


def opened(path: Path) -> Connection:
    connection = open_connection(path, KEY, "NORMAL")
    migrate(connection, KITH, path)
    return connection


@pytest.fixture
def tx(tmp_path: Path):
    connection = opened(tmp_path / "kith.db")
    conversations.create(connection, TALK, 1, confidentiality=0, integrity=2)
    yield connection
    connection.close()


def put(tx: Connection, name: str = "a", key: str = "", expires_ms: int = 1000) -> intents.Intent:
    return intents.add(
        tx, intent_id=name * 32, key=key or name * 32, conversation_id=TALK, place="auto", model=None, title="explain",
        job=b"{}", reason="away", now_ms=5, expires_ms=expires_ms)


def answer(text: str = "better", ran_on: str = "home-pc", **labels: int) -> Turn:
    return Turn("assistant", text, labels.get("confidentiality", 0), labels.get("integrity", 2), 50, ran_on,
                detail='{"kind": "done"}')


def draft(tx: Connection, intent_id: str, text: str = "a draft") -> int:
    detail = json.dumps({"kind": "draft", "intent": intent_id})
    return conversations.append(tx, TALK, Turn("assistant", text, 0, 2, 6, "phone", detail=detail))


@pytest.mark.parametrize(("start", "to"), [(a, b) for a in MAY for b in S if b is not S.DONE])
def test_only_the_table_s_ways_lead_on(tx: Connection, start: IntentState, to: IntentState) -> None:
    put(tx)
    for step in REACHED_BY[start]:
        assert intents.advance(tx, "a" * 32, step, 10)
    got = intents.advance(tx, "a" * 32, to, 20, reason="because")
    if to in MAY[start]:
        assert got is not None
        assert (got.state, got.reason, got.updated_ms) == (to, "because", 20)
        assert (got.job == b"") is (to not in LIVE)
    else:
        assert got is None
        assert intents.get(tx, "a" * 32).state is start


def test_the_same_key_is_one_request(tx: Connection) -> None:
    first = put(tx, "a", key="mine")
    again = put(tx, "b", key="mine")
    assert again == first
    assert len(intents.live(tx)) == 1
    intents.advance(tx, "a" * 32, S.CANCELLED, 7)
    assert put(tx, "b", key="mine").state is S.CANCELLED    # a repeated call does not bring it back


def test_the_answer_takes_the_drafts_place_and_keeps_it(tx: Connection) -> None:
    intent = put(tx)
    conversations.append(tx, TALK, Turn("user", "explain salt", 0, 2, 4))
    number = draft(tx, intent.intent_id)
    conversations.append(tx, TALK, Turn("user", "and now?", 0, 2, 8))
    running = intents.advance(tx, intent.intent_id, S.RUNNING, 9)
    done = intents.settle(tx, intent.intent_id, running.attempts, answer(confidentiality=1, integrity=0), 50)
    assert (done.state, done.ran_on, done.job) == (S.DONE, "home-pc", b"")
    turns = conversations.turns(tx, TALK)
    assert [turn.text for turn in turns] == ["explain salt", "better", "and now?"]
    turn = conversations.upgraded(tx, TALK, intent.intent_id)
    detail = json.loads(turn.detail)
    assert (turn.number, turn.ran_on, detail["upgraded"]) == (number, "home-pc", True)
    assert detail["draft"] == {"text": "a draft", "ran_on": "phone", "at_ms": 6}
    talk = conversations.get(tx, TALK)
    assert (talk.confidentiality, talk.integrity, talk.updated_ms) == (1, 0, 50)     # never laxer
    assert intents.counts(tx) == {"done": 1, "new": 1}
    intents.mark_seen(tx, intent.intent_id, 60)
    assert intents.counts(tx) == {"done": 1, "new": 0}


def test_without_a_draft_the_answer_is_a_turn_of_its_own(tx: Connection) -> None:
    put(tx)
    running = intents.advance(tx, "a" * 32, S.RUNNING, 9)
    assert intents.settle(tx, "a" * 32, running.attempts, answer(), 50)
    assert [turn.text for turn in conversations.turns(tx, TALK)] == ["better"]


def test_an_answer_that_comes_too_late_is_dropped(tx: Connection) -> None:
    put(tx)
    draft(tx, "a" * 32)
    first = intents.advance(tx, "a" * 32, S.RUNNING, 9)
    intents.recover(tx, 10)
    second = intents.advance(tx, "a" * 32, S.RUNNING, 11)
    assert intents.settle(tx, "a" * 32, first.attempts, answer("of the first attempt"), 12) is None
    intents.advance(tx, "a" * 32, S.CANCELLED, 13)
    assert intents.settle(tx, "a" * 32, second.attempts, answer("after the cancel"), 14) is None
    assert [turn.text for turn in conversations.turns(tx, TALK)] == ["a draft"]


def test_a_deleted_conversation_takes_its_requests_along(tx: Connection) -> None:
    put(tx)
    running = intents.advance(tx, "a" * 32, S.RUNNING, 9)
    conversations.delete(tx, TALK)
    assert intents.get(tx, "a" * 32) is None
    assert intents.settle(tx, "a" * 32, running.attempts, answer(), 12) is None


def test_time_runs_out_for_those_that_wait_not_for_the_one_that_runs(tx: Connection) -> None:
    for name in "abc":
        put(tx, name, expires_ms=100)
    intents.advance(tx, "a" * 32, S.RUNNING, 9)
    intents.advance(tx, "b" * 32, S.RUNNING, 9)
    intents.advance(tx, "b" * 32, S.NEEDS_CONSENT, 10, question="{}")
    assert intents.expire(tx, 99) == []
    assert sorted(intents.expire(tx, 100)) == ["b" * 32, "c" * 32]
    assert intents.get(tx, "b" * 32).question is None
    assert [one.intent_id for one in intents.live(tx)] == ["a" * 32]


def test_found_by_start_or_key_and_cleared(tx: Connection) -> None:
    put(tx, "a", key="mine")
    intents.add(tx, intent_id="ab" * 16, key="k", conversation_id=TALK, place="auto", model=None, title="", job=b"",
                reason="", now_ms=6, expires_ms=9)
    assert intents.find(tx, "mine").intent_id == "a" * 32
    assert intents.find(tx, "aa").intent_id == "a" * 32
    assert intents.find(tx, "f") is intents.find(tx, "") is None
    with pytest.raises(UsageError):
        intents.find(tx, "a")
    intents.advance(tx, "ab" * 16, S.CANCELLED, 7)
    assert [one.state for one in intents.listed(tx, limit=9)] == [S.WAITING, S.CANCELLED]
    assert (intents.clear(tx), intents.clear(tx)) == (1, 0)
    intents.advance(tx, "a" * 32, S.CANCELLED, 8)
    assert (intents.prune(tx, 8), intents.prune(tx, 9)) == (0, 1)


def test_an_answer_that_was_not_looked_at_is_not_pruned(tx: Connection) -> None:
    put(tx, "a")
    intents.advance(tx, "a" * 32, S.RUNNING, 6)
    assert intents.settle(tx, "a" * 32, 1, answer(), 7) is not None
    assert intents.prune(tx, 100) == 0
    intents.mark_seen(tx, "a" * 32, 8)
    assert intents.prune(tx, 100) == 1


class QueueOfRequests(RuleBasedStateMachine):
    """The rows against a plain model, with kill -9 between any two commits: the file is opened anew each time."""

    ids = Bundle("ids")

    def __init__(self) -> None:
        super().__init__()
        self.folder = tempfile.TemporaryDirectory()
        self.path = Path(self.folder.name) / "kith.db"
        self.tx = opened(self.path)
        conversations.create(self.tx, TALK, 1, confidentiality=0, integrity=2)
        self.states: dict[str, IntentState] = {}
        self.attempts: dict[str, int] = {}
        self.answers: dict[str, str] = {}
        self.expires: dict[str, int] = {}
        self.now_ms = 10
        self.made = 0

    def teardown(self) -> None:
        self.tx.close()
        self.folder.cleanup()

    def step(self) -> int:
        self.now_ms += 1
        return self.now_ms

    def move(self, name: str, to: IntentState) -> None:
        done = intents.advance(self.tx, name, to, self.step())
        allowed = name in self.states and to in MAY.get(self.states[name], set())
        assert (done is not None) is allowed
        if allowed:
            self.states[name] = to
            self.attempts[name] += to is S.RUNNING

    @rule(target=ids, life_ms=st.integers(1, 40), drafted=st.booleans())
    def ask(self, life_ms: int, drafted: bool) -> str:
        self.made += 1
        name = f"{self.made:032x}"
        now_ms = self.step()
        intents.add(self.tx, intent_id=name, key=name, conversation_id=TALK, place="auto", model=None, title="t",
                    job=b"{}", reason="", now_ms=now_ms, expires_ms=now_ms + life_ms)
        if drafted:
            draft(self.tx, name, f"draft of {name}")
        self.states[name], self.attempts[name], self.expires[name] = S.WAITING, 0, now_ms + life_ms
        return name

    @rule(name=ids)
    def ask_again(self, name: str) -> None:
        again = intents.add(self.tx, intent_id="f" * 32, key=name, conversation_id=TALK, place="auto", model=None,
                            title="t", job=b"{}", reason="", now_ms=self.step(), expires_ms=self.now_ms + 9)
        if name in self.states:
            assert again.intent_id == name
        else:
            self.tx.execute("DELETE FROM intents WHERE intent_id = ?", ("f" * 32,))

    @rule(name=ids, to=st.sampled_from([one for one in S if one not in (S.DONE, S.EXPIRED)]))
    def advance(self, name: str, to: IntentState) -> None:
        self.move(name, to)

    @rule(name=ids, stale=st.integers(0, 2))
    def settle(self, name: str, stale: int) -> None:
        attempt = self.attempts.get(name, 1) - stale
        text = f"answer {attempt} to {name}"
        done = intents.settle(self.tx, name, attempt, answer(text), self.step())
        fits = self.states.get(name) is S.RUNNING and stale == 0
        assert (done is not None) is fits
        if fits:
            self.states[name] = S.DONE
            self.answers[name] = text

    @rule()
    def expire(self) -> None:
        now_ms = self.step()
        due = {name for name, state in self.states.items()
               if state in (S.WAITING, S.NEEDS_CONSENT) and self.expires[name] <= now_ms}
        assert set(intents.expire(self.tx, now_ms)) == due
        self.states.update(dict.fromkeys(due, S.EXPIRED))

    @rule(half_done=st.booleans(), name=ids)
    def crash(self, half_done: bool, name: str) -> None:
        """The process dies, perhaps with a transaction open that had written everything but the commit."""
        if half_done and self.states.get(name) is S.RUNNING:
            self.tx.execute("BEGIN IMMEDIATE")
            assert intents.settle(self.tx, name, self.attempts[name], answer("lost"), self.now_ms)
        self.tx.close()
        self.tx = opened(self.path)
        running = [one for one, state in self.states.items() if state is S.RUNNING]
        assert intents.recover(self.tx, self.step()) == len(running)
        self.states.update(dict.fromkeys(running, S.WAITING))

    @rule(names=st.lists(consumes(ids), max_size=2))
    def clear(self, names: list[str]) -> None:
        settled = [name for name, state in self.states.items() if state not in LIVE]
        assert intents.clear(self.tx) == len(settled)
        for name in settled:
            del self.states[name]

    @invariant()
    def rows_are_as_the_model_says(self) -> None:
        rows = {one.intent_id: one for one in intents.listed(self.tx, limit=1000)}
        assert {name: row.state for name, row in rows.items()} == self.states
        assert all((row.job == b"") is (row.state not in LIVE) for row in rows.values())

    @invariant()
    def every_answer_stands_there_once(self) -> None:
        texts = [turn.text for turn in conversations.turns(self.tx, TALK)]
        assert sorted(text for text in texts if text.startswith("answer")) == sorted(self.answers.values())
        assert "lost" not in texts
        for name in self.answers:
            assert f"draft of {name}" not in texts


TestQueueOfRequests = QueueOfRequests.TestCase
TestQueueOfRequests.settings = hypothesis_settings(max_examples=25, stateful_step_count=30, deadline=None)
