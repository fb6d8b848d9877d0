"""How many layers go to a card, by hand-worked cases: 24 layers, 1 GB of weights in 25 equal parts, no cache unless
said.
"""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from offload.gpu_layers import AUTOMATIC, Device, choose_layers, gpu_in_words

GB, MIB = 10**9, 2**20
LAYERS, FILE = 24, GB      # a layer: 40,000,000 bytes


def card(free_bytes: int) -> Device:
    return Device("CUDA0", "Some card", free_bytes, 8 * GB)


def chosen(*free_bytes: int, wanted: int = AUTOMATIC, width: int = 0, context: int = 0, layers: int = LAYERS) -> int:
    return choose_layers(
        tuple(map(card, free_bytes)), wanted=wanted, file_bytes=FILE, layers=layers, width=width,
        context_tokens=context)


@pytest.mark.parametrize(("free_bytes", "layers"), [
    (0, 0), (512 * MIB, 0),
    (512 * MIB + 39_999_999, 0), (512 * MIB + 40_000_000, 1),      # the spare is 512 MiB
    (512 * MIB + 10 * 40_000_000, 10),
    (512 * MIB + 25 * 40_000_000, 25), (8 * GB, 25),       # 24 and the output
])
def test_by_free_memory(free_bytes: int, layers: int) -> None:
    assert chosen(free_bytes) == layers


def test_a_tenth_is_spared_of_a_large_card() -> None:
    # 10 GB free: 1 GB spared, 9 GB of room; layers of 0.4 GB each: 22 of them
    assert choose_layers((card(10 * GB),), wanted=AUTOMATIC, file_bytes=10 * GB, layers=24, width=0,
                         context_tokens=0) == 22


def test_the_cache_counts() -> None:
    # a width of 1,000 and 10,000 tokens: 4 * 10^7 bytes a layer, as much as its weights
    assert chosen(512 * MIB + 10 * 40_000_000, width=1000, context=10_000) == 5


def test_two_cards_count_together_each_with_its_spare() -> None:
    assert chosen(512 * MIB + 100_000_000, 512 * MIB + 100_000_000) == 5
    assert chosen(512 * MIB + 100_000_000, 100) == 2       # a full one takes nothing away


@pytest.mark.parametrize(("wanted", "layers"), [(0, 0), (7, 7), (25, 25), (99, 25)])
def test_the_owners_number_is_taken(wanted: int, layers: int) -> None:
    assert chosen(8 * GB, wanted=wanted) == layers
    assert chosen(0, wanted=wanted) == layers      # also where it looks too much: the owner may know better


def test_no_card_or_no_layers() -> None:
    assert chosen(wanted=10) == 0
    assert chosen(8 * GB, layers=0) == 0


@given(st.integers(0, 100 * GB), st.integers(1, 200), st.integers(0, 10_000), st.integers(0, 200_000))
def test_never_more_than_there_are_or_fit(free_bytes: int, layers: int, width: int, context: int) -> None:
    found = choose_layers(
        (card(free_bytes),), wanted=AUTOMATIC, file_bytes=FILE, layers=layers, width=width, context_tokens=context)
    assert 0 <= found <= layers + 1
    assert found * (FILE // (layers + 1) + 4 * width * context) <= max(0, free_bytes - 512 * MIB)


def test_in_words() -> None:
    assert gpu_in_words((), 0, 24, built_for_it=False) == "none: this build of llama.cpp computes on the CPU only"
    assert gpu_in_words((), 0, 24, built_for_it=True) == "none: no card was found"
    assert gpu_in_words((card(6 * GB),), 25, 24, built_for_it=True) == (
        "24 of 24 layers on Some card (6.0 of 8.0 GB free)")
