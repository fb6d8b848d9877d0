"""Wake-on-LAN: the packet's bytes, and that it is sent to every network given."""

import socket

import pytest

from node.net.errors import BadAddress
from node.net.magic_packet import hardware_address, magic_packet, send_magic_packet

CARD = bytes.fromhex("001122334455")


def test_the_packet_is_six_times_ff_and_sixteen_times_the_address() -> None:
    packet = magic_packet(CARD)
    assert packet == b"\xff\xff\xff\xff\xff\xff" + b"\x00\x11\x22\x33\x44\x55" * 16
    assert len(packet) == 102


@pytest.mark.parametrize("text", ["00:11:22:33:44:55", "00-11-22-33-44-55", " 00:11:22:33:44:55 "])
def test_an_address_is_read_in_its_usual_forms(text: str) -> None:
    assert hardware_address(text) == CARD


@pytest.mark.parametrize("text", [
    "", "00:11:22:33:44", "00:11:22:33:44:55:66", "00:11-22:33:44:55", "0g:11:22:33:44:55", "001122334455",
    "00:00:00:00:00:00", "ff:ff:ff:ff:ff:ff", "01:00:5e:00:00:01",
])
def test_what_is_no_single_cards_address_is_refused(text: str) -> None:
    with pytest.raises(BadAddress):
        hardware_address(text)


def test_the_packet_arrives_at_each_place_and_a_place_that_fails_stops_no_other() -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as card:
        card.bind(("127.0.0.1", 0))
        card.settimeout(5)
        port = card.getsockname()[1]
        assert send_magic_packet(CARD, ["256.0.0.1", "127.0.0.1"], port=port) == 1
        assert card.recv(2000) == magic_packet(CARD)


def test_no_network_at_all_is_said() -> None:
    with pytest.raises(OSError, match="no network"):
        send_magic_packet(CARD, [])
    with pytest.raises(OSError):
        send_magic_packet(CARD, ["256.0.0.1"])
