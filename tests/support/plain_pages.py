"""Every page of a SQLCipher 4 file and of its write-ahead log, decrypted without the library: live and stale ones.

The format is documented by SQLCipher: pages of 4096 bytes, AES-256-CBC, and at a page's end 16 bytes of IV and 64 of
HMAC-SHA512; page 1 begins with 16 bytes of salt in clear. A raw key is the cipher's key itself. Must not know tables.
"""

from collections.abc import Iterator
from pathlib import Path

from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes

__all__ = ["plain_copy"]

PAGE, RESERVED, SALT = 4096, 80, 16
WAL_HEADER, FRAME_HEADER = 32, 24


def plain_copy(path: Path, key: bytes) -> bytes:
    """All pages of the database and its log in clear, one after the other."""
    return b"".join([*_pages(path.read_bytes(), key), *_frames(path.with_name(path.name + "-wal"), key)])


def _pages(data: bytes, key: bytes) -> Iterator[bytes]:
    for number, start in enumerate(range(0, len(data), PAGE), 1):
        yield _open(data[start : start + PAGE], key, first=number == 1)


def _frames(path: Path, key: bytes) -> Iterator[bytes]:
    data = path.read_bytes() if path.exists() else b""
    for start in range(WAL_HEADER, len(data), FRAME_HEADER + PAGE):
        number = int.from_bytes(data[start : start + 4], "big")
        yield _open(data[start + FRAME_HEADER : start + FRAME_HEADER + PAGE], key, first=number == 1)


def _open(page: bytes, key: bytes, *, first: bool) -> bytes:
    if len(page) < PAGE or not any(page):
        return b""
    vector = page[PAGE - RESERVED : PAGE - RESERVED + 16]
    opener = Cipher(algorithms.AES(key), modes.CBC(vector)).decryptor()
    return opener.update(page[SALT if first else 0 : PAGE - RESERVED]) + opener.finalize()
