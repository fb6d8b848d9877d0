"""The multiplexer of one connection: Yamux that enforces its windows and limits. Must not know peers' rights or
protocols.

One task reads, one writes. Streams hand over whole frames without waiting, so a cancelled reader or writer can never
leave half a frame on the connection, and a peer that never reads cannot block the reading task. A peer that breaks a
rule (more data than its window, wrong ids, floods) gets GO_AWAY and loses the connection, before any of it is buffered.
"""

import logging
from collections import deque
from collections.abc import Awaitable, Callable

import trio
from libp2p.abc import ConnectionType, IMuxedConn, IMuxedStream, ISecureConn
from libp2p.peer.id import ID
from libp2p.stream_muxer.exceptions import MuxedConnUnavailable
from multiaddr import Multiaddr

from node.net import yamux
from node.net.errors import MuxViolation, reason_of
from node.net.limits import MuxLimits
from node.net.muxstream import MuxStream

__all__ = ["Muxer"]

_log = logging.getLogger(__name__)
_NOISE_PLAINTEXT_BYTES = 65535 - 16
_MAX_STREAM_CREDIT = 1 << 31


class Muxer(IMuxedConn):  # type: ignore[misc]  # libp2p is untyped to mypy
    """A libp2p muxed connection. start() runs it and returns when it is over; it never raises but for cancellation."""

    def __init__(
        self, secured: ISecureConn, peer_id: ID, *, is_initiator: bool, limits: MuxLimits | None = None
    ) -> None:
        self.peer_id = peer_id
        self.secured_conn = secured
        self.limits = limits or MuxLimits()
        self.event_started = trio.Event()
        self.event_closed = trio.Event()
        self.end_reason: str | None = None
        self._is_initiator = is_initiator
        self._streams: dict[int, MuxStream] = {}
        self._next_id = 1 if is_initiator else 2
        self._peer_parity = 0 if is_initiator else 1
        self._inbound_open = 0
        self._pool_bytes = self.limits.growth_pool_bytes
        self._accept_send, self._accept_receive = trio.open_memory_channel[MuxStream](self.limits.max_inbound_streams)
        self._outbox: deque[bytes] = deque()
        self._outbox_bytes = 0
        self._work = trio.Event()
        self._room = trio.lowlevel.ParkingLot()
        self._flushed = trio.lowlevel.ParkingLot()
        self._body_to: MuxStream | None = None
        self._fin_after_body = False
        self._control_since_s = 0.0
        self._control_frames = 0
        self._scope: trio.CancelScope | None = None
        self._ping_value = 0
        self._ping_sent_s = 0.0
        self._pong: trio.Event | None = None
        self._rtt_s = 0.0
        self._heard_s = 0.0

    # -- the life of the connection --

    async def start(self) -> None:
        """Read and write until either side ends the connection; then break every stream and close the socket."""
        try:
            async with trio.open_nursery() as nursery:
                self._scope = nursery.cancel_scope
                for part in (self._read_frames, self._write_frames, self._measure_rtt):
                    nursery.start_soon(self._run_part, part)
                self.event_started.set()
        finally:
            self._finish("the connection was closed here")
            with trio.CancelScope(shield=True, deadline=trio.current_time() + 1):
                await self._close_socket()
            self.event_closed.set()

    async def _run_part(self, part: Callable[[], Awaitable[str]]) -> None:
        # Each part keeps its own errors: in the nursery, an error and a cancellation at the same moment would make a
        # group that is no Exception, pass every handler above and end the whole host.
        try:
            reason = await part()
        except Exception as error:  # whatever a peer makes a library raise ends this connection and nothing else
            reason = reason_of(error)
        self._end(reason)

    def _end(self, reason: str) -> None:
        self._finish(reason)
        if self._scope is not None:
            self._scope.cancel()

    async def close(self) -> None:
        """Say goodbye (at most 0.5 s), break every stream, close the socket. Doing it twice is fine."""
        with trio.CancelScope(shield=True):
            if self.end_reason is None and self.event_started.is_set():
                self.put(yamux.encode(yamux.GO_AWAY, 0, 0, yamux.GO_AWAY_NORMAL))
                with trio.move_on_after(0.5):
                    while self._outbox_bytes and self.end_reason is None:
                        await self._flushed.park()
            self._end("the connection was closed here")
            with trio.move_on_after(1):
                await self._close_socket()
            self.event_closed.set()

    def _finish(self, reason: str) -> None:
        if self.end_reason is not None:
            return
        self.end_reason = reason
        self._accept_send.close()
        for stream in list(self._streams.values()):
            stream.on_lost(reason, drop=False)
        self._outbox.clear()
        self._outbox_bytes = 0
        self._room.unpark_all()
        self._flushed.unpark_all()
        if self._pong is not None:
            self._pong.set()

    async def _close_socket(self) -> None:
        try:
            await self.secured_conn.close()
        except Exception as error:
            _log.debug("closing the socket of %s: %s", self.peer_id, reason_of(error))

    @property
    def is_initiator(self) -> bool:
        """Whether this side dialled."""
        return self._is_initiator

    @property
    def is_closed(self) -> bool:
        """Whether the connection is over."""
        return self.end_reason is not None

    @property
    def is_established(self) -> bool:
        """Whether streams can be opened."""
        return self.event_started.is_set() and self.end_reason is None

    def get_transport_addresses(self) -> list[Multiaddr]:
        """The peer's real address."""
        return list(self.secured_conn.get_transport_addresses())

    def get_connection_type(self) -> ConnectionType:
        """Direct or relayed."""
        return self.secured_conn.get_connection_type()

    def get_remote_address(self) -> tuple[str, int] | None:
        """The peer's host and port."""
        address: tuple[str, int] | None = self.secured_conn.get_remote_address()
        return address

    # -- streams --

    async def open_stream(self) -> IMuxedStream:
        """A new stream, open at once. Raises MuxedConnUnavailable when the connection is over."""
        await trio.lowlevel.checkpoint()
        if self.end_reason is not None:
            raise MuxedConnUnavailable(self.end_reason)
        stream = self._new_stream(self._next_id)
        self._next_id += 2
        self.put(yamux.encode(yamux.WINDOW_UPDATE, yamux.SYN, stream.stream_id, 0))
        return stream

    async def accept_stream(self) -> IMuxedStream:
        """The next stream that the peer opened. Raises MuxedConnUnavailable when the connection is over."""
        try:
            return await self._accept_receive.receive()
        except trio.EndOfChannel:
            raise MuxedConnUnavailable(self.end_reason or "closed") from None

    @property
    def open_streams(self) -> int:
        """Streams in either direction that are not over."""
        return len(self._streams)

    def _new_stream(self, stream_id: int) -> MuxStream:
        stream = MuxStream(self, stream_id, muxed_conn=self, max_window_bytes=self.limits.max_window_bytes)
        self._streams[stream_id] = stream
        return stream

    def finished(self, stream: MuxStream) -> None:
        """Forget a stream that is over and take back the pool it used."""
        if self._streams.pop(stream.stream_id, None) is not None:
            self._pool_bytes += stream.pool_taken_bytes
            if stream.stream_id % 2 == self._peer_parity:
                self._inbound_open -= 1

    def grow(self, size_bytes: int) -> bool:
        """Take size_bytes of the pool for a wider window; False when there is not enough."""
        if self._pool_bytes < size_bytes:
            return False
        self._pool_bytes -= size_bytes
        return True

    def rtt_s(self) -> float:
        """The last measured round trip, 0 while unknown."""
        return self._rtt_s

    # -- outgoing --

    def put(self, frame: bytes) -> None:
        """Queue a whole frame. Never waits; a queue that the peer lets grow without end closes the connection."""
        if self.end_reason is not None:
            return
        self._outbox.append(frame)
        self._outbox_bytes += len(frame)
        self._work.set()
        if len(self._outbox) > self.limits.max_queued_frames:
            self._end("the peer makes us answer and reads nothing")

    def has_room(self) -> bool:
        """Whether data may be queued now."""
        if self.end_reason is not None:
            return True
        return self._outbox_bytes < self.limits.outbox_bytes and len(self._outbox) * 2 < self.limits.max_queued_frames

    async def room(self) -> None:
        """Return once has_room() may be true again."""
        await self._room.park()

    async def _write_frames(self) -> str:
        while True:
            while not self._outbox:
                self._work = trio.Event()
                await self._work.wait()
            batch = [self._outbox.popleft()]
            size = len(batch[0])
            # small frames that wait together share one Noise message and one system call
            while self._outbox and size + len(self._outbox[0]) <= _NOISE_PLAINTEXT_BYTES:
                size += len(self._outbox[0])
                batch.append(self._outbox.popleft())
            with trio.move_on_after(self.limits.write_stall_s) as stall:
                await self.secured_conn.write(b"".join(batch))
            if stall.cancelled_caught:  # half a message may be out: the connection is of no use any more
                raise MuxViolation("the peer takes no data")
            self._outbox_bytes = max(0, self._outbox_bytes - size)
            self._flushed.unpark_all()
            if self.has_room():
                self._room.unpark_all()
            # a write into a roomy socket does not yield: let the reader have its turn
            await trio.lowlevel.checkpoint()

    async def _measure_rtt(self) -> str:
        while True:
            self._ping_value = (self._ping_value + 1) & 0xFFFFFFFF
            self._pong = trio.Event()
            self._ping_sent_s = trio.current_time()
            self.put(yamux.encode(yamux.PING, yamux.SYN, 0, self._ping_value))
            with trio.move_on_after(self.limits.ping_every_s) as answer:
                await self._pong.wait()
            if answer.cancelled_caught and self._heard_s <= self._ping_sent_s:
                return "the peer stopped answering"
            await trio.sleep(self.limits.ping_every_s)

    # -- incoming --

    async def _read_frames(self) -> str:
        parser = yamux.FrameParser()
        try:
            while True:
                data = await self.secured_conn.read(None)
                if not data:
                    return "the peer closed the connection"
                self._heard_s = trio.current_time()
                parser.feed(data)
                while (event := parser.next()) is not None:
                    if isinstance(event, bytes):
                        self._on_body(event, last=parser.body_left == 0)
                    elif (end := self._on_header(event)) is not None:
                        return end
        except MuxViolation as violation:
            _log.warning("closing the connection to %s: %s", self.peer_id, violation)
            await self._say_violation()
            return str(violation)

    async def _say_violation(self) -> None:
        self._outbox.clear()
        self._outbox_bytes = 0
        self.put(yamux.encode(yamux.GO_AWAY, 0, 0, yamux.GO_AWAY_PROTOCOL_ERROR))
        with trio.move_on_after(0.5):
            while self._outbox_bytes:
                await self._flushed.park()

    def _on_header(self, header: yamux.Header) -> str | None:
        """Take one frame; returns why the connection ends, when it does."""
        kind, flags, stream_id, length = header.kind, header.flags, header.stream_id, header.length
        if kind == yamux.GO_AWAY:
            return f"the peer went away (code {length})"
        if kind == yamux.PING:
            self._count_control()
            self._on_ping(flags, length)
            return None
        if stream_id == 0:
            raise MuxViolation("a stream frame for stream 0")
        stream = self._streams.get(stream_id)
        if flags & yamux.SYN:
            self._count_control()
            stream = self._on_syn(stream_id)
        elif stream is None or (length == 0 and flags in (0, yamux.ACK)):
            self._count_control()
        if kind == yamux.DATA:
            self._check_window(stream, stream_id, length)
            self._body_to = stream
        elif length and stream is not None:
            if length > _MAX_STREAM_CREDIT:
                raise MuxViolation("a credit beyond any window")
            stream.on_credit(length)
        if stream is not None:
            self._on_end(stream, flags, length if kind == yamux.DATA else 0)
        return None

    def _check_window(self, stream: MuxStream | None, stream_id: int, length: int) -> None:
        # before a byte of the body is taken; a stream that is gone (we reset it) drops its body, piece by piece
        window = stream.credit if stream is not None else self.limits.max_window_bytes
        if length > window:
            raise MuxViolation(f"{length} bytes on stream {stream_id}, over its window of {window}")

    def _on_end(self, stream: MuxStream, flags: int, body_bytes: int) -> None:
        if flags & yamux.RST:
            stream.on_lost("the peer reset the stream", drop=False)  # what came before it may still be read
            self._body_to = None
        elif flags & yamux.FIN and body_bytes:
            self._fin_after_body = True
        elif flags & yamux.FIN:
            stream.on_fin()

    def _on_body(self, piece: bytes, *, last: bool) -> None:
        stream, fin = self._body_to, self._fin_after_body
        if stream is not None:
            stream.on_body(piece)
        if last:
            self._body_to, self._fin_after_body = None, False
            if stream is not None and fin:
                stream.on_fin()

    def _on_syn(self, stream_id: int) -> MuxStream | None:
        if stream_id % 2 != self._peer_parity:
            raise MuxViolation(f"the peer opened stream {stream_id}, a number of ours")
        if stream_id in self._streams:
            raise MuxViolation(f"stream {stream_id} was opened twice")
        if self._inbound_open >= self.limits.max_inbound_streams:
            self.put(yamux.encode(yamux.WINDOW_UPDATE, yamux.RST, stream_id, 0))
            return None
        stream = self._new_stream(stream_id)
        self._inbound_open += 1
        try:
            self._accept_send.send_nowait(stream)
        except trio.WouldBlock:
            stream.abort("too many streams are waiting")
            return None
        self.put(yamux.encode(yamux.WINDOW_UPDATE, yamux.ACK, stream_id, 0))
        return stream

    def _on_ping(self, flags: int, value: int) -> None:
        if flags & yamux.SYN:
            self.put(yamux.encode(yamux.PING, yamux.ACK, 0, value))
        elif flags & yamux.ACK and self._pong is not None and value == self._ping_value and not self._pong.is_set():
            rtt = trio.current_time() - self._ping_sent_s
            self._rtt_s = (self._rtt_s + rtt) / 2 if self._rtt_s else rtt
            self._pong.set()

    def _count_control(self) -> None:
        now = trio.current_time()
        if now - self._control_since_s > self.limits.control_period_s:
            self._control_since_s, self._control_frames = now, 0
        self._control_frames += 1
        if self._control_frames > self.limits.max_control_frames:
            raise MuxViolation("a flood of frames without payload")
