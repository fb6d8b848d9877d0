"""Derived grants: each holder can narrow what it holds and hand it on; nobody can widen it, forge it or outlive it."""

from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from nacl.signing import SigningKey

from protocol import canonical, limits
from protocol.derived_grants import DerivedGrant, derive, verify_derived
from protocol.errors import (
    BadGrant,
    GrantError,
    GrantExpired,
    GrantForSomeoneElse,
    GrantWithdrawn,
    LocalProtocolError,
)
from protocol.grants import ALL_DAY, Grant, SignedGrant, narrows, sign, verify
from protocol.ids import peer_id_from_public_key

SEEDS = [bytes([n]) * 32 for n in range(1, 8)]
IDS = [peer_id_from_public_key(bytes(SigningKey(seed).verify_key)) for seed in SEEDS]
ROOT = Grant(
    services=("infer", "mail"), models=("big", "small"), tokens_per_day=1000, max_context=4096, max_concurrency=2,
    not_after_s=5000, issued_by=IDS[0], issued_to=IDS[1], epoch=3, half_hours=2**40 - 1, zone="Europe/Rome",
)
HELD = sign(ROOT, SEEDS[0])
LIMITS = st.fixed_dictionaries({}, optional={
    "services": st.frozensets(st.sampled_from(("infer", "mail", "search"))),
    "models": st.frozensets(st.sampled_from(("*", "big", "small", "other"))),
    "tokens_per_day": st.integers(0, 2000),
    "max_context": st.integers(0, 8000),
    "max_concurrency": st.integers(0, 4),
    "not_after_s": st.integers(4000, 6000),
    "half_hours": st.integers(0, ALL_DAY),
})


def worth(data: bytes, holder: int, **changes: Any) -> Grant:
    facts: dict[str, Any] = {"issuer": IDS[0], "holder": IDS[holder], "now_s": 4000, "min_epoch": 3}
    return verify_derived(data, **(facts | changes))


def forged(seed: bytes, parties: tuple[str, str], **changes: Any) -> SignedGrant:
    """A step as a dishonest holder would write it."""
    body = canonical.encode(msgspec.structs.replace(
        ROOT, issued_by=parties[0], issued_to=parties[1], **changes,
    ))
    return SignedGrant(body, SigningKey(seed).sign(b"kith derived grant 1\x00" + body).signature)


def test_a_holder_hands_on_less() -> None:
    chain = derive(HELD, SEEDS[1], to=IDS[2], services=frozenset({"infer"}), tokens_per_day=100)
    inner = worth(chain, 2)
    assert (inner.services, inner.tokens_per_day, inner.issued_by, inner.issued_to) == (("infer",), 100, IDS[0], IDS[2])
    again = worth(derive(chain, SEEDS[2], to=IDS[3], models=frozenset({"big"}), tokens_per_day=500), 3)
    assert (again.models, again.tokens_per_day) == (("big",), 100)


@settings(max_examples=60)
@given(st.lists(LIMITS, min_size=1, max_size=limits.MAX_DERIVED_GRANTS))
def test_no_chain_of_steps_widens(steps: list[dict[str, Any]]) -> None:
    data, before = HELD, ROOT
    for number, narrower in enumerate(steps, 1):
        data = derive(data, SEEDS[number], to=IDS[number + 1], **narrower)
        found = worth(data, number + 1)
        assert narrows(before, found) and narrows(ROOT, found)
        before = found


@pytest.mark.parametrize("wider", [
    {"services": ("infer", "mail", "search")}, {"models": ("*",)}, {"tokens_per_day": 1001}, {"max_context": 4097},
    {"max_concurrency": 3}, {"not_after_s": 5001}, {"half_hours": ALL_DAY}, {"zone": "UTC"}, {"epoch": 4}, {"epoch": 2},
])
def test_a_wider_step_is_refused(wider: dict[str, Any]) -> None:
    with pytest.raises(BadGrant):
        worth(canonical.encode(DerivedGrant(HELD, (forged(SEEDS[1], (IDS[1], IDS[2]), **wider),))), 2)
    worth(canonical.encode(DerivedGrant(HELD, (forged(SEEDS[1], (IDS[1], IDS[2])),))), 2)  # as wide is fine


def test_a_step_by_somebody_else_is_refused() -> None:
    with pytest.raises(BadGrant):
        worth(canonical.encode(DerivedGrant(HELD, (forged(SEEDS[4], (IDS[1], IDS[2])),))), 2)
    with pytest.raises(GrantForSomeoneElse):
        worth(canonical.encode(DerivedGrant(HELD, (forged(SEEDS[4], (IDS[4], IDS[2])),))), 2)
    with pytest.raises(LocalProtocolError):
        derive(HELD, SEEDS[2], to=IDS[3])


def test_it_ends_with_the_issuers_grant() -> None:
    chain = derive(HELD, SEEDS[1], to=IDS[2], not_after_s=4500)
    with pytest.raises(GrantExpired):
        worth(chain, 2, now_s=4501)
    with pytest.raises(GrantWithdrawn):
        worth(chain, 2, min_epoch=4)
    with pytest.raises(GrantForSomeoneElse):
        worth(chain, 3)
    with pytest.raises(GrantForSomeoneElse):
        worth(chain, 2, issuer=IDS[5])


def test_a_step_is_no_grant_of_its_signer() -> None:
    """What a holder signed for handing on must not open its own node."""
    (step,) = canonical.decode(derive(HELD, SEEDS[1], to=IDS[2]), DerivedGrant).steps
    with pytest.raises(BadGrant):
        verify(canonical.encode(step), issuer=IDS[1], holder=IDS[2], now_s=4000, min_epoch=0)


def test_chains_have_an_end() -> None:
    data = HELD
    for number in range(1, 1 + limits.MAX_DERIVED_GRANTS):
        data = derive(data, SEEDS[number], to=IDS[number + 1])
    with pytest.raises(LocalProtocolError):
        derive(data, SEEDS[5], to=IDS[6])


@settings(max_examples=150)
@given(st.data())
def test_any_changed_byte_is_refused(data: st.DataObject) -> None:
    raw = bytearray(derive(HELD, SEEDS[1], to=IDS[2], tokens_per_day=5))
    raw[data.draw(st.integers(0, len(raw) - 1))] ^= data.draw(st.integers(1, 255))
    with pytest.raises(GrantError):
        worth(bytes(raw), 2)


@given(st.binary(max_size=80))
def test_noise_is_refused(noise: bytes) -> None:
    with pytest.raises(BadGrant):
        worth(noise, 2)
