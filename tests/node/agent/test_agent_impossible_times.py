"""Days and hours that there are none of are found, and nothing is made of what stands beside them."""

from datetime import datetime
from zoneinfo import ZoneInfo

import pytest

from node.agent.readers.impossible import impossible
from node.agent.readers.windows import Locale, read_when

BERLIN = ZoneInfo("Europe/Berlin")
NOW = datetime(2026, 3, 18, 9, 30, tzinfo=BERLIN)


@pytest.mark.parametrize(("text", "words"), [
    ("book lunch on 31 february at noon", "31 february"), ("dinner on the 30th of feb", "30th of feb"),
    ("call mum on april 31st", "april 31st"), ("meet on 2026-02-30 at 9", "2026-02-30"),
    ("tennis at 25:00 tomorrow", "at 25:00"), ("tea at 4:75", "at 4:75"), ("remind me at 13 pm", "13 pm"),
    ("tea 3:61 p.m tomorrow", "3:61 p.m"), ("on 2026-13-01", "2026-13-01"),
])
def test_what_does_not_exist_is_found(text: str, words: str) -> None:
    assert [span.of(text) for span in impossible(text)] == [words]
    when = read_when(text, NOW, Locale(BERLIN))
    assert (when.said, when.spans) == (False, tuple(impossible(text)))


@pytest.mark.parametrize("text", [
    "lunch on 29 february", "on feb 28 at 12:59", "from 9:00 until 24:00", "on 31 may at 12 pm", "12 feb 30 minutes",
    "feb 30 people come", "1 april 31 guests", "the score was 31:64", "convert 45 marks", "2026-02-28", "at 10.30 pm",
    "call 0351 31 2027", "1230pm", "add 31 and 40", "in march 20 trees",
])
def test_what_exists_is_left_alone(text: str) -> None:
    assert impossible(text) == []
