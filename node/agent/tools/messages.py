"""The tools that send a message to paired people and devices, and show what they wrote. Must not know how a message is
guarded, kept or delivered.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

from node.agent.ports import Effect, EffectValue, Json, Origin
from node.agent.tools.errors import BadArgument, CannotUndo
from node.agent.tools.examples import examples_of
from node.agent.tools.registry import (
    Args,
    Param,
    ToolAnswer,
    ToolContext,
    ToolSpec,
    UndoRecord,
    check_args,
    effect_value,
)
from node.agent.tools.wording import listed, moment
from node.privacy.labels import Confidentiality, Integrity, Labeled, Value

__all__ = ["MessageRead", "MessageSend", "Postbox", "ReceivedMessage", "peer_of"]

SHOWN = 8

_SEND = ToolSpec(
    name="message_send",
    description="Send a message to a paired person or device",
    params={
        "to": Param("who gets it", "names"),
        "text": Param("the words to send", "text"),
    },
    required=("to", "text"),
    examples=(
        "tell Robin I am running late", "send Kim a message that the keys are under the mat",
        "message Sam: lunch at one?", "write to Toni that the train is on time", "let Alex know dinner is ready",
        "text Chris that I found the book", "drop Pat a line saying thanks for yesterday",
        "ping Max that the meeting moved",
        *examples_of("message_send"),
    ),
    kind="write",
    cues=("tell", "message", "let", "text", "write to", "send", "ask"),
    sends=True,
)
_READ = ToolSpec(
    name="message_read",
    description="Show the messages that came in",
    params={"sender": Param("only from this person or device", "choice")},
    required=(),
    examples=(
        "any new messages", "read me my messages", "what did Robin write", "show the inbox", "did Kim answer",
        "have I got mail from Sam", "what is the last message from Toni", "check my messages",
        *examples_of("message_read"),
    ),
    kind="read",
    cues=("messages", "inbox", "wrote", "write me", "answered", "mail from"),
)


@dataclass(frozen=True, slots=True)
class ReceivedMessage:
    """One message as it came. received: aware, UTC."""

    sender: str
    text: str
    received: datetime


class Postbox(Protocol):
    """The owner's outgoing and incoming messages."""

    async def peers(self) -> Sequence[str]:
        """Names of those who can be written to."""
        ...

    async def people(self) -> Sequence[str]:
        """The same without the owner's own devices: whom "everyone" means."""
        ...

    async def send_once(self, message_id: str, to: str, text: str, *, owners_words: bool) -> None:
        """Queue one durably. The same id again changes nothing. owners_words: the owner typed these very words.

        Raises KithError when the guard or the owner says no, or nobody is called so.
        """
        ...

    async def received(self, *, limit: int, sender: str | None = None) -> Sequence[ReceivedMessage]:
        """The newest first."""
        ...


def peer_of(name: str, peers: Sequence[str]) -> str | None:
    """The peer who goes by a contact's name: the same name, or the one peer that begins with its first word."""
    folded = name.casefold()
    exact = [peer for peer in peers if peer.casefold() == folded]
    if len(exact) == 1:
        return exact[0]
    first = folded.split()[0]
    near = [peer for peer in peers if peer.casefold().replace("_", "-").split("-")[0] == first]
    return near[0] if len(near) == 1 else None


class MessageSend:
    """One text to one or several."""

    spec = _SEND

    def __init__(self, postbox: Postbox) -> None:
        self._postbox = postbox

    async def choices(self, param: str) -> tuple[str, ...]:
        """Those who can be written to."""
        return tuple(await self._postbox.peers()) if param == "to" else ()

    async def plan(self, args: Args, ctx: ToolContext, *, idempotency_key: str) -> Effect:
        """Who gets which words. Raises BadArgument for somebody without a paired device."""
        check_args(self.spec, args)
        text, names = str(args["text"]).strip(), args["to"]
        assert isinstance(names, tuple)
        peers = await self._postbox.peers()
        found: dict[str, str] = {}
        for name in map(str, names):
            peer = peer_of(name, peers)
            if peer is None:
                known = f" I can write to {listed(list(peers))}." if peers else " Nobody is paired yet: kith pair"
                raise BadArgument("to", f"No paired device belongs to {name}.{known}")
            found[peer] = name
        shown = listed([peer if peer.casefold() == name.casefold() else f"{name} ({peer})"
                        for peer, name in found.items()])
        pairs: Json = list(found)
        values = (
            effect_value("to", pairs, shown, ctx),
            effect_value("text", text, text, ctx),
        )
        return Effect(self.spec.name, "write", f"Send to {shown}: {text}", values, idempotency_key)

    async def apply(self, effect: Effect, idempotency_key: str) -> UndoRecord:
        """Queue it for each; whatever was queued by an earlier attempt is not queued again."""
        text = next(value for value in effect.values if value.name == "text")
        names = effect.value("to")
        assert isinstance(names, Sequence)
        for number, name in enumerate(names):
            message_id = f"{int(idempotency_key[:32], 16) ^ number:032x}"
            await self._postbox.send_once(message_id, str(name), str(text.value), owners_words=_typed(text))
        return {"to": [str(name) for name in names]}

    async def undo(self, record: UndoRecord) -> str:
        """Raises CannotUndo: what was sent is out of hand."""
        raise CannotUndo("A message that was sent can't be taken back.")


def _typed(value: EffectValue) -> bool:
    """Whether the owner typed these very words in this request."""
    return value.origin in (Origin.REQUEST, Origin.COPIED, Origin.CHOSEN)


class MessageRead:
    """What came in."""

    spec = _READ

    def __init__(self, postbox: Postbox) -> None:
        self._postbox = postbox

    async def choices(self, param: str) -> tuple[str, ...]:
        """Those who can write."""
        return tuple(await self._postbox.peers()) if param == "sender" else ()

    async def run(self, args: Args, ctx: ToolContext) -> ToolAnswer:
        """The newest, each with its sender and time. Other people's words: untrusted."""
        check_args(self.spec, args)
        sender = str(args["sender"]) if "sender" in args else None
        found = await self._postbox.received(limit=SHOWN, sender=sender)
        if not found:
            text = f"There is no message from {sender}." if sender else "There are no messages."
        else:
            text = "\n".join(f"{one.sender}, {moment(one.received, ctx.zone)}: {one.text}" for one in found)
        values = tuple(Value(name, "PERSON") for name in dict.fromkeys(one.sender for one in found))
        return ToolAnswer(
            Labeled(text, Confidentiality.PERSONAL, Integrity.UNTRUSTED, "messages", values),
            [{"from": one.sender, "text": one.text, "received": one.received.isoformat()} for one in found],
        )
