"""Notices on the desktop: when, by what program, and that their words hold nothing of the owner's."""

import stat
from pathlib import Path

import trio
from fixed import FixedClock
from trio.testing import MockClock

from node.api.events import Events
from node.daemon.desktop import DesktopNotices, find_notifier
from node.daemon.queue_desk import QueueTeller
from node.store.intents import Intent, IntentState

SECRET = "Dana Whitfield's biopsy"
RECORD = """#!/bin/sh
for one in "$@"; do printf '%s\\n' "$one" >> {record}; done
printf -- '--\\n' >> {record}
"""


def notifier(folder: Path) -> Path:
    program = folder / "notify-send"
    program.write_text(RECORD.format(record=folder / "record"))
    program.chmod(stat.S_IRWXU)
    return program


def intent(state: IntentState) -> Intent:
    return Intent("ab" * 16, SECRET, "c" * 32, "auto", SECRET, SECRET, SECRET.encode(), state, SECRET, 1, SECRET, None,
                  SECRET, 1, 2, 3, None)


def test_only_where_somebody_would_see_it(tmp_path: Path) -> None:
    program = str(notifier(tmp_path))
    path = {"PATH": str(tmp_path)}
    assert find_notifier("auto", path) is None
    assert find_notifier("auto", {**path, "DISPLAY": ":0"}) == program
    assert find_notifier("auto", {**path, "WAYLAND_DISPLAY": "wayland-0"}) == program
    assert find_notifier("on", path) == program
    assert find_notifier("off", {**path, "DISPLAY": ":0"}) is None
    assert find_notifier("on", {"PATH": "/nonexistent"}) is None


async def test_an_answer_and_a_question_are_told_without_a_word_of_them(
    tmp_path: Path, nursery: trio.Nursery, autojump_clock: MockClock
) -> None:
    autojump_clock.autojump_threshold = 2.0     # the program is a real one
    notices, events, got = DesktopNotices(str(notifier(tmp_path))), Events(), []
    teller = QueueTeller(events, notices.tell, FixedClock())

    async def emit(event) -> None:
        got.append(event)

    nursery.start_soon(events.follow, ["intent"], emit)
    await trio.testing.wait_all_tasks_blocked()
    nursery.start_soon(notices.run)
    for state in IntentState:
        teller.intent_changed(intent(state))
    await trio.sleep(60)
    shown = (tmp_path / "record").read_text()
    assert "A better answer has come" in shown or "things have news. See them with: kith queue, kith reminders" in shown
    assert [event["state"] for event in got if event["event"] == "intent"] == list(IntentState)
    for text in (shown, str(got)):
        assert "Dana" not in text
        assert "biopsy" not in text
    assert shown.count("--\n") <= 2             # many at once become one


async def test_without_a_program_nothing_happens_and_a_missing_one_ends_nothing(
    nursery: trio.Nursery, autojump_clock: MockClock
) -> None:
    autojump_clock.autojump_threshold = 0.3
    silent, broken = DesktopNotices(None), DesktopNotices("/nonexistent/notify-send")
    nursery.start_soon(silent.run)
    nursery.start_soon(broken.run)
    for _ in range(100):
        silent.tell("x")
        broken.tell("x")
    await trio.sleep(60)
