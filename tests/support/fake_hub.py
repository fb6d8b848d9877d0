"""A loopback server that speaks the part of the model hub's API that adding a model uses, with its faults on demand.

Must not know who asks.
"""

import hashlib
import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

__all__ = ["FakeHub", "fake_hub"]


@dataclass
class FakeHub:
    """files: path -> content, all in one repository. cut_at: break each transfer off after so many bytes.

    lie: a checksum that is announced instead of the right one. status: answer everything with this.
    """

    repository: str = "some-owner/tiny-GGUF"
    files: dict[str, bytes] = field(default_factory=dict)
    licence: str = "mit"
    cut_at: int | None = None
    lie: str | None = None
    longer: bytes = b""
    status: int = 0
    asked: list[tuple[str, str, dict[str, str]]] = field(default_factory=list)
    url: str = ""

    @property
    def ranges(self) -> list[str]:
        """The Range header of each fetch of a file."""
        return [headers.get("range", "") for method, path, headers in self.asked if "/resolve/" in path]


class _Handler(BaseHTTPRequestHandler):
    hub: FakeHub
    protocol_version = "HTTP/1.1"

    def log_message(self, *_: object) -> None:
        pass

    def do_HEAD(self) -> None:
        self.do_GET()

    def do_GET(self) -> None:
        hub = self.hub
        headers = {name.lower(): value for name, value in self.headers.items()}
        hub.asked.append((self.command, self.path, headers))
        if hub.status:
            self._send(hub.status, b"{}")
        elif self.path.startswith(f"/api/models/{hub.repository}"):
            self._send(200, json.dumps(self._info()).encode())
        elif self.path.startswith(f"/{hub.repository}/resolve/c0ffee/"):
            content = hub.files.get(self.path.rpartition("/c0ffee/")[2])
            self._send_file(content) if content is not None else self._send(404, b"{}")
        else:
            self._send(404, b"{}")

    def _info(self) -> dict[str, object]:
        siblings: list[dict[str, object]] = [{"rfilename": "README.md", "size": 3}]
        for name, content in self.hub.files.items():
            digest = self.hub.lie if self.hub.lie is not None else hashlib.sha256(content).hexdigest()
            siblings.append({
                "rfilename": name, "size": len(content),
                "lfs": {"sha256": digest, "size": len(content), "pointerSize": 130}})
        return {"id": self.hub.repository, "modelId": self.hub.repository, "sha": "c0ffee", "siblings": siblings,
                "cardData": {"license": self.hub.licence}, "private": False, "tags": [], "downloads": 0}

    def _send_file(self, content: bytes) -> None:
        whole = content + self.hub.longer
        start = 0
        if self.headers.get("Range"):
            start = int(self.headers["Range"].removeprefix("bytes=").partition("-")[0])
        body = whole[start:]
        self.send_response(206 if start else 200)
        if start:
            self.send_header("Content-Range", f"bytes {start}-{len(whole) - 1}/{len(whole)}")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.hub.cut_at is not None:
            self.wfile.write(body[:self.hub.cut_at])
            self.wfile.flush()
            self.close_connection = True
            self.connection.shutdown(2)
            return
        self.wfile.write(body)

    def _send(self, status: int, body: bytes) -> None:
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)


@contextmanager
def fake_hub(**facts: object) -> Iterator[FakeHub]:
    """The hub while it runs; its address is in `url`."""
    hub = FakeHub(**facts)  # type: ignore[arg-type]
    server = ThreadingHTTPServer(("127.0.0.1", 0), type("Handler", (_Handler,), {"hub": hub}))
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
    thread.start()
    hub.url = f"http://127.0.0.1:{server.server_address[1]}"
    try:
        yield hub
    finally:
        server.shutdown()
        server.server_close()
        thread.join(5)
