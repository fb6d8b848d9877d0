"""The link: greeting, beats, silence, goodbye; both sides run the same machine."""

from typing import Any

import msgspec
import pytest
from frame_samples import SAMPLES
from hypothesis import given
from hypothesis import strategies as st
from playbook import Playbook

from protocol import limits, names
from protocol.errors import LocalProtocolError, OutOfOrder
from protocol.link import (
    AddressesChanged,
    Advert,
    Beat,
    Bye,
    Echo,
    GrantChanged,
    Granted,
    Hello,
    Leave,
    LinkMachine,
    LinkState,
    Load,
    Located,
    ModelAdvert,
    ModelsChanged,
    Open,
    PeerDown,
    PeerUp,
    Probe,
    Readvertise,
    Regrant,
    Relocate,
    RoundTrip,
)
from protocol.machine import ChannelBroken, FinishSending, PeerFinished, Received, ResetChannel, Send, Tick

OURS = Hello("phone", "0.1.0", (names.LINK, names.INFER, names.MAIL), ("infer", "tools"), ())
MODEL = ModelAdvert("m", "ab" * 32, 2048, True)
THEIRS = Hello("home-pc", "0.2.0", (names.LINK, names.INFER, "/kith/infer/2"), ("infer", "time-travel"), (MODEL,))
UP = PeerUp(THEIRS, frozenset({names.LINK, names.INFER}), frozenset({"infer"}))


def greeting() -> Playbook:
    return Playbook(LinkMachine(OURS)) >> Open() << Send(OURS)


def up() -> Playbook:
    return greeting() >> Received(THEIRS) << UP << Send(Beat(1)) << None


def test_greeting_agrees_on_what_both_can_do() -> None:
    play = up()
    assert play.machine.state is LinkState.UP


def test_beats_and_echoes_measure_the_way() -> None:
    play = up()
    play.after(0.02) >> Received(Echo(1)) << RoundTrip(pytest.approx(0.02))
    play >> Received(Echo(1)) << None  # an echo counts once
    play.after(limits.BEAT_INTERVAL_S - 0.03) >> Tick() << None
    play.after(0.02) >> Tick() << Send(Beat(2)) << None
    play >> Received(Echo(1)) << None >> Received(Echo(2)) << RoundTrip(0.0)
    play >> Received(Beat(77)) << Send(Echo(77)) << None


def test_a_round_trip_is_measured_on_demand() -> None:
    play = up()
    play.after(0.1) >> Probe() << Send(Beat(2)) << None
    play.after(0.003) >> Received(Echo(2)) << RoundTrip(pytest.approx(0.003))
    play.after(limits.BEAT_INTERVAL_S - 0.01) >> Tick() << None  # it took the place of the next beat
    greeting() >> Probe() << None  # nobody there yet to measure


def test_an_echo_of_nothing_that_was_sent() -> None:
    for n in (0, 2, 2**32 - 1):
        play = up().refused(OutOfOrder, Received(Echo(n)))
        assert play.machine.state is LinkState.DOWN


def test_a_slow_way_is_measured_too() -> None:
    play = up()
    play.after(1) >> Tick() << Send(Beat(2))
    play.after(0.5) >> Received(Echo(1)) << RoundTrip(1.5) << None
    for n in range(3, 12):
        play.after(1) >> Received(Advert(())) << ModelsChanged >> Tick() << Send(Beat(n))
    play >> Received(Echo(2)) << None  # too old to be remembered


def test_two_seconds_of_silence_are_the_end() -> None:
    play = up()
    for _ in range(2):
        play.after(0.9) >> Tick() << Send
    play.after(0.19) >> Tick() << None
    play.after(0.01) >> Tick() << ResetChannel() << PeerDown("silent") << None
    assert play.machine.due_s is None
    play >> Received(Beat(1)) << None >> Tick() << None


def test_any_frame_breaks_the_silence() -> None:
    play = up()
    for n in range(10):
        play.after(1.9) >> Received(Beat(n)) << Send(Echo(n))
    play.after(1.9) >> Tick() << Send << None


def test_due_is_the_next_beat_or_the_end_of_silence() -> None:
    machine = LinkMachine(OURS)
    assert machine.due_s is None
    play = Playbook(machine) >> Open() << Send(OURS)
    assert machine.due_s == 100.0 + limits.HELLO_TIMEOUT_S
    play >> Received(THEIRS) << UP << Send(Beat(1))
    assert machine.due_s == 100.0 + limits.BEAT_INTERVAL_S
    play.after(1.8) >> Tick() << Send(Beat(2))
    assert machine.due_s == 100.0 + limits.LINK_DEAD_S


def test_no_hello() -> None:
    play = greeting()
    play.after(limits.HELLO_TIMEOUT_S - 0.01) >> Tick() << None
    play.after(0.01) >> Tick() << ResetChannel() << PeerDown("no_hello") << None


@pytest.mark.parametrize("make", [greeting, up])
def test_ends_from_outside(make: Any) -> None:
    make() >> Received(Bye("shutdown")) << FinishSending() << PeerDown("bye", "shutdown") << None
    make() >> PeerFinished() << ResetChannel() << PeerDown("closed") << None
    make() >> ChannelBroken() << PeerDown("lost") << None


@pytest.mark.parametrize("make", [greeting, up])
def test_leaving_says_why(make: Any) -> None:
    make() >> Leave("offline") << Send(Bye("offline")) << FinishSending() << PeerDown("left", "offline") << None


def test_models_change() -> None:
    play = up() >> Readvertise((MODEL,)) << Send(Advert((MODEL,)))
    play >> Received(Advert(())) << ModelsChanged(()) << None


def test_models_that_change_before_the_greeting_is_over_are_told_after_it() -> None:
    play = greeting() >> Readvertise((MODEL,)) << None
    play >> Received(THEIRS) << UP << Send(Advert((MODEL,))) << Send(Beat(1)) << None


@pytest.mark.parametrize("frame", [Beat(1), Echo(1), Advert(()), SAMPLES[names.MAIL]["ack"]])
def test_nothing_comes_before_hello(frame: msgspec.Struct) -> None:
    greeting().refused(OutOfOrder, Received(frame))


@pytest.mark.parametrize("frame", [THEIRS, SAMPLES[names.INFER]["cancel"]])
def test_frames_that_break_the_rules(frame: msgspec.Struct) -> None:
    up().refused(OutOfOrder, Received(frame))


def test_a_flood_of_beats_is_refused_at_the_limit() -> None:
    play = up()  # its hello counts
    for n in range(limits.MAX_LINK_FRAMES_PER_S - 1):
        play >> Received(Beat(n)) << Send
    play.refused(OutOfOrder, Received(Beat(0)), "more link frames")


def test_a_second_later_the_count_begins_anew() -> None:
    play = up()
    for _ in range(3):
        for n in range(limits.MAX_LINK_FRAMES_PER_S - 1):
            play >> Received(Beat(n)) << Send
        play.after(1.0)


def test_misuse_is_our_bug() -> None:
    with pytest.raises(LocalProtocolError):
        LinkMachine(msgspec.structs.replace(OURS, capabilities=("time-travel",)))
    for event in (Tick(), Received(THEIRS), Leave("idle")):
        Playbook(LinkMachine(OURS)).refused(LocalProtocolError, event)
    up().refused(LocalProtocolError, Open())
    up().refused(LocalProtocolError, "no event")


EVENTS = st.sampled_from(
    [Tick(), Leave("idle"), Readvertise(()), Probe(), PeerFinished(), ChannelBroken(), Received(THEIRS)]
    + [Received(frame) for frame in SAMPLES[names.LINK].values()]
)


@given(st.lists(st.tuples(EVENTS, st.floats(0, 1)), max_size=20))
def test_one_up_before_one_down(steps: list[tuple[object, float]]) -> None:
    machine, now_s, told = LinkMachine(OURS), 0.0, []
    machine.handle(Open(), now_s)
    for event, pause_s in steps:
        now_s += pause_s
        try:
            told += [c for c in machine.handle(event, now_s) if isinstance(c, PeerUp | PeerDown)]
        except OutOfOrder:
            break
    assert [type(c) for c in told] in ([], [PeerUp], [PeerDown], [PeerUp, PeerDown])


def test_two_machines_talk_for_a_minute() -> None:
    ours, theirs = LinkMachine(OURS), LinkMachine(THEIRS.__class__("home-pc", "0.2.0", (names.LINK,), ("infer",), ()))
    frames: dict[LinkMachine, list[msgspec.Struct]] = {ours: [], theirs: []}
    trips = 0

    def carry(machine: LinkMachine, commands: Any) -> None:
        nonlocal trips
        for command in commands:
            assert not isinstance(command, PeerDown)
            trips += isinstance(command, RoundTrip)
            if isinstance(command, Send):
                frames[theirs if machine is ours else ours].append(command.frame)

    now_s = 0.0
    for machine in (ours, theirs):
        carry(machine, machine.handle(Open(), now_s))
    for _ in range(600):
        for machine in (ours, theirs):
            while frames[machine]:
                carry(machine, machine.handle(Received(frames[machine].pop(0)), now_s))
            carry(machine, machine.handle(Tick(), now_s))
        now_s += 0.1
    assert 2 * 70 <= trips <= 2 * 90  # a beat about every 0.7 s on each side


def test_a_new_grant_and_load_wait_for_the_peers_greeting_and_pass_later_ones_at_once():
    machine = LinkMachine(OURS)
    machine.handle(Open(), 0.0)
    assert machine.handle(Regrant(b"old"), 0.1) == ()
    assert machine.handle(Regrant(b"new"), 0.1) == ()
    assert machine.handle(Readvertise((MODEL,), Load(1)), 0.2) == ()
    up, *sent = machine.handle(Received(THEIRS), 0.3)
    assert isinstance(up, PeerUp)
    assert sent == [Send(Granted(b"new")), Send(Advert((MODEL,), Load(1))), Send(Beat(1))]
    assert machine.handle(Regrant(b""), 0.4) == (Send(Granted(b"")),)
    assert machine.handle(Received(Granted(b"theirs")), 0.5) == (GrantChanged(b"theirs"),)


def test_a_grant_before_the_greeting_breaks_the_rules():
    machine = LinkMachine(OURS)
    machine.handle(Open(), 0.0)
    with pytest.raises(OutOfOrder):
        machine.handle(Received(Granted(b"")), 0.1)


def test_where_one_can_be_reached_waits_for_the_greeting_too_and_only_the_newest_is_told():
    machine = LinkMachine(OURS)
    machine.handle(Open(), 0.0)
    assert machine.handle(Relocate(b"old"), 0.1) == ()
    assert machine.handle(Relocate(b"new", "/ip4/203.0.113.2/tcp/1"), 0.1) == ()
    _, *sent = machine.handle(Received(THEIRS), 0.3)
    assert sent == [Send(Located(b"new", "/ip4/203.0.113.2/tcp/1")), Send(Beat(1))]
    assert machine.handle(Received(Located(b"theirs")), 0.5) == (AddressesChanged(b"theirs", None),)


def test_addresses_before_the_greeting_break_the_rules():
    machine = LinkMachine(OURS)
    machine.handle(Open(), 0.0)
    with pytest.raises(OutOfOrder):
        machine.handle(Received(Located(b"")), 0.1)
