"""Builds the guard of one node, its ledger, and who signs for what came. Pure construction.

Must not know agents, models or the network beyond opening a channel.
"""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from node.clock import Clock, new_id
from node.daemon.composition import Composition
from node.daemon.searching import StoredShares
from node.identity.keystore import Identity
from node.paths import Paths
from node.privacy.arrivals import Arrived
from node.privacy.blobs import BlobFiles
from node.privacy.decisions import Decisions
from node.privacy.egress import Egress
from node.privacy.inspector import Inspector
from node.privacy.ledger import Ledger
from node.privacy.ledger_head import FileHeadKeeper, SeedSigner
from node.privacy.ledger_rows import StoredLedgerRows
from node.privacy.receipts import ReceiptDesk
from node.store.database import Database
from protocol.channel import FrameChannel
from protocol.names import RECEIPT

__all__ = ["PrivacyParts", "build_privacy", "build_receipts"]


@dataclass(frozen=True, slots=True)
class PrivacyParts:
    """The guard and what it writes down."""

    egress: Egress
    ledger: Ledger
    shares: StoredShares
    decisions: Decisions


def build_privacy(
    *, paths: Paths, identity: Identity, database: Database, composition: Composition, inspector: Inspector,
    blobs: BlobFiles, ask_first: bool = False, never_sign: frozenset[str] = frozenset(),
) -> PrivacyParts:
    """The guard over this node's database. ask_first: the owner wants to see every free text before it leaves.
    never_sign: ids that no paired node is behind."""
    ledger = Ledger(
        StoredLedgerRows(database), FileHeadKeeper(paths.state_dir / "ledger.head"),
        SeedSigner(identity.subkey("ledger-head")), chain_key=identity.subkey("ledger-chain"),
        seal_key=identity.subkey("ledger-seal"), clock=composition.clock, own_id=identity.peer_id,
        never_sign=never_sign,
    )
    shares = StoredShares(database)
    decisions = Decisions(database, composition.clock)
    egress = Egress(
        inspector=inspector, ledger=ledger, shares=shares, new_id=lambda: new_id(composition.entropy),
        observer=composition.tap, blobs=blobs, decisions=decisions, ask_first=ask_first,
    )
    return PrivacyParts(egress, ledger, shares, decisions)


def build_receipts(
    privacy: PrivacyParts, *, identity: Identity, database: Database, composition: Composition,
    open_channel: Callable[[str, str], Awaitable[FrameChannel]], not_a_peer: str, removal: Clock,
) -> ReceiptDesk:
    """Signs for what comes through the guard's channels. not_a_peer: the id of an engine that takes no receipts."""
    desk = ReceiptDesk(
        database=database, ledger=privacy.ledger, own_id=identity.peer_id, sign=identity.sign, clock=composition.clock,
        open_channel=lambda peer_id: open_channel(peer_id, RECEIPT), removal=removal,
    )

    def note(arrived: Arrived) -> None:
        if arrived.peer_id != not_a_peer:
            desk.note(arrived)

    privacy.egress.note_arrival = note
    return desk
