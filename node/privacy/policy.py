"""Which level a peer gets for a purpose: a pure table. Whatever is not in it is NEVER.

Must not know labels of single values, the clock, the network or how a level is carried out.
"""

from dataclasses import dataclass
from enum import StrEnum

__all__ = ["Level", "PeerView", "Purpose", "level_for", "needs_consent"]


class Purpose(StrEnum):
    """Why something leaves."""

    INFER = "infer"     # a prompt to a peer's model
    QUERY = "query"     # a search query to a peer
    MAIL = "mail"       # a message to a peer
    ANSWER = "answer"   # passages of shared folders, or an inference answer, to a peer that asked
    MODEL = "model"     # a model file of the catalogue to a peer that asked: counted and compared, never cleared
    RELAY = "relay"     # sealed traffic of two peers through this node: counted, never cleared, never read


class Level(StrEnum):
    """In which form it may leave."""

    NEVER = "never"     # not at all
    MASKED = "masked"   # personal values replaced by placeholders
    PUBLIC = "public"   # as it is, and only when it holds no personal value
    CLEAR = "clear"     # as it is, secrets refused: the owner decided so


@dataclass(frozen=True, slots=True)
class PeerView:
    """What the guard needs to know of a peer.

    trust: "self", "home", "friend", "none" (anything else counts as none).
    style: how the model there keeps placeholders best, "brackets" or "surrogates".
    """

    peer_id: str
    name: str
    trust: str
    style: str = "brackets"


_STRICTEST_FIRST = (Level.NEVER, Level.PUBLIC, Level.MASKED, Level.CLEAR)

_TABLE: dict[tuple[str, Purpose, bool], Level] = {}
for _trust in ("self", "home", "friend"):
    for _typed in (True, False):
        _TABLE[_trust, Purpose.INFER, _typed] = Level.MASKED
        _TABLE[_trust, Purpose.QUERY, _typed] = Level.PUBLIC
        _TABLE[_trust, Purpose.ANSWER, _typed] = Level.CLEAR     # each passage must stand in a share for this peer
    _TABLE[_trust, Purpose.MAIL, True] = Level.CLEAR             # what the owner types to a named recipient
    _TABLE[_trust, Purpose.MAIL, False] = Level.PUBLIC           # what an agent composes


def level_for(peer: PeerView, purpose: Purpose, *, owner_typed: bool, chosen: Level | None = None) -> Level:
    """The level for this peer and purpose; NEVER for whatever the table does not name.

    chosen: what the owner decided for it. It narrows; only clear for inference at an own device widens.
    """
    level = _TABLE.get((str(peer.trust), purpose, owner_typed), Level.NEVER)
    if chosen is None or level is Level.NEVER:
        return level
    if chosen is Level.CLEAR and purpose is Purpose.INFER and peer.trust in ("self", "home"):
        return Level.CLEAR
    return min(level, chosen, key=_STRICTEST_FIRST.index)


def needs_consent(
    level: Level, purpose: Purpose, *, owner_typed: bool, detectors_ran: bool, personal: bool, decided: bool = False,
    mixed: bool = False,
) -> bool:
    """Whether the owner is asked before this request leaves. There is no "always allow".

    personal: the outgoing text holds, in clear, values that are personal or that detectors take for it. decided: the
    owner chose clear for this peer and this very conversation. mixed: other people's text and personal data leave
    together, masked or not: rule of two.
    """
    if purpose is Purpose.ANSWER or (owner_typed and purpose in (Purpose.MAIL, Purpose.QUERY)):
        return False    # the share, or the act of typing it to a named recipient, is the decision; the ledger says so
    if not detectors_ran:
        return True     # guard-absent path: the owner reads the exact text
    if mixed and purpose is Purpose.INFER:
        return True     # what others wrote may have led to this request
    return personal and level in (Level.CLEAR, Level.PUBLIC) and not (decided and level is Level.CLEAR)
