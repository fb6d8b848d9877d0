"""Text leaves the engine in whole characters and without stop texts, however the bytes are cut; loops are noticed."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from offload.engine.streaming import LoopDetector, TextStream

MIXED = "aé漢🙂\u200bz👩‍👧 ñ"


@pytest.mark.parametrize("cut", range(len(MIXED.encode()) + 1))
def test_no_cut_shows_half_a_character(cut: int) -> None:
    data = MIXED.encode()
    stream = TextStream()
    first = stream.feed(data[:cut])
    assert MIXED.startswith(first)
    assert first + stream.feed(data[cut:]) + stream.finish() == MIXED


@given(st.text(max_size=60), st.integers(min_value=1, max_value=7))
def test_any_text_in_any_steps_comes_out_whole(text: str, step: int) -> None:
    data = text.encode()
    stream = TextStream()
    shown = [stream.feed(data[at:at + step]) for at in range(0, len(data), step)]
    assert "".join(shown) + stream.finish() == text
    assert not stream.stopped


@given(st.binary(max_size=60))
def test_bytes_that_are_no_text_become_replacement_characters(data: bytes) -> None:
    stream = TextStream()
    shown = "".join(stream.feed(data[at:at + 1]) for at in range(len(data))) + stream.finish()
    assert shown == data.decode("utf-8", errors="replace")


@pytest.mark.parametrize("step", [1, 2, 3, 100])
@pytest.mark.parametrize(("text", "stops", "shown"), [
    ("one\nUser: two", ("\nUser:",), "one"),
    ("one\nUse two", ("\nUser:",), "one\nUse two"),
    ("aaab", ("aab",), "a"),
    ("abcabd", ("abd", "c"), "ab"),
    ("ends ##", ("###",), "ends ##"),
    ("é🙂stop", ("🙂s",), "é"),
    ("stop", ("stop",), ""),
    ("no stops at all", (), "no stops at all"),
])
def test_a_stop_text_ends_the_answer_and_no_part_of_it_is_shown(
    text: str, stops: tuple[str, ...], shown: str, step: int,
) -> None:
    data = text.encode()
    stream = TextStream(stops)
    pieces = [stream.feed(data[at:at + step]) for at in range(0, len(data), step)]
    assert "".join(pieces) + stream.finish() == shown
    assert stream.stopped == (shown != text)


@given(st.text(alphabet="ab", max_size=40), st.lists(st.text(alphabet="ab", min_size=1, max_size=4), max_size=3))
def test_streamed_is_cut_where_the_whole_text_is_cut(text: str, stops: list[str]) -> None:
    """The reference: among stop texts, the one that is complete first ends the answer, at its earliest start."""
    stream = TextStream(stops)
    got = "".join(stream.feed(char.encode()) for char in text) + stream.finish()
    expected = text
    for end in range(1, len(text) + 1):
        starts = [end - len(stop) for stop in stops if text[:end].endswith(stop)]
        if starts:
            expected = text[:min(starts)]
            break
    assert got == expected


def feed(tokens: list[int]) -> int | None:
    """At which token the detector calls it a loop."""
    detector = LoopDetector()
    return next((at for at, token in enumerate(tokens) if detector.feed(token)), None)


def test_one_token_over_and_over_is_a_loop_after_64() -> None:
    assert feed([7] * 200) == 63
    assert feed([7] * 63 + [8]) is None


def test_a_sentence_over_and_over_is_a_loop() -> None:
    sentence = list(range(20))
    assert feed([99, *sentence * 4]) == 80
    assert feed(sentence * 3) is None


def test_a_table_with_changing_cells_is_no_loop() -> None:
    rows = [token for row in range(60) for token in (1, 2, 1000 + row, 3)]
    assert feed(rows) is None


def test_what_repeats_beyond_64_tokens_is_not_watched() -> None:
    assert feed(list(range(65)) * 6) is None
    assert feed(list(range(64)) * 6) == 64 * 4 - 1
