"""Peer ids against libp2p's own, ids in hex, and fingerprints."""

import contextlib

import pytest
from fixed import SeededEntropy
from hypothesis import given
from hypothesis import strategies as st
from libp2p.crypto.ed25519 import Ed25519PublicKey, create_new_key_pair
from libp2p.peer.id import ID

from protocol import limits
from protocol.errors import BadFrame
from protocol.ids import (
    fingerprint_words,
    id_from_hex,
    id_to_hex,
    new_id,
    peer_id_from_public_key,
    public_key_from_peer_id,
)
from protocol.wordlist import WORDS

KEYS = st.binary(min_size=32, max_size=32)


@given(st.binary(min_size=32, max_size=32))
def test_peer_id_is_the_one_that_libp2p_computes(seed: bytes) -> None:
    public_key = create_new_key_pair(seed).public_key
    assert peer_id_from_public_key(public_key.to_bytes()) == str(ID.from_pubkey(public_key))


@given(KEYS)
def test_there_and_back(public_key: bytes) -> None:
    peer_id = peer_id_from_public_key(public_key)
    assert len(peer_id) == limits.PEER_ID_CHARS
    assert public_key_from_peer_id(peer_id) == public_key
    assert bytes(ID.from_string(peer_id).to_bytes()).endswith(public_key)


@pytest.mark.parametrize("length", [0, 31, 33])
def test_a_public_key_has_32_bytes(length: int) -> None:
    with pytest.raises(ValueError):
        peer_id_from_public_key(bytes(length))


GOOD = peer_id_from_public_key(bytes(32))


@pytest.mark.parametrize(
    "peer_id",
    ["", GOOD[:-1], GOOD + "1", "0" + GOOD[1:], GOOD[:-1] + "l", "1" * 52, "z" * 52, GOOD.lower(), "1" + GOOD[:-1],
     "é" * 52, "QmYyQSo1c1Ym7orWxLYvCrM2EmxFTANf8wXmmE7DWjhx5N"],
)  # fmt: skip
def test_anything_else_is_refused(peer_id: str) -> None:
    with pytest.raises(BadFrame):
        public_key_from_peer_id(peer_id)


@given(KEYS, st.integers(0, 51), st.sampled_from("123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz"))
def test_no_second_spelling(public_key: bytes, place: int, letter: str) -> None:
    peer_id = peer_id_from_public_key(public_key)
    changed = peer_id[:place] + letter + peer_id[place + 1 :]
    if changed != peer_id:
        with contextlib.suppress(BadFrame):
            assert public_key_from_peer_id(changed) != public_key


def test_ids() -> None:
    entropy = SeededEntropy(1)
    first, second = new_id(entropy), new_id(entropy)
    assert first != second
    assert len(first) == limits.ID_BYTES
    assert id_from_hex(id_to_hex(first)) == first


@pytest.mark.parametrize("text", ["", "0" * 31, "0" * 33, "0" * 31 + "g", "0" * 31 + "A", " " * 32, "0x" + "0" * 30])
def test_other_texts_are_no_ids(text: str) -> None:
    with pytest.raises(BadFrame):
        id_from_hex(text)


def test_fingerprints_are_words_and_differ() -> None:
    seen = {fingerprint_words(peer_id_from_public_key(bytes([n]) * 32)) for n in range(100)}
    assert len(seen) == 100
    assert all(len(words) == limits.FINGERPRINT_WORDS and set(words) <= set(WORDS) for words in seen)


def test_a_real_key_object_round_trips_through_libp2p() -> None:
    public_key = create_new_key_pair(bytes(range(32))).public_key
    again = Ed25519PublicKey.from_bytes(public_key_from_peer_id(str(ID.from_pubkey(public_key))))
    assert again == public_key
