"""The one way out: decide, mask, check, ask, enter in the ledger, and only then hand out a clearance.

Fail closed: whatever is missing, raises, hangs or returns nonsense ends in EgressDenied and nothing is sent. There is
no option that turns any of it off; tests compose other parts. Must not know models, tools or how the owner is asked.
"""

import shlex
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Protocol

import trio

from node.privacy.accounting import AnswerAccounts
from node.privacy.approval import Approver, Request, StandingDecisions
from node.privacy.arrivals import Arrived, NoteArrival
from node.privacy.blobs import BlobFiles
from node.privacy.carrying import HERE, Carried, may_carry
from node.privacy.channel import ByteStream, GuardedChannel
from node.privacy.clearance import EgressClearance
from node.privacy.consent import ConsentAsker
from node.privacy.errors import (
    DeniedAlways,
    EgressDenied,
    GuardFailed,
    HoldsPersonal,
    HoldsSecret,
    LedgerFailed,
    NeverForPeer,
    NotCleared,
    ShareNotConsented,
)
from node.privacy.forming import Former
from node.privacy.inspector import Inspector, blanks
from node.privacy.labels import Integrity, Labeled, mixed
from node.privacy.ledger import Draft, Ledger
from node.privacy.memory import ConversationMemory, Memories
from node.privacy.off_loop import off_loop
from node.privacy.placeholders import BRACKETS, PlaceholderMap
from node.privacy.policy import Level, PeerView, Purpose, level_for
from node.privacy.traffic import Traffic
from node.store.ledger import Head

__all__ = ["Egress", "EgressClearance", "Part", "PeerView", "Purpose", "ShareConsents"]

CONSENT_DEADLINE_S = 120.0
LEDGER_DEADLINE_S = 20.0
SHARE_DEADLINE_S = 10.0
_LIVE_LIMIT = 1_024


@dataclass(frozen=True, slots=True)
class Part:
    """One text of what should leave.

    role: system, user, assistant, tool, tools (a description or schema), stop, query, mail, title, passage, folder.
    """

    role: str
    text: Labeled


class ShareConsents(Protocol):
    """What the owner shares with whom."""

    async def covers(self, source: str, peer_id: str) -> bool:
        """Whether a text from this source ("share:...") may go to this peer in clear."""
        ...


class Egress:
    """The guard of one node."""

    def __init__(
        self, *, inspector: Inspector, ledger: Ledger, shares: ShareConsents | None, new_id: Callable[[], str],
        consent_deadline_s: float = CONSENT_DEADLINE_S, observer: Callable[[str, str, bytes], None] | None = None,
        blobs: BlobFiles | None = None, decisions: StandingDecisions | None = None,
        ask_first: bool = False,
    ) -> None:
        """new_id: fresh unguessable ids for questions. blobs: the model files that peers may be sent bytes of.
        decisions: what the owner decided before; None: nothing. ask_first: every free text is shown to the owner.

        observer: sees (peer_id, protocol, bytes) right before they go to the transport; a tap for tests. The daemon
        passes none.
        """
        self.traffic = Traffic()
        self.ledger = ledger
        self._inspector = inspector
        self._former = Former(inspector)
        self._ask_first = ask_first
        self._shares = shares
        self._decisions = decisions
        self._approver = Approver(
            nets=lambda: inspector.nets, new_id=new_id, deadline_s=consent_deadline_s, decisions=decisions,
            ask_first=ask_first)
        self._observer = observer
        self._blobs = blobs
        self.note_breach: Callable[[str, str, str], None] = lambda peer_id, protocol, code: None
        """Told of frames that break the rules: whose, of which protocol, and the error's code."""
        self.note_arrival: NoteArrival | None = None
        """Told of what peers send, once there is somebody to sign for it."""
        self._memories = Memories()
        self._accounts = AnswerAccounts(ledger)
        self._live: dict[int, EgressClearance] = {}
        self._mail: dict[tuple[str, str], EgressClearance] = {}

    @property
    def always_asks(self) -> bool:
        """Whether nothing leaves without a question, because a net is missing or the owner wants it so."""
        return bool(self._inspector.missing) or self._ask_first

    # -- deciding -----------------------------------------------------------------------------------------------------

    async def clear(
        self, *, peer: PeerView, purpose: Purpose, conversation: str, request_id: str, parts: Sequence[Part],
        ask: ConsentAsker, why: str = "", together_with: Callable[[Any], None] | None = None,
        like: Carried | None = None, in_clear: bool = False,
    ) -> EgressClearance:
        """A clearance whose `texts` (same order as parts) may be put into frames for this peer and request.

        together_with: run inside the transaction that writes the ledger entry (a message's outbox row).
        like: the same request as it left before and what was written since; exactly that goes out, after the parts,
        or nothing does: it is not masked anew.
        in_clear: the owner wants it without placeholders, this once, and is shown the exact text.
        Raises EgressDenied; the leaf says why. Cancelling it means that nothing was cleared.
        """
        try:
            parts = (*parts, *(Part("assistant", text) for text in like.written)) if like is not None else parts
            memory = self._take_in(conversation, purpose, parts, peer)
            owner_typed = all(part.text.integrity is Integrity.OWNER for part in parts)
            level, decided = self._level(peer, purpose, conversation, owner_typed=owner_typed)
            if level is Level.NEVER or not parts:
                raise NeverForPeer(f"{purpose} to a peer of trust {peer.trust}" if parts else "nothing to send")
            level = may_carry(like, level) if like is not None else level
            await self._check_shares(peer, purpose, parts)
            form = partial(
                self._former.form, peer, purpose, texts=[part.text for part in parts], memory=memory, like=like,
                owner_typed=owner_typed,
            )
            outgoing = await form(level=level)
            approved_by = like.approval_for(peer.peer_id) if like is not None else None
            if approved_by is None:
                request = Request(
                    peer, purpose, level, conversation, request_id, [(part.role, part.text.source) for part in parts],
                    why, owner_typed=owner_typed, decided=decided, wants_clear=in_clear and like is None,
                    mixed=mixed(part.text for part in parts),
                )
                approval = await self._approver.approve(request, outgoing, ask, partial(form, level=Level.CLEAR))
                approved_by, level, outgoing = approval.by, approval.level, approval.outgoing
        except EgressDenied:
            raise
        except Exception as error:      # a bug in the guard must not become an open door
            raise GuardFailed(f"the guard failed with {type(error).__name__}") from error
        count = sum(len(spans) for spans in outgoing.replaced) if level is Level.MASKED else 0
        self._make_room(purpose)
        place = await self._record(
            Draft(peer.peer_id, purpose, level, request_id, outgoing.texts, count, approved_by, conversation),
            together_with,
        )
        clearance = EgressClearance(
            peer_id=peer.peer_id, purpose=purpose, level=level, conversation=conversation, request_id=request_id,
            texts=outgoing.texts, substitutions=count, placeholders=outgoing.placeholders, ledger=self.ledger,
            place=place, approved_by=approved_by, like=like,
        )
        return self._register(clearance)

    async def prepare(self, *, peer: PeerView, conversation: str, parts: Sequence[Part]) -> Carried:
        """The parts masked as for this peer: for a model here whose answer this peer may go on with later.

        Nothing leaves, nothing is approved. Raises EgressDenied when they could not go there.
        """
        try:
            memory = self._take_in(conversation, Purpose.INFER, parts, peer)
            texts = [part.text for part in parts]
            formed = await self._former.form(
                peer, Purpose.INFER, Level.MASKED, texts, memory, None, owner_typed=False)
        except EgressDenied:
            raise
        except Exception as error:
            raise GuardFailed(f"the guard failed with {type(error).__name__}") from error
        tokens = formed.placeholders.tokens
        return Carried(formed.texts, Level.MASKED, formed.placeholders.style, tokens, {}, written_by=(HERE,))

    async def reopen(self, *, peer: PeerView, request_id: str) -> EgressClearance:
        """The clearance of a message whose entry is in the ledger and not closed (sent again after a restart).

        Raises NotCleared when there is none, NeverForPeer when the peer lost its trust meanwhile.
        """
        live = self._mail.get((peer.peer_id, request_id))
        if live is not None and not live.closed:
            return live
        view = await self.ledger.find_open(peer.peer_id, request_id)
        if view is None or view.texts is None or view.entry.purpose != Purpose.MAIL:
            raise NotCleared("no open ledger entry for this message")
        level = Level(view.entry.level)
        allowed, _ = self._level(peer, Purpose.MAIL, "", owner_typed=level is Level.CLEAR)
        if allowed is not level:
            raise NeverForPeer(f"mail to a peer of trust {peer.trust}")
        clearance = EgressClearance(
            peer_id=peer.peer_id, purpose=Purpose.MAIL, level=level, conversation="", request_id=request_id,
            texts=view.texts, substitutions=view.entry.substitutions, placeholders=PlaceholderMap(BRACKETS),
            ledger=self.ledger, place=Head(view.entry.seq, view.digest),
        )
        return self._register(clearance)

    def _note(self, arrived: Arrived) -> None:
        if self.note_arrival is not None:
            self.note_arrival(arrived)

    # -- remembering --------------------------------------------------------------------------------------------------

    def absorb(self, conversation: str, *parts: Labeled) -> None:
        """Remember what was read or said in this conversation, though it left nowhere: its values are masked from now.

        Raises GuardFailed when the conversation holds too many values; nothing of it leaves then.
        """
        memory = self._memories.of(conversation)
        try:
            memory.absorb(*parts)
        finally:
            self._memories.keep(conversation, memory)

    def forget(self, conversation: str) -> None:
        """Drop placeholders and values of a conversation that ended."""
        self._memories.forget(conversation)

    # -- sending ------------------------------------------------------------------------------------------------------

    def channel(self, stream: ByteStream) -> GuardedChannel:
        """The guarded frame channel over a stream; the only thing that may write to it."""
        return GuardedChannel(
            stream, check=self.check_outgoing, accounts=self._accounts, traffic=self.traffic, observer=self._observer,
            blobs=self._blobs, note=self._note, breach=lambda *what: self.note_breach(*what),
        )

    async def check_outgoing(self, clearance: EgressClearance, peer_id: str, strings: Sequence[str]) -> None:
        """The last look, at the strings decoded from the final bytes. Raises EgressDenied when they may not go."""
        given = self._live.get(id(clearance)) or self._mail.get((clearance.peer_id, clearance.request_id))
        if given is not clearance or clearance.closed or clearance.peer_id != peer_id:
            raise NotCleared("this clearance is not open for this peer")
        returned = self._memories.of(clearance.conversation).returned
        secrets = await self._inspector.find_secrets(strings, returned)
        if secrets:
            raise HoldsSecret(", ".join(secrets))
        if clearance.level in (Level.MASKED, Level.PUBLIC):
            tokens = clearance.placeholders.tokens
            blanked = await off_loop(sum(map(len, strings)), blanks, strings, tokens)
            found = await self._inspector.find_personal(blanked, returned)
            if found:
                raise HoldsPersonal(f"found in the final bytes: {', '.join(found)}")

    # -- steps of clear() ---------------------------------------------------------------------------------------------

    def _take_in(
        self, conversation: str, purpose: Purpose, parts: Sequence[Part], peer: PeerView,
    ) -> ConversationMemory:
        """The conversation's memory with these parts in it. Passages for a peer belong to no conversation of ours."""
        if purpose is Purpose.ANSWER:
            return ConversationMemory()
        memory = self._memories.of(conversation)
        memory.absorb(*(part.text for part in parts))
        if purpose is Purpose.INFER:
            memory.map_for(peer.peer_id, peer.style)
        self._memories.keep(conversation, memory)
        return memory

    def _level(
        self, peer: PeerView, purpose: Purpose, conversation: str, *, owner_typed: bool,
    ) -> tuple[Level, bool]:
        """The level, and whether the owner chose it for this very conversation. Raises DeniedAlways."""
        if self._decisions is None:
            return level_for(peer, purpose, owner_typed=owner_typed), False
        if self._decisions.denied(peer.peer_id, purpose):
            raise DeniedAlways(f"{purpose} to {peer.name}")
        chosen, for_conversation = self._decisions.chosen(peer.peer_id, purpose, conversation)
        level = level_for(peer, purpose, owner_typed=owner_typed, chosen=chosen)
        if level is Level.NEVER and level_for(peer, purpose, owner_typed=owner_typed) is not level:
            detail, hint = _set_to_never(peer, purpose, conversation if for_conversation else "")
            raise NeverForPeer(detail, hint=hint)
        return level, for_conversation

    async def _check_shares(self, peer: PeerView, purpose: Purpose, parts: Sequence[Part]) -> None:
        if purpose is not Purpose.ANSWER:
            return
        if self._shares is None:
            raise ShareNotConsented("no shares are known")
        with trio.move_on_after(SHARE_DEADLINE_S) as deadline:
            for source in {part.text.source for part in parts}:
                if await self._shares.covers(source, peer.peer_id) is not True:
                    raise ShareNotConsented(f"source {source}")
        if deadline.cancelled_caught:
            raise GuardFailed("the list of shares did not answer in time")

    async def _record(self, draft: Draft, together_with: Callable[[Any], None] | None) -> Head:
        """The entry's place, durable. Shielded: a cancelled caller must not leave it unknown whether it was written."""
        try:
            with trio.CancelScope(shield=True), trio.fail_after(LEDGER_DEADLINE_S):
                place = await self.ledger.append(draft, also=together_with)
        except trio.TooSlowError:
            raise LedgerFailed("it took too long") from None
        except Exception as error:
            raise LedgerFailed(type(error).__name__) from error
        if not isinstance(place, Head):
            raise LedgerFailed("the ledger returned nonsense")
        return place

    def _register(self, clearance: EgressClearance) -> EgressClearance:
        if clearance.purpose is Purpose.MAIL:   # may wait for weeks; one dropped here is reopened from the ledger
            self._mail[clearance.peer_id, clearance.request_id] = clearance
            while len(self._mail) > _LIVE_LIMIT:
                del self._mail[next(iter(self._mail))]
            return clearance
        self._live[id(clearance)] = clearance
        return clearance

    def _make_room(self, purpose: Purpose) -> None:
        """Before the entry is written: one that is refused afterwards would stand open in the ledger."""
        for key in [key for key, live in self._live.items() if live.closed]:
            del self._live[key]
        if len(self._live) >= _LIVE_LIMIT and purpose is not Purpose.MAIL:
            raise GuardFailed(f"{_LIVE_LIMIT} requests are open already")


def _set_to_never(peer: PeerView, purpose: Purpose, conversation: str) -> tuple[str, str]:
    """What stops it, and the command that takes that setting back."""
    where = f" --conversation {conversation}" if conversation else ""
    place = "in this conversation" if conversation else "for it"
    back = f"kith privacy set {shlex.quote(peer.name)} default --for {purpose}{where}"
    return f"you set {purpose} to never {place}", f"To take that back: {back}. To see all levels: kith privacy"
