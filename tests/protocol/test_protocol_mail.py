"""Mail: exactly once, in order, within a window, over any number of broken streams."""

from typing import Any

import msgspec
import pytest
from frame_samples import SAMPLES
from hypothesis import given, settings
from hypothesis import strategies as st
from playbook import Playbook

from protocol import limits, names
from protocol.errors import LocalProtocolError, OutOfOrder
from protocol.machine import ChannelBroken, FinishSending, PeerFinished, Received, ResetChannel, Send, Tick
from protocol.mail import (
    Ack,
    Acknowledged,
    Gap,
    Load,
    Mail,
    MailOver,
    MailReceiver,
    MailRefused,
    MailSender,
    MailState,
    Nack,
    OpenMail,
    PeerAhead,
    Queued,
    RefuseMail,
    Store,
    Stored,
    StoreGap,
)

WINDOW = limits.MAIL_WINDOW


def mail(seq: int) -> Mail:
    return Mail(seq, seq.to_bytes(16, "big"), "chat.msg", f"message {seq}", 0)


def sender(acked: int = 0, last: int = 3) -> Playbook:
    return Playbook(MailSender(acked_seq=acked, last_seq=last))


def flowing(acked: int = 0, last: int = 3) -> Playbook:
    play = sender(acked, last) >> Received(Ack(acked))
    return play << Load(acked + 1, last) << None if last > acked else play


def receiver(stored: int = 0) -> Playbook:
    return Playbook(MailReceiver(stored_seq=stored)) >> OpenMail() << Send(Ack(stored))


def test_sending() -> None:
    play = flowing() >> Received(Ack(1)) << Acknowledged(1) << None
    assert play.machine.in_flight == 2
    play >> Queued(5) << Load(4, 5) >> Received(Ack(5)) << Acknowledged(5) << None
    play >> Received(Ack(5)) << None >> Queued(5) << None >> Tick() << None
    assert play.machine.due_s is None


def test_nothing_is_sent_before_the_receiver_spoke() -> None:
    play = sender() >> Queued(4) << None
    play >> Received(Ack(0)) << Load(1, 4) << None


def test_the_receiver_knows_more_than_was_acknowledged() -> None:
    sender(acked=2, last=9) >> Received(Ack(5)) << Acknowledged(5) << Load(6, 9) << None


def test_the_receiver_lost_data_and_knows_less() -> None:
    sender(acked=5, last=9) >> Received(Ack(2)) << Load(3, 9) << None


def test_the_receiver_has_numbers_that_were_never_given() -> None:
    play = sender(last=3) >> Received(Ack(4)) << ResetChannel() << PeerAhead(4) << MailOver("peer_ahead") << None
    assert play.machine.state is MailState.OVER


def test_a_number_that_was_never_sent_is_another_message_at_the_receiver() -> None:
    """An outbox put back from a copy gives the numbers out again; here 4 and 5 are new and the peer has old ones."""
    machine = MailSender(acked_seq=2, last_seq=5, sent_seq=3)
    Playbook(machine) >> Received(Ack(4)) << ResetChannel() << PeerAhead(4) << MailOver("peer_ahead") << None
    machine = MailSender(acked_seq=2, last_seq=5, sent_seq=3)
    Playbook(machine) >> Received(Ack(3)) << Acknowledged(3) << Load(4, 5) << None


def test_the_window_is_never_exceeded() -> None:
    play = sender(last=WINDOW + 10) >> Received(Ack(0)) << Load(1, WINDOW) << None >> Queued(WINDOW + 20) << None
    play >> Received(Ack(3)) << Acknowledged(3) << Load(WINDOW + 1, WINDOW + 3) << None
    assert play.machine.in_flight == WINDOW


def test_going_back_for_a_missing_number() -> None:
    play = flowing(last=5) >> Received(Nack(3)) << Load(3, 5) << None
    play >> Received(Ack(5)) << Acknowledged(5) << None


def test_a_request_to_go_back_is_no_acknowledgement() -> None:
    # what came before the hole has arrived, but is perhaps not durable: it must stay in the outbox
    play = flowing(last=5) >> Received(Nack(3)) << Load(3, 5) << None
    assert play.machine.in_flight == 5


def test_going_back_without_progress_ends() -> None:
    play = flowing(last=5)
    for _ in range(limits.MAX_REWINDS):
        play >> Received(Nack(3)) << Load(3, 5)
    play >> Received(Nack(3)) << ResetChannel() << MailOver("stuck") << None


def test_progress_allows_going_back_again() -> None:
    play = flowing(last=50)
    for seq in range(1, 40):
        play >> Received(Nack(seq)) << Load(seq, 50) >> Received(Ack(seq)) << Acknowledged(seq)


@pytest.mark.parametrize("make", [sender, flowing])
def test_sending_ends(make: Any) -> None:
    make() >> Received(MailRefused("full")) << FinishSending() << MailOver("refused", "full") << None
    make() >> PeerFinished() << FinishSending() << MailOver("closed") << None
    play = make() >> ChannelBroken() << MailOver("lost") << None
    play >> Queued(9) << None >> Received(Ack(1)) << None


@pytest.mark.parametrize("frame", [Ack(4), Nack(4), mail(1), Gap(2), SAMPLES[names.LINK]["beat"]])
def test_acknowledgements_that_break_the_rules(frame: msgspec.Struct) -> None:
    play = flowing(last=3).refused(OutOfOrder, Received(frame))
    assert play.machine.state is MailState.OVER


def test_acknowledgements_never_go_back() -> None:
    play = flowing(last=3) >> Received(Ack(2)) << Acknowledged(2)
    play.refused(OutOfOrder, Received(Ack(1)))
    play = flowing(last=3) >> Received(Ack(2)) << Acknowledged(2)
    play.refused(OutOfOrder, Received(Nack(2)))
    sender().refused(OutOfOrder, Received(Nack(1)))


def test_receiving() -> None:
    play = receiver() >> Received(mail(1)) << Store(mail(1)) >> Received(mail(2)) << Store(mail(2)) << None
    play >> Stored(2) << Send(Ack(2)) << None  # both in one transaction
    play >> Received(mail(3)) << Store(mail(3)) >> Stored(3) << Send(Ack(3)) >> Tick() << None
    assert play.machine.due_s is None


def test_a_number_seen_before_is_acknowledged_again_but_not_delivered() -> None:
    play = receiver(stored=5)
    for seq in (1, 5):
        play >> Received(mail(seq)) << Send(Ack(5)) << None
    play >> Received(mail(6)) << Store(mail(6)) >> Received(mail(6)) << None  # being stored
    play >> Stored(6) << Send(Ack(6))


def test_a_hole_is_asked_for_once() -> None:
    play = receiver() >> Received(mail(1)) << Store(mail(1)) >> Received(mail(3)) << Send(Nack(2)) << None
    play >> Received(mail(4)) << None >> Received(mail(5)) << None
    play >> Received(mail(2)) << Store(mail(2)) >> Received(mail(3)) << Store(mail(3))
    play >> Received(mail(5)) << Send(Nack(4)) << None


def test_a_hole_that_stays_is_refused() -> None:
    play = receiver() >> Received(mail(3)) << Send(Nack(1)) >> Received(mail(4)) << None
    play.refused(OutOfOrder, Received(mail(3)), "not sent again")


def test_expired_messages_leave_a_gap() -> None:
    play = receiver(stored=2) >> Received(Gap(7)) << StoreGap(7) >> Received(mail(8)) << Store(mail(8)) << None
    play >> Stored(7) << Send(Ack(7)) >> Stored(8) << Send(Ack(8))
    play >> Received(Gap(8)) << Send(Ack(8)) << None
    far = receiver() >> Received(Gap(10_000)) << StoreGap(10_000) << None  # a gap may be longer than the window
    far >> Stored(10_000) << Send(Ack(10_000))


def test_a_sender_that_ignores_the_window() -> None:
    play = receiver()
    for seq in range(1, WINDOW + 1):
        play >> Received(mail(seq)) << Store
    play.refused(OutOfOrder, Received(mail(WINDOW + 1)), "window")


def test_receiving_ends() -> None:
    receiver() >> RefuseMail("full") << Send(MailRefused("full")) << FinishSending() << MailOver("refused", "full")
    refusing = Playbook(MailReceiver(stored_seq=0)) >> RefuseMail("not_granted") << Send(MailRefused("not_granted"))
    refusing << FinishSending() << MailOver << None
    receiver() >> PeerFinished() << FinishSending() << MailOver("closed") << None
    play = receiver() >> Received(mail(1)) << Store >> ChannelBroken() << MailOver("lost") << None
    play >> Stored(1) << None >> Received(mail(2)) << None


@pytest.mark.parametrize("frame", [Ack(1), Nack(1), MailRefused("full"), SAMPLES[names.LINK]["beat"]])
def test_messages_that_break_the_rules(frame: msgspec.Struct) -> None:
    play = receiver().refused(OutOfOrder, Received(frame))
    assert play.machine.state is MailState.OVER


@pytest.mark.parametrize("frame", [mail(1), Gap(1)])
def test_nothing_is_taken_before_we_said_what_we_have(frame: msgspec.Struct) -> None:
    Playbook(MailReceiver(stored_seq=0)).refused(OutOfOrder, Received(frame))


def test_misuse_is_our_bug() -> None:
    flowing().refused(LocalProtocolError, Queued(2))
    flowing().refused(LocalProtocolError, "no event")
    receiver().refused(LocalProtocolError, "no event")
    receiver().refused(LocalProtocolError, OpenMail())
    receiver().refused(LocalProtocolError, Stored(1))
    (receiver() >> Received(mail(1)) << Store).refused(LocalProtocolError, Stored(0))


class World:
    """Two databases and a link that breaks at will. What is durable survives, what is in flight does not."""

    def __init__(self) -> None:
        self.outbox: dict[int, Mail] = {}
        self.acked = self.last = self.high_water = 0
        self.inbox: list[str] = []
        self.expired: set[int] = set()
        self.open()

    def open(self) -> None:
        self.sender = MailSender(acked_seq=self.acked, last_seq=self.last)
        self.receiver = MailReceiver(stored_seq=self.high_water)
        self.there: list[Any] = []
        self.back: list[Any] = []
        self.unstored: list[Store | StoreGap] = []
        self.run_receiver(OpenMail())

    def run_sender(self, event: object) -> None:
        for command in self.sender.handle(event, 0.0):
            match command:
                case Acknowledged(upto):
                    self.acked = max(self.acked, upto)
                    self.outbox = {seq: one for seq, one in self.outbox.items() if seq > upto}
                case Load(first, last):
                    missing = 0
                    for seq in range(first, last + 1):
                        if seq in self.outbox:
                            self.there += [Gap(missing)] if missing else []
                            self.there.append(self.outbox[seq])
                            missing = 0
                        else:
                            missing = seq
                    self.there += [Gap(missing)] if missing else []
                case _:
                    raise AssertionError(command)

    def run_receiver(self, event: object) -> None:
        for command in self.receiver.handle(event, 0.0):
            match command:
                case Send(frame):
                    self.back.append(frame)
                case Store() | StoreGap():
                    self.unstored.append(command)
                case _:
                    raise AssertionError(command)

    def step(self, what: str) -> None:
        match what:
            case "write":
                self.last += 1
                self.outbox[self.last] = mail(self.last)
                self.run_sender(Queued(self.last))
            case "expire" if self.outbox:
                seq = min(self.outbox)
                del self.outbox[seq]
                self.expired.add(seq)
            case "there" if self.there:
                self.run_receiver(Received(self.there.pop(0)))
            case "back" if self.back:
                self.run_sender(Received(self.back.pop(0)))
            case "commit" if self.unstored:
                for command in self.unstored:
                    if isinstance(command, Store):
                        self.inbox.append(command.mail.body)
                        self.high_water = command.mail.seq
                    else:
                        self.high_water = command.upto_seq
                self.unstored.clear()
                self.run_receiver(Stored(self.high_water))
            case "break":
                self.open()

    def settle(self) -> None:
        for _ in range(10_000):
            if not (self.there or self.back or self.unstored):
                return
            for what in ("there", "commit", "back"):
                self.step(what)
        raise AssertionError("never settles")


@settings(max_examples=300)
@given(st.lists(st.sampled_from([*["write", "there"] * 2, "back", "commit", "break", "expire"]), max_size=120))
def test_exactly_once_in_order_however_the_link_breaks(steps: list[str]) -> None:
    world = World()
    for step in steps:
        world.step(step)
    world.open()
    world.settle()
    numbers = [int(body.split()[1]) for body in world.inbox]
    assert numbers == sorted(set(numbers))
    assert set(numbers) | world.expired == set(range(1, world.last + 1))
    assert world.outbox == {}
