"""Addresses as text. The forms come from the multiaddr specification; the library's own parser is the reference."""

import socket
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st
from multiaddr import Multiaddr

from node.net.addresses import format_socket, parse
from node.net.errors import BadAddress

PEER = "12D3KooWMbbPVGsZYh3ChQjue712NHHGNybRRXwnuSpezYjGbCDS"


@pytest.mark.parametrize(("text", "kind", "host", "port", "family"), [
    ("/ip4/192.168.1.7/tcp/4711", "ip4", "192.168.1.7", 4711, socket.AF_INET),
    ("/ip6/fd00::7/tcp/0", "ip6", "fd00::7", 0, socket.AF_INET6),
    ("/ip6/::1/tcp/65535", "ip6", "::1", 65535, socket.AF_INET6),
    ("/dns/home.example/tcp/1", "dns", "home.example", 1, socket.AF_UNSPEC),
    ("/dns4/home-pc/tcp/1", "dns4", "home-pc", 1, socket.AF_INET),
    ("/dns6/a.b.c/tcp/1", "dns6", "a.b.c", 1, socket.AF_INET6),
])
def test_good_addresses(text: str, kind: str, host: str, port: int, family: int) -> None:
    address = parse(text)
    assert (address.kind, address.host, address.port, address.family) == (kind, host, port, family)
    assert address.peer_id is None
    assert str(address) == text == str(Multiaddr(text))
    named = parse(f"{text}/p2p/{PEER}")
    assert named.peer_id == PEER
    assert str(named) == text


@pytest.mark.parametrize("text", [
    "", "/", "//", "/ip4", "/ip4/1.2.3.4", "/ip4/1.2.3.4/tcp", "/ip4/1.2.3.4/tcp/", "ip4/1.2.3.4/tcp/1",
    "/ip4/1.2.3.4/tcp/1/",
    "/ip4/1.2.3/tcp/1", "/ip4/01.2.3.4/tcp/1", "/ip4/1.2.3.4/tcp/65536", "/ip4/1.2.3.4/tcp/-1", "/ip4/1.2.3.4/tcp/1e3",
    "/ip4/1.2.3.4/tcp/٣", "/ip4/1.2.3.4/udp/1", "/ip4/1.2.3.4/tcp/1/ws", "/ip4/1.2.3.4/tcp/1/p2p/",
    "/ip6/fe80::1%eth0/tcp/1/x",
    "/ip4/1.2.3.4/tcp/1/p2p/short", "/ip4/::1/tcp/1", "/ip6/1.2.3.4/tcp/1", "/dns4/-a/tcp/1", "/dns4/a..b/tcp/1",
    "/dns4/a b/tcp/1", "/dnsaddr/a/tcp/1", "/unix/a/tcp/1", "/ip4/1.2.3.4/tcp/1/p2p/" + "1" * 500,
    "/dns4/" + "a" * 300 + "/tcp/1",
])
def test_bad_addresses(text: str) -> None:
    with pytest.raises(BadAddress):
        parse(text)


@given(st.text(max_size=60))
def test_any_text_is_an_address_or_a_named_error(text: str) -> None:
    with suppress(BadAddress):
        address = parse(text)
        assert parse(str(address)).port == address.port


@given(st.ip_addresses(), st.integers(0, 65535))
def test_a_sockets_name_becomes_an_address_that_parses_back(ip: object, port: int) -> None:
    text = format_socket((str(ip), port, 0, 0) if ":" in str(ip) else (str(ip), port))
    assert parse(text).port == port


def test_a_mapped_ipv4_name_is_shown_as_ipv4() -> None:
    assert format_socket(("::ffff:10.0.0.1", 7, 0, 0)) == "/ip4/10.0.0.1/tcp/7"
