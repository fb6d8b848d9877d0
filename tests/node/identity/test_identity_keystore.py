"""The device key: private file, right ids and subkeys by other people's code, passphrase that really locks."""

import base64
import hmac
import json
import os
import stat
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey
from fixed import SeededEntropy

from node.errors import (
    DamagedKeyFile,
    LooseFileMode,
    PassphraseNeeded,
    StorageError,
    WrongPassphrase,
)
from node.identity import keystore
from node.identity.keystore import Identity

# RFC 8032, section 7.1, TEST 1
SEED = bytes.fromhex("9d61b19deffd5a60ba844af492ec2cc44449c5697b326919703bac031cae7f60")
PUBLIC = bytes.fromhex("d75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a")
SIGNATURE = bytes.fromhex(
    "e5564300c360ac729086e2cc806e828a84877f1eb8e5d974d873e06522490155"
    "5fb8821590a33bacc61e39701cf9b46bd25bf5f0595bbe24655141438e7a100b",
)


@pytest.fixture
def cheap_argon(monkeypatch):
    """The smallest parameters Argon2id takes, so that the tests do not spend a quarter of a gigabyte each."""
    monkeypatch.setattr(keystore.argon2id, "OPSLIMIT_MODERATE", keystore.argon2id.OPSLIMIT_MIN)
    monkeypatch.setattr(keystore.argon2id, "MEMLIMIT_MODERATE", keystore.argon2id.MEMLIMIT_MIN)


def new(path: Path) -> Identity:
    return keystore.load_or_create(path, SeededEntropy(1))


def test_the_public_key_and_signature_are_those_of_rfc_8032():
    identity = Identity.from_seed(SEED)
    assert identity.public_key == PUBLIC
    assert identity.sign(b"") == SIGNATURE


def test_the_peer_id_is_the_one_libp2p_computes():
    """In a process of its own: importing libp2p here would slow every test down."""
    script = (
        "import sys; from libp2p.crypto.ed25519 import create_new_key_pair; from libp2p.peer.id import ID\n"
        "print(ID.from_pubkey(create_new_key_pair(bytes.fromhex(sys.argv[1])).public_key))"
    )
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", script, SEED.hex()], capture_output=True, text=True, check=True,
    )
    assert Identity.from_seed(SEED).peer_id == done.stdout.strip()


def test_another_library_accepts_a_signature_and_refuses_a_changed_text():
    identity = Identity.from_seed(SEED)
    public = Ed25519PublicKey.from_public_bytes(identity.public_key)
    public.verify(identity.sign(b"text"), b"text")
    with pytest.raises(InvalidSignature):
        public.verify(identity.sign(b"text"), b"texT")
    assert Ed25519PrivateKey.from_private_bytes(SEED).sign(b"text") == identity.sign(b"text")


def test_subkeys_are_hkdf_by_hand_and_differ_by_purpose():
    identity = Identity.from_seed(SEED)
    extracted = hmac.digest(bytes(32), SEED, "sha256")  # RFC 5869, 2.2, empty salt
    by_hand = hmac.digest(extracted, b"kith/subkey/1/database\x01", "sha256")  # 2.3, one block
    assert identity.subkey("database") == by_hand
    assert len({identity.subkey(one) for one in ("database", "ledger", "vault", "index")}) == 4


def test_a_repr_shows_no_secret():
    assert SEED.hex() not in repr(Identity.from_seed(SEED))
    assert repr(SEED) not in repr(Identity.from_seed(SEED))


def test_the_first_run_makes_a_private_file_and_the_next_runs_read_it(tmp_path):
    path = tmp_path / "identity.json"
    first = new(path)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert new(path) == keystore.load(path) == first
    assert not keystore.is_locked(path)
    assert [one.name for one in tmp_path.iterdir()] == ["identity.json"]


def test_two_first_runs_at_once_end_with_one_key(tmp_path):
    path = tmp_path / "identity.json"
    first = keystore.create(path, SeededEntropy(1))
    second = keystore.create(path, SeededEntropy(2))  # came a moment later and lost
    assert first == second == keystore.load(path)


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o666, 0o660, 0o620])
def test_a_key_that_others_can_reach_is_refused_with_the_command_that_mends_it(tmp_path, mode):
    path = tmp_path / "identity.json"
    new(path)
    path.chmod(mode)
    with pytest.raises(LooseFileMode) as caught:
        keystore.load(path)
    assert f"mode {mode:04o}" in caught.value.text
    command = caught.value.hint.removeprefix("Close it: ")
    subprocess.run(command.split(), check=True)
    keystore.load(path)


@pytest.mark.usefixtures("cheap_argon")
def test_a_passphrase_locks_and_the_right_one_opens(tmp_path):
    path = tmp_path / "identity.json"
    identity = new(path)
    keystore.set_passphrase(path, identity, "correct horse", SeededEntropy(3))
    assert keystore.is_locked(path)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert keystore.load(path, "correct horse") == identity
    with pytest.raises(PassphraseNeeded):
        keystore.load(path)
    with pytest.raises(WrongPassphrase):
        keystore.load(path, "correct Horse")
    with pytest.raises(WrongPassphrase, match="8 characters"):
        keystore.set_passphrase(path, identity, "short", SeededEntropy(3))
    keystore.set_passphrase(path, identity, None, SeededEntropy(4))
    assert keystore.load(path) == identity


@pytest.mark.usefixtures("cheap_argon")
def test_a_locked_file_holds_no_seed_and_an_open_one_does(tmp_path):
    path = tmp_path / "identity.json"
    identity = new(path)

    def seed_is_readable() -> bool:
        data = b"".join(one.read_bytes() for one in tmp_path.iterdir())
        forms = (identity.seed, identity.seed.hex().encode(), base64.b64encode(identity.seed))
        return any(form in data for form in forms)

    assert seed_is_readable()
    (tmp_path / ".identity.json.0011223344556677").write_bytes(path.read_bytes())  # a draft that a crash left
    keystore.set_passphrase(path, identity, "correct horse", SeededEntropy(3))
    assert not seed_is_readable()


@pytest.mark.usefixtures("cheap_argon")
@pytest.mark.parametrize("field", ["salt", "ops", "peer_id", "sealed"])
def test_no_part_of_a_locked_file_can_be_exchanged(tmp_path, field):
    path = tmp_path / "identity.json"
    keystore.set_passphrase(path, new(path), "correct horse", SeededEntropy(3))
    record = json.loads(path.read_text())
    record[field] = record[field] + 1 if field == "ops" else record[field][::-1]
    path.write_text(json.dumps(record))
    with pytest.raises((WrongPassphrase, DamagedKeyFile)):
        keystore.load(path, "correct horse")


def test_the_real_parameters_are_the_librarys_moderate_ones(tmp_path):
    path = tmp_path / "identity.json"
    identity = new(path)
    keystore.set_passphrase(path, identity, "correct horse", SeededEntropy(3))
    record = json.loads(path.read_text())
    assert (record["ops"], record["memory_bytes"]) == (3, 256 * 1024 * 1024)
    assert keystore.load(path, "correct horse") == identity


@pytest.mark.parametrize("content", [
    b"", b"{}", b"[]", b"not json", b"\xff\xfe", b'{"format": 2, "kind": "plain"}', b'{"format": 1, "kind": "stone"}',
    b'{"format": 1, "kind": "plain", "peer_id": "x", "seed": "AAAA"}', b'{"format": 1, "kind": "plain", "seed": 5}',
    b'{"format": 1, "kind": "argon2id", "ops": 99999999, "memory_bytes": 1, "salt": "AAAA", "sealed": "AAAA"}',
    b'{"format": 1, "kind": "argon2id", "ops": 3, "memory_bytes": 99999999999, "salt": "AAAA", "sealed": "AAAA"}',
    b" " * 5000,
])
def test_a_damaged_file_is_told_not_guessed(tmp_path, content):
    path = tmp_path / "identity.json"
    path.write_bytes(content)
    path.chmod(0o600)
    with pytest.raises(DamagedKeyFile):
        keystore.load(path, "correct horse")


def test_a_key_beside_another_id_is_refused(tmp_path):
    path = tmp_path / "identity.json"
    new(path)
    record = json.loads(path.read_text())
    record["peer_id"] = Identity.from_seed(SEED).peer_id
    path.write_text(json.dumps(record))
    with pytest.raises(DamagedKeyFile, match="does not belong"):
        keystore.load(path)


def test_a_folder_that_cannot_be_written_is_told(tmp_path):
    if os.geteuid() == 0:
        missing = tmp_path / "missing" / "identity.json"
        with pytest.raises(StorageError, match="cannot be written"):
            keystore.create(missing, SeededEntropy(1))
        return
    tmp_path.chmod(0o500)
    with pytest.raises(StorageError, match="cannot be written"):
        keystore.create(tmp_path / "identity.json", SeededEntropy(1))


# ---- what the data at rest is encrypted with

@pytest.mark.parametrize("passphrase", [None, "correct horse battery"])
def test_a_rotation_is_three_files_one_after_the_other(tmp_path, cheap_argon, passphrase):
    path, entropy = tmp_path / "identity.json", SeededEntropy(5)
    before = keystore.create(path, entropy)
    assert before.storage is before.next_storage is None
    assert before.storage_key("database") == before.subkey("database")      # as it always was
    assert before.next_storage_key("database") is None
    during = replace(before, next_storage=b"n" * 32)
    after = replace(before, storage=b"n" * 32)
    for identity in (during, after, replace(after, next_storage=b"m" * 32)):
        keystore.save(path, identity, passphrase, entropy)
        assert keystore.load(path, passphrase) == identity
        assert keystore.peer_id_of(path) == before.peer_id
        assert path.stat().st_mode & 0o777 == 0o600
    assert during.next_storage_key("database") == after.storage_key("database") != during.storage_key("database")
    assert after.storage_key("index") != after.storage_key("database")
    assert b"n" * 32 not in repr(during).encode() and "nnnn" not in repr(after)


def test_a_changed_passphrase_keeps_the_storage_key(tmp_path, cheap_argon):
    path, entropy = tmp_path / "identity.json", SeededEntropy(6)
    rotated = replace(keystore.create(path, entropy), storage=b"s" * 32)
    keystore.set_passphrase(path, rotated, "first passphrase", entropy)
    keystore.set_passphrase(path, keystore.load(path, "first passphrase"), None, entropy)
    assert keystore.load(path) == rotated


def test_a_file_with_a_cut_storage_key_is_damaged(tmp_path):
    path = tmp_path / "identity.json"
    keystore.save(path, replace(keystore.create(path, SeededEntropy(7)), storage=b"s" * 32), None, SeededEntropy(8))
    record = json.loads(path.read_text())
    record["storage"] = record["storage"][:20]
    path.write_text(json.dumps(record))
    with pytest.raises(DamagedKeyFile):
        keystore.load(path)
