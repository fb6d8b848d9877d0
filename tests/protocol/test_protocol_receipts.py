"""A receipt counts for one sender, one receiver, one request and exactly these bytes."""

from dataclasses import dataclass

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from nacl.signing import SigningKey

from protocol import canonical, framing, names
from protocol.errors import RemoteProtocolError
from protocol.frames.receipt import Receipt, ReceiptsEnd, ReceiptsWanted
from protocol.ids import peer_id_from_public_key
from protocol.receipts import Received, countersign, is_genuine


@dataclass
class Device:
    """A key and its id."""

    key: SigningKey

    @property
    def peer_id(self) -> str:
        return peer_id_from_public_key(bytes(self.key.verify_key))

    def sign(self, data: bytes) -> bytes:
        return self.key.sign(data).signature


PHONE, HOME, OTHER = (Device(SigningKey(bytes([number]) * 32)) for number in (1, 2, 3))
ID = bytes(range(16))


def signed(by: Device = HOME, **changes: object) -> Receipt:
    fields = {
        "sender": PHONE.peer_id, "receiver": HOME.peer_id, "request_id": ID, "purpose": "infer", "size_bytes": 77,
        "digest": b"d" * 32,
    }
    return countersign(Received(**(fields | changes)), by.sign)  # type: ignore[arg-type]


def test_a_true_receipt_is_genuine() -> None:
    assert is_genuine(signed(), sender=PHONE.peer_id, receiver=HOME.peer_id)


def test_the_signed_bytes_by_hand() -> None:
    # the domain, NUL, an array of seven: tag, two texts of 52, bin 16, text, number, bin 32 (MessagePack specification)
    body = (
        b"\x97\xa8receipt1" + b"\xd9\x34" + PHONE.peer_id.encode() + b"\xd9\x34" + HOME.peer_id.encode()
        + b"\xc4\x10" + ID + b"\xa5infer" + b"\x4d" + b"\xc4\x20" + b"d" * 32
    )
    HOME.key.verify_key.verify(b"kith receipt 1\x00" + body, signed().signature)


@pytest.mark.parametrize("change", [
    {"sender": OTHER.peer_id}, {"receiver": OTHER.peer_id}, {"request_id": bytes(16)}, {"purpose": "answer"},
    {"size_bytes": 78}, {"digest": b"e" * 32},
])
def test_a_signature_over_anything_else_is_not(change: dict[str, object]) -> None:
    true, other = signed(), signed(**change)
    claimed = msgspec.structs.replace(true, signature=other.signature)
    assert not is_genuine(claimed, sender=PHONE.peer_id, receiver=HOME.peer_id)


def test_somebody_elses_signature_is_not() -> None:
    assert not is_genuine(signed(by=OTHER), sender=PHONE.peer_id, receiver=HOME.peer_id)
    assert not is_genuine(signed(), sender=PHONE.peer_id, receiver="12D3KooWnonsense")


def test_nothing_is_no_receipt() -> None:
    body = (
        b"\x97\xa8receipt1" + b"\xd9\x34" + PHONE.peer_id.encode() + b"\xd9\x34" + HOME.peer_id.encode()
        + b"\xc4\x10" + ID + b"\xa5infer" + b"\x00" + b"\xc4\x20" + b"d" * 32
    )
    nothing = Receipt(ID, "infer", 0, b"d" * 32, HOME.sign(b"kith receipt 1\x00" + body))
    assert not is_genuine(nothing, sender=PHONE.peer_id, receiver=HOME.peer_id)


@given(st.binary(max_size=300), st.integers(1, 40))
def test_any_bytes_in_any_pieces_decode_or_are_refused(data: bytes, step: int) -> None:
    decoder = framing.FrameDecoder(names.FRAME_LIMITS[names.RECEIPT])
    try:
        for start in range(0, len(data), step):
            decoder.receive_data(data[start : start + step])
            while (payload := decoder.next_frame()) is not None:
                frame = canonical.decode(payload, names.FRAMES[names.RECEIPT])
                assert isinstance(frame, Receipt | ReceiptsWanted | ReceiptsEnd)
    except RemoteProtocolError:
        pass


@given(st.data())
def test_a_flipped_byte_never_makes_a_genuine_receipt(data: st.DataObject) -> None:
    payload = bytearray(canonical.encode(signed()))
    at = data.draw(st.integers(0, len(payload) - 1))
    payload[at] ^= data.draw(st.integers(1, 255))
    try:
        frame = canonical.decode(bytes(payload), names.FRAMES[names.RECEIPT])
    except RemoteProtocolError:
        return
    assert not (isinstance(frame, Receipt) and is_genuine(frame, sender=PHONE.peer_id, receiver=HOME.peer_id))
    with pytest.raises(RemoteProtocolError):
        canonical.decode(canonical.encode(signed()) + b"\x00", names.FRAMES[names.RECEIPT])
