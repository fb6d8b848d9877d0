"""One answer while it is written, whoever writes: the request in the form it left, every piece, who wrote which.

What it holds is enough to go on anywhere, also after the node was killed: encoded for the database by kept(), read back
by taken_up(). Must not know peers' streams, engines, or how the owner is shown anything.
"""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field, replace

import msgspec
import trio

from node.agent.job_record import decode_job, encode_job
from node.agent.ports import Leg, ThinkJob
from node.privacy.carrying import HERE, Carried
from node.privacy.rehydrate import StreamRehydrator
from node.store.answers import KeptAnswer, KeptPiece

__all__ = ["UnderWay"]


@dataclass(slots=True)
class UnderWay:
    """Written so far: text and thought in the form the models see; shown: the same as the owner reads it."""

    job: ThinkJob
    carried: Carried | None = None
    """The request as a peer got it, or may get it; None while a model here reads the owner's own words."""
    text: str = ""
    thought: str = ""
    ids_of: str = ""
    """The digest of the model that writes, and that token_ids belong to."""
    tokens: int = 0
    pieces: int = 0
    shown: str = ""
    legs: list[Leg] = field(default_factory=list)
    calls: int = 0
    exact: bool = False
    """Still byte for byte what one undisturbed machine would have written."""
    ended_as: str = ""
    """The finish reason, once the answer is whole."""
    over: bool = False
    grew: trio.Event = field(default_factory=trio.Event)
    """Set, and replaced, when shown grew or the answer is over."""
    _starts: list[int] = field(default_factory=list)
    _ids: list[int] = field(default_factory=list)
    _ids_known: bool = True
    _rehydrator: StreamRehydrator | None = None

    @property
    def has_begun(self) -> bool:
        """Whether anything was written: from here on it must be gone on with, not begun anew."""
        return bool(self.text or self.thought or self.tokens)

    @property
    def tokens_left(self) -> int:
        """At most this many more; at least one, for only a model can end an answer."""
        return max(1, self.job.max_tokens - self.tokens)

    @property
    def token_ids(self) -> tuple[int, ...]:
        """Of exactly text and thought; empty when not all of them are known."""
        return tuple(self._ids) if self._ids_known else ()

    def ids_for(self, digest: str) -> tuple[int, ...]:
        """The ids that this model could go on from; empty when it has to read the text."""
        return self.token_ids if digest == self.ids_of else ()

    def stays_exact(self, digest: str) -> bool:
        """Whether this model can write on in the exact lane: it begins, or goes on from its own ids."""
        return self.exact and bool(self.ids_for(digest)) if self.has_begun else self.job.exact

    def begin_leg(self, leg: Leg, *, carried: Carried | None) -> None:
        """Somebody else writes from here on. carried: the form in which the request goes there, None for as it is.

        Once something was written the form stays: the answer speaks of its placeholders.
        """
        last = self.legs[-1] if self.legs else None
        if leg.peer_id is None and last is not None and not last.ended and last.peer_id is None:
            return      # it was to be handed over, and goes on here after all
        if not self.has_begun:
            self.carried, self._rehydrator = carried, None
        elif carried is not None and self.carried is not None:
            self.carried = msgspec.structs.replace(self.carried, approved=carried.approved)
        self.legs.append(leg)
        self._starts.append(self.pieces)

    def drop_leg(self) -> None:
        """The newest one wrote nothing after all."""
        self.legs.pop()
        self._starts.pop()
        if not self.has_begun:
            self.carried = None

    def end_leg(self, why: str) -> None:
        """The one who wrote has stopped before the end."""
        if self.legs and not self.legs[-1].ended:
            self.legs[-1] = replace(self.legs[-1], ended=why)

    def add(self, piece: KeptPiece) -> None:
        """Take in what was written, in order."""
        if self.legs and self._starts[-1] == self.pieces:
            digest = self.legs[-1].digest
            self.exact = self.stays_exact(digest)
            self._ids_known = self._ids_known and (digest == self.ids_of or not self.has_begun)
            self.ids_of = digest
            if len(self.legs) > 1 and not self.legs[-2].ended:
                self.legs[-2] = replace(self.legs[-2], ended="handed it over")
        self.text += piece.text
        self.thought += piece.thought
        self.tokens += piece.tokens
        self.pieces += 1
        self.calls += bool(piece.calls)
        self._ids_known = self._ids_known and len(piece.token_ids) == piece.tokens
        self._ids += piece.token_ids
        if self.carried is not None:
            by = self.legs[-1].peer_id or HERE if self.legs else HERE
            written_by = self.carried.written_by
            if by not in written_by:
                self.carried = msgspec.structs.replace(self.carried, written_by=(*written_by, by))

    def going_on(self) -> Carried | None:
        """The request and what was written, as the next peer would get it."""
        if self.carried is None:
            return None
        return msgspec.structs.replace(
            self.carried, text=self.text, thought=self.thought, token_ids=self.token_ids)

    def reveal(self, text: str) -> str:
        """What the owner reads once this has been written too: names are filled in, a part may be held back."""
        if self.carried is None:
            return text
        if self._rehydrator is None:
            self._rehydrator = self.carried.rehydrator()
        return self._rehydrator.feed(text)

    def reveal_end(self) -> str:
        """What was held back, at the end."""
        return self._rehydrator.end() if self._rehydrator is not None else ""

    def note_shown(self, text: str) -> None:
        """The owner can read it now."""
        self.shown += text
        self._tell()

    def end(self) -> None:
        """Nothing more comes."""
        self.over = True
        self._tell()

    def kept(self, now_ms: int) -> KeptAnswer:
        """The record of it without its pieces."""
        return KeptAnswer(
            self.job.job_id, self.job.conversation_id, encode_job(self.job), self.encoded_form(), self.encoded_legs(),
            now_ms)

    def encoded_form(self) -> bytes | None:
        """The request as it left."""
        return None if self.carried is None else self.carried.encoded()

    def encoded_legs(self) -> bytes:
        """Who wrote, from which piece on."""
        return msgspec.msgpack.encode((self.legs, self._starts, self.ended_as))

    @classmethod
    def taken_up(cls, kept: KeptAnswer, on_text: Callable[[str], Awaitable[bool]]) -> "UnderWay":
        """The answer of a record, as far as it came. Raises msgspec.MsgspecError, ValueError."""
        legs, starts, ended_as = msgspec.msgpack.decode(kept.legs, type=tuple[list[Leg], list[int], str])
        made = cls(decode_job(kept.job, on_text, keep=True))
        form = None if kept.carried is None else Carried.decoded(kept.carried)
        for leg, start, stop in zip(legs, starts, [*starts[1:], len(kept.pieces)], strict=True):
            made.begin_leg(leg, carried=form)
            for piece in kept.pieces[start:stop]:
                made.add(piece)
                made.shown += made.reveal(piece.text)
            if made.pieces == start:
                made.drop_leg()
        made.ended_as = ended_as
        if ended_as:
            made.shown += made.reveal_end()
        else:
            made.end_leg("this node was stopped")
        return made

    def _tell(self) -> None:
        self.grew.set()
        self.grew = trio.Event()
