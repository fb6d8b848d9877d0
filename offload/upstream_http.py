"""One HTTP/1.1 exchange with an upstream engine over a trio stream. Closing it is how a request is cancelled.

Every wait has a deadline and every buffer a limit; redirects and proxies are not followed. A named connector: the only
module that dials out for inference. Must not know what is asked, or whether it may leave.
"""

import ssl
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import h11
import trio

from offload.upstream_errors import UpstreamBroken, UpstreamMisconfigured, UpstreamUnreachable
from offload.upstream_place import Place

__all__ = ["Exchange", "HttpLimits"]

_READ_BYTES = 64 * 1024
_HEADER_LIMIT_BYTES = 64 * 1024

Headers = Sequence[tuple[str, str]]


@dataclass(frozen=True, slots=True)
class HttpLimits:
    """connect_s: for the connection and TLS. first_s: until the reply begins (it may queue there). idle_s: between two
    reads."""

    connect_s: float = 10.0
    first_s: float = 300.0
    idle_s: float = 60.0
    reply_bytes: int = 4 * 1024 * 1024


class Exchange:
    """One request and its reply. Always close it."""

    def __init__(self, stream: trio.abc.Stream, limits: HttpLimits) -> None:
        self._stream = stream
        self._limits = limits
        self._connection = h11.Connection(h11.CLIENT, max_incomplete_event_size=_HEADER_LIMIT_BYTES)
        self.status = 0

    @classmethod
    async def start(
        cls, place: Place, method: str, path: str, *, limits: HttpLimits, headers: Headers = (), body: bytes = b"",
        ca_file: Path | None = None,
    ) -> "Exchange":
        """The exchange after the reply's status has come.

        Raises UpstreamUnreachable, UpstreamBroken or UpstreamMisconfigured (ca_file).
        """
        exchange = cls(await _connect(place, limits, ca_file), limits)
        try:
            await exchange._ask(place, method, path, headers, body)
        except BaseException:
            await exchange.aclose()
            raise
        return exchange

    async def receive(self) -> bytes:
        """More of the reply's body; empty at its proper end. Raises UpstreamBroken when it ends early or stalls."""
        try:
            with trio.fail_after(self._limits.idle_s):
                while True:
                    event = await self._event()
                    if isinstance(event, h11.Data):
                        return bytes(event.data)
                    if isinstance(event, h11.EndOfMessage):
                        return b""
        except trio.TooSlowError as error:
            raise UpstreamBroken(f"The upstream engine sent nothing for {self._limits.idle_s:g} seconds.") from error

    async def read(self) -> bytes:
        """The whole body. Raises UpstreamBroken above the limit."""
        body = bytearray()
        while data := await self.receive():
            body += data
            if len(body) > self._limits.reply_bytes:
                raise UpstreamBroken(f"The upstream engine's reply exceeds {self._limits.reply_bytes} bytes.")
        return bytes(body)

    async def aclose(self) -> None:
        """Close the connection at once; the other side takes that as a cancel."""
        await trio.aclose_forcefully(self._stream)

    async def _ask(self, place: Place, method: str, path: str, headers: Headers, body: bytes) -> None:
        lines = [
            ("Host", place.name), ("User-Agent", "kith"), ("Connection", "close"), ("Content-Length", str(len(body))),
            *headers,
        ]
        request = h11.Request(method=method, target=place.prefix + path, headers=lines)
        head = self._connection.send(request) or b""
        data = self._connection.send(h11.Data(data=body)) or b""
        try:
            with trio.fail_after(self._limits.idle_s):
                await self._stream.send_all(head + data)
        except (trio.BrokenResourceError, trio.ClosedResourceError, trio.TooSlowError, OSError) as error:
            raise UpstreamUnreachable(f"{place.name} did not take the request.") from error
        self._connection.send(h11.EndOfMessage())
        try:
            with trio.fail_after(self._limits.first_s):
                while not self.status:
                    event = await self._event()
                    if isinstance(event, h11.Response):
                        self.status = event.status_code
        except trio.TooSlowError as error:
            raise UpstreamUnreachable(f"{place.name} did not answer for {self._limits.first_s:g} seconds.") from error

    async def _event(self) -> object:
        while True:
            try:
                event = self._connection.next_event()
                if event is not h11.NEED_DATA:
                    return event
                self._connection.receive_data(bytes(await self._stream.receive_some(_READ_BYTES)))
            except h11.RemoteProtocolError as error:
                raise UpstreamBroken("The upstream engine's reply broke off or is no proper HTTP.") from error
            except (trio.BrokenResourceError, trio.ClosedResourceError, OSError) as error:
                raise UpstreamBroken("The connection to the upstream engine broke.") from error


async def _connect(place: Place, limits: HttpLimits, ca_file: Path | None) -> trio.abc.Stream:
    try:
        with trio.fail_after(limits.connect_s):
            if place.socket_path:
                return await trio.open_unix_socket(place.socket_path)
            stream = await _dial(place)
            return await _wrapped(stream, place, ca_file) if place.tls else stream
    except trio.TooSlowError as error:
        raise UpstreamUnreachable(f"{place.name} does not answer within {limits.connect_s:g} seconds.") from error
    except OSError as error:
        raise UpstreamUnreachable(f"{place.name} cannot be reached: {error.strerror or error}.") from error


async def _dial(place: Place) -> trio.SocketStream:
    """localhost means the loopback addresses, whatever a resolver says."""
    if place.host != "localhost":
        return await trio.open_tcp_stream(place.host, place.port)
    try:
        return await trio.open_tcp_stream("127.0.0.1", place.port)
    except OSError:
        return await trio.open_tcp_stream("::1", place.port)


async def _wrapped(stream: trio.SocketStream, place: Place, ca_file: Path | None) -> trio.abc.Stream:
    try:
        context = ssl.create_default_context(cafile=str(ca_file) if ca_file else None)
    except OSError as error:
        await trio.aclose_forcefully(stream)
        raise UpstreamMisconfigured(f"The certificates in {ca_file} cannot be read.") from error
    wrapped = trio.SSLStream(stream, context, server_hostname=place.host, https_compatible=True)
    try:
        await wrapped.do_handshake()
    except trio.BrokenResourceError as error:
        await trio.aclose_forcefully(stream)
        raise UpstreamUnreachable(f"{place.name} offers no TLS that can be trusted.") from error
    except BaseException:
        await trio.aclose_forcefully(stream)
        raise
    return wrapped
