"""Hedging: the first word decides, the other place is stopped, one that fails leaves the field to the other."""

from dataclasses import replace

import pytest
import trio

from node.agent.ports import LOCAL, ThinkJob, ThinkResult
from node.daemon.hedging import best_places, race
from offload.router import Candidate

FAST, SLOW = Candidate("fast", True, "", "id-fast", score_s=1.0), Candidate("slow", True, "", "id-slow", score_s=2.0)
HERE = Candidate("phone", True, "", None, score_s=40.0)


class Failing(Exception):
    pass


class Places:
    """Writes words at moments; a Failing in the list is raised."""

    def __init__(self, **scripts):
        self.scripts, self.asked, self.stopped = scripts, [], []

    async def think(self, job):
        self.asked.append((job.job_id, job.place, job.keep, job.hedge))
        name, text = job.place.removeprefix("id-"), ""
        try:
            for item in self.scripts[name]:
                if isinstance(item, float):
                    await trio.sleep(item)
                elif isinstance(item, Exception):
                    raise item
                else:
                    text += item
                    if not await job.on_text(item):
                        return ThinkResult(text, name, "", "stopped")
        except trio.Cancelled:
            self.stopped.append(name)
            raise
        return ThinkResult(text, name, "you named it")


def job(shown, **changes):
    async def on_text(text):
        shown.append(text)
        return True

    return replace(ThinkJob("ab" * 16, "c", (), on_text, keep=True, hedge=True), **changes)


def test_the_two_best_that_can():
    cannot = replace(FAST, able=False, score_s=None)
    assert best_places([HERE, SLOW, cannot, FAST]) == [FAST, SLOW]
    assert best_places([HERE, cannot, SLOW]) == [SLOW, HERE]
    assert best_places([cannot]) == []


async def test_the_first_word_decides_and_the_other_one_is_stopped(autojump_clock):
    places, shown = Places(fast=[5.0, "late"], slow=[1.0, "Hel", 0.1, "lo"]), []
    result = await race(job(shown), [FAST, SLOW], places.think)
    assert (shown, result.text, result.ran_on) == (["Hel", "lo"], "Hello", "slow")
    assert result.reason == "asked fast and slow at once; slow wrote first"
    assert places.stopped == ["fast"] and trio.current_time() < 2
    asked = {place: (job_id, keep, hedge) for job_id, place, keep, hedge in places.asked}
    assert asked["id-fast"] == ("ab" * 16, False, False)
    other, *flags = asked["id-slow"]
    assert other != "ab" * 16 and len(bytes.fromhex(other)) == 16 and flags == [False, False]


async def test_one_that_fails_leaves_it_to_the_other_and_two_raise(autojump_clock):
    places, shown = Places(fast=[0.1, Failing("one")], local=[1.0, "here"]), []
    result = await race(job(shown), [FAST, HERE], places.think)
    assert (shown, result.ran_on) == (["here"], LOCAL)
    with pytest.raises(Failing, match="two"):
        await race(job([]), [FAST, SLOW], Places(fast=[0.1, Failing("one")], slow=[0.2, Failing("two")]).think)


async def test_whoever_has_begun_is_never_mixed_with_the_other(autojump_clock):
    """Both write at the same instant: one of them is read, whole."""
    places, shown = Places(fast=[1.0, "A", "B"], slow=[1.0, "x", "y"]), []
    await race(job(shown), [FAST, SLOW], places.think)
    assert shown in (["A", "B"], ["x", "y"])
