"""Search as the owner meets it, and what this node shares. Implements node.api.ports.Searching and the ports of search.

The guard decides on every query and passage; this module only carries words between it and search. Must not know
ranking, SQL or streams.
"""

from collections.abc import Sequence
from pathlib import Path

import trio

from node.api.views import PassageView, SearchView, ShareView
from node.clock import Clock, to_ms
from node.daemon.networking import Networking
from node.daemon.own_folders import OwnFolders
from node.daemon.peers import Roster
from node.errors import KithError, UsageError
from node.privacy.consent import ConsentAsker
from node.privacy.egress import Egress, EgressClearance, Part
from node.privacy.errors import EgressDenied
from node.privacy.inspector import Inspector
from node.privacy.labels import Confidentiality, Integrity, Labeled, owner_text
from node.privacy.policy import Purpose
from node.privacy.secrets import find_secrets
from node.privacy.vault import Vault
from node.sources.searchable import SearchableFolders, folder_key
from node.store import shares
from node.store.database import Database
from protocol.channel import FrameChannel
from protocol.errors import ChannelError
from protocol.frames.query import Passage
from protocol.names import QUERY
from search.client import Found, SearchClient
from search.errors import PeerSilent, QueryRejected
from search.indexer import Indexer
from search.passages import split_passages
from search.plan import SearchPeer

__all__ = ["Openings", "PassageGuard", "QueryDesk", "Searching", "StoredShares"]

SHARE_PREFIX = "share:"


class Openings:
    """Query channels to peers. Implements search.ports.ChannelOpener."""

    def __init__(self, networking: Networking) -> None:
        self._networking = networking

    async def open(self, peer_id: str, *, timeout_s: float) -> FrameChannel:
        """A channel. Raises PeerSilent."""
        try:
            with trio.fail_after(timeout_s):
                return await self._networking.open_channel(peer_id, QUERY)
        except (KithError, ChannelError, trio.TooSlowError) as error:
            raise PeerSilent(f"no stream: {type(error).__name__}") from error


class StoredShares:
    """What is shared with whom. Implements search.ports.ShareBook and node.privacy.egress.ShareConsents."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def folders_for(self, peer_id: str) -> frozenset[str]:
        """Keys of the folders that this peer may search."""
        return frozenset(await self._database.read(shares.folders_for, peer_id))

    async def covers(self, source: str, peer_id: str) -> bool:
        """Whether the share named by source ("share" and the folder's own name) is open to this peer now."""
        if not source.startswith(SHARE_PREFIX):
            return False
        name = source.removeprefix(SHARE_PREFIX)
        return any(Path(folder).name == name for folder in await self.folders_for(peer_id))


class QueryDesk:
    """The guard's word on queries. Implements search.ports.QueryGuard."""

    def __init__(self, egress: Egress, inspector: Inspector, roster: Roster, ask: ConsentAsker) -> None:
        self._egress = egress
        self._inspector = inspector
        self._roster = roster
        self._ask = ask

    async def private_reason(self, text: str) -> str:
        """Why this query stays here; empty when it may go out."""
        nothing = Vault(())
        try:
            if await self._inspector.find_secrets([text], nothing):
                return "the query holds a secret, so it stayed on this device"
            found = await self._inspector.find_personal([text], nothing)
        except EgressDenied as error:
            return f"the guard could not look at the query ({error.code}), so it stayed on this device"
        if found:
            return f"the query holds personal data ({', '.join(found)}), so it stayed on this device"
        return ""

    async def clear(self, peer_id: str, query_id: bytes, text: str) -> EgressClearance:
        """The clearance of one query for one peer. Raises PeerSilent when the guard says no."""
        peer = await self._roster.view(peer_id)
        if peer is None:
            raise PeerSilent("no longer paired")
        try:
            return await self._egress.clear(
                peer=peer, purpose=Purpose.QUERY, conversation=f"query:{query_id.hex()}", request_id=query_id.hex(),
                parts=(Part("query", owner_text(text)),), ask=self._ask, why="a search you asked for",
            )
        except EgressDenied as error:
            raise PeerSilent(f"the guard said no: {error.code}") from error


class PassageGuard:
    """The guard's word on passages for peers. Implements search.ports.PassageCheck and PassageClearing."""

    def __init__(self, egress: Egress, roster: Roster, ask: ConsentAsker) -> None:
        self._egress = egress
        self._roster = roster
        self._ask = ask

    def holds_secret(self, text: str) -> bool:
        """True when a secret stands in the text."""
        return bool(find_secrets(text))

    async def clear(self, peer_id: str, query_id: bytes, passages: Sequence[Passage]) -> EgressClearance:
        """A clearance for every text of these passages. Raises EgressDenied or UnknownPeer."""
        peer = await self._roster.view(peer_id)
        if peer is None:
            raise PeerSilent("no longer paired")
        parts = []
        for passage in passages:
            source = SHARE_PREFIX + passage.folder
            for role, text in (("title", passage.title), ("passage", passage.text), ("folder", passage.folder)):
                if text:
                    label = Labeled(text, Confidentiality.PERSONAL, Integrity.LOCAL, source, ())
                    parts.append(Part(role, label))
        return await self._egress.clear(
            peer=peer, purpose=Purpose.ANSWER, conversation=f"answer:{query_id.hex()}", request_id=query_id.hex(),
            parts=parts, ask=self._ask, why="a folder you share",
        )


class Searching:
    """The owner's searches and shares."""

    def __init__(
        self, client: SearchClient, indexer: Indexer, folders: SearchableFolders, notes: Path, database: Database,
        roster: Roster, inspector: Inspector, clock: Clock, own: OwnFolders,
    ) -> None:
        self._client = client
        self._indexer = indexer
        self._folders = folders
        self._notes = notes
        self._database = database
        self._roster = roster
        self._inspector = inspector
        self._clock = clock
        self._own = own

    async def start(self) -> None:
        """Watch the notes and the shared folders, and bring the index up to date."""
        shared = [Path(share.folder) for share in await self._database.read(shares.every)]
        kept = [one for one in shared if self._own.around(one) is None]     # older versions let one be shared
        self._folders.watch([self._notes, *kept])
        await self._indexer.refresh()

    async def search(self, query: str, limit: int, local: bool) -> SearchView:
        """Ranked passages of this node and of peers. Raises UsageError for a query without words."""
        await self._indexer.refresh()
        granting = self._roster.granting("search")
        peers = [SearchPeer(one, self._roster.name_of(one), granted=True, connected=True) for one in granting]
        try:
            result = await self._client.search(query, peers, limit=limit, local_only=local)
        except QueryRejected as error:
            raise UsageError(str(error) or "There is nothing to search for.", hint=error.hint) from error
        return SearchView(
            hits=[_passage(hit) for hit in result.hits], asked=[*result.answered, *result.silent],
            silent=list(result.silent), stayed_local=result.stayed_local,
        )

    async def preview_share(self, folder: str, peers: list[str]) -> ShareView:
        """What sharing would hand out: documents, passages with secrets, and the owner's own values in them."""
        path = _folder(folder)
        self._own.refuse(path)
        named = [self._roster.find(peer) for peer in peers]
        if not named:
            raise UsageError("Name at least one peer.", hint="kith share add FOLDER --with PEER")
        documents, withheld, texts = await trio.to_thread.run_sync(_read_all, path, self._own)
        hits: dict[str, None] = {}
        nothing = Vault(())
        for name, text in texts:
            for kind in await self._inspector.find_personal([text], nothing):
                hits[f"{kind} in {name}"] = None
        return ShareView(
            folder=folder_key(path), peers=[self._roster.name_of(one) for one in named], documents=documents,
            withheld=withheld, personal_hits=list(hits), confirmed=False,
        )

    async def share(self, folder: str, peers: list[str]) -> ShareView:
        """Share a folder with named peers; searchable at once."""
        view = await self.preview_share(folder, peers)
        await self._refuse_twin(view.folder)
        now_ms = to_ms(self._clock.now())
        for peer in peers:
            await self._database.write(shares.add, view.folder, self._roster.find(peer), now_ms)
        await self.start()
        return ShareView(
            folder=view.folder, peers=view.peers, documents=view.documents, withheld=view.withheld,
            personal_hits=view.personal_hits, confirmed=True,
        )

    async def _refuse_twin(self, key: str) -> None:
        """Consent is by the folder's own name on the wire, so two shared folders may not have the same one."""
        for share in await self._database.read(shares.every):
            if share.folder != key and Path(share.folder).name == Path(key).name:
                raise UsageError(
                    f"Another shared folder is called {Path(key).name} too: {share.folder}.", hint="Rename one of them."
                )

    async def shares(self) -> list[ShareView]:
        """Folders shared now."""
        found = []
        for share in await self._database.read(shares.every):
            documents, withheld, _ = await trio.to_thread.run_sync(_read_all, Path(share.folder), self._own)
            names = [self._roster.name_of(peer_id) for peer_id in share.peer_ids]
            missing = not await trio.to_thread.run_sync(Path(share.folder).is_dir)
            found.append(ShareView(
                folder=share.folder, peers=names, documents=documents, withheld=withheld, missing=missing))
        return found

    async def unshare(self, folder: str) -> str:
        """Stop sharing a folder; peers find it no longer. Raises UsageError."""
        key = folder_key(Path(folder))
        if not await self._database.write(shares.remove, key):
            raise UsageError(f"{key} is not shared.", hint="See what is: kith share list")
        await self.start()
        return key


def _folder(text: str) -> Path:
    path = Path(text).expanduser()
    if not path.is_dir():
        raise UsageError(f"{text} is no folder.", hint="Give the path of a folder with .md or .txt files.")
    return path


def _read_all(path: Path, own: OwnFolders) -> tuple[int, int, list[tuple[str, str]]]:
    """(documents, passages that hold a secret, every readable document's name and text)."""
    source = SearchableFolders([] if own.around(path) else [path], never=own.all)
    documents, withheld = 0, 0
    texts = []
    for state in source.files():
        read = source.read(state.folder, state.name)
        if read is None:
            continue
        documents += 1
        texts.append((state.name, read[1]))
        withheld += sum(bool(find_secrets(passage)) for passage in split_passages(read[1]))
    return documents, withheld, texts


def _passage(hit: Found) -> PassageView:
    return PassageView(
        origin=hit.peer_name or "this node", title=hit.title, folder=hit.label, text=hit.text, score=round(hit.score, 4)
    )
