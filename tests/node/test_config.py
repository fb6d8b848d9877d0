"""Settings: who wins, where each value came from, what is said about a wrong one, and setting one keeps the rest."""

import stat
import tomllib
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
import tomli_w
from hypothesis import given
from hypothesis import strategies as st

from node import config, config_file, settings
from node.errors import ConfigError

FILE = """\
# my node
[node]
name = "bea-laptop"   # said aloud
mode = "offline"

[net]
listen = ["127.0.0.1", "::1"]
port = 4001

[models]
folders = [
    "/models",
]
"""


@pytest.fixture
def path(tmp_path) -> Path:
    file = tmp_path / "config.toml"
    file.write_text(FILE)
    return file


def test_without_a_file_everything_is_the_safe_default(tmp_path):
    found = config.load(tmp_path / "config.toml", {})
    assert found.settings == config.Settings()
    assert (found.settings.node.mode, found.settings.net.listen, found.settings.net.port) == ("lan", ("127.0.0.1",), 0)
    assert found.settings.net.discovery is False
    assert found.settings.node.api_port == 0
    assert {one.origin.kind for one in found.explain()} == {"default"}


def test_flags_win_over_environment_over_file_over_default(path):
    env = {"KITH_NET_PORT": "4002", "KITH_NODE_MODE": "online", "KITH_SEARCH_MAX_PEERS": "3"}
    found = config.load(path, env, {"net.port": "4003", "node.mode": None, "log.level": "debug"})
    assert found.settings.net.port == 4003
    assert found.settings.node.mode == "online"
    assert found.settings.node.name == "bea-laptop"
    assert found.settings.search.max_peers == 3
    assert found.settings.models.folders == ("/models",)
    assert found.settings.mail.keep_days == 14
    places = {one.key: (one.origin.kind, one.origin.place) for one in found.explain()}
    assert places["net.port"] == ("flag", "--port")
    assert places["node.mode"] == ("environment", "KITH_NODE_MODE")
    assert places["node.name"] == ("file", f"{path}:3")
    assert places["models.folders"] == ("file", f"{path}:11")
    assert places["mail.keep_days"] == ("default", "built in")


def test_every_setting_is_explained_in_words():
    found = config.load(Path("/nowhere/config.toml"), {})
    assert [one.key for one in found.explain()] == list(config.known_keys())
    assert all(one.words and not one.words.endswith(".") for one in found.explain())
    assert found.get("net.port") == 0


@pytest.mark.parametrize(("text", "said"), [
    ("[net]\nprot = 1", "{path}:2: there is no setting called net.prot. Did you mean net.port?"),
    ("[network]\nport = 1", "there is no setting called network.port. Did you mean net.port?"),
    ("zzz = 1", "{path}:1: there is no setting called zzz."),
    ("[mail]\nhistory_days = 7", "{path}:2: mail.history_days = 7 must be 0 or lie between 30 and 36500."),
    ("[net]\n\nport = 70000", "{path}:3: net.port = 70000 must lie between 0 and 65535."),
    ("[net]\nport = true", "must be a whole number"),
    ("[net]\nport = \"1\"", "must be a whole number"),
    ("[net]\ndiscovery = 1", "must be true or false"),
    ("[net]\nlisten = \"::1\"", "must be a list of texts"),
    ("[net]\nlisten = [1]", "must be a list of texts"),
    ("[node]\nmode = \"wan\"", "must be one of offline, lan, online"),
    ("[node]\nname = \"Bea's\"", "may hold a-z, 0-9 and inner dashes"),
    ("[sources]\nnotes = \"notes\"", "needs full paths"),
    ("[models]\nfolders = [\"/a\", \"b\"]", "needs full paths, and 'b' is none"),
    ("[net\nport = 1", "{path} is no valid TOML"),
])
def test_a_wrong_file_is_told_with_line_problem_and_nearest_key(tmp_path, text, said):
    path = tmp_path / "config.toml"
    path.write_text(text)
    with pytest.raises(ConfigError) as caught:
        config.load(path, {})
    assert said.format(path=path) in caught.value.text
    assert caught.value.exit_code == 2


@pytest.mark.parametrize(("key", "text", "value"), [
    ("net.port", " 12 ", 12), ("net.discovery", "Yes", True), ("net.discovery", "off", False),
    ("net.listen", "127.0.0.1, ::1", ("127.0.0.1", "::1")), ("net.listen", "", ()), ("models.default", "a", "a"),
])
def test_text_becomes_the_type_of_the_setting(key, text, value):
    assert config.parse(key, text, "here") == value


@pytest.mark.parametrize(("key", "text"), [
    ("net.port", "x"), ("net.port", "-1"), ("net.discovery", "maybe"), ("no.key", ""),
])
def test_text_that_does_not_fit_is_told(key, text):
    with pytest.raises(ConfigError, match="KITH_X"):
        config.parse(key, text, "KITH_X")


def test_environment_names_that_are_no_settings_are_listed_not_refused(tmp_path):
    env = {"KITH_HOME": "/x", "KITH_GPU": "cuda", "KITH_NET_PROT": "1", "PATH": "/bin"}
    assert config.load(tmp_path / "c", env).unknown_env == ("KITH_NET_PROT",)
    with pytest.raises(ConfigError, match=r"^KITH_NET_PORT: "):
        config.load(tmp_path / "c", {"KITH_NET_PORT": "x"})


def test_setting_a_value_keeps_comments_order_and_the_rest(path):
    assert config.set_value(path, "node.name", "amber-otter-41") == "amber-otter-41"
    assert config.set_value(path, "net.discovery", "on") is True
    assert config.set_value(path, "mail.keep_days", "30") == 30
    text = path.read_text()
    assert text.startswith("# my node\n[node]\n")
    found = config.load(path, {})
    assert found.settings.node == settings.NodeConfig(name="amber-otter-41", mode="offline")
    assert found.settings.net == settings.NetConfig(listen=("127.0.0.1", "::1"), port=4001, discovery=True)
    assert (found.settings.mail.keep_days, found.settings.models.folders) == (30, ("/models",))


def test_a_value_over_several_lines_is_replaced_whole(path):
    config.set_value(path, "models.folders", "/a,/b")
    assert config.load(path, {}).settings.models.folders == ("/a", "/b")
    assert config.load(path, {}).settings.node.name == "bea-laptop"


def test_a_refused_value_leaves_the_file_as_it_was(path):
    with pytest.raises(ConfigError):
        config.set_value(path, "net.port", "70000")
    assert path.read_text() == FILE


def test_a_new_file_is_private_and_a_broken_one_is_not_overwritten(tmp_path):
    path = tmp_path / "config.toml"
    config.set_value(path, "net.port", "4001")
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert path.read_text() == "[net]\nport = 4001\n"
    path.write_text("[net\n")
    with pytest.raises(ConfigError, match="no valid TOML"):
        config.set_value(path, "net.port", "4002")
    assert path.read_text() == "[net\n"
    assert [one.name for one in tmp_path.iterdir()] == ["config.toml"]


def test_a_folder_or_a_huge_file_is_no_configuration(tmp_path):
    with pytest.raises(ConfigError, match="cannot be read"):
        config.load(tmp_path, {})
    (tmp_path / "big").write_text("#" * 300_000)
    with pytest.raises(ConfigError, match="larger than"):
        config.load(tmp_path / "big", {})


KEYS = st.from_regex(r"\A[a-z]{1,6}\Z")
VALUES = st.one_of(st.integers(-5, 5), st.booleans(), st.text(max_size=8), st.lists(st.text(max_size=4), max_size=3))
TREES = st.dictionaries(KEYS, st.one_of(VALUES, st.dictionaries(KEYS, VALUES, max_size=3)), max_size=4)


@given(tree=TREES, table=KEYS, key=KEYS, value=VALUES)
def test_setting_any_value_in_any_file_changes_exactly_that_value(tree, table, key, value):
    """Judged by the standard library's parser, over files written by tomli_w."""
    if not isinstance(tree.get(table, {}), dict):
        return
    text = tomli_w.dumps(tree)
    changed = config_file.set_in_text(text, f"{table}.{key}", value, Path("x"))
    expected = {**tree, table: {**tree.get(table, {}), key: value}}
    flat = {name: sub for name, sub in tomllib.loads(changed).items() if sub != {}}
    assert flat == {name: sub for name, sub in expected.items() if sub != {}}


def test_line_numbers_survive_odd_spelling(tmp_path):
    text = 'a.b = 1\n[ "c" . d ]  # x\n "e" = 2\nf   = """\ng = 3\n"""\n'
    found = config_file.read_text(text, tmp_path)
    assert {key: one.line for key, one in found.items()} == {"a.b": 1, "c.d.e": 3, "c.d.f": 4}


@pytest.mark.parametrize(("text", "problem"), [
    ("http://models.example", "https"), ("http://10.0.0.7:8080", "https"), ("nonsense", "begin with"),
])
def test_an_upstream_engine_on_another_machine_needs_tls(tmp_path: Path, text: str, problem: str) -> None:
    with pytest.raises(ConfigError, match=problem):
        config.set_value(tmp_path / "config.toml", "upstream.url", text)
    for good in ("http://127.0.0.1:8080/v1", "unix:/run/llama.sock", "https://models.example", ""):
        assert config.set_value(tmp_path / "config.toml", "upstream.url", good) == good


def test_models_of_an_upstream_engine_have_names(tmp_path: Path) -> None:
    names = config.set_value(tmp_path / "c.toml", "upstream.models", "big=org/Qwen3:8b, small")
    assert names == ("big=org/Qwen3:8b", "small")
    with pytest.raises(ConfigError, match="NAME_THERE"):
        config.set_value(tmp_path / "c.toml", "upstream.models", "=x")


def test_writers_at_the_same_time_lose_nothing(tmp_path: Path) -> None:
    """The node keeps its mode while the owner sets something else: both stay, and no one fails."""
    path = tmp_path / "config.toml"
    values = [("net.port", str(4000 + number)) if number % 2 else (f"x{number}.y", number) for number in range(40)]
    with ThreadPoolExecutor(8) as threads:
        done = [threads.submit(config_file.set_in_file, path, key, value) for key, value in values]
    assert [one.exception() for one in done] == [None] * len(values)
    assert {f"x{number}.y" for number in range(0, 40, 2)} | {"net.port"} == set(config_file.read_file(path))
    assert list(tmp_path.iterdir()) == [path]
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
