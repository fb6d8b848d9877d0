"""Modes of a real node: a switch to a port that is taken, what the owner is shown, and transitions as events."""

import os
import socket
import subprocess
import sys
from collections.abc import Iterator

import pytest
from events_of import Follower
from running_nodes import Household, cli, failing, household, until

from node.cli.demo.nodes import DAEMON, DemoNode

pytestmark = [pytest.mark.e2e]


@pytest.fixture
def house() -> Iterator[Household]:
    with household(started=False) as built:
        yield built


@pytest.fixture
def taken() -> Iterator[socket.socket]:
    with socket.socket() as holder:
        holder.bind(("127.0.0.1", 0))
        holder.listen()
        yield holder


def test_a_switch_to_a_taken_port_leaves_the_node_offline_and_alive(house: Household, taken: socket.socket) -> None:
    port = taken.getsockname()[1]
    env = {"KITH_NET_PORT": str(port), "KITH_NODE_MODE": "offline"}
    with DemoNode("phone", house.world.phone, DAEMON, env) as phone:
        settings = phone.paths.config_file.read_text()
        phone.start()
        follower = Follower(phone, "mode")
        failure = failing(lambda: phone.client().put("/v1/mode", {"mode": "lan"}))
        assert failure.code == "address_in_use"
        assert "stays offline" in str(failure)
        assert failure.hint is not None and failure.hint.endswith("kith mode lan")
        shown = cli(phone, "mode", "lan")
        assert shown.returncode == 1
        assert "is in use by another program" in shown.stderr
        view = phone.client().get("/v1/mode")
        assert (view["chosen"], view["effective"], view["listening"]) == ("offline", "offline", [])
        assert phone.status()["stage"] == "ready"
        assert phone.paths.config_file.read_text() == settings      # nothing was switched for the next start either
        assert follower.of("mode") == []

        taken.close()
        reply = phone.client().put("/v1/mode", {"mode": "lan"})
        assert (reply["from"], reply["to"]) == ("offline", "lan")
        assert phone.status()["addresses"] == [f"/ip4/127.0.0.1/tcp/{port}"]
        phone.client().put("/v1/mode", {"mode": "offline"})
        assert phone.status()["addresses"] == []
        phone.client().put("/v1/mode", {"mode": "lan"})
        until(lambda: len(follower.of("mode")) >= 3, "the three changes are told")
        assert [(one["before"], one["effective"]) for one in follower.of("mode")] == [
            ("offline", "lan"), ("lan", "offline"), ("offline", "lan")]
        changes = phone.client().get("/v1/mode")["changes"]
        assert [(one["before"], one["effective"]) for one in changes] == [
            ("offline", "lan"), ("lan", "offline"), ("offline", "lan")]
        log = (phone.home / "state" / "kith.log").read_text()
        assert log.count("mode: offline -> lan (as you chose") == 2
        assert phone.stop() == 0


def test_the_command_shows_choice_reason_and_changes(house: Household) -> None:
    house.start(house.phone)
    assert cli(house.phone, "mode", "offline").returncode == 0
    shown = cli(house.phone, "mode")
    assert shown.stdout.startswith("offline   (as you chose)")
    assert "lan -> offline" in shown.stdout
    with subprocess.Popen(
        [sys.executable, "-P", "-c", "from node.cli.main import main; main()", "mode", "--watch"],
        env={**os.environ, "KITH_HOME": str(house.phone.home)}, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL, text=True,
    ) as watching:
        assert watching.stdout is not None
        assert watching.stdout.readline().startswith("offline   (as you chose)")
        until(lambda: house.phone.client().get("/v1/mode")["chosen"] == "offline", "the node answers")
        cli(house.phone, "mode", "lan")
        assert any("offline -> lan" in watching.stdout.readline() for _ in range(5))
        watching.kill()
