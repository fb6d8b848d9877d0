"""The self-test passes with the real guard, and says so when the guard is blind, deaf or missing."""

import base64
import json
import urllib.parse
from typing import Any

import pytest
from fixed import FixedClock, SeededEntropy
from guard_bench import BlindInspector, GuardBench, guard_bench
from receipt_pair import InlineDatabase

from node.daemon.self_test import NULL_PEER, Finding, SelfTest, search
from node.privacy.credentials import CredentialsNet, CredentialStore
from node.privacy.inspector import Inspector
from node.privacy.nets import SecretsNet, VaultNet

NAMES = ["Zdravka Korenjak", "Ole Brummbaer"]


async def bench(**changes: Any) -> tuple[GuardBench, SelfTest]:
    """A guard that knows two contacts, and its test. changes: inspector, names."""
    names: list[str] = changes.get("names", NAMES)
    vault = VaultNet()
    await vault.load([(name, "PERSON") for name in names])
    store = CredentialStore(InlineDatabase(), b"w" * 32, FixedClock())  # type: ignore[arg-type]
    await store.load()
    real = Inspector(vault=vault, secrets=CredentialsNet(SecretsNet(), store), detectors=None)
    guard = await guard_bench(inspector=changes.get("inspector", real))

    async def known() -> list[str]:
        return names

    test = SelfTest(guard.egress, SeededEntropy(3), own_id=NULL_PEER, known=known, stored=store.also_known)
    return guard, test


def states(findings: list[Finding]) -> dict[str, str]:
    return {finding.name.removeprefix("self-test: "): finding.state for finding in findings}


async def test_the_real_guard_passes_and_nothing_of_it_is_kept_in_clear() -> None:
    guard, test = await bench()
    assert states(await test.run()) == {
        "labelled values": "ok", "your own contacts": "ok", "secrets": "ok", "questions to peers": "ok"}
    entries = await guard.ledger.newest(limit=9)
    assert [(view.entry.peer_id, view.close.outcome if view.close else "") for view in entries] == [
        (NULL_PEER, "self-test")] * 2
    assert not any(search("".join(view.texts or ()).encode(), name) for view in entries for name in NAMES)
    assert {peer for peer, _, _ in guard.tapped} == {NULL_PEER}


async def test_negative_control_a_blind_guard_fails_everywhere() -> None:
    _, test = await bench(inspector=BlindInspector())
    found = await test.run()
    assert states(found)["your own contacts"] == "problem"
    assert states(found)["secrets"] == "problem"
    assert all(finding.hint for finding in found if finding.state == "problem")
    assert not any(name in finding.text for finding in found for name in NAMES)     # nor does it quote a value


async def test_a_missing_net_is_a_problem_and_not_a_pass() -> None:
    _, test = await bench(inspector=Inspector(vault=None, secrets=None, detectors=None))
    assert set(states(await test.run()).values()) == {"problem"}


async def test_the_planted_password_is_forgotten_afterwards() -> None:
    guard, test = await bench()
    await test.run()
    await test.run()
    assert len(await guard.ledger.newest(limit=9)) == 4


@pytest.mark.parametrize("data", [
    b"to ZDRAVKA korenjak", b"Zdravka  Korenjak", b"kajneroK akvardZ", b"Zdravka Korenjak".hex().encode(),
    base64.b64encode(b"x Zdravka Korenjak y"), b"zdravka%20korenjak", "Zdravka Korenjak".encode("utf-16-le"),
])
def test_the_search_sees_a_value_in_other_clothes(data: bytes) -> None:
    assert search(data, "Zdravka Korenjak")
    assert not search(data, "Ole Brummbaer")


@pytest.mark.parametrize("name", [
    "Иван Петров", "Štěpánka Čermáková", "Şahin İpek", "ΟΔΥΣΣΕΥΣ Ράπτης", "王小明", "Anja Groß",
])
def test_the_search_sees_names_in_any_alphabet(name: str) -> None:
    """The owner's own contacts are planted: a judge that is blind for one of them would fail the whole audit."""
    clothes = [
        name, name.upper(), name[::-1], name.replace(" ", "-"), name.casefold(), urllib.parse.quote(name),
        json.dumps(name),
    ]
    packed = [b"\x93\xa4user\xda\x00\xc3 " + one.encode() + b"\xc3\x01" for one in clothes]
    for data in (*packed, name.encode("utf-16-le"), base64.b64encode(f"x {name} y".encode())):
        assert search(data, name)
        assert not search(data, "Ole Brummbær")


async def test_contacts_in_another_alphabet_pass() -> None:
    guard, test = await bench(names=["Иван Петров", "Štěpánka Čermáková"])
    assert states(await test.run())["your own contacts"] == "ok"
    assert guard.tapped
