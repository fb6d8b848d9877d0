"""A framed channel to one peer that lets nothing pass unaccounted: the only caller of a stream's write.

Control frames (a closed list of fixed shapes) are counted. Answer frames pass once the peer asked for that request here
and its ledger entry stands; chunks of a model file must also be what stands in that file. Content frames pass with a
clearance that covers every free text in them, and after the final bytes were decoded again and looked at. Must not know
how a clearance came to be, nor any machine.
"""

import logging
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, Protocol

import msgspec
import trio

from node.privacy.accounting import AnswerAccount, AnswerAccounts
from node.privacy.arrivals import Arrivals, NoteArrival
from node.privacy.blobs import BlobCheck, BlobFiles
from node.privacy.clearance import EgressClearance
from node.privacy.errors import GuardFailed, LedgerFailed, NotCleared
from node.privacy.policy import Purpose
from node.privacy.traffic import CONTROL_KIND, Traffic
from protocol import canonical, names
from protocol.channel import Clearance
from protocol.content import content_texts
from protocol.errors import ChannelClosed, ChannelLost, DeadlinePassed, LocalProtocolError, RemoteProtocolError
from protocol.frames.inference import (
    Accepted,
    End,
    ErrorFrame,
    InferRequest,
    PromptTokens,
    Refused,
    TokenFrame,
)
from protocol.frames.mail import Mail
from protocol.frames.model import ModelChunk, ModelEnd, ModelRefused, ModelRequest
from protocol.frames.query import Answer, Query
from protocol.framing import FrameDecoder, encode_frame

__all__ = ["ByteStream", "GuardedChannel"]

_log = logging.getLogger(__name__)
_READ_BYTES = 64 * 1024
_ASKED_LIMIT = 64           # requests of one stream that are remembered; the protocol allows one
_CHECK_DEADLINE_S = 30.0
_CLOSE_DEADLINE_S = 5.0

_PURPOSES: dict[type[msgspec.Struct], Purpose] = {
    InferRequest: Purpose.INFER, Query: Purpose.QUERY, Mail: Purpose.MAIL, Answer: Purpose.ANSWER,
}
_ENDS: dict[type[msgspec.Struct], str] = {
    End: "end", Refused: "refused", ErrorFrame: "failed", ModelEnd: "end", ModelRefused: "refused",
}

Check = Callable[[EgressClearance, str, Sequence[str]], Awaitable[None]]
Observer = Callable[[str, str, bytes], None]


class ByteStream(Protocol):
    """What the channel needs of a stream (node.net's PeerStream is one)."""

    @property
    def peer_id(self) -> str:
        """The proven peer."""
        ...

    @property
    def protocol(self) -> str:
        """The agreed protocol id."""
        ...

    async def write(self, data: bytes) -> None:
        """Hand over all of data."""
        ...

    async def read(self, max_bytes: int, *, deadline_s: float) -> bytes:
        """At least one byte."""
        ...

    async def close_write(self) -> None:
        """End our side."""
        ...

    async def reset(self) -> None:
        """Drop both directions."""
        ...


class GuardedChannel:
    """Implements protocol.channel.FrameChannel."""

    def __init__(
        self, stream: ByteStream, *, check: Check, accounts: AnswerAccounts, traffic: Traffic,
        observer: Observer | None, blobs: BlobFiles | None = None, note: NoteArrival | None = None,
        breach: Callable[[str, str, str], None] = lambda peer_id, protocol, code: None,
    ) -> None:
        """blobs: the files whose bytes may pass uncleared to a peer that asked for them; None: none may.

        note: told of each piece that came whole. breach: told of what is no frame of this protocol.
        """
        self._breach = breach
        self._blobs = BlobCheck(blobs)
        self._stream = stream
        self._check = check
        self._accounts = accounts
        self._traffic = traffic
        self._observer = observer
        self._frames = names.FRAMES[stream.protocol]
        self._decoder = FrameDecoder(names.FRAME_LIMITS[stream.protocol])
        self._turn = trio.Lock()
        self._opening = trio.Lock()
        self._asked: set[bytes] = set()
        self._answers: dict[bytes, AnswerAccount] = {}
        self._requests: dict[bytes, EgressClearance] = {}
        self._arrivals = Arrivals(stream.peer_id, self._requests, note)

    @property
    def peer_id(self) -> str:
        """The authenticated peer at the other end."""
        return self._stream.peer_id

    @property
    def protocol(self) -> str:
        """The protocol id."""
        return self._stream.protocol

    # -- sending ------------------------------------------------------------------------------------------------------

    async def send(self, frame: msgspec.Struct) -> None:
        """Send a control frame, or an answer frame for a request that this peer made on this channel.

        Raises NotCleared for anything else and LedgerFailed when the answer could not be accounted; nothing is sent.
        """
        kind = type(frame)
        data = self._encode(frame)
        if kind in names.ACCOUNTED:
            account = await self._account(frame)
            await self._write(data, Purpose.ANSWER, account)
        elif isinstance(frame, ModelChunk):
            await self._blobs.check(frame.request_id, frame.offset, frame.data)
            await self._write(data, Purpose.MODEL, await self._account(frame))
        elif kind in names.CONTROL and not content_texts(frame):
            if kind is Accepted:    # the entry is written while the prompt is read, so that no token waits for it
                await self._account(frame)
            await self._write(data, CONTROL_KIND, self._answers.get(_id_of(frame)) if kind in _ENDS else None)
            if kind in _ENDS:
                await self._close_answer(_id_of(frame), _ENDS[kind])
        else:
            raise NotCleared(f"{kind.__name__} without a clearance")

    async def send_cleared(self, frame: msgspec.Struct, clearance: Clearance) -> None:
        """Send a content frame whose every free text stands in the clearance. Raises EgressDenied; nothing is sent."""
        if not isinstance(clearance, EgressClearance):
            raise NotCleared("a clearance that the guard did not make")
        self._check_covered(frame, clearance)
        data = self._encode(frame)
        strings = [text for text in _strings(data) if text]
        if clearance.has_heard(_text_so_far(frame), ()):
            strings = [text for text in strings if text != _text_so_far(frame)]
        with trio.move_on_after(_CHECK_DEADLINE_S) as deadline:
            await self._check(clearance, self.peer_id, strings)
        if deadline.cancelled_caught:
            raise GuardFailed("the last look at the bytes took too long")
        self._requests[_id_of(frame)] = clearance
        if isinstance(frame, InferRequest):
            clearance.resume_from(frame.text_so_far, frame.token_ids_so_far)
        await self._write(data, clearance.purpose, clearance)

    # -- receiving ----------------------------------------------------------------------------------------------------

    async def receive(self, *, deadline_s: float) -> msgspec.Struct:
        """The next frame, decoded and validated, within deadline_s seconds. See FrameChannel for what it raises."""
        try:
            with trio.fail_after(deadline_s):
                payload = await self._next_payload(deadline_s)
        except trio.TooSlowError:
            raise DeadlinePassed(f"no frame within {deadline_s:g} s") from None
        except RemoteProtocolError as error:
            await self._break_off(error)
            raise
        try:
            frame: msgspec.Struct = canonical.decode(payload, self._frames)
        except RemoteProtocolError as error:
            await self._break_off(error)
            raise
        self._remember(frame)
        self._arrivals.take(frame, payload)
        return frame

    async def _break_off(self, error: RemoteProtocolError) -> None:
        self._breach(self.peer_id, self.protocol, error.code)
        await self.reset()

    async def finish(self) -> None:
        """End our sending side cleanly; receiving goes on."""
        await self._stream.close_write()
        await self._close_answers("broken")

    async def reset(self) -> None:
        """Drop the channel at once in both directions. Never raises."""
        await self._stream.reset()
        await self._close_answers("broken")

    # -- steps --------------------------------------------------------------------------------------------------------

    def _encode(self, frame: msgspec.Struct) -> bytes:
        if not isinstance(frame, self._frames):
            raise LocalProtocolError(f"{type(frame).__name__} is no frame of {self.protocol}")
        return encode_frame(canonical.encode(frame))

    async def _write(self, data: bytes, kind: str, account: "AnswerAccount | EgressClearance | None") -> None:
        async with self._turn:
            # counted before it is handed over: the ledger may say a frame too much after a crash, never one too few
            if account is not None:
                account.count(data)
            self._traffic.add(self.peer_id, kind, len(data))
            if self._observer is not None:
                self._observer(self.peer_id, self.protocol, data)
            await self._stream.write(data)

    async def _account(self, frame: msgspec.Struct) -> AnswerAccount:
        request_id = _id_of(frame)
        if request_id not in self._asked:
            raise NotCleared(f"{type(frame).__name__} for a request that this peer did not make here")
        async with self._opening:
            account = self._answers.get(request_id)
            if account is None:
                try:
                    purpose = Purpose.MODEL if isinstance(frame, ModelChunk) else Purpose.ANSWER
                    account = await self._accounts.open(self.peer_id, request_id.hex(), purpose)
                except Exception as error:
                    raise LedgerFailed(type(error).__name__) from error
                self._answers[request_id] = account
            return account

    async def _close_answer(self, request_id: bytes, outcome: str) -> None:
        account = self._answers.pop(request_id, None)
        if account is not None:
            try:
                await account.close(outcome)
            except Exception as error:  # the answer is out; an entry without its end is closed at the next start
                _log.warning("a ledger entry could not be closed: %s", type(error).__name__)

    async def _close_answers(self, outcome: str) -> None:
        self._blobs.close()
        with trio.CancelScope(shield=True), trio.move_on_after(_CLOSE_DEADLINE_S):
            for request_id in list(self._answers):
                await self._close_answer(request_id, outcome)

    def _check_covered(self, frame: msgspec.Struct, clearance: EgressClearance) -> None:
        kind = type(frame)
        if kind not in names.CONTENT or _PURPOSES.get(kind) is not clearance.purpose:
            raise NotCleared(f"{kind.__name__} with a clearance for {clearance.purpose}")
        if _id_of(frame).hex() != clearance.request_id:
            raise NotCleared(f"{kind.__name__} of another request")
        heard = _text_so_far(frame)
        ids = frame.token_ids_so_far if isinstance(frame, InferRequest) else ()
        if isinstance(frame, InferRequest) and isinstance(frame.prompt, PromptTokens):
            raise NotCleared("a prompt as token ids, which no text check can read")
        if ids and not clearance.vouches_for(heard, ids):
            raise NotCleared("token ids of which nobody knows that they are this text")
        covered = set(clearance.texts)
        missing = [text for text in content_texts(frame) if text not in covered]
        if heard and missing == [heard] and clearance.has_heard(heard, ids):
            missing = []
        if missing:
            raise NotCleared(f"{len(missing)} texts of {kind.__name__} stand in no clearance")

    async def _next_payload(self, deadline_s: float) -> bytes:
        while (payload := self._decoder.next_frame()) is None:
            try:
                data = await self._stream.read(_READ_BYTES, deadline_s=deadline_s)
            except ChannelClosed:
                if self._decoder.pending_bytes:
                    raise ChannelLost("The peer ended in the middle of a frame.") from None
                raise
            self._decoder.receive_data(data)
        return payload

    def _remember(self, frame: msgspec.Struct) -> None:
        if isinstance(frame, InferRequest):
            if len(self._asked) < _ASKED_LIMIT:
                self._asked.add(frame.request_id)
        elif isinstance(frame, ModelRequest):
            if len(self._asked) < _ASKED_LIMIT:
                self._asked.add(frame.request_id)
                self._blobs.asked(frame.request_id, frame.model_digest)
        elif isinstance(frame, TokenFrame):
            clearance = self._requests.get(frame.request_id)
            if clearance is not None:
                clearance.hear(frame.text, frame.token_ids)


def _id_of(frame: msgspec.Struct) -> bytes:
    """The id that ties a frame to its request."""
    field = {Query: "query_id", Answer: "query_id", Mail: "message_id"}.get(type(frame), "request_id")
    request_id: bytes = getattr(frame, field)
    return request_id


def _text_so_far(frame: msgspec.Struct) -> str:
    return frame.text_so_far if isinstance(frame, InferRequest) else ""


def _strings(data: bytes) -> list[str]:
    """Every string in the payload, decoded from the final bytes without any type: what the peer will read."""
    found: list[str] = []
    waiting: list[Any] = [msgspec.msgpack.decode(data[4:])]
    while waiting:
        value = waiting.pop()
        if isinstance(value, str):
            found.append(value)
        elif isinstance(value, list):
            waiting.extend(reversed(value))
        elif isinstance(value, dict):
            waiting.extend((*reversed(value.values()), *reversed(value)))
    return found
