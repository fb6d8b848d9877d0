"""The daemon's small parts alone: control, composition, the local network, the time zone, places to dial."""

import socket
from pathlib import Path
from typing import NamedTuple
from zoneinfo import ZoneInfo

import pytest
from fixed import FixedClock

from node import zone
from node.api.failures import Starting
from node.api.mode_views import ModeView
from node.daemon import lan
from node.daemon.composition import DEMO_MARK, Composition, compose_inspector
from node.daemon.control import Control, Figures
from node.daemon.pairing import join_addresses
from node.errors import BugError, ConfigError, UsageError
from node.paths import Paths
from node.privacy.inspector import Inspector
from node.privacy.nets import SecretsNet, VaultNet

# -- control --


@pytest.fixture
def clock() -> FixedClock:
    return FixedClock()


@pytest.fixture
def control(clock: FixedClock) -> Control:
    return Control("amber-otter", "12D3KooWx", "lan", clock, lambda: None)


def test_status_answers_before_anything_is_attached(control: Control, clock: FixedClock) -> None:
    clock.advance(1.26)
    view = control.status()
    assert (view.name, view.peer_id, view.mode, view.stage) == ("amber-otter", "12D3KooWx", "lan", "opening data")
    assert (view.uptime_s, view.addresses, view.peers, view.model_state) == (1.3, [], [], "unknown")


def test_status_shows_the_latest_figures_and_live_values(control: Control) -> None:
    control.stage, control.mode = lambda: "ready", lambda: "offline"
    control.addresses = lambda: ["/ip4/127.0.0.1/tcp/1"]
    control.figures = Figures(
        queued_messages=2, left_entries=3, left_bytes=400, kept_back=5, model="m", model_state="idle"
    )
    view = control.status()
    assert (view.stage, view.mode, view.addresses) == ("ready", "offline", ["/ip4/127.0.0.1/tcp/1"])
    assert (view.queued_messages, view.left_today_entries, view.left_today_bytes) == (2, 3, 400)
    assert view.kept_back_today == 5
    assert (view.model, view.model_state) == ("m", "idle")


async def test_what_is_not_there_yet_says_so(control: Control) -> None:
    for act in (control.doctor(), control.set_mode("offline")):
        with pytest.raises(Starting, match="opening data"):
            await act


async def test_a_mode_that_is_none_is_refused_with_the_choices(control: Control) -> None:
    with pytest.raises(UsageError) as refused:
        await control.set_mode("airplane")
    assert refused.value.hint == "Choose one of: offline, lan, online"


@pytest.mark.parametrize(("mode", "text"), [
    ("offline", "2 peers closed; messages wait; the agent works on"), ("online", "peers are being called"),
    ("lan", "unchanged"),
])
async def test_a_switch_says_what_it_did(control: Control, mode: str, text: str) -> None:
    asked = []

    async def switch(to: str) -> int:
        asked.append(to)
        control.mode = lambda: to
        return 2

    control.switch = switch
    assert await control.set_mode(mode) == {"from": "lan", "to": mode, "chosen": mode, "text": text}
    assert asked == [mode]


async def test_a_switch_that_something_stands_in_the_way_of_says_what(control: Control) -> None:
    async def switch(to: str) -> int:
        return 0

    view = ModeView(
        chosen="online", effective="lan", why="the connection is metered", in_the_way=[], listening=[], peers_here=0,
        addresses=1, default_route=True, metered=True, on_battery=False, battery_percent=None, changes=[])
    control.switch, control.mode_view = switch, lambda: view
    assert await control.set_mode("online") == {
        "from": "lan", "to": "lan", "chosen": "online", "text": "the connection is metered"}


def test_stop_is_handed_on(clock: FixedClock) -> None:
    told = []
    Control("n", "p", "lan", clock, lambda: told.append(True)).stop()
    assert told == [True]


# -- composition --

def blind(vault: object, secrets: object, detectors: object) -> Inspector:
    return Inspector(vault=None, secrets=None, detectors=None)


@pytest.fixture
def paths(tmp_path: Path) -> Paths:
    found = Paths.from_env({"KITH_HOME": str(tmp_path / "h")}, tmp_path)
    found.prepare()
    return found


def test_the_real_composition_runs_anywhere(paths: Paths) -> None:
    Composition().check(paths)


@pytest.mark.parametrize("weaker", [
    Composition(tap=lambda peer, protocol, data: None), Composition(make_inspector=blind),
])
def test_a_weaker_one_runs_only_where_the_mark_is(paths: Paths, weaker: Composition) -> None:
    with pytest.raises(BugError, match="demonstration"):
        weaker.check(paths)
    (paths.data_dir / DEMO_MARK).mkdir()        # a folder is no mark
    with pytest.raises(BugError):
        weaker.check(paths)
    (paths.data_dir / DEMO_MARK).rmdir()
    (paths.data_dir / DEMO_MARK).touch()
    weaker.check(paths)


def test_the_real_nets_are_labels_vault_and_secrets_and_say_what_is_missing() -> None:
    inspector = compose_inspector(VaultNet(), SecretsNet(), None)
    assert {"labels", "vault", "secrets"} <= set(inspector.nets)
    assert inspector.missing == ("detectors",)


# -- the local network --

class Interface(NamedTuple):
    family: int
    address: str


class State(NamedTuple):
    isup: bool


def test_only_private_addresses_of_live_interfaces_are_local(monkeypatch: pytest.MonkeyPatch) -> None:
    v4, v6 = socket.AF_INET, socket.AF_INET6
    states = {"lo": State(True), "wlan": State(True), "down": State(False)}
    monkeypatch.setattr(lan.psutil, "net_if_stats", lambda: states)
    monkeypatch.setattr(lan.psutil, "net_if_addrs", lambda: {
        "lo": [Interface(v4, "127.0.0.1"), Interface(v6, "::1")],
        "wlan": [
            Interface(v4, "192.168.1.7"), Interface(v4, "169.254.3.3"), Interface(v4, "8.8.4.4"),
            Interface(v6, "fe80::1%wlan"), Interface(v6, "fd12::7"), Interface(v6, "2a00:1450::5"),
            Interface(17, "aa:bb:cc:dd:ee:ff"),
        ],
        "down": [Interface(v4, "10.0.0.5")],
        "unknown": [Interface(v4, "10.0.0.6")],
    })
    assert lan.lan_addresses(4001) == ["/ip4/192.168.1.7/tcp/4001", "/ip6/fd12::7/tcp/4001"]


@pytest.mark.parametrize(("address", "in_lan"), [
    ("/ip4/127.0.0.1/tcp/1", True), ("/ip4/192.168.1.7/tcp/1", True), ("/ip4/10.1.2.3/tcp/1", True),
    ("/ip4/169.254.1.1/tcp/1", True), ("/ip6/::1/tcp/1", True), ("/ip6/fd00::1/tcp/1", True),
    ("/ip4/8.8.8.8/tcp/1", False), ("/ip6/2a00:1450::5/tcp/1", False), ("/dns/example.org/tcp/1", False),
    ("/dns/home-pc.local/tcp/1", True), ("/dns/localhost/tcp/1", True),
])
def test_a_mode_reaches_what_it_says(address: str, in_lan: bool) -> None:
    assert lan.may_reach("lan", address) is in_lan
    assert lan.may_reach("online", address)
    assert not lan.may_reach("offline", address)


@pytest.mark.parametrize("mode", ["offline", "lan", "online"])
def test_text_that_is_no_address_is_never_reached(mode: str) -> None:
    assert not lan.may_reach(mode, "nowhere")


# -- the time zone --

def test_the_setting_wins_and_nonsense_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TZ", "Asia/Tokyo")
    assert zone.owner_zone("Europe/Berlin") == ZoneInfo("Europe/Berlin")
    with pytest.raises(ConfigError, match="Atlantis"):
        zone.owner_zone("Europe/Atlantis")


@pytest.mark.parametrize(("tz", "link", "file", "expected"), [
    ("Asia/Tokyo", "/usr/share/zoneinfo/Europe/Rome", "America/Lima", "Asia/Tokyo"),
    (":Asia/Tokyo", None, None, "Asia/Tokyo"),
    ("", "/usr/share/zoneinfo/Europe/Rome", "America/Lima", "Europe/Rome"),
    ("EST5EDT,M3.2.0", None, "America/Lima\n", "America/Lima"),     # a rule, not a name
    ("", None, "no zone", "UTC"),
    ("", None, None, "UTC"),
])
def test_without_a_setting_the_machine_says(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, tz: str, link: str | None, file: str | None, expected: str
) -> None:
    monkeypatch.setenv("TZ", tz)
    if link is not None:
        (tmp_path / "localtime").symlink_to(link)
    if file is not None:
        (tmp_path / "timezone").write_text(file)
    monkeypatch.setattr(zone, "_LOCALTIME", tmp_path / "localtime")
    monkeypatch.setattr(zone, "_TIMEZONE", tmp_path / "timezone")
    if link is not None and not Path(link).exists():
        pytest.skip("this machine has no zone files below /usr/share/zoneinfo")
    assert zone.owner_zone("") == ZoneInfo(expected)


# -- where to pair --

@pytest.mark.parametrize(("at", "expected"), [
    ("192.168.1.7:4001", "/ip4/192.168.1.7/tcp/4001"),
    ("home-pc.local:4001", "/dns/home-pc.local/tcp/4001"),
    ("[fd00::7]:4001", "/ip6/fd00::7/tcp/4001"),
    ("/ip4/192.168.1.7/tcp/4001", "/ip4/192.168.1.7/tcp/4001"),
])
def test_a_place_becomes_an_address(at: str, expected: str) -> None:
    assert join_addresses(at) == (expected,)


@pytest.mark.parametrize("at", [
    "", "home-pc", "home-pc:", ":4001", "home-pc:0", "home-pc:65536", "home-pc:-1", "home-pc:four", "fd00::7",
    "[fd00::7]", "[]:4001",
])
def test_a_place_without_host_or_port_is_refused(at: str) -> None:
    with pytest.raises(UsageError) as refused:
        join_addresses(at)
    assert refused.value.hint.startswith("Say where:")
