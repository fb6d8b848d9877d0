"""HTTP over the node's Unix socket with the standard library alone: one request, or a stream of JSON lines.

Raises NotRunning when no node listens and CommandFailure for what the node refuses. Must not know what any reply means.
"""

import contextlib
import http.client
import json
import socket
from collections.abc import Generator, Iterator, Mapping
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlencode

from node.cli.failure import CommandFailure, NotRunning

__all__ = ["NodeClient", "named"]

HOST = "kith"
MAX_LINE_BYTES = 8 * 1024 * 1024


def named(name: str, *, may_hold: str = "") -> str:
    """What somebody typed as a name, as one part of a path; may_hold "/" for names that have slashes in them.

    Raises CommandFailure for what would lead to another place: nothing, or a slash.
    """
    if not name.strip() or ("/" in name and "/" not in may_hold):
        raise CommandFailure(f"{name!r} is no name", hint="See: kith --help", exit_code=2, code="usage")
    return quote(name, safe=may_hold)


class _UnixConnection(http.client.HTTPConnection):
    """An HTTP connection whose transport is a Unix socket."""

    def __init__(self, path: Path, timeout_s: float) -> None:
        super().__init__(HOST, timeout=timeout_s)
        self._path = path

    def connect(self) -> None:
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(self.timeout)
        try:
            self.sock.connect(str(self._path))
        except (FileNotFoundError, ConnectionRefusedError):
            raise NotRunning from None
        except PermissionError:
            raise CommandFailure(
                f"the node's socket {self._path} belongs to somebody else", hint=f"Check: ls -l {self._path}",
                code="storage",
            ) from None


class NodeClient:
    """Calls to the node that owns socket_path. timeout_s bounds each wait for bytes, not the whole stream."""

    def __init__(self, socket_path: Path, timeout_s: float = 60.0) -> None:
        self._path = socket_path
        self._timeout_s = timeout_s

    def get(self, path: str, **query: str | int | None) -> Any:
        """The JSON reply of one GET."""
        given = {key: value for key, value in query.items() if value is not None}
        return self._call("GET", path + ("?" + urlencode(given) if given else ""))

    def look(self, path: str) -> Any:
        """The JSON reply of one GET whose refusal is a reply as well."""
        connection, response = self._send("GET", path, None)
        with contextlib.closing(connection), self._talking():
            return _decode(response.read())

    def text(self, path: str) -> str:
        """The reply of one GET that is not JSON."""
        connection, response = self._send("GET", path, None)
        with contextlib.closing(connection):
            data = self._read(response)
        if response.status >= 400:
            raise _refusal(data)
        return data.decode()

    def post(self, path: str, body: Mapping[str, Any] | None = None) -> Any:
        """The JSON reply of one POST."""
        return self._call("POST", path, body or {})

    def put(self, path: str, body: Mapping[str, Any]) -> Any:
        """The JSON reply of one PUT."""
        return self._call("PUT", path, body)

    def patch(self, path: str, body: Mapping[str, Any]) -> Any:
        """The JSON reply of one PATCH."""
        return self._call("PATCH", path, body)

    def delete(self, path: str, body: Mapping[str, Any] | None = None) -> Any:
        """The JSON reply of one DELETE."""
        return self._call("DELETE", path, body)

    def stream(self, path: str, body: Mapping[str, Any]) -> Generator[dict[str, Any], None, None]:
        """The events of one running request, as they come. Closing the iterator ends the request at the node."""
        connection, response = self._send("POST", path, body)
        try:
            if response.status != 200:
                raise _refusal(self._read(response))
            while line := self._read_line(response):
                event = _decode(line)
                if not isinstance(event, dict):
                    raise _refusal(b"")
                yield event
        finally:
            response.close()  # the socket went over to it, and open it would keep the request running at the node
            connection.close()

    def _call(self, method: str, path: str, body: Mapping[str, Any] | None = None) -> Any:
        connection, response = self._send(method, path, body)
        with contextlib.closing(connection):
            data = self._read(response)
        if response.status >= 400:
            raise _refusal(data)
        reply = _decode(data)
        return reply["items"] if isinstance(reply, dict) and set(reply) == {"schema", "items"} else reply

    def _send(
        self, method: str, path: str, body: Mapping[str, Any] | None
    ) -> tuple[_UnixConnection, http.client.HTTPResponse]:
        connection = _UnixConnection(self._path, self._timeout_s)
        try:
            payload = None if body is None else json.dumps(body).encode()
            with self._talking():
                connection.request(method, quote(path, safe="/?&=%"), body=payload, headers={"Connection": "close"})
                return connection, connection.getresponse()
        except CommandFailure:
            connection.close()
            raise

    def _read(self, response: http.client.HTTPResponse) -> bytes:
        with self._talking():
            return response.read()

    def _read_line(self, response: http.client.HTTPResponse) -> bytes:
        """The next whole line; b"" at the end. A line that breaks off is a node that died."""
        with self._talking():
            line = response.readline(MAX_LINE_BYTES)
        if line and not line.endswith(b"\n") and len(line) < MAX_LINE_BYTES:
            raise _hung_up("in the middle of its answer")
        return line

    @contextlib.contextmanager
    def _talking(self) -> Iterator[None]:
        """What can go wrong with the node at the other end, as CommandFailure."""
        try:
            yield
        except TimeoutError:
            raise CommandFailure(
                f"the node sent nothing for {self._timeout_s:.0f} seconds", hint="See: kith status", code="timeout"
            ) from None
        except (OSError, http.client.HTTPException) as error:
            raise _hung_up(type(error).__name__) from None


def _hung_up(how: str) -> CommandFailure:
    return CommandFailure(f"the node hung up ({how})", hint="See: kith logs", code="hung_up")


def _decode(data: bytes) -> Any:
    try:
        return json.loads(data)
    except ValueError:
        raise _refusal(b"") from None


def _refusal(data: bytes) -> CommandFailure:
    try:
        view = json.loads(data)
        return CommandFailure(view["message"], hint=view["hint"], exit_code=view["exit_code"], code=view["code"])
    except (ValueError, KeyError, TypeError):
        return CommandFailure(
            "the node's reply is not understood", hint="Compare versions: kith --version", exit_code=70, code="bug"
        )
