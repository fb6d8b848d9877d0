from offload.pulse import Pulse
from offload.worker_frames import Pong

WORKS = {"running": 1, "queued": 0}


def test_a_worker_that_answers_and_decodes_is_neither_lost_nor_still() -> None:
    pulse = Pulse()
    pulse.begin(100.0)
    for number in range(1, 60):
        pulse.beat(Pong(decodes=number, **WORKS), 100.0 + 5 * number)
    assert not pulse.lost(400.0)
    assert pulse.standstill_s(400.0) is None


def test_no_answer_for_half_a_minute_is_lost() -> None:
    pulse = Pulse()
    pulse.begin(100.0)
    pulse.beat(Pong(decodes=1, **WORKS), 105.0)
    assert not pulse.lost(135.0)
    assert pulse.lost(135.1)


def test_answers_without_decodes_are_told_after_ten_seconds_and_lost_after_two_minutes() -> None:
    pulse = Pulse()
    pulse.begin(0.0)
    for now_s in range(5, 126, 5):
        pulse.beat(Pong(decodes=7, **WORKS), float(now_s))
    assert pulse.standstill_s(14.9) is None
    assert pulse.standstill_s(15.0) == 10.0     # the first answer, at 5 s, was news
    assert not pulse.lost(125.0)
    assert pulse.lost(125.1)


def test_a_worker_with_nothing_to_decode_does_not_stand_still() -> None:
    pulse = Pulse()
    pulse.begin(0.0)
    for now_s in range(5, 501, 5):
        pulse.beat(Pong(decodes=7, running=0, queued=0), float(now_s))
    assert pulse.standstill_s(505.0) is None
    assert not pulse.lost(505.0)


def test_new_work_begins_anew() -> None:
    pulse = Pulse()
    pulse.begin(0.0)
    pulse.beat(Pong(decodes=7, **WORKS), 5.0)
    pulse.begin(200.0)
    assert not pulse.lost(200.0)
    assert pulse.standstill_s(205.0) is None
