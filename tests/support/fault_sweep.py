"""Sends one thing of each kind through the guard while one awaited call fails: the first, the second, and so on to the
last one before the bytes are handed over. Every port of the guard is wrapped: nets, shares, consent, ledger, head.

Must not know how a test or benchmark judges what came of it.
"""

from collections.abc import Awaitable, Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import trio
import trio.testing
from fixed import FixedClock
from guard_bench import HOME, MemoryHeads, MemoryLedgerRows, MemoryStream, Owner

from node.privacy.channel import GuardedChannel
from node.privacy.egress import Egress, Part, Purpose
from node.privacy.errors import EgressDenied
from node.privacy.inspector import Inspector
from node.privacy.labels import Confidentiality, Integrity, Labeled, Value, owner_text, public_text
from node.privacy.ledger import Ledger
from node.privacy.ledger_head import SeedSigner
from node.privacy.nets import SecretsNet, VaultNet
from node.privacy.patterns import PatternNet
from node.privacy.vault import Hit, Vault
from protocol import names
from protocol.frames import inference, mail, query

__all__ = ["KINDS", "SCENARIOS", "Outcome", "sweep"]

KINDS = ("raise", "hang", "nonsense", "cancel")
RID = bytes(range(16))
NAME = "Zdravka Korenjak"
GERMAN = f"Bitte schreib {NAME}, dass ich morgen nicht kommen kann."
EVENT = Labeled("15:00 Checkup", Confidentiality.PERSONAL, Integrity.LOCAL, "calendar", (Value("Checkup", "EVENT"),))
SCENARIOS = ("infer", "query", "mail", "answer")


@dataclass(slots=True)
class Faults:
    """Which awaited call fails, and how; counts them."""

    at: int | None = None
    kind: str = "raise"
    scope: trio.CancelScope = field(default_factory=trio.CancelScope)
    passed: list[str] = field(default_factory=list)
    counting: bool = True

    async def step(self, name: str) -> bool:
        """True when the call is to return nonsense."""
        if not self.counting:
            return False
        self.passed.append(name)
        if len(self.passed) - 1 != self.at:
            return False
        match self.kind:
            case "raise":
                raise RuntimeError(f"{name} broke on {NAME}")
            case "hang":
                await trio.sleep_forever()
            case "cancel":
                self.scope.cancel()
                await trio.lowlevel.checkpoint()
        return True


class _Net:
    gaps = ()

    def __init__(self, inner: Any, faults: Faults) -> None:
        self._inner = inner
        self._faults = faults
        self.name = inner.name

    async def scan(self, text: str, returned: Vault) -> Any:
        if await self._faults.step(f"{self.name} net"):
            return "nothing found, honest"
        return await self._inner.scan(text, returned)

    def holds(self, text: str) -> bool:
        return bool(self._inner.holds(text))


class _Detectors:
    name = "detectors"

    async def scan(self, text: str, returned: Vault) -> Sequence[Hit]:
        return []


class _Rows(MemoryLedgerRows):
    def __init__(self, faults: Faults) -> None:
        super().__init__()
        self._faults = faults

    async def append(self, make: Any, also: Any) -> Any:
        if await self._faults.step("ledger"):
            return "written, honest"
        return await super().append(make, also)


class _Heads(MemoryHeads):
    def __init__(self, faults: Faults) -> None:
        super().__init__()
        self._faults = faults

    async def store(self, head: bytes) -> None:
        if await self._faults.step("head"):     # it has nothing to return, so there is no nonsense but this
            raise OSError("read-only")
        await super().store(head)


class _Shares:
    def __init__(self, faults: Faults) -> None:
        self._faults = faults

    async def covers(self, source: str, peer_id: str) -> Any:
        return "yes, honest" if await self._faults.step("shares") else True


class _Asked(Owner):
    def __init__(self, faults: Faults) -> None:
        super().__init__()
        self._faults = faults

    async def ask(self, question: Any) -> Any:
        return "yes, honest" if await self._faults.step("consent") else await super().ask(question)


class _Wire(MemoryStream):
    def __init__(self, protocol: str, faults: Faults) -> None:
        super().__init__(HOME.peer_id, protocol)
        self._faults = faults

    async def write(self, data: bytes) -> None:
        self._faults.counting = False
        await super().write(data)


@dataclass(frozen=True, slots=True)
class Outcome:
    """What came of one run. failed: the call that was broken; None for the run without a fault."""

    scenario: str
    failed: str | None
    kind: str
    sent_bytes: int
    refusal: BaseException | None


async def _run(scenario: str, faults: Faults) -> tuple[int, BaseException | None]:
    vault = VaultNet()
    await vault.load([(NAME, "PERSON")])
    inspector = Inspector(
        vault=_Net(vault, faults), secrets=_Net(SecretsNet(), faults), detectors=_Net(_Detectors(), faults))
    inspector._patterns = _Net(PatternNet(), faults)
    rows = _Rows(faults)
    ledger = Ledger(
        rows, _Heads(faults), SeedSigner(b"s" * 32), chain_key=b"c" * 32, seal_key=b"b" * 32, clock=FixedClock())
    egress = Egress(inspector=inspector, ledger=ledger, shares=_Shares(faults), new_id=lambda: "q")
    wire = _Wire(_PROTOCOLS[scenario], faults)
    send = _SENDERS[scenario]
    try:
        with faults.scope:
            await send(egress, egress.channel(wire), _Asked(faults))
    except EgressDenied as refusal:
        return sum(map(len, wire.written)), refusal
    except RuntimeError as escaped:
        return sum(map(len, wire.written)), escaped
    return sum(map(len, wire.written)), trio.TooSlowError("cancelled") if faults.scope.cancelled_caught else None


async def _infer(egress: Egress, channel: GuardedChannel, ask: Owner) -> None:
    clearance = await egress.clear(
        peer=HOME, purpose=Purpose.INFER, conversation="c", request_id=RID.hex(), ask=ask,
        parts=(Part("system", public_text("Be brief.", source="kith")), Part("tool", EVENT),
               Part("user", owner_text(GERMAN))),
    )
    roles = ("system", "tool", "user")
    parts = tuple(inference.Part(role, text) for role, text in zip(roles, clearance.texts, strict=True))
    frame = inference.InferRequest(
        request_id=RID, prompt=inference.PromptParts(parts), max_tokens=8, deadline_s=5)
    await channel.send_cleared(frame, clearance)


async def _query(egress: Egress, channel: GuardedChannel, ask: Owner) -> None:
    text = Labeled("allotment rules", Confidentiality.PUBLIC, Integrity.LOCAL, "agent")
    clearance = await egress.clear(
        peer=HOME, purpose=Purpose.QUERY, conversation="c", request_id=RID.hex(), ask=ask, parts=(Part("query", text),))
    await channel.send_cleared(query.Query(RID, clearance.texts[0], 3), clearance)


async def _mail(egress: Egress, channel: GuardedChannel, ask: Owner) -> None:
    text = Labeled("the key is under the mat", Confidentiality.PUBLIC, Integrity.LOCAL, "agent")
    clearance = await egress.clear(
        peer=HOME, purpose=Purpose.MAIL, conversation="c", request_id=RID.hex(), ask=ask, parts=(Part("mail", text),))
    await channel.send_cleared(mail.Mail(1, RID, "chat.msg", clearance.texts[0], 5), clearance)


async def _answer(egress: Egress, channel: GuardedChannel, ask: Owner) -> None:
    text = Labeled("Bread wants an hour.", Confidentiality.PERSONAL, Integrity.LOCAL, "share:notes", ())
    clearance = await egress.clear(
        peer=HOME, purpose=Purpose.ANSWER, conversation="", request_id=RID.hex(), ask=ask,
        parts=(Part("passage", text),))
    await channel.send_cleared(query.Answer(RID, (query.Passage(RID, "", clearance.texts[0], ""),)), clearance)


_PROTOCOLS = {"infer": names.INFER, "query": names.QUERY, "mail": names.MAIL, "answer": names.QUERY}
_SENDERS: dict[str, Callable[[Egress, GuardedChannel, Owner], Awaitable[None]]] = {
    "infer": _infer, "query": _query, "mail": _mail, "answer": _answer,
}


def sweep(scenario: str, kind: str) -> Iterator[Outcome]:
    """One run without a fault, then one for each awaited call of it. Time passes at once."""
    whole = Faults()
    sent, refusal = _at_once(scenario, whole)
    yield Outcome(scenario, None, kind, sent, refusal)
    for at, name in enumerate(whole.passed):
        sent, refusal = _at_once(scenario, Faults(at, kind))
        yield Outcome(scenario, name, kind, sent, refusal)


def _at_once(scenario: str, faults: Faults) -> tuple[int, BaseException | None]:
    return trio.run(_run, scenario, faults, clock=trio.testing.MockClock(autojump_threshold=0))
