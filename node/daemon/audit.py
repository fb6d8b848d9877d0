"""kith audit: what the agent may reach, who may see what, and whether the guard really holds, on this very machine.

Implements node.api.ports.Auditing. Must not change anything; the self-test leaves its own entries in the ledger.
"""

from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path

import trio

from node import selfcheck
from node.agent.tools.registry import Registry
from node.api.privacy_views import AuditPeer, AuditTool, AuditView
from node.api.views import Check
from node.counting import counted
from node.daemon.grant_desk import GrantDesk
from node.daemon.privacy_desk import PrivacyDesk
from node.daemon.self_test import SelfTest
from node.errors import KithError
from node.identity import keystore
from node.paths import Paths
from node.privacy.credentials import CredentialStore
from node.privacy.ledger import Ledger
from node.privacy.ledger_records import Standing
from node.settings import Settings

__all__ = ["Auditor"]

DEADLINE_S = 60.0


class Auditor:
    """One per node."""

    def __init__(
        self, *, paths: Paths, settings: Settings, registry: Registry, privacy: PrivacyDesk, grants: GrantDesk,
        ledger: Ledger, credentials: CredentialStore, self_test: SelfTest, sources: Sequence[tuple[str, Path]],
    ) -> None:
        """sources: what the owner calls his folders, and where they are."""
        self._paths = paths
        self._settings = settings
        self._registry = registry
        self._privacy = privacy
        self._grants = grants
        self._ledger = ledger
        self._credentials = credentials
        self._self_test = self_test
        self._sources = sources

    async def look(self) -> AuditView:
        """Everything, each part within a deadline."""
        checks: list[Check] = []
        for name, part in (
            ("files", self._files), ("key", self._key), ("secrets", self._secrets), ("guard", self._guard),
            ("ledger", self._look_at_ledger), ("self-test", self._test),
        ):
            checks += await _bounded(name, part)
        view = await self._privacy.show(None)
        peers = []
        for peer in view.peers:
            grant = await self._grants.show(peer.peer_id)
            may = grant.services if grant.state == "in force" else []
            peers.append(AuditPeer(peer=peer.peer, trust=peer.trust, may_ask_for=may, levels=peer.levels))
        return AuditView(
            ok=not any(check.state == "problem" for check in checks), tools=self._tools(), peers=peers,
            folders={name: str(folder) for name, folder in self._sources}, denials=view.denials,
            conversations=view.conversations, checks=checks,
        )

    def _tools(self) -> list[AuditTool]:
        """What the agent can do; the consequential show their exact effect and wait for a yes."""
        return [
            AuditTool(name=spec.name, kind=spec.kind, consequential=spec.kind != "read", does=spec.description)
            for spec in self._registry.specs()
        ]

    async def _files(self) -> list[Check]:
        found = await trio.to_thread.run_sync(selfcheck.check_file_modes, self._paths)
        strays = await trio.to_thread.run_sync(_open_to_others, (self._paths.data_dir, self._paths.state_dir))
        checks = [Check(name=one.name, state=one.state, text=one.text, hint=one.hint) for one in found]
        return [*checks, *(
            Check(name="files", state="problem", text=f"{path} is open to others", hint=f"Close it: chmod 600 {path}")
            for path in strays[:10]
        )]

    async def _key(self) -> list[Check]:
        if await trio.to_thread.run_sync(keystore.is_locked, self._paths.identity_file):
            return [Check(name="key", state="ok", text="locked by a passphrase")]
        return [Check(
            name="key", state="warning", text="open to whoever can read its file: full-disk encryption is what is left",
            hint="Lock it: kith key passphrase")]

    async def _secrets(self) -> list[Check]:
        upstream = self._settings.upstream
        if upstream.key_file and not upstream.key:
            return [Check(
                name="secrets", state="warning", text=f"the engine's key lies in a file: {upstream.key_file}",
                hint=f"Move it: kith secrets add engine --for upstream --from-file {upstream.key_file} "
                     "&& kith config set upstream.key engine")]
        count = len(self._credentials.all())
        return [Check(name="secrets", state="ok", text=f"{count} stored, sealed; no text that holds one may leave")]

    async def _guard(self) -> list[Check]:
        view = await self._privacy.show(None)
        nets = f"looked through by: {', '.join(view.nets)}"
        if view.nets_missing:
            return [Check(
                name="guard", state="warning", text=f"{nets}; missing: {', '.join(view.nets_missing)}, so each free "
                "text to a peer is shown to you first", hint="Install them: pipx inject kith-node 'kith-node[guard]'")]
        return [Check(name="guard", state="ok", text=nets)]

    async def _look_at_ledger(self) -> list[Check]:
        report = await self._ledger.verify()
        if not report.ok:
            text = "; ".join([*report.problems, *report.disputes][:3])
            return [Check(name="ledger", state="problem", text=text, hint="See all of it: kith ledger verify")]
        open_ones = report.standings.get(Standing.UNRECEIPTED, 0)
        text = f"{counted(report.entries, 'entry', 'entries')}, chain intact; " \
               f"{report.standings.get(Standing.RECEIPTED, 0)} signed for by their receivers, {open_ones} not"
        hint = "Ask a peer for them: kith ledger verify --with PEER" if open_ones else ""
        return [Check(name="ledger", state="ok", text=text, hint=hint)]

    async def _test(self) -> list[Check]:
        return [
            Check(name=one.name, state=one.state, text=one.text, hint=one.hint) for one in await self._self_test.run()
        ]


async def _bounded(name: str, part: Callable[[], Awaitable[list[Check]]]) -> list[Check]:
    with trio.move_on_after(DEADLINE_S):
        try:
            return await part()
        except (KithError, OSError) as error:
            return [Check(name=name, state="problem", text=f"could not be looked at: {error}", hint="Run: kith doctor")]
    return [Check(name=name, state="problem", text=f"no answer within {DEADLINE_S:.0f} s", hint="Run: kith doctor")]


def _open_to_others(folders: Sequence[Path]) -> list[Path]:
    """Files with something in them that others may read or write, although the folder keeps them out for now."""
    return [
        path for folder in folders for path in sorted(folder.glob("*"))
        if path.is_file() and not path.is_symlink() and path.stat().st_size and path.stat().st_mode & 0o077
    ]
