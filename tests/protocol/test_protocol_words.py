"""Codes, names and pictures that people read aloud."""

from collections import Counter

import pytest
from fixed import SeededEntropy
from hypothesis import given
from hypothesis import strategies as st

from protocol import canonical, limits
from protocol.frames.link import Hello
from protocol.wordlist import WORDS
from protocol.words import ADJECTIVES, ANIMALS, EMOJI, emoji_check, new_code, new_node_name, parse_code


def one_letter_apart(left: str, right: str) -> bool:
    if abs(len(left) - len(right)) > 1:
        return False
    short, long = sorted((left, right), key=len)
    same = 0
    while same < len(short) and short[same] == long[same]:
        same += 1
    return short[same:] == long[same + 1 :] or (len(short) == len(long) and short[same + 1 :] == long[same + 1 :])


def test_the_word_list_is_what_it_says() -> None:
    assert len(WORDS) == len(set(WORDS)) == limits.WORDLIST_SIZE == 2**11
    assert list(WORDS) == sorted(WORDS)
    assert all(word.isascii() and word.isalpha() and word.islower() and 4 <= len(word) <= 9 for word in WORDS)
    by_length: dict[int, list[str]] = {}
    for word in WORDS:
        by_length.setdefault(len(word), []).append(word)
    close = [
        (left, right)
        for length, words in by_length.items()
        for left in words
        for right in words + by_length.get(length + 1, [])
        if left != right and one_letter_apart(left, right)
    ]
    assert close == []


def test_name_words_and_pictures() -> None:
    assert len(set(ADJECTIVES)) == len(ADJECTIVES) == 64
    assert len(set(ANIMALS)) == len(ANIMALS) == 64
    assert len({picture for picture, _ in EMOJI}) == len({word for _, word in EMOJI}) == limits.EMOJI_TABLE_SIZE


@given(st.integers(0, 10**9))
def test_a_code_is_read_back_however_it_is_typed(seed: int) -> None:
    code = new_code(SeededEntropy(seed))
    number, first, second = code.split("-")
    assert 1 <= int(number) <= limits.MAX_CODE_NUMBER
    assert {first, second} <= set(WORDS)
    for typed in (code, f"  {code}\n", code.upper(), code.replace("-", " "), f"{number} - {first} -  {second}"):
        assert parse_code(typed) == code


@pytest.mark.parametrize(
    "typed",
    ["", "7", "7-crossover", "7-crossover-clockwork-lion", "crossover-clockwork", "0-crossover-clockwork",
     "100-crossover-clockwork", "07-crossover-clockwork", "-7-crossover-clockwrk", "7-crossover-clockwrk",
     "٧-crossover-clockwork", "7-crossover-7", "7-crossover-clockwork?"],
)  # fmt: skip
def test_what_cannot_be_a_code_costs_no_try(typed: str) -> None:
    assert parse_code(typed) is None


def test_codes_are_drawn_evenly() -> None:
    entropy = SeededEntropy(5)
    seen = Counter(word for _ in range(4096) for word in new_code(entropy).split("-")[1:])
    assert len(seen) > 1950  # of 2048 when 8192 are drawn: about 2010 expected
    assert max(seen.values()) < 20


@given(st.integers(0, 10**9))
def test_node_names_are_valid_on_the_wire(seed: int) -> None:
    name = new_node_name(SeededEntropy(seed))
    assert len(name.split("-")) == 3
    canonical.encode(Hello(name, "0.1.0", (), (), ()))


def test_emoji_check_is_made_of_the_first_three_bytes() -> None:
    assert emoji_check(bytes([0, 1, 63])) == (EMOJI[0], EMOJI[1], EMOJI[63])
    assert emoji_check(bytes([64, 65, 255, 9])) == (EMOJI[0], EMOJI[1], EMOJI[63])
