"""Restarting: at once the first time, slower each time after, not at all after too many."""

from offload.child.policy import CrashLog, RestartPolicy

POLICY = RestartPolicy(
    first_delay_s=0.5, longest_delay_s=3.0, settled_s=60.0, crash_limit=6, quarantine_s=100.0)


def test_delays_double_up_to_the_limit_and_then_comes_quarantine() -> None:
    log = CrashLog(POLICY)
    delays = [log.crashed(now_s=float(n), lived_s=1.0) for n in range(6)]
    assert delays == [0.0, 0.5, 1.0, 2.0, 3.0, None]
    assert log.total == 6


def test_a_child_that_lived_long_is_sound_again() -> None:
    log = CrashLog(POLICY)
    assert [log.crashed(now_s=100.0 * n, lived_s=60.0) for n in range(20)] == [0.0] * 20
    assert not log.quarantined(5000.0)


def test_quarantine_ends_by_itself_and_the_next_crash_renews_it() -> None:
    log = CrashLog(POLICY)
    for _ in range(6):
        log.crashed(now_s=10.0, lived_s=0.0)
    assert log.quarantined(10.0)
    assert log.quarantined(109.9)
    assert not log.quarantined(110.0)
    assert log.crashed(now_s=111.0, lived_s=0.0) is None
    assert log.quarantined(112.0)


def test_release_forgets_the_crashes() -> None:
    log = CrashLog(POLICY)
    for _ in range(6):
        log.crashed(now_s=10.0, lived_s=0.0)
    log.release()
    assert not log.quarantined(11.0)
    assert log.crashed(now_s=12.0, lived_s=0.0) == 0.0
