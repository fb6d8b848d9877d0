"""A request that goes on elsewhere: its prompt as it left, its map of placeholders, and what was written so far.

What one peer was sent is not formed anew for the next one: the answer so far speaks of these very placeholders. So the
record is carried along, also over a restart of the node, and is judged for every new peer before it may go there. Must
not know peers' levels, how consent is asked, or the ledger.
"""

from collections.abc import Sequence

import msgspec

from node.privacy.errors import HoldsPersonal, HoldsSecret, NeverForPeer
from node.privacy.inspector import Inspector, blank
from node.privacy.labels import Confidentiality, Integrity, Labeled
from node.privacy.placeholders import PlaceholderMap, Replaced
from node.privacy.policy import Level
from node.privacy.rehydrate import Restorer, StreamRehydrator
from node.privacy.vault import Vault

__all__ = ["HERE", "Carried", "check_carried", "may_carry", "spans_of"]

HERE = ""
"""In written_by: this device's own model, which read the masked words too."""


class Carried(msgspec.Struct, frozen=True, array_like=True):
    """One request as it left.

    tokens: placeholder -> value; they never leave. approved: peer id -> who approved that it gets it.
    text, thought, token_ids: what was written so far, in masked form; token_ids are of exactly that text, or empty.
    written_by: the ids of the peers that wrote it.
    """

    texts: tuple[str, ...]
    level: Level
    style: str
    tokens: dict[str, str]
    approved: dict[str, str]
    text: str = ""
    thought: str = ""
    token_ids: tuple[int, ...] = ()
    written_by: tuple[str, ...] = ()

    @property
    def written(self) -> tuple[Labeled, ...]:
        """What was written so far, as parts of what leaves now: nobody's words but a model's."""
        return tuple(
            Labeled(text, Confidentiality.PERSONAL, Integrity.UNTRUSTED, "model:answer", ())
            for text in (self.text, self.thought) if text
        )

    @property
    def outgoing(self) -> tuple[str, ...]:
        """Every text that leaves: the prompt's, and what was written so far."""
        return (*self.texts, *(part.value for part in self.written))

    @property
    def placeholders(self) -> PlaceholderMap:
        """The map of this request alone."""
        return PlaceholderMap.of(self.style, self.tokens)

    def rehydrator(self) -> StreamRehydrator:
        """Fills the names in, for the owner's eyes."""
        return StreamRehydrator(Restorer(self.tokens))

    def approval_for(self, peer_id: str) -> str | None:
        """Who approved that this peer gets it, when all that was added since is the peer's own words."""
        own = all(who == peer_id for who in self.written_by)
        return self.approved.get(peer_id) if own else None

    def encoded(self) -> bytes:
        """For the node's own database; holds the names."""
        return msgspec.msgpack.encode(self)

    @classmethod
    def decoded(cls, data: bytes) -> "Carried":
        """What encoded() gave. Raises msgspec.MsgspecError."""
        return msgspec.msgpack.decode(data, type=cls)


def may_carry(carried: Carried, level: Level) -> Level:
    """The level at which it goes to a peer of this level: the one it had. Raises NeverForPeer for a stricter peer."""
    if carried.level is level or (carried.level is Level.MASKED and level is Level.CLEAR):
        return carried.level
    raise NeverForPeer(f"the request left at level {carried.level} before, and this peer gets {level}")


async def check_carried(
    carried: Carried, peer_id: str, texts: Sequence[Labeled], inspector: Inspector, returned: Vault,
) -> tuple[str, ...]:
    """Look at everything that would leave, with the nets as they are now. Raises HoldsSecret, HoldsPersonal.

    What the peer itself wrote tells it nothing and is not looked at for names; secrets go to nobody. Detectors have no
    part in it: they looked at the prompt before it left, and what a model wrote on its masked words holds no name of
    the owner's but those that the vault knows. texts: the parts as they are here, the prompt's first. The nets that
    could not judge the prompt come back.
    """
    if any(text.confidentiality is Confidentiality.SECRET for text in texts):
        raise HoldsSecret("labelled as secret")
    secrets = await inspector.find_secrets(carried.outgoing, returned)
    if secrets:
        raise HoldsSecret(", ".join(secrets))
    prompt = texts[: len(carried.texts)]
    gaps = (*inspector.missing, *dict.fromkeys(gap for text in prompt for gap in inspector.gaps_of(text)))
    if carried.level is Level.CLEAR:
        return gaps
    own = all(who == peer_id for who in carried.written_by)
    looked_at = carried.texts if own else carried.outgoing
    found = await inspector.find_personal([blank(text, carried.tokens) for text in looked_at], returned)
    if found:
        raise HoldsPersonal(f"found in what was sent or written before: {', '.join(found)}")
    return gaps


def spans_of(text: str, tokens: dict[str, str]) -> tuple[Replaced, ...]:
    """Where placeholders stand in a text, for the owner's consent."""
    found: list[Replaced] = []
    for token, value in tokens.items():
        start = text.find(token)
        while start >= 0:
            kind = token.strip("[]").rpartition("_")[0] or "PRIVATE"
            found.append(Replaced(start, start + len(token), token, value, kind))
            start = text.find(token, start + len(token))
    return tuple(sorted(found, key=lambda one: one.start))
