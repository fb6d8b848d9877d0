"""Folders: XDG, KITH_HOME, private modes, and a socket path that the kernel can bind."""

import os
import socket
import stat
from pathlib import Path

import pytest

from node.errors import LooseFileMode, PathTooLong, StorageError
from node.paths import SOCKET_PATH_MAX_BYTES, Paths, check_private, make_private_dir

HOME = Path("/people/bea")


def test_defaults_are_the_xdg_ones_and_the_socket_is_in_the_state_folder_without_a_runtime_one():
    paths = Paths.from_env({}, HOME)
    assert paths.config_file == HOME / ".config/kith/config.toml"
    assert paths.identity_file == HOME / ".local/share/kith/identity.json"
    assert paths.database == HOME / ".local/share/kith/kith.db"
    assert paths.socket == HOME / ".local/state/kith/node.sock"
    assert paths.log_file == HOME / ".local/state/kith/kith.log"


def test_xdg_variables_move_the_folders_and_relative_ones_are_ignored():
    env = {
        "XDG_CONFIG_HOME": "/c", "XDG_DATA_HOME": "/d", "XDG_STATE_HOME": "relative", "XDG_RUNTIME_DIR": "/run/user/7",
    }
    paths = Paths.from_env(env, HOME)
    assert (paths.config_dir, paths.data_dir) == (Path("/c/kith"), Path("/d/kith"))
    assert paths.state_dir == HOME / ".local/state/kith"
    assert paths.socket == Path("/run/user/7/kith/node.sock")


def test_kith_home_puts_everything_below_one_folder_whatever_xdg_says(tmp_path):
    env = {"KITH_HOME": str(tmp_path / "k"), "XDG_RUNTIME_DIR": "/run/user/7", "XDG_DATA_HOME": "/d"}
    paths = Paths.from_env(env, HOME)
    paths.prepare()
    files = (paths.config_file, paths.identity_file, paths.database, paths.index_database, paths.socket, paths.log_file,
             paths.models_dir, paths.kv_dir, paths.lock_file)
    assert all(one.is_relative_to(tmp_path / "k") for one in files)
    made = [one for one in (tmp_path / "k").rglob("*") if one.is_dir()]
    assert {stat.S_IMODE(one.stat().st_mode) for one in made} == {0o700}
    assert {one.name for one in made} == {"config", "data", "state", "run", "models", "kv"}
    paths.prepare()


def test_a_private_folder_is_private_whatever_the_umask(tmp_path):
    before = os.umask(0)
    try:
        make_private_dir(tmp_path / "a" / "b")
    finally:
        os.umask(before)
    assert stat.S_IMODE((tmp_path / "a" / "b").stat().st_mode) == 0o700


@pytest.mark.parametrize("mode", [0o755, 0o701, 0o770])
def test_a_folder_open_to_others_is_refused_with_the_command_that_closes_it(tmp_path, mode):
    folder = tmp_path / "data"
    folder.mkdir()
    folder.chmod(mode)
    with pytest.raises(LooseFileMode) as caught:
        make_private_dir(folder)
    assert caught.value.hint == f"Close it: chmod 700 {folder}"
    folder.chmod(0o700)
    make_private_dir(folder)


def test_a_folder_of_another_user_is_refused(tmp_path, monkeypatch):
    folder = tmp_path / "data"
    folder.mkdir(mode=0o700)
    monkeypatch.setattr(os, "geteuid", lambda: 12345)
    with pytest.raises(LooseFileMode, match="belongs to another user"):
        check_private(folder)


def test_a_file_in_the_way_is_told(tmp_path):
    (tmp_path / "data").write_text("")
    with pytest.raises(StorageError, match="cannot be made"):
        make_private_dir(tmp_path / "data" / "kith")


def test_the_longest_allowed_socket_path_can_be_bound_and_one_more_byte_is_told(tmp_path):
    room = SOCKET_PATH_MAX_BYTES - len(os.fsencode(tmp_path)) - len("/run/node.sock") - 1
    if room < 1:
        pytest.skip("the temporary folder's own path is too long")
    for extra, fits in ((0, True), (1, False)):
        paths = Paths.from_env({"KITH_HOME": str(tmp_path / ("x" * (room + extra)))}, HOME)
        if not fits:
            with pytest.raises(PathTooLong, match=f"{SOCKET_PATH_MAX_BYTES + 1} bytes"):
                _ = paths.socket
            continue
        paths.prepare()
        with socket.socket(socket.AF_UNIX) as sock:
            sock.bind(str(paths.socket))  # the kernel agrees
