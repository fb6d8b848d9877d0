"""Server-sent events out of bytes that arrive in any pieces. Pure.

The stream format of the WHATWG HTML standard, 9.2.6: lines end in LF, CR or CR LF; an empty line ends an event; what an
unfinished event holds at the end of the stream is dropped. Only data is kept. Must not know what the data means.
"""

from offload.upstream_errors import UpstreamBroken

__all__ = ["EVENT_LIMIT_BYTES", "EventSplitter"]

EVENT_LIMIT_BYTES = 1024 * 1024
_MARK = b"\xef\xbb\xbf"


class EventSplitter:
    """The data of each event. Holds at most one unfinished event of limit_bytes."""

    def __init__(self, limit_bytes: int = EVENT_LIMIT_BYTES) -> None:
        self._limit_bytes = limit_bytes
        self._line = bytearray()
        self._data: list[bytes] = []
        self._held_bytes = 0
        self._after_cr = False
        self._first_line = True

    def feed(self, data: bytes) -> list[bytes]:
        """The data of every event that these bytes complete. Raises UpstreamBroken above the limit."""
        events: list[bytes] = []
        if self._after_cr and data:
            self._after_cr = False
            data = data.removeprefix(b"\n")
        at = 0
        while (end := _line_end(data, at)) >= 0:
            self._line += data[at:end]
            self._check()
            at = end + 1
            if data[end] == 0x0D:
                if at == len(data):
                    self._after_cr = True
                elif data[at] == 0x0A:
                    at += 1
            event = self._take_line()
            if event is not None:
                events.append(event)
        self._line += data[at:]
        self._check()
        return events

    def _check(self) -> None:
        if self._held_bytes + len(self._line) > self._limit_bytes:
            raise UpstreamBroken(f"The upstream engine sent an event of more than {self._limit_bytes} bytes.")

    def _take_line(self) -> bytes | None:
        line = bytes(self._line)
        self._line.clear()
        if self._first_line:
            self._first_line = False
            line = line.removeprefix(_MARK)
        if not line:
            data, self._data, self._held_bytes = self._data, [], 0
            return b"\n".join(data) if data else None
        name, _, value = line.partition(b":")
        if name == b"data":
            self._data.append(value.removeprefix(b" "))
            self._held_bytes += len(value) + 1
        return None


def _line_end(data: bytes, start: int) -> int:
    lf, cr = data.find(b"\n", start), data.find(b"\r", start)
    if lf < 0 or cr < 0:
        return max(lf, cr)
    return min(lf, cr)
