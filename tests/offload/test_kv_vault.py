"""Who gets which key to the engine's files, and what erasing leaves."""

import os
from pathlib import Path

import pytest

from offload.kv_vault import KvVault, WorkerKeys

DEVICE = bytes(range(32))
DIGEST = "d" * 64


def vault(folder: Path, device_key: bytes = DEVICE) -> KvVault:
    return KvVault(folder, device_key, os.urandom)


def make_file(one: KvVault, principal: str, digest: str = DIGEST) -> Path:
    path = one.folder_of(digest) / one.fresh(principal, digest).name
    path.write_bytes(b"sealed")
    return path


def test_the_same_key_comes_back_after_a_restart(tmp_path: Path) -> None:
    one = vault(tmp_path)
    given = one.fresh("owner", DIGEST)
    (one.folder_of(DIGEST) / given.name).write_bytes(b"sealed")
    assert vault(tmp_path).known("owner", DIGEST) == [given]
    assert len(given.key) == 32


def test_each_file_principal_model_and_device_has_a_key_of_its_own(tmp_path: Path) -> None:
    one = vault(tmp_path)
    whose = [(who, digest) for who in ("owner", "peer-1") for digest in (DIGEST, "e" * 64)]
    keys = {one.fresh(who, digest).key for who, digest in whose for _ in range(3)}
    assert len(keys) == 12
    path = make_file(one, "owner")
    assert one.known("peer-1", DIGEST) == []
    assert one.known("owner", "e" * 64) == []
    other = vault(tmp_path, bytes(32))
    assert other.known("owner", DIGEST) == []       # another device's key can't even tell whose it is
    assert path.exists()


def test_names_tell_nobody_who_it_is(tmp_path: Path) -> None:
    path = make_file(vault(tmp_path), "peer-1")
    assert "peer" not in path.name
    assert path.parent.stat().st_mode & 0o077 == 0
    secrets = list((tmp_path / "secrets").iterdir())
    assert [secret.stat().st_mode & 0o777 for secret in secrets] == [0o600]
    assert path.parent.parent == tmp_path
    assert path.parent != secrets[0].parent        # the worker's box does not reach the secrets


def test_what_was_erased_can_not_be_opened_with_the_devices_key_and_the_name(tmp_path: Path) -> None:
    one = vault(tmp_path)
    path, other = make_file(one, "owner"), make_file(one, "peer-1")
    before = {given.name: given.key for given in one.known("owner", DIGEST)}
    kept = path.read_bytes()
    one.erase("owner")
    assert not path.exists()
    assert other.exists()
    path.write_bytes(kept)      # someone has a copy of the file
    after = {given.name: given.key for given in one.known("owner", DIGEST)}
    assert before.keys() == after.keys()
    assert not set(before.values()) & set(after.values())


def test_a_link_or_another_name_in_the_folder_gets_no_key(tmp_path: Path) -> None:
    one = vault(tmp_path)
    path = make_file(one, "owner")
    target = tmp_path / "elsewhere"
    path.rename(target)
    path.symlink_to(target)
    (path.parent / "odd.kv").write_bytes(b"")
    (path.parent / (path.name + ".part")).write_bytes(b"")
    assert one.known("owner", DIGEST) == []


async def test_a_worker_gets_keys_once_for_each_principal_and_a_new_process_again(tmp_path: Path) -> None:
    one = vault(tmp_path)
    path = make_file(one, "owner")
    make_file(one, "peer-1")
    keys = WorkerKeys(one, DIGEST)
    assert await keys.for_request("owner") == (None, None)      # no process yet
    for _ in range(2):
        keys.begin()
        unlock, fresh = await keys.for_request("owner")
        assert unlock is not None
        assert [given.name for given in unlock.keys] == [path.name]
        assert fresh is not None
        unlock, again = await keys.for_request("owner")
        assert unlock is None
        assert again is not None
        assert again != fresh
    keys.forget("owner")
    assert (await keys.for_request("owner"))[0] is not None


def test_a_worker_is_told_which_files_are_the_owners_and_can_open_none_by_that(tmp_path: Path) -> None:
    one = vault(tmp_path)
    keys = WorkerKeys(one, DIGEST)
    assert make_file(one, "owner").name.startswith(keys.owners)
    assert not make_file(one, "peer-1").name.startswith(keys.owners)
    assert len(keys.owners) == 33
    assert vault(tmp_path, bytes(32)).beginning("owner") != keys.owners
    assert WorkerKeys(None, DIGEST).owners == ""


async def test_without_a_vault_or_a_folder_nothing_is_kept(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    (tmp_path / "file").write_bytes(b"")
    for one in (None, vault(tmp_path / "file")):
        keys = WorkerKeys(one, DIGEST)
        keys.begin()
        assert keys.folder == ""
        assert await keys.for_request("owner") == (None, None)
    assert "keeps nothing on disk" in caplog.text
