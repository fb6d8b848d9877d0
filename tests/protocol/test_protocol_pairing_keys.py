"""The key schedule, recomputed step by step from its description in docs/reference/protocols.md."""

import hashlib
import hmac
from typing import Any

from protocol.pairing_keys import PairingKeys, macs_equal

INPUT: dict[str, Any] = {
    "shared": b"s" * 32, "method": "code", "initiator_id": "A" * 52, "responder_id": "B" * 52,
    "first": b"1" * 33, "second": b"2" * 33,
}  # fmt: skip


def mac(key: bytes, data: bytes) -> bytes:
    return hmac.new(key, data, hashlib.sha256).digest()


def test_as_described() -> None:
    pieces = [b"/kith/pair/1", b"code", b"A" * 52, b"B" * 52, b"1" * 33, b"2" * 33]
    transcript = hashlib.sha256(b"".join(len(p).to_bytes(4, "big") + p for p in pieces)).digest()
    key = mac(transcript, b"s" * 32)
    keys = PairingKeys(**INPUT)
    assert keys.confirm_mac("initiator") == mac(mac(key, b"/kith/pair/1 confirm initiator\x01"), transcript)
    assert keys.card_mac("responder", b"card") == mac(mac(key, b"/kith/pair/1 card responder\x01"), b"card")
    both = hashlib.sha256(b"x").digest() + hashlib.sha256(b"y").digest()
    assert keys.accept_mac("initiator", b"x", b"y") == mac(mac(key, b"/kith/pair/1 accept initiator\x01"), both)
    assert keys.emoji_bytes() == mac(key, b"/kith/pair/1 emoji \x01")[:3]


def everything(**changes: Any) -> set[bytes]:
    keys = PairingKeys(**(INPUT | changes))
    macs = {keys.emoji_bytes() + b"emoji"}
    for side in ("initiator", "responder"):
        macs |= {keys.confirm_mac(side), keys.card_mac(side, b"x"), keys.accept_mac(side, b"x", b"y")}  # type: ignore[arg-type]
    return macs


def test_each_input_changes_every_key() -> None:
    plain = everything()
    assert len(plain) == 7
    for name, value in INPUT.items():
        changed = "secret" if name == "method" else value[:-1] + (b"z" if isinstance(value, bytes) else "z")
        assert not plain & everything(**{name: changed}), name


def test_moving_a_byte_between_fields_changes_everything() -> None:
    assert not everything() & everything(first=b"1" * 33 + b"2", second=b"2" * 32)


def test_macs_are_compared_whole() -> None:
    assert macs_equal(b"a" * 32, b"a" * 32)
    assert not macs_equal(b"a" * 32, b"a" * 31 + b"b")
    assert not macs_equal(b"a" * 32, b"a" * 31)
