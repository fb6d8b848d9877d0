"""The text in a QR code, there and back."""

import pytest
from frame_samples import PEER_A
from hypothesis import given
from hypothesis import strategies as st

from protocol.errors import LocalProtocolError
from protocol.pairlink import PairLink, format_link, parse_link

ADDRESSES = ("/ip4/192.0.2.7/tcp/4001", "/ip6/2001:db8::7/tcp/4001")
LINK = PairLink(PEER_A, bytes(range(16)), ADDRESSES)
TEXT = f"kith:1?{PEER_A}&AAAQEAYEAUDAOCAJBIFQYDIOB4&{','.join(ADDRESSES)}"


def test_the_text() -> None:
    assert format_link(LINK) == TEXT
    assert parse_link(TEXT) == LINK
    assert parse_link(f" {TEXT}\n") == LINK


def test_the_secret_is_not_shown_in_tracebacks() -> None:
    assert "\\x01\\x02" not in repr(LINK)


@given(st.binary(min_size=16, max_size=16), st.integers(0, 16))
def test_there_and_back(secret: bytes, count: int) -> None:
    link = PairLink(PEER_A, secret, ADDRESSES[:1] * count)
    assert parse_link(format_link(link)) == link


@pytest.mark.parametrize(
    "text",
    [
        "", "kith:1?", TEXT[1:], TEXT.replace("kith:1", "kith:2"), TEXT.replace("&", "", 1), TEXT + "&x",
        TEXT.replace(PEER_A, PEER_A[:-1]), TEXT.replace("AAAQ", "aaaq"), TEXT.replace("OB4", "OB"),
        TEXT.replace("OB4", ""), TEXT.replace("OB4", "OB41"), TEXT.replace("/ip4/", "/ip4 "), TEXT + ",",
        TEXT + ",/ip4/1.2.3.4" * 15, TEXT + "," + "/x" * 2000,
    ],
)  # fmt: skip
def test_anything_else_is_no_link(text: str) -> None:
    assert parse_link(text) is None


@given(st.text(max_size=80))
def test_noise_is_no_link(noise: str) -> None:
    assert parse_link("kith:1?" + noise) is None
    assert parse_link(f"kith:1?{PEER_A}&{noise}") is None


@pytest.mark.parametrize(
    "link",
    [PairLink("x", bytes(16), ()), PairLink(PEER_A, bytes(15), ()), PairLink(PEER_A, bytes(16), ("no address",)),
     PairLink(PEER_A, bytes(16), ADDRESSES * 9)],
)  # fmt: skip
def test_what_could_not_be_read_back_is_not_written(link: PairLink) -> None:
    with pytest.raises(LocalProtocolError):
        format_link(link)
