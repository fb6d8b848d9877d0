"""Asking a router for a port: against a fake one on loopback, and the bytes against the standards by hand."""

import struct
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

import fake_router as fake
import pytest
import trio
from hypothesis import given
from hypothesis import strategies as st

from node.net import natpmp_messages as natpmp
from node.net import upnp_messages as upnp
from node.net.natpmp_messages import External, Mapped, NatPmpRefused
from node.net.port_mapping import MappingFailed, PortMapping, Router, map_port, unmap_port
from node.net.upnp_messages import Control, UpnpRefused

HERE = "127.0.0.1"
PUBLIC = "203.0.113.2"


@dataclass
class FakeRouter:
    """Answers on loopback; seen holds what was asked."""

    public: str = PUBLIC
    speaks_natpmp: bool = True
    speaks_upnp: bool = True
    refuses: str = ""
    description: str = fake.DESCRIPTION
    answer: Callable[[bytes], bytes] | None = None
    seen: list[str] = field(default_factory=list)
    natpmp_port: int = 0
    ssdp_port: int = 0
    http_port: int = 0

    @property
    def router(self) -> Router:
        return Router(HERE, self.natpmp_port, (HERE, self.ssdp_port))

    async def serve_natpmp(self, sock: trio.socket.SocketType) -> None:
        while True:
            packet, asker = await sock.recvfrom(64)
            self.seen.append(f"natpmp {packet.hex()}")
            if self.speaks_natpmp:
                reply = self.answer(packet) if self.answer else fake.natpmp_answer(packet, self.public)
                await sock.sendto(reply, asker)

    async def serve_search(self, sock: trio.socket.SocketType) -> None:
        while True:
            packet, asker = await sock.recvfrom(2048)
            if self.speaks_upnp and packet.startswith(b"M-SEARCH"):
                await sock.sendto(fake.search_answer(HERE, self.http_port), asker)

    async def serve_http(self, stream: trio.SocketStream) -> None:
        request = b""
        async with stream:
            while b"\r\n\r\n" not in request:
                request += await stream.receive_some()
            head, _, body = request.partition(b"\r\n\r\n")
            lines = head.decode().split("\r\n")
            size = next((int(line.split(":")[1]) for line in lines if line.lower().startswith("content-length")), 0)
            while len(body) < size:
                body += await stream.receive_some()
            status, text = self.reply(lines, body.decode())
            self.seen.append(lines[0])
            await stream.send_all(f"HTTP/1.1 {status} X\r\nContent-Type: text/xml\r\n\r\n{text}".encode())

    def reply(self, lines: list[str], body: str) -> tuple[int, str]:
        if lines[0].startswith("GET /root.xml"):
            return 200, self.description
        action = next(line for line in lines if line.startswith("SOAPAction")).split("#")[1].strip('"')
        self.seen.append(action)
        if action == self.refuses:
            fault = "<UPnPError><errorCode>718</errorCode><errorDescription>ConflictInMappingEntry</errorDescription>"
            return 500, fake.soap(fault)
        if action == "GetExternalIPAddress":
            return 200, fake.soap(f"<NewExternalIPAddress>{self.public}</NewExternalIPAddress>")
        self.seen.append(body)
        return 200, fake.soap("<ok/>")


@asynccontextmanager
async def a_router(made: FakeRouter) -> AsyncIterator[FakeRouter]:
    """Sockets for it, on any free ports of loopback."""
    doors = [trio.socket.socket(trio.socket.AF_INET, trio.socket.SOCK_DGRAM) for _ in range(2)]
    for door in doors:
        await door.bind((HERE, 0))
    made.natpmp_port, made.ssdp_port = (door.getsockname()[1] for door in doors)
    listeners = await trio.open_tcp_listeners(0, host=HERE)
    made.http_port = listeners[0].socket.getsockname()[1]
    async with trio.open_nursery() as nursery:
        nursery.start_soon(made.serve_natpmp, doors[0])
        nursery.start_soon(made.serve_search, doors[1])
        nursery.start_soon(trio.serve_listeners, made.serve_http, listeners)
        yield made
        nursery.cancel_scope.cancel()
    for door in doors:
        door.close()


async def test_a_port_is_mapped_and_given_back_by_natpmp() -> None:
    async with a_router(FakeRouter()) as made:
        mapping = await map_port(made.router, HERE, 4711)
        assert (mapping.host, mapping.port, mapping.lifetime_s, mapping.by) == (PUBLIC, 4711, 3600, "NAT-PMP")
        await unmap_port(made.router, mapping, 4711)
        # RFC 6886: opcode 2 is TCP; 4711 = 1267, 3600 = 0e10; a lifetime of 0 deletes
        assert made.seen == ["natpmp 0000", "natpmp 000200001267126700000e10", "natpmp 000200001267000000000000"]


async def test_upnp_is_asked_when_natpmp_is_silent() -> None:
    async with a_router(FakeRouter(speaks_natpmp=False)) as made:
        mapping = await map_port(made.router, HERE, 4711)
        assert (mapping.host, mapping.port, mapping.by) == (PUBLIC, 4711, "UPnP")
        body = next(text for text in made.seen if "AddPortMapping" in text and "<" in text)
        for element in ("<NewExternalPort>4711<", "<NewProtocol>TCP<", f"<NewInternalClient>{HERE}<",
                        "<NewInternalPort>4711<", "<NewLeaseDuration>3600<"):
            assert element in body
        await unmap_port(made.router, mapping, 4711)
        assert "DeletePortMapping" in made.seen


async def test_a_router_without_either_is_told_in_words(autojump_clock: object) -> None:
    async with a_router(FakeRouter(speaks_natpmp=False, speaks_upnp=False)) as made:
        with pytest.raises(MappingFailed, match="NAT-PMP: no answer; UPnP: no answer"):
            await map_port(made.router, HERE, 4711)


@pytest.mark.parametrize("host", ["192.168.100.2", "100.64.3.4", "10.1.1.1"])
async def test_a_router_behind_another_one_maps_nothing_of_use_and_it_is_given_back(host: str) -> None:
    async with a_router(FakeRouter(public=host)) as made:
        with pytest.raises(MappingFailed, match="behind another router"):
            await map_port(made.router, HERE, 4711)
        assert made.seen[-1] == "natpmp 000200001267000000000000"


async def test_a_refusal_is_told_with_its_reason() -> None:
    def not_authorised(packet: bytes) -> bytes:
        return bytes((0, 128 + packet[1], 0, 2)) + bytes(12)

    async with a_router(FakeRouter(answer=not_authorised, refuses="AddPortMapping")) as made:
        with pytest.raises(MappingFailed) as failure:
            await map_port(made.router, HERE, 4711)
        assert "NAT-PMP: its owner does not allow it" in str(failure.value)
        assert "UPnP: it refused AddPortMapping (ConflictInMappingEntry)" in str(failure.value)


@pytest.mark.parametrize("description", ["", "<service>" * 6000, "x" * 200_000, fake.DESCRIPTION.replace("WANIP", "X")])
async def test_a_router_that_describes_nonsense_costs_a_bounded_try(description: str) -> None:
    async with a_router(FakeRouter(speaks_natpmp=False, description=description)) as made:
        with pytest.raises(MappingFailed, match=r"UPnP: its answer has no end|UPnP: it describes no way"):
            await map_port(made.router, HERE, 4711)


class HangsUp(FakeRouter):
    """Resets each connection in the middle of its answer."""

    async def serve_http(self, stream: trio.SocketStream) -> None:
        async with stream:
            await stream.receive_some()
            await stream.send_all(b"HTTP/1.1 200 X\r\n")
            stream.socket.setsockopt(trio.socket.SOL_SOCKET, trio.socket.SO_LINGER, struct.pack("ii", 1, 0))


async def test_a_router_that_hangs_up_is_a_reason_and_no_more() -> None:
    async with a_router(HangsUp(speaks_natpmp=False)) as made:
        with pytest.raises(MappingFailed, match="UPnP: it hung up"):
            await map_port(made.router, HERE, 4711)
        gone = PortMapping(PUBLIC, 4711, 3600, "UPnP", Control(HERE, made.http_port, "/ctl", "urn:x"))
        await unmap_port(made.router, gone, 4711)


@pytest.mark.parametrize("told", ["1267 0000 00000e10", "1267 1267 00000000"])
async def test_a_mapping_of_no_port_or_for_no_time_is_none(told: str) -> None:
    def nothing(packet: bytes) -> bytes:
        said = "0082 0000 00000001 " + told if packet[1] else "0080 0000 00000001 cb007102"
        return bytes.fromhex(said.replace(" ", ""))

    async with a_router(FakeRouter(answer=nothing, speaks_upnp=False)) as made:
        with pytest.raises(MappingFailed, match="NAT-PMP: it maps no port, or for no time"):
            await map_port(made.router, HERE, 4711)


def test_natpmp_answers_as_the_standard_lays_them_out() -> None:
    assert natpmp.encode_external() == b"\x00\x00"
    assert natpmp.read_answer(bytes.fromhex("0080 0000 00000001 cb007102".replace(" ", ""))) == External(PUBLIC)
    mapped = bytes.fromhex("0082 0000 00000001 1267 1268 00000e10".replace(" ", ""))
    assert natpmp.read_answer(mapped) == Mapped(4711, 4712, 3600)
    with pytest.raises(NatPmpRefused, match="no room"):
        natpmp.read_answer(bytes.fromhex("0082 0004 00000001 1267 0000 00000000".replace(" ", "")))


@given(st.binary(max_size=40))
def test_no_bytes_make_a_router_of_nothing(packet: bytes) -> None:
    try:
        natpmp.read_answer(packet)
    except NatPmpRefused:
        return


def test_only_the_machine_that_answered_is_asked_further() -> None:
    good = fake.search_answer("192.168.1.1", 5000)
    assert upnp.read_location(good, "192.168.1.1") == Control("192.168.1.1", 5000, "/root.xml", "")
    assert upnp.read_location(good, "192.168.1.66") is None
    for bad in (b"", good.replace(b"http:", b"file:"), good.replace(b"192.168.1.1", b"evil.example"),
                good.replace(b"200 OK", b"404"), good.replace(b"InternetGatewayDevice", b"MediaServer")):
        assert upnp.read_location(bad, "192.168.1.1") is None
    at = Control("192.168.1.1", 5000, "/root.xml", "")
    assert upnp.read_description(fake.DESCRIPTION, at) == Control("192.168.1.1", 5000, "/ctl/IPConn", fake.SERVICE)
    elsewhere = fake.DESCRIPTION.replace("/ctl/IPConn", "http://192.168.1.66/ctl")
    with pytest.raises(UpnpRefused):
        upnp.read_description(elsewhere, at)


@given(st.text(max_size=300), st.sampled_from(["192.168.1.1", "fe80::1", "x"]))
def test_no_text_is_taken_for_a_router(text: str, sender: str) -> None:
    found = upnp.read_location(text.encode(), sender)
    assert found is None or found.host == sender
    try:
        upnp.read_description(text, Control("192.168.1.1", 80, "/", ""))
    except UpnpRefused:
        return
