"""Identifiers: a peer id from a public key and back, new random ids, and a key's fingerprint as words.

A peer id is libp2p's: base58 (bitcoin alphabet) of the identity multihash (00 24) of the protobuf public key (08 01 12
20 + 32 bytes of Ed25519), see the libp2p peer id specification. Must not know libp2p, any random source or any key
store: entropy is passed in.
"""

import hashlib
from typing import Final, Protocol

from protocol import limits
from protocol.errors import BadFrame
from protocol.wordlist import WORDS

__all__ = [
    "Entropy", "fingerprint_words", "id_from_hex", "id_to_hex", "new_id", "peer_id_from_public_key",
    "public_key_from_peer_id",
]

_ALPHABET: Final = "123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz"
_PREFIX: Final = bytes.fromhex("002408011220")


_Bytes = bytes  # inside Entropy the name means the method


class Entropy(Protocol):
    """A source of unpredictable bytes, handed in by the caller."""

    def bytes(self, n: int) -> _Bytes:
        """n fresh random bytes."""
        ...


def new_id(entropy: Entropy) -> bytes:
    """A fresh request, message or conversation id: 16 bytes."""
    return entropy.bytes(limits.ID_BYTES)


def id_to_hex(raw: bytes) -> str:
    """The text form of a wire id, as used off the wire."""
    return raw.hex()


def id_from_hex(text: str) -> bytes:
    """The wire form of an id. Raises BadFrame unless text is exactly 32 lower-case hex digits."""
    if len(text) != 2 * limits.ID_BYTES or not set(text) <= set("0123456789abcdef"):
        raise BadFrame("an id is 32 lower-case hex digits")
    return bytes.fromhex(text)


def peer_id_from_public_key(public_key: bytes) -> str:
    """The peer id of a 32-byte Ed25519 public key. Raises ValueError for any other length."""
    if len(public_key) != limits.PUBLIC_KEY_BYTES:
        raise ValueError("an Ed25519 public key has 32 bytes")
    number = int.from_bytes(_PREFIX + public_key, "big")
    digits = ""
    while number:
        number, digit = divmod(number, 58)
        digits = _ALPHABET[digit] + digits
    return "1" + digits  # one leading zero byte


def public_key_from_peer_id(peer_id: str) -> bytes:
    """The 32-byte Ed25519 public key inside a peer id. Raises BadFrame for anything that is not exactly such an id."""
    if len(peer_id) != limits.PEER_ID_CHARS:
        raise BadFrame("not an Ed25519 peer id")
    number = 0
    for character in peer_id:
        digit = _ALPHABET.find(character)
        if digit < 0:
            raise BadFrame("not an Ed25519 peer id")
        number = number * 58 + digit
    if number >= 256 ** (len(_PREFIX) + limits.PUBLIC_KEY_BYTES):
        raise BadFrame("not an Ed25519 peer id")
    raw = number.to_bytes(len(_PREFIX) + limits.PUBLIC_KEY_BYTES, "big")
    if not raw.startswith(_PREFIX) or peer_id_from_public_key(raw[len(_PREFIX) :]) != peer_id:
        raise BadFrame("not an Ed25519 peer id")
    return raw[len(_PREFIX) :]


def fingerprint_words(peer_id: str) -> tuple[str, ...]:
    """Six words (66 bits) by which two people compare a key aloud. Raises BadFrame for a bad peer id."""
    digest = hashlib.sha256(b"kith fingerprint 1" + public_key_from_peer_id(peer_id)).digest()
    number = int.from_bytes(digest, "big")
    return tuple(WORDS[(number >> (11 * place)) % limits.WORDLIST_SIZE] for place in range(limits.FINGERPRINT_WORDS))
