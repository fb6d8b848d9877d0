"""The nets that look for personal values and secrets in a text, behind one shape, and the only way they are run.

A net that is not loaded, raises, hangs or returns nonsense ends in GuardFailed: never in an empty result.
Must not know labels, levels or peers.
"""

from collections.abc import Iterable, Sequence
from typing import Protocol

import trio

from node.privacy.errors import GuardFailed
from node.privacy.off_loop import THREADS, off_loop
from node.privacy.secrets import find_secrets
from node.privacy.vault import Hit, Vault

__all__ = ["KnownValues", "Net", "SecretsNet", "VaultNet", "run_net"]



class Net(Protocol):
    """One way to find what must not leave."""

    @property
    def name(self) -> str:
        """As shown in the consent question: "vault", "secrets", "detectors"."""
        ...

    async def scan(self, text: str, returned: Vault) -> Sequence[Hit]:
        """Every hit in the text. returned: values that tools returned in this conversation."""
        ...


class KnownValues(Net, Protocol):
    """A net that is a list of the owner's values."""

    @property
    def gaps(self) -> tuple[str, ...]:
        """What of the owner's values it could not read, in words for the consent question; as of the last scan."""
        ...

    def holds(self, text: str) -> bool:
        """Whether this short text is, or has in it, one of the values; True when that is not known."""
        ...


class VaultNet:
    """The values of the owner's contacts and calendar, and what tools returned."""

    name = "vault"

    def __init__(self) -> None:
        """Not loaded yet: every scan fails until load() is done."""
        self._vault: Vault | None = None

    @property
    def gaps(self) -> tuple[str, ...]:
        """None: it holds what it was given."""
        return ()

    @property
    def size(self) -> int | None:
        """How many values it holds; None when it is not loaded."""
        return None if self._vault is None else len(self._vault)

    async def load(self, values: Iterable[tuple[str, str]]) -> None:
        """Replace all values, each (text, type). While it fails, nothing leaves."""
        try:
            listed = list(values)
            self._vault = await trio.to_thread.run_sync(Vault, listed, limiter=THREADS)
        except Exception:
            self._vault = None
            raise

    def holds(self, text: str) -> bool:
        """True for a value of the owner's, and while nothing is loaded."""
        return self._vault is None or bool(self._vault.find(text))

    async def scan(self, text: str, returned: Vault) -> Sequence[Hit]:
        """Hits of both. Raises GuardFailed when it is not loaded."""
        if self._vault is None:
            raise GuardFailed("the owner's contacts and calendar are not loaded")
        found = await off_loop(len(text), self._vault.find, text)
        return [*found, *await off_loop(len(text), returned.find, text)]


class SecretsNet:
    """Passwords, keys, codes, cards."""

    name = "secrets"

    async def scan(self, text: str, returned: Vault) -> Sequence[Hit]:
        """Hits; the type says what kind of secret. Positions are approximate: secrets are refused, never masked."""
        found = await off_loop(len(text), find_secrets, text)
        return [Hit(hit.start, hit.end, hit.kind) for hit in found]


async def run_net(net: Net | None, text: str, returned: Vault, *, timeout_s: float) -> list[Hit]:
    """The net's hits, checked. Raises GuardFailed for a missing net, an exception, a timeout, or hits that are none."""
    if net is None:
        raise GuardFailed("a net is missing")
    try:
        with trio.fail_after(timeout_s):
            hits = await net.scan(text, returned)
    except GuardFailed:
        raise
    except trio.TooSlowError:
        raise GuardFailed(f"the {net.name} net took longer than {timeout_s:g} s") from None
    except Exception as error:
        # the error's own text may quote what it was scanning, so only its type is told
        raise GuardFailed(f"the {net.name} net failed with {type(error).__name__}") from None
    if not isinstance(hits, list | tuple) or not all(_is_hit(hit, len(text)) for hit in hits):
        raise GuardFailed(f"the {net.name} net returned nonsense")
    return list(hits)


def _is_hit(hit: object, length: int) -> bool:
    return (
        isinstance(hit, Hit) and isinstance(hit.start, int) and isinstance(hit.end, int)
        and isinstance(hit.type, str) and bool(hit.type) and 0 <= hit.start < hit.end <= length
    )
