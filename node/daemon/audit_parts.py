"""Builds the audit of one node and its self-test. Pure construction. Must not know the network."""

from pathlib import Path

import trio

from node.agent.tools.registry import Registry
from node.clock import Entropy
from node.daemon.audit import Auditor
from node.daemon.grant_desk import GrantDesk
from node.daemon.owner_sources import Sources
from node.daemon.privacy_desk import PrivacyDesk
from node.daemon.privacy_parts import PrivacyParts
from node.daemon.self_test import SelfTest
from node.paths import Paths
from node.privacy.credentials import CredentialStore
from node.settings import Settings
from node.sources.vcf import Contacts

__all__ = ["build_audit"]

_SAMPLE = 3     # contacts that are planted in the test's text


def build_audit(
    privacy: PrivacyParts, *, paths: Paths, settings: Settings, registry: Registry, desk: PrivacyDesk,
    grants: GrantDesk, credentials: CredentialStore, sources: Sources, entropy: Entropy, own_id: str,
) -> Auditor:
    """The audit over these parts."""
    test = SelfTest(
        privacy.egress, entropy, own_id=own_id, known=lambda: _some_names(sources.contacts),
        stored=credentials.also_known,
    )
    given = settings.sources
    folders = [
        (name, Path(place).expanduser() if place else paths.data_dir / name)
        for name, place in (("calendar", given.calendar), ("contacts", given.contacts), ("notes", given.notes))
    ] + [(f"files {name}", one.root) for name, one in sources.files.items()]
    return Auditor(
        paths=paths, settings=settings, registry=registry, privacy=desk, grants=grants, ledger=privacy.ledger,
        credentials=credentials, self_test=test, sources=folders,
    )


async def _some_names(contacts: Contacts) -> list[str]:
    """A few full names of at least two words: a single word may be a word of the language too."""
    names = await trio.to_thread.run_sync(contacts.names)
    return [name for name in names if len(name.split()) > 1][:_SAMPLE]
