"""One search question to one peer, /kith/query/1: both machines.

    asking      IDLE --Ask--> WAITING --Answer--+--> WAITING
                                 |   QueryEnd, QueryRefused, closed, lost, 10 s gone
                                 +-------------------------------------------------------> OVER
    answering   LISTENING --Query--> DECIDING --Give--+--> DECIDING
                                         |   Settle, Refuse, closed, lost
                                         +------------------------------------------------> OVER
    Any frame that breaks the rules raises and leads to OVER.

Only a QueryEnd whose count fits makes an answer complete; passages that came before a break are told as partial.
Must not know the index, ranking or grants.
"""

import enum
from dataclasses import dataclass
from typing import Literal, TypeAlias

import msgspec

from protocol import limits
from protocol.errors import LocalProtocolError, OutOfOrder
from protocol.frames.query import Answer, Passage, Query, QueryEnd, QueryFrame, QueryRefusalCode, QueryRefused
from protocol.machine import ChannelBroken, FinishSending, PeerFinished, Received, ResetChannel, Send, Tick

__all__ = [
    "Answer", "AnswererMachine", "Ask", "AskerMachine", "Decide", "Give", "Passage", "Query", "QueryEnd", "QueryFrame",
    "QueryOver",
    "QueryRefusalCode", "QueryRefused", "QueryState", "Refuse", "Settle",
]

OverReason = Literal["complete", "refused", "late", "closed", "lost"]


class QueryState(enum.Enum):
    """See the drawing above; WAITING is the asker's, LISTENING and DECIDING are the answerer's."""

    IDLE = enum.auto()
    WAITING = enum.auto()
    LISTENING = enum.auto()
    DECIDING = enum.auto()
    OVER = enum.auto()


@dataclass(frozen=True, slots=True)
class Ask:
    """Event, asker: the stream is open; send the question."""


@dataclass(frozen=True, slots=True)
class Give:
    """Event, answerer: these passages are cleared for the peer."""

    passages: tuple[Passage, ...]


@dataclass(frozen=True, slots=True)
class Settle:
    """Event, answerer: that was all."""


@dataclass(frozen=True, slots=True)
class Refuse:
    """Event, answerer: the question is not answered."""

    code: QueryRefusalCode


@dataclass(frozen=True, slots=True)
class Decide:
    """Command, answerer: check the grant and search."""

    query: Query


@dataclass(frozen=True, slots=True)
class QueryOver:
    """Command, asker: the outcome; complete only after a verified QueryEnd. The last one."""

    reason: OverReason
    passages: tuple[Passage, ...]
    code: QueryRefusalCode | None = None


AskerCommands: TypeAlias = tuple[Send | FinishSending | ResetChannel | QueryOver, ...]
AnswererCommands: TypeAlias = tuple[Send | FinishSending | Decide, ...]

_S = QueryState


class AskerMachine:
    """Asks once. Events: Ask, Received, PeerFinished, ChannelBroken, Tick."""

    def __init__(self, query: Query) -> None:
        self.state = _S.IDLE
        self._query = query
        self._passages: list[Passage] = []
        self._asked_s = 0.0

    @property
    def due_s(self) -> float | None:
        """When the question is given up."""
        return self._asked_s + limits.QUERY_TIMEOUT_S if self.state is _S.WAITING else None

    def handle(self, event: object, now_s: float) -> AskerCommands:
        """The commands that follow from one event. Raises OutOfOrder for a frame that breaks the rules."""
        if isinstance(event, Ask) and self.state is _S.IDLE:
            self.state, self._asked_s = _S.WAITING, now_s
            return (Send(self._query),)
        if self.state is _S.IDLE or isinstance(event, Ask):
            raise LocalProtocolError(f"{type(event).__name__} in state {self.state.name}")
        if self.state is _S.OVER:
            return ()
        match event:
            case Received(frame):
                return self._receive(frame)
            case PeerFinished():
                return (ResetChannel(), self._over("closed"))
            case ChannelBroken():
                return (self._over("lost"),)
            case Tick():
                is_late = now_s >= self._asked_s + limits.QUERY_TIMEOUT_S
                return (ResetChannel(), self._over("late")) if is_late else ()
        raise LocalProtocolError(f"{type(event).__name__} is no event of this machine")

    def _receive(self, frame: msgspec.Struct) -> AskerCommands:
        match frame:
            case Answer(query_id, passages) if query_id == self._query.query_id:
                if len(self._passages) + len(passages) <= self._query.k:
                    self._passages.extend(passages)
                    return ()
            case QueryEnd(query_id, count) if query_id == self._query.query_id:
                if count == len(self._passages):
                    return (FinishSending(), self._over("complete"))
            case QueryRefused(query_id, code) if query_id == self._query.query_id:
                if not self._passages:
                    return (FinishSending(), self._over("refused", code))
        self.state = _S.OVER
        raise OutOfOrder(f"{type(frame).__name__} does not belong here")

    def _over(self, reason: OverReason, code: QueryRefusalCode | None = None) -> QueryOver:
        self.state = _S.OVER
        return QueryOver(reason, tuple(self._passages), code)


class AnswererMachine:
    """Answers one question. Events: Give, Settle, Refuse, Received, PeerFinished, ChannelBroken, Tick."""

    def __init__(self) -> None:
        self.state = _S.LISTENING
        self._query: Query | None = None
        self._given = 0

    @property
    def due_s(self) -> float | None:
        """Time changes nothing here; the driver bounds the search."""
        return None

    def handle(self, event: object, now_s: float) -> AnswererCommands:
        """The commands that follow from one event; now_s is not used. Raises OutOfOrder for a frame that breaks the
        rules.
        """
        match event:
            case Received(Query() as query) if self.state is _S.LISTENING:
                self.state, self._query = _S.DECIDING, query
                return (Decide(query),)
            case Received(frame):
                self.state = _S.OVER
                raise OutOfOrder(f"{type(frame).__name__} does not belong here")
            case PeerFinished() if self._query is not None:
                return ()  # the asker may end its side behind the question
            case PeerFinished() | ChannelBroken():
                self.state = _S.OVER
                return ()
            case Tick():
                return ()
            case Give() | Settle() | Refuse() if self._query is not None:
                return self._work(event, self._query) if self.state is _S.DECIDING else ()
        raise LocalProtocolError(f"{type(event).__name__} in state {self.state.name}")

    def _work(self, event: Give | Settle | Refuse, query: Query) -> AnswererCommands:
        match event:
            case Give(passages):
                self._given += len(passages)
                if self._given > query.k:
                    raise LocalProtocolError(f"{self._given} passages where {query.k} were asked for")
                return (Send(Answer(query.query_id, passages)),) if passages else ()
            case Refuse(code):
                if self._given:
                    raise LocalProtocolError("a question that is being answered cannot be refused")
                self.state = _S.OVER
                return (Send(QueryRefused(query.query_id, code)), FinishSending())
        self.state = _S.OVER
        return (Send(QueryEnd(query.query_id, self._given)), FinishSending())
