"""A loopback HTTP server that answers each request with bytes a test wrote down, in the pieces it wants.

Serves one request per connection. Must not know what the bytes mean.
"""

import datetime
import ipaddress
import json
import ssl
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import h11
import trio
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

__all__ = ["Asked", "ScriptedServer", "events", "make_certificate", "reply"]

Script = Callable[["Asked"], Sequence[bytes]]


@dataclass(frozen=True)
class Asked:
    """One request as it came."""

    method: str
    path: str
    headers: dict[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)


@dataclass
class ScriptedServer:
    """script: the pieces of a reply. hang: keep the connection open after it, until the other side closes."""

    script: Script
    hang: bool = False
    asked: list[Asked] = field(default_factory=list)
    hung_up: trio.Event = field(default_factory=trio.Event)
    port: int = 0

    async def run(self, tls: ssl.SSLContext | None = None, *, task_status=trio.TASK_STATUS_IGNORED) -> None:
        listeners = await trio.open_tcp_listeners(0, host="127.0.0.1")
        self.port = listeners[0].socket.getsockname()[1]
        if tls is not None:
            listeners = [trio.SSLListener(one, tls, https_compatible=True) for one in listeners]
        await trio.serve_listeners(self._serve, listeners, task_status=task_status)

    async def _serve(self, stream: trio.abc.Stream) -> None:
        try:
            async with stream:
                self.asked.append(asked := await _read(stream))
                for piece in self.script(asked):
                    await stream.send_all(piece)
                    await trio.lowlevel.checkpoint()
                if self.hang:
                    while await stream.receive_some(1024):
                        pass
                    self.hung_up.set()
        except (trio.BrokenResourceError, h11.RemoteProtocolError):
            self.hung_up.set()


async def _read(stream: trio.abc.Stream) -> Asked:
    connection = h11.Connection(h11.SERVER)
    head, body = None, b""
    while True:
        event = connection.next_event()
        if event is h11.NEED_DATA:
            connection.receive_data(await stream.receive_some(65536))
        elif isinstance(event, h11.Request):
            head = event
        elif isinstance(event, h11.Data):
            body += bytes(event.data)
        else:
            assert head is not None
            headers = {name.decode(): value.decode() for name, value in head.headers}
            return Asked(head.method.decode(), head.target.decode(), headers, body)


def reply(body: bytes | dict, status: int = 200, headers: str = "") -> bytes:
    """A whole reply with its length."""
    data = body if isinstance(body, bytes) else json.dumps(body).encode()
    return f"HTTP/1.1 {status} X\r\nContent-Length: {len(data)}\r\n{headers}\r\n".encode() + data


def events(*chunks: dict | str) -> bytes:
    """A reply that is a stream of events and ends with the connection."""
    lines = [one if isinstance(one, str) else json.dumps(one, ensure_ascii=False) for one in chunks]
    body = "".join(f"data: {line}\n\n" for line in lines)
    return b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\n\r\n" + body.encode()


def make_certificate(folder: Path, *names: str) -> tuple[ssl.SSLContext, Path]:
    """A server's context with a certificate of its own for these host names, and the file that a client trusts."""
    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "test")])
    now = datetime.datetime.now(datetime.UTC)
    alternatives: list[x509.GeneralName] = []
    for name in names:
        try:
            alternatives.append(x509.IPAddress(ipaddress.ip_address(name)))
        except ValueError:
            alternatives.append(x509.DNSName(name))
    certificate = (
        x509.CertificateBuilder().subject_name(subject).issuer_name(subject).public_key(key.public_key())
        .serial_number(1).not_valid_before(now - datetime.timedelta(days=1))
        .not_valid_after(now + datetime.timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName(alternatives), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    trusted, private = folder / "ca.pem", folder / "key.pem"
    trusted.write_bytes(certificate.public_bytes(serialization.Encoding.PEM))
    private.write_bytes(key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()))
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(trusted, private)
    return context, trusted
