"""One Yamux stream: its receive buffer, its two windows, its two ends. Must not know sockets, peers or protocols.

An end is clean only if the peer's FIN arrived. Everything else (RST, a lost connection, a crash) raises
MuxedStreamReset, so that a cut transfer can never pass for a finished one. The window is credit that we gave and the
peer may not exceed; the muxer checks it before it takes a body.
"""

from collections.abc import Callable
from types import TracebackType
from typing import Protocol, Self

import trio
from libp2p.abc import IMuxedConn, IMuxedStream
from libp2p.stream_muxer.exceptions import MuxedStreamClosed, MuxedStreamEOF, MuxedStreamReset

from node.net import yamux

__all__ = ["MuxStream", "Wire"]


class Wire(Protocol):
    """What a stream needs of its connection."""

    def put(self, frame: bytes) -> None:
        """Queue one whole frame for the socket; never blocks."""
        ...

    async def room(self) -> None:
        """Return once the queue has room for data; at once when it has, or when the connection is gone."""
        ...

    def has_room(self) -> bool:
        """Whether data may be queued now."""
        ...

    def grow(self, size_bytes: int) -> bool:
        """Take size_bytes from the connection's pool for a wider window; False when it is used up."""
        ...

    def finished(self, stream: "MuxStream") -> None:
        """Both ends of the stream are done: forget it."""
        ...

    def rtt_s(self) -> float:
        """The measured round trip, 0 while unknown."""
        ...


class MuxStream(IMuxedStream):  # type: ignore[misc]  # libp2p is untyped to mypy
    """A libp2p muxed stream. One task may read and one may write at a time; both may be cancelled at any await."""

    def __init__(self, wire: Wire, stream_id: int, *, muxed_conn: IMuxedConn, max_window_bytes: int) -> None:
        self.muxed_conn = muxed_conn
        self.stream_id = stream_id
        self._wire = wire
        self._buffer = bytearray()
        self._max_window_bytes = max_window_bytes
        self._window_target = yamux.INITIAL_WINDOW_BYTES
        self._credit = yamux.INITIAL_WINDOW_BYTES      # what the peer may still send
        self._consumed = 0                             # read by us, not yet given back as credit
        self._last_grant_s = trio.current_time()
        self._send_window = yamux.INITIAL_WINDOW_BYTES
        self._readable = trio.lowlevel.ParkingLot()
        self._writable = trio.lowlevel.ParkingLot()
        self.fin_sent = False
        self.fin_received = False
        self.broken: str | None = None
        self.pool_taken_bytes = 0

    # -- what the muxer tells the stream; none of these waits --

    @property
    def credit(self) -> int:
        """Bytes that the peer may send now."""
        return self._credit

    def on_body(self, piece: bytes) -> None:
        """Bytes of a frame whose header the muxer has checked against the credit. Dropped after a FIN or a reset."""
        self._credit -= len(piece)
        if not self.fin_received and self.broken is None:
            self._buffer += piece
            self._readable.unpark_all()

    def on_credit(self, size_bytes: int) -> None:
        """The peer lets us send more."""
        self._send_window += size_bytes
        self._writable.unpark_all()

    def on_fin(self) -> None:
        """The peer ended its side."""
        self.fin_received = True
        self._readable.unpark_all()
        if self.fin_sent:
            self._wire.finished(self)

    def on_lost(self, why: str, *, drop: bool) -> None:
        """The stream is reset or its connection is gone. drop: throw away what was not read yet (our own reset
        does)."""
        if self.broken is None and not (self.fin_sent and self.fin_received):
            self.broken = why
        if drop:
            self._buffer.clear()
        self._readable.unpark_all()
        self._writable.unpark_all()
        self._wire.finished(self)

    # -- what the owner of the stream calls --

    async def read(self, n: int | None = None) -> bytes:
        """1 to n bytes, as soon as there are any; never b"". Raises MuxedStreamEOF after the peer's FIN and the last
        byte before it, MuxedStreamReset when the stream broke. Cancelling loses nothing."""
        await trio.lowlevel.checkpoint()
        while not self._buffer:
            if self.fin_received:
                raise MuxedStreamEOF("the peer ended its side")
            if self.broken is not None:
                raise MuxedStreamReset(self.broken)
            await self._readable.park()
        size = len(self._buffer) if n is None or n < 0 else n
        data = bytes(self._buffer[:size])
        del self._buffer[: len(data)]
        self._give_credit(len(data))
        return data

    async def write(self, data: bytes | memoryview) -> None:
        """Queue all of data, as fast as the peer's window and the socket allow. Raises MuxedStreamReset or
        MuxedStreamClosed. Cancelling stops between two frames: the stream has sent a part, the connection is
        unharmed."""
        view = memoryview(data)
        await trio.lowlevel.checkpoint()
        while view:
            await self._sendable()
            size = min(len(view), self._send_window, yamux.MAX_PAYLOAD_BYTES)
            self._send_window -= size
            self._wire.put(yamux.encode(yamux.DATA, 0, self.stream_id, size) + view[:size])
            view = view[size:]

    async def _sendable(self) -> None:
        while True:
            if self.broken is not None:
                raise MuxedStreamReset(self.broken)
            if self.fin_sent:
                raise MuxedStreamClosed("this side was ended")
            if self._send_window <= 0:
                await self._writable.park()
            elif not self._wire.has_room():
                await self._wire.room()
            else:
                return

    def end(self) -> None:
        """End our side; reading goes on. Doing it twice, or on a broken stream, is fine."""
        if self.fin_sent or self.broken is not None:
            return
        self.fin_sent = True
        self._wire.put(yamux.encode(yamux.WINDOW_UPDATE, yamux.FIN, self.stream_id, 0))
        self._writable.unpark_all()
        if self.fin_received:
            self._wire.finished(self)

    def abort(self, why: str) -> None:
        """Reset both directions at once. Never waits, never raises; fine on a stream that is over."""
        if self.broken is None and not (self.fin_sent and self.fin_received):
            self._wire.put(yamux.encode(yamux.WINDOW_UPDATE, yamux.RST, self.stream_id, 0))
            self.on_lost(why, drop=True)

    async def close(self) -> None:
        """end(), for libp2p."""
        self.end()
        await trio.lowlevel.checkpoint()

    async def reset(self) -> None:
        """abort(), for libp2p."""
        self.abort("reset by this side")
        await trio.lowlevel.checkpoint()

    def _give_credit(self, size: int) -> None:
        self._consumed += size
        if self._consumed * 2 < self._window_target or self.fin_received or self.broken is not None:
            return
        now = trio.current_time()
        grant = self._consumed
        # The peer used half a window within four round trips: the window is what holds it back.
        if now - self._last_grant_s < 4 * max(self._wire.rtt_s(), 0.001):
            wider = self._window_target
            if self._window_target + wider <= self._max_window_bytes and self._wire.grow(wider):
                self.pool_taken_bytes += wider
                self._window_target += wider
                grant += wider
        self._last_grant_s = now
        self._consumed = 0
        self._credit += grant
        self._wire.put(yamux.encode(yamux.WINDOW_UPDATE, 0, self.stream_id, grant))

    def set_deadline(self, ttl: int) -> bool:
        """Not supported: deadlines are trio cancel scopes."""
        raise NotImplementedError("use a cancel scope")

    def get_remote_address(self) -> tuple[str, int] | None:
        """The peer's host and port, where the transport knows them."""
        address: Callable[[], tuple[str, int] | None] | None = getattr(self.muxed_conn, "get_remote_address", None)
        return address() if address is not None else None

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, exc_type: type[BaseException] | None, exc: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()
