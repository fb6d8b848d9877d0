"""Mail rows: numbers without holes, exactly once, in order, whatever is lost, repeated, reordered or killed."""

from dataclasses import replace

import pytest
from hypothesis import Phase
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule, run_state_machine_as_test
from store_rows import memory_rows

from node.errors import StoreConflict
from node.store import mail, mail_archive
from node.store.connection import Connection
from node.store.mail import Incoming, OutboxState, Receipt

HOUR_MS = 3_600_000


def put(tx: Connection, number: int, peer: str = "bea", now_ms: int = 1000) -> mail.OutboxRow:
    return mail.enqueue(
        tx, peer_id=peer, message_id=f"m{number}", kind="chat.msg", body=f"text {number}", now_ms=now_ms,
        expires_ms=now_ms + HOUR_MS,
    )


def incoming(seq: int, message_id: str | None = None) -> Incoming:
    return Incoming(seq, message_id or f"m{seq}", "chat.msg", f"text {seq}", 1000)


def test_numbers_run_from_one_without_holes_per_peer():
    tx = memory_rows()
    assert [put(tx, n).seq for n in (1, 2, 3)] == [1, 2, 3]
    assert put(tx, 4, peer="cara").seq == 1
    assert mail.marks(tx, "bea") == mail.Marks(3, 0, 0)
    assert mail.waiting(tx) == {"bea": 3, "cara": 1}
    assert mail.peers_waiting(tx) == ["bea", "cara"]


def test_the_same_message_id_is_one_message_and_never_another():
    tx = memory_rows()
    first = put(tx, 1)
    assert put(tx, 1, now_ms=5000) == first
    with pytest.raises(StoreConflict):
        put(tx, 1, peer="cara")
    assert mail.marks(tx, "bea").allocated == 1


def test_states_go_queued_sent_delivered_and_an_ack_counts_once():
    tx = memory_rows()
    put(tx, 1)
    put(tx, 2)
    mail.mark_sent(tx, "bea", 1)
    assert [row.state for row in mail.pending(tx, "bea")] == [OutboxState.SENT, OutboxState.QUEUED]
    delivered = mail.acknowledge(tx, "bea", 1, 2000)
    assert [(row.seq, row.state, row.settled_ms) for row in delivered] == [(1, OutboxState.DELIVERED, 2000)]
    assert mail.acknowledge(tx, "bea", 1, 3000) == []
    assert mail.acknowledge(tx, "bea", 0, 3000) == []
    assert [row.seq for row in mail.pending(tx, "bea")] == [2]
    found = mail.find(tx, "m1")
    assert found == delivered[0]
    mail.mark_sent(tx, "bea", 1)  # a late note does not take delivery back
    assert mail.find(tx, "m1") == found


def test_an_ack_for_numbers_never_given_out_is_refused():
    tx = memory_rows()
    put(tx, 1)
    with pytest.raises(StoreConflict, match="2 and only 1"):
        mail.acknowledge(tx, "bea", 2, 2000)
    with pytest.raises(StoreConflict):
        mail.acknowledge(tx, "stranger", 1, 2000)
    assert [row.state for row in mail.outbox(tx)] == [OutboxState.QUEUED]


def test_an_expired_message_loses_its_text_keeps_its_number_and_stays_visible():
    tx = memory_rows()
    put(tx, 1)
    put(tx, 2, now_ms=1000 + HOUR_MS)
    assert [row.seq for row in mail.expire(tx, 1000 + HOUR_MS)] == [1]
    assert mail.expire(tx, 1000 + HOUR_MS) == []
    assert [(row.seq, row.state, row.body) for row in mail.pending(tx, "bea")] == [
        (1, OutboxState.EXPIRED, ""), (2, OutboxState.QUEUED, "text 2"),
    ]
    assert [row.seq for row in mail.acknowledge(tx, "bea", 2, 9_000_000)] == [2]
    assert mail.find(tx, "m1").state is OutboxState.EXPIRED  # stepping over is not delivering
    assert mail.peers_waiting(tx) == []


def test_messages_to_a_forgotten_peer_are_given_up_and_say_so():
    tx = memory_rows()
    put(tx, 1)
    put(tx, 2)
    put(tx, 3, peer="cara")
    mail.acknowledge(tx, "bea", 1, 2000)
    assert mail.give_up(tx, "bea", 3000) == 1
    assert {row.message_id: row.state for row in mail.outbox(tx)} == {
        "m1": OutboxState.DELIVERED, "m2": OutboxState.EXPIRED, "m3": OutboxState.QUEUED,
    }
    assert {row.message_id: row.reason for row in mail.outbox(tx)} == {"m1": "", "m2": mail.FORGOTTEN, "m3": ""}


def test_a_withheld_message_keeps_its_number_and_why_and_nothing_of_its_text():
    tx = memory_rows()
    put(tx, 1)
    put(tx, 2)
    mail.acknowledge(tx, "bea", 1, 1500)
    for seq in (1, 2):                                      # what was delivered stays so
        mail.withhold(tx, "bea", seq, 2000, "holds_secret")
    assert [(row.seq, row.state.value, row.body, row.reason) for row in mail.outbox(tx)] == [
        (2, "expired", "", "holds_secret"), (1, "delivered", "text 1", "")]
    assert [row.seq for row in mail.pending(tx, "bea")] == [2]
    assert mail.expire(tx, 9 * HOUR_MS) == []
    assert mail.find(tx, "m2").reason == "holds_secret"


def test_pending_pages_from_where_the_driver_is():
    tx = memory_rows()
    for number in range(1, 8):
        put(tx, number)
    mail.acknowledge(tx, "bea", 2, 2000)
    assert [row.seq for row in mail.pending(tx, "bea", limit=2)] == [3, 4]
    assert [row.seq for row in mail.pending(tx, "bea", after_seq=4, limit=2)] == [5, 6]
    assert [row.seq for row in mail.pending(tx, "bea", after_seq=1, limit=2)] == [3, 4]


def test_incoming_next_is_stored_repeated_is_known_ahead_waits():
    tx = memory_rows()
    assert mail.receive(tx, "bea", incoming(2), 1) is Receipt.AHEAD
    assert mail.receive(tx, "bea", incoming(1), 1) is Receipt.STORED
    assert mail.receive(tx, "bea", incoming(1), 2) is Receipt.DUPLICATE
    assert mail.receive(tx, "bea", incoming(2), 3) is Receipt.STORED
    assert mail.marks(tx, "bea").received == 2
    assert [(row.seq, row.received_ms) for row in mail.inbox(tx)] == [(2, 3), (1, 1)]


def test_another_message_under_a_taken_number_is_told_not_swallowed():
    tx = memory_rows()
    mail.receive(tx, "bea", incoming(1), 1)
    assert mail.receive(tx, "bea", incoming(1, "other"), 2) is Receipt.CONFLICT
    assert [row.message_id for row in mail.inbox(tx)] == ["m1"]


def test_what_is_over_goes_with_time_and_nothing_unread_or_undelivered_ever_does():
    tx = memory_rows()
    for number in (1, 2, 3, 4):
        put(tx, number)
    mail.acknowledge(tx, "bea", 2, 2000)
    mail.expire(tx, 1000 + HOUR_MS)        # 3 and 4; the peer has not been told to step over them
    put(tx, 5, now_ms=3000)
    for seq in (1, 2, 3):
        mail.receive(tx, "bea", incoming(seq), 1000)
    mail.mark_read(tx, 2, 2000)
    far_ms = 9 * HOUR_MS
    assert mail_archive.drop_read(tx, 2000, limit=9) == mail_archive.drop_settled(tx, 2000, limit=9) == 0
    assert [mail_archive.drop_read(tx, far_ms, limit=1) for _ in range(3)] == [1, 1, 0]
    assert [mail_archive.drop_settled(tx, far_ms, limit=1) for _ in range(3)] == [1, 1, 0]
    assert [row.seq for row in mail.inbox(tx)] == [3]
    assert {row.seq: row.state.value for row in mail.outbox(tx)} == {3: "expired", 4: "expired", 5: "queued"}
    assert mail.receive(tx, "bea", incoming(1), far_ms) is Receipt.DUPLICATE    # known by its number, without its row
    assert mail.receive(tx, "bea", incoming(4), far_ms) is Receipt.STORED
    assert put(tx, 6).seq == 6
    mail.acknowledge(tx, "bea", 4, far_ms)
    assert mail_archive.drop_settled(tx, far_ms, limit=9) == 2
    assert [row.seq for row in mail.pending(tx, "bea")] == [5, 6]


def test_a_message_sent_again_under_a_new_number_is_stored_once():
    tx = memory_rows()
    mail.receive(tx, "bea", incoming(1), 1)
    assert mail.receive(tx, "bea", incoming(2, "m1"), 2) is Receipt.DUPLICATE
    assert mail.marks(tx, "bea").received == 2
    assert len(mail.inbox(tx)) == 1


def test_a_gap_moves_the_mark_forward_only():
    tx = memory_rows()
    assert mail.skip(tx, "bea", 3) == 3
    assert mail.skip(tx, "bea", 2) == 3
    assert mail.receive(tx, "bea", incoming(2), 1) is Receipt.DUPLICATE
    assert mail.receive(tx, "bea", incoming(4), 1) is Receipt.STORED


def test_reading_marks_messages_and_pages_go_back_in_time():
    tx = memory_rows()
    for seq in (1, 2, 3):
        mail.receive(tx, "bea", incoming(seq), seq)
    newest = mail.inbox(tx, limit=2)
    assert [row.seq for row in newest] == [3, 2]
    assert [row.seq for row in mail.inbox(tx, before_arrival=newest[-1].arrival)] == [1]
    assert mail.mark_read(tx, newest[-1].arrival, 9) == 2
    assert mail.mark_read(tx, newest[-1].arrival, 10) == 0
    assert [row.seq for row in mail.inbox(tx, unread=True)] == [3]


def take(tx: Connection, peer: str, seq: int, room: mail.InboxRoom, body: str = "hi") -> Receipt:
    return mail.receive(tx, peer, Incoming(seq, f"m{seq}", "chat.msg", body, 1), 1, room)


def test_one_peers_unread_messages_are_limited_and_reading_makes_room():
    tx, room = memory_rows(), mail.InboxRoom(messages=2, size_bytes=10_000)
    assert [take(tx, "bea", seq, room) for seq in (1, 2, 3)] == [Receipt.STORED, Receipt.STORED, Receipt.FULL]
    assert mail.marks(tx, "bea").received == 2          # the third is asked for again
    assert take(tx, "bea", 2, room) is Receipt.DUPLICATE    # what is here is acknowledged all the same
    assert take(tx, "cara", 1, room) is Receipt.STORED      # another peer has room of its own
    assert len(mail.inbox(tx)) == 3
    assert mail.mark_read(tx, 1, 9) == 1
    assert [take(tx, "bea", seq, room) for seq in (3, 4)] == [Receipt.STORED, Receipt.FULL]
    mail.mark_read(tx, 99, 9)
    assert not mail.is_full(tx, "bea", room)


def test_bytes_are_counted_as_they_are_stored_and_empty_messages_count_too():
    tx, room = memory_rows(), mail.InboxRoom(messages=1000, size_bytes=2000)
    assert take(tx, "bea", 1, room, "é" * 1000) is Receipt.STORED   # 2000 bytes in UTF-8
    assert take(tx, "bea", 2, room) is Receipt.FULL
    mail.mark_read(tx, 1, 9)
    stored = 0
    while take(tx, "bea", 2 + stored, room, "") is Receipt.STORED:
        stored += 1
    assert 1 < stored < 1000


def test_what_one_peer_may_leave_is_bounded_without_being_told():
    assert mail.InboxRoom(10_000, 64 * 1024 * 1024) == mail.INBOX_ROOM
    tx = memory_rows()
    mail.receive(tx, "bea", incoming(1), 1)
    tx.execute("UPDATE mail_marks SET unread = 10000 WHERE peer_id = 'bea'")
    assert mail.receive(tx, "bea", incoming(2), 1) is Receipt.FULL


class TwoNodes(RuleBasedStateMachine):
    """A sender's and a receiver's rows, a network between that loses, repeats and reorders, crashes on both sides.

    A crash throws away what was not committed; the model is the plain list of messages that send() promised.
    """

    def __init__(self) -> None:
        super().__init__()
        self.sender, self.receiver = memory_rows(), memory_rows()
        self.promised: list[str] = []
        self.expired: set[str] = set()
        self.put_away: list[str] = []
        self.frames: list[object] = []
        self.acks: list[int] = []
        self.now_ms = 1000

    def crash(self, tx: Connection, action: object) -> None:
        """Do it, and die before the commit."""
        tx.execute("BEGIN IMMEDIATE")
        action()  # type: ignore[operator]
        tx.execute("ROLLBACK")

    @rule(commits=st.booleans())
    def send(self, commits: bool) -> None:
        number = len(self.promised) + 1
        if commits:
            put(self.sender, number, now_ms=self.now_ms)
            self.promised.append(f"m{number}")
        else:
            self.crash(self.sender, lambda: put(self.sender, number, now_ms=self.now_ms))

    @rule(limit=st.integers(1, 5), after=st.integers(0, 3))
    def transmit(self, limit: int, after: int) -> None:
        start = mail.marks(self.sender, "bea").acked + after
        for row in mail.pending(self.sender, "bea", after_seq=start, limit=limit):
            if row.state is OutboxState.EXPIRED:
                self.frames.append(row.seq)
            else:
                self.frames.append(Incoming(row.seq, row.message_id, row.kind, row.body, row.created_ms))
                mail.mark_sent(self.sender, "bea", row.seq)

    @precondition(lambda self: self.frames)
    @rule(data=st.data(), keep=st.booleans(), commits=st.booleans())
    def deliver(self, data: st.DataObject, keep: bool, commits: bool) -> None:
        at = data.draw(st.integers(0, len(self.frames) - 1))
        frame = self.frames[at] if keep else self.frames.pop(at)

        def take() -> None:
            if isinstance(frame, int):
                # the machine takes a gap only when everything before it is there
                if frame == mail.marks(self.receiver, "ann").received + 1:
                    mail.skip(self.receiver, "ann", frame)
            else:
                assert mail.receive(self.receiver, "ann", frame, self.now_ms) is not Receipt.CONFLICT

        if commits:
            take()
            self.acks.append(mail.marks(self.receiver, "ann").received)
        else:
            self.crash(self.receiver, take)

    @precondition(lambda self: self.acks)
    @rule(data=st.data(), commits=st.booleans())
    def acknowledge(self, data: st.DataObject, commits: bool) -> None:
        upto = data.draw(st.sampled_from(self.acks))
        if commits:
            mail.acknowledge(self.sender, "bea", upto, self.now_ms)
        else:
            self.crash(self.sender, lambda: mail.acknowledge(self.sender, "bea", upto, self.now_ms))

    @rule()
    def lose_everything_under_way(self) -> None:
        self.frames.clear()
        self.acks.clear()

    @rule(hours=st.sampled_from([0.1, 2]))
    def expire(self, hours: float) -> None:
        self.now_ms += int(hours * HOUR_MS)
        self.expired.update(row.message_id for row in mail.expire(self.sender, self.now_ms))

    @rule(commits=st.booleans(), limit=st.integers(1, 3))
    def read_and_tidy(self, commits: bool, limit: int) -> None:
        """Both sides remove what is over. What is on its way, or can still be told about, must come out the same."""
        def tidy() -> None:
            arrived = [row.arrival for row in mail.inbox(self.receiver, limit=10_000)]
            mail.mark_read(self.receiver, max(arrived, default=0), self.now_ms)
            mail_archive.drop_read(self.receiver, self.now_ms + 1, limit=limit)
            mail_archive.drop_settled(self.sender, self.now_ms + 1, limit=limit)

        if commits:
            before = self.inbox_ids()
            tidy()
            self.put_away += [one for one in before if one not in self.inbox_ids()]
        else:
            self.crash(self.receiver, lambda: self.crash(self.sender, tidy))

    def inbox_ids(self) -> list[str]:
        return [row.message_id for row in reversed(mail.inbox(self.receiver, limit=10_000))]

    @invariant()
    def the_inbox_is_what_was_promised_in_order_once(self) -> None:
        got = self.put_away + self.inbox_ids()
        assert len(got) == len(set(got))
        upto = mail.marks(self.receiver, "ann").received
        assert [one for one in self.promised[:upto] if one in got or one not in self.expired] == got

    @invariant()
    def delivered_means_in_the_inbox(self) -> None:
        got = {*self.put_away, *self.inbox_ids()}
        delivered = {row.message_id for row in mail.outbox(self.sender, limit=10_000) if row.state == "delivered"}
        assert delivered <= got

    def teardown(self) -> None:
        """With a network that works, everything that did not expire arrives."""
        for row in mail.pending(self.sender, "bea", limit=10_000):
            if row.state is OutboxState.EXPIRED:
                mail.skip(self.receiver, "ann", row.seq)
            else:
                mail.receive(
                    self.receiver, "ann", Incoming(row.seq, row.message_id, row.kind, row.body, row.created_ms), 1,
                )
        got = {*self.put_away, *self.inbox_ids()}
        assert set(self.promised) - self.expired <= got
        mail.acknowledge(self.sender, "bea", mail.marks(self.receiver, "ann").received, 1)
        assert mail.peers_waiting(self.sender) == []


TestTwoNodes = TwoNodes.TestCase
TestTwoNodes.settings = hypothesis_settings(max_examples=150, stateful_step_count=30, deadline=None)


def skips_ahead(tx: Connection, peer: str, message: Incoming, now_ms: int) -> Receipt:
    """A receiver that takes whatever number comes."""
    mark = mail.marks(tx, peer).received
    return REAL_RECEIVE(tx, peer, replace(message, seq=mark + 1), now_ms)


def acks_too_much(tx: Connection, peer: str, upto: int, now_ms: int) -> list[mail.OutboxRow]:
    """A sender that believes one more than the peer said."""
    return REAL_ACKNOWLEDGE(tx, peer, min(upto + 1, mail.marks(tx, peer).allocated), now_ms)


def tidies_what_is_not_acknowledged(tx: Connection, before_ms: int, *, limit: int) -> int:
    """A sender that removes all but what waits, and with it numbers that it must tell the peer to step over."""
    return tx.execute("DELETE FROM outbox WHERE state IN ('delivered', 'expired')").rowcount


def tidies_what_waits(tx: Connection, before_ms: int, *, limit: int) -> int:
    """A sender that looks at the age alone."""
    return tx.execute("DELETE FROM outbox WHERE created_ms < ?", (before_ms,)).rowcount


REAL_RECEIVE, REAL_ACKNOWLEDGE = mail.receive, mail.acknowledge


@pytest.mark.parametrize(("module", "name", "mutant"), [
    (mail, "receive", skips_ahead), (mail, "acknowledge", acks_too_much),
    (mail_archive, "drop_settled", tidies_what_is_not_acknowledged), (mail_archive, "drop_settled", tidies_what_waits),
])
def test_control_the_stateful_test_catches_broken_rows(monkeypatch, module, name, mutant):
    monkeypatch.setattr(module, name, mutant)
    quick = hypothesis_settings(
        max_examples=300, stateful_step_count=30, deadline=None, database=None, report_multiple_bugs=False,
        phases=[Phase.generate], derandomize=True,
    )
    with pytest.raises((AssertionError, StoreConflict)):
        run_state_machine_as_test(TwoNodes, settings=quick)
