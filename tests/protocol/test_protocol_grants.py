"""Grants: genuine or refused, narrower but never wider, gone when their time or epoch is over."""

from typing import Any

import msgspec
import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from hypothesis import given, settings
from hypothesis import strategies as st
from nacl.signing import SigningKey

from protocol import canonical
from protocol.errors import (
    BadFrame,
    BadGrant,
    GrantError,
    GrantExpired,
    GrantForSomeoneElse,
    GrantWithdrawn,
    LocalProtocolError,
)
from protocol.grants import (
    ALL_DAY,
    ANY_MODEL,
    Grant,
    SignedGrant,
    attenuate,
    covers,
    is_open,
    opens_in_half_hours,
    permits,
    sign,
    verify,
)
from protocol.ids import peer_id_from_public_key

SEED, OTHER_SEED = b"\x01" * 32, b"\x02" * 32
ISSUER, HOLDER, STRANGER = (
    peer_id_from_public_key(bytes(SigningKey(seed).verify_key)) for seed in (SEED, OTHER_SEED, b"\x03" * 32)
)
SERVICES = ("infer", "mail", "models", "relay", "search")
MODELS = (ANY_MODEL, "big", "ab" * 32, "small")


def grant(**changes: Any) -> Grant:
    fields: dict[str, Any] = {
        "services": ("infer", "mail"), "models": ("big",), "tokens_per_day": 1000, "max_context": 4096,
        "max_concurrency": 2, "not_after_s": 5000, "issued_by": ISSUER, "issued_to": HOLDER, "epoch": 3,
    }  # fmt: skip
    return Grant(**(fields | changes))


def check(data: bytes, **changes: Any) -> Grant:
    facts: dict[str, Any] = {"issuer": ISSUER, "holder": HOLDER, "now_s": 4000, "min_epoch": 3}
    return verify(data, **(facts | changes))


def test_signed_and_verified() -> None:
    assert check(sign(grant(), SEED)) == grant()


def test_the_signature_is_plain_ed25519() -> None:
    signed = canonical.decode(sign(grant(), SEED), SignedGrant)
    # another implementation makes the same (RFC 8032 signatures are deterministic)
    key = Ed25519PrivateKey.from_private_bytes(SEED)
    assert signed.signature == key.sign(b"kith grant 1\x00" + signed.body)


def test_only_the_issuer_can_sign() -> None:
    with pytest.raises(LocalProtocolError):
        sign(grant(), OTHER_SEED)


def test_expiry_below_at_and_above() -> None:
    data = sign(grant(), SEED)
    for now_s in (0, 4999, 5000):
        check(data, now_s=now_s)
    with pytest.raises(GrantExpired):
        check(data, now_s=5001)


def test_epoch_below_at_and_above() -> None:
    data = sign(grant(), SEED)
    for epoch in (0, 3):
        check(data, min_epoch=epoch)
    with pytest.raises(GrantWithdrawn):
        check(data, min_epoch=4)


def test_worthless_to_and_from_anyone_else() -> None:
    data = sign(grant(), SEED)
    for wrong in ({"holder": STRANGER}, {"issuer": STRANGER}, {"issuer": HOLDER, "holder": ISSUER}):
        with pytest.raises(GrantForSomeoneElse):
            check(data, **wrong)


def test_a_grant_that_the_holder_signed_itself() -> None:
    body = canonical.encode(grant())
    forged = SignedGrant(body, SigningKey(OTHER_SEED).sign(b"kith grant 1\x00" + body).signature)
    with pytest.raises(BadGrant):
        check(canonical.encode(forged))
    with pytest.raises(GrantForSomeoneElse):  # genuine, but issued by the holder
        check(sign(grant(issued_by=HOLDER), OTHER_SEED))


def test_a_signature_for_another_purpose_does_not_count() -> None:
    body = canonical.encode(grant())
    with pytest.raises(BadGrant):
        check(canonical.encode(SignedGrant(body, SigningKey(SEED).sign(body).signature)))


@settings(max_examples=300)
@given(st.data())
def test_any_changed_byte_is_refused(data: st.DataObject) -> None:
    raw = bytearray(sign(grant(), SEED))
    raw[data.draw(st.integers(0, len(raw) - 1))] ^= data.draw(st.integers(1, 255))
    with pytest.raises(GrantError):
        check(bytes(raw))


@given(st.binary(max_size=80))
def test_noise_is_refused(noise: bytes) -> None:
    with pytest.raises(BadGrant):
        check(noise)


@pytest.mark.parametrize(
    "changes",
    [{"services": ("mail", "infer")}, {"services": ("mail", "mail")}, {"models": ("b", "a")}, {"models": ("a", "a")}],
)
def test_lists_have_one_order(changes: dict[str, Any]) -> None:
    with pytest.raises(ValueError):
        grant(**changes)


def test_an_issuer_that_is_no_key_is_refused() -> None:
    bad = "12D3KooW" + "z" * 44
    body = canonical.encode(grant(issued_by=bad))
    with pytest.raises(BadGrant):
        check(canonical.encode(SignedGrant(body, bytes(64))))


def test_unknown_versions_are_refused() -> None:
    raw = msgspec.msgpack.decode(canonical.encode(grant()))
    assert raw[0] == "grant1"
    with pytest.raises(BadFrame):
        canonical.decode(msgspec.msgpack.encode(["grant2", *raw[1:]]), Grant)


GRANTS = st.builds(
    grant,
    services=st.sets(st.sampled_from(SERVICES)).map(lambda s: tuple(sorted(s))),
    models=st.sets(st.sampled_from(MODELS)).map(lambda s: tuple(sorted(s))),
    tokens_per_day=st.integers(0, 3),
    max_context=st.integers(0, 3),
    max_concurrency=st.integers(0, 3),
    not_after_s=st.integers(0, 3),
    epoch=st.integers(0, 2),
    half_hours=st.integers(0, ALL_DAY),
    zone=st.sampled_from(["UTC", "Europe/Rome"]),
)
LIMITS = st.fixed_dictionaries(
    {},
    optional={
        "services": st.frozensets(st.sampled_from(SERVICES)),
        "models": st.frozensets(st.sampled_from(MODELS)),
        "tokens_per_day": st.integers(0, 5),
        "max_context": st.integers(0, 5),
        "max_concurrency": st.integers(0, 5),
        "not_after_s": st.integers(0, 5),
        "half_hours": st.integers(0, ALL_DAY),
    },
)
REQUESTS = [(service, name) for service in SERVICES for name in ("big", "small", "unknown", None)]


def allowed(one: Grant) -> set[tuple[str, str | None]]:
    return {
        (service, name)
        for service, name in REQUESTS
        if permits(one, service, model_name=name)  # type: ignore[arg-type]
    }


def open_hours(one: Grant) -> set[int]:
    return {n for n in range(48) if is_open(one, n)}


@given(GRANTS, LIMITS)
def test_attenuation_never_widens(outer: Grant, limits: dict[str, Any]) -> None:
    inner = attenuate(outer, **limits)
    assert covers(outer, inner)
    assert allowed(inner) <= allowed(outer)
    for name in ("tokens_per_day", "max_context", "max_concurrency", "not_after_s"):
        assert getattr(inner, name) <= min(getattr(outer, name), limits.get(name, 10))
    assert set(inner.services) <= limits.get("services", set(SERVICES))
    assert open_hours(inner) <= open_hours(outer)
    assert open_hours(inner) <= {n for n in range(48) if limits.get("half_hours", ALL_DAY) >> n & 1}
    canonical.encode(inner)


@given(GRANTS, LIMITS, LIMITS)
def test_the_order_of_attenuating_does_not_matter(outer: Grant, first: dict[str, Any], second: dict[str, Any]) -> None:
    one, other = attenuate(attenuate(outer, **first), **second), attenuate(attenuate(outer, **second), **first)
    assert allowed(one) == allowed(other)
    assert one.tokens_per_day == other.tokens_per_day


@given(GRANTS, GRANTS)
def test_covers_means_that_nothing_more_is_allowed(outer: Grant, inner: Grant) -> None:
    if covers(outer, inner):
        assert allowed(inner) <= allowed(outer)
        assert inner.max_context <= outer.max_context
        assert inner.not_after_s <= outer.not_after_s
        assert inner.epoch <= outer.epoch
        assert open_hours(inner) <= open_hours(outer)
        if inner.zone != outer.zone:  # the same bits mean other moments there
            assert outer.half_hours == ALL_DAY or inner.half_hours == 0


@given(GRANTS)
def test_covers_itself_and_not_more(one: Grant) -> None:
    assert covers(one, one)
    for name in ("tokens_per_day", "max_context", "max_concurrency", "not_after_s", "epoch"):
        assert not covers(one, msgspec.structs.replace(one, **{name: getattr(one, name) + 1}))
    assert not covers(one, msgspec.structs.replace(one, issued_to=STRANGER))


def test_empty_lists_mean_none() -> None:
    assert allowed(grant(services=(), models=(ANY_MODEL,))) == set()
    assert not permits(grant(models=()), "infer", model_name="big")


def test_permits() -> None:
    one = grant(services=("infer", "mail"), models=("ab" * 32, "big"))
    assert permits(one, "mail")
    assert not permits(one, "search")
    assert permits(one, "infer", model_name="big")
    assert permits(one, "infer", model_name="renamed", model_digest="ab" * 32)
    assert not permits(one, "infer", model_name="small", model_digest="cd" * 32)
    assert not permits(one, "infer")
    assert permits(grant(models=(ANY_MODEL,)), "infer")


def test_star_is_narrowed_to_names_and_not_back() -> None:
    star = grant(models=(ANY_MODEL,))
    assert attenuate(star, models=frozenset({"big"})).models == ("big",)
    assert attenuate(grant(), models=frozenset({ANY_MODEL})).models == ("big",)
    assert attenuate(grant(), models=frozenset({"small"})).models == ()


def test_hours_of_the_day_by_hand() -> None:
    night = grant(half_hours=(2**14 - 1) | (2**4 - 1) << 44)  # 22:00 to 07:00
    assert [n for n in range(48) if is_open(night, n)] == [*range(14), *range(44, 48)]
    assert opens_in_half_hours(night, 14) == 30  # 07:00: in 15 hours
    assert opens_in_half_hours(night, 43) == 1
    assert opens_in_half_hours(night, 3) == 0
    assert opens_in_half_hours(grant(half_hours=0), 3) is None
    assert not covers(night, grant()) and covers(grant(), night)


@pytest.mark.parametrize("zone", ["", "/etc/passwd", "Europe/../x", "a b", "1/2", "A" * 40])
def test_a_zone_is_a_name(zone: str) -> None:
    with pytest.raises(LocalProtocolError):
        sign(grant(zone=zone), SEED)
    body = msgspec.msgpack.encode(grant(zone=zone))
    signed = SignedGrant(body, SigningKey(SEED).sign(b"kith grant 1\x00" + body).signature)
    with pytest.raises(BadGrant):
        check(canonical.encode(signed))
