"""Signed lists of addresses: who made one, that nobody changed it, and that nothing else passes for one."""

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from nacl.signing import SigningKey

from protocol import canonical, limits
from protocol.errors import BadFrame
from protocol.ids import peer_id_from_public_key
from protocol.whereabouts import Whereabouts, sign_whereabouts, verify_whereabouts

SEED, OTHER = b"a" * 32, b"b" * 32
ID, OTHER_ID = (peer_id_from_public_key(bytes(SigningKey(seed).verify_key)) for seed in (SEED, OTHER))
ADDRESSES = ("/ip4/192.168.1.7/tcp/4711", "/ip6/fd00::7/tcp/4711", "/dns/home.example/tcp/4711")


def test_a_list_comes_back_as_it_was_made() -> None:
    signed = sign_whereabouts(ADDRESSES, number_ms=1_800_000_000_000, seed=SEED)
    assert verify_whereabouts(signed, peer_id=ID) == Whereabouts(ID, 1_800_000_000_000, ADDRESSES)
    assert len(signed) < limits.MAX_WHEREABOUTS_BYTES


def test_the_longest_list_fits_its_frame() -> None:
    longest = tuple("/dns/" + "x" * 60 + f"/tcp/{port}/p2p/{ID}" for port in range(10000, 10016))
    assert len(sign_whereabouts(longest, number_ms=1, seed=SEED)) <= limits.MAX_WHEREABOUTS_BYTES


def test_the_signature_is_ed25519_over_a_name_of_its_own_and_the_body() -> None:
    outer = msgspec.msgpack.decode(sign_whereabouts(ADDRESSES, number_ms=7, seed=SEED))
    body, signature = outer[-2:]
    assert SigningKey(SEED).sign(b"kith addresses 1\x00" + body).signature == signature


def test_nobody_makes_a_list_for_somebody_else() -> None:
    theirs = sign_whereabouts(ADDRESSES, number_ms=1, seed=OTHER)
    with pytest.raises(BadFrame):
        verify_whereabouts(theirs, peer_id=ID)
    # a list that names another peer, rightly signed by the one who made it
    body = canonical.encode(Whereabouts(OTHER_ID, 1, ADDRESSES))
    raw = msgspec.msgpack.decode(sign_whereabouts(ADDRESSES, number_ms=1, seed=SEED))
    raw[-2:] = [body, SigningKey(SEED).sign(b"kith addresses 1\x00" + body).signature]
    with pytest.raises(BadFrame):
        verify_whereabouts(msgspec.msgpack.encode(raw), peer_id=ID)


@given(st.integers(0, 10_000), st.integers(1, 255))
def test_one_changed_byte_is_noticed(place: int, change: int) -> None:
    signed = bytearray(sign_whereabouts(ADDRESSES, number_ms=1, seed=SEED))
    signed[place % len(signed)] ^= change
    with pytest.raises(BadFrame):
        verify_whereabouts(bytes(signed), peer_id=ID)


@given(st.binary(max_size=400))
def test_other_bytes_are_none(data: bytes) -> None:
    with pytest.raises(BadFrame):
        verify_whereabouts(data, peer_id=ID)


@pytest.mark.parametrize("addresses", [("not an address",), ("/ip4/1.2.3.4/tcp/1",) * 17, ("/ip4/" + "1" * 200,)])
def test_text_that_is_no_address_and_too_many_are_refused(addresses: tuple[str, ...]) -> None:
    with pytest.raises(msgspec.ValidationError):
        sign_whereabouts(addresses, number_ms=1, seed=SEED)
