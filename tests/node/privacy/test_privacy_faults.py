"""One awaited call of the guard fails, each in turn and in four ways, for each kind of thing that leaves.

Scanner missing, raising or timing out: nothing is sent; and so for the shares, the owner, the ledger and its head.
"""

import pytest
from fault_sweep import KINDS, NAME, SCENARIOS, sweep

from node.privacy.errors import EgressDenied


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("scenario", SCENARIOS)
def test_whatever_fails_before_the_bytes_are_handed_over_nothing_is_sent(scenario: str, kind: str) -> None:
    clean, *broken = sweep(scenario, kind)
    assert clean.refusal is None
    assert clean.sent_bytes > 0         # control: without a fault it goes out
    assert len(broken) >= {"infer": 25, "query": 8, "mail": 8, "answer": 7}[scenario]
    assert [one for one in broken if one.sent_bytes] == []
    if kind == "cancel":
        return
    assert [one for one in broken if not isinstance(one.refusal, EgressDenied)] == []
    for one in broken:
        assert isinstance(one.refusal, EgressDenied)
        assert one.refusal.text.endswith(".") or "(" in one.refusal.text
        assert NAME not in str(one.refusal)
        assert one.refusal.hint


def test_every_port_of_the_guard_is_among_them() -> None:
    failed = {one.failed for scenario in SCENARIOS for one in sweep(scenario, "raise")}
    nets = {"vault net", "patterns net", "secrets net", "detectors net"}
    assert failed >= nets | {"shares", "consent", "ledger", "head"}


def test_a_guard_that_takes_a_fault_for_nothing_found_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    async def swallow(net, text, returned, *, timeout_s):
        try:
            return await net.scan(text, returned)
        except Exception:
            return []

    monkeypatch.setattr("node.privacy.inspector.run_net", swallow)
    assert any(one.sent_bytes for one in list(sweep("infer", "raise"))[1:])
