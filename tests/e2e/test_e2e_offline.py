"""Offline is seen from outside: the kernel's own record of a node and its children shows no internet socket.

A tool answers, the local model answers, a meeting is booked, all of it traced. Then the same node is switched online,
offline, to lan, offline again and to lan once more: what is on is the negative control (the same reading of the record
finds the listener), each way off closes the port and leaves no call behind that could reach a network, each way on
opens the same port again.
"""

import re
import shutil
import socket
import subprocess
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from zoneinfo import ZoneInfo

import psutil
import pytest
from embedded_model import model_path
from running_nodes import WAIT_S

from node.cli.demo.nodes import DAEMON, DemoNode
from node.cli.demo.owner import Owner
from node.cli.demo.steps import BOOKING, HEAVY, Stage, _events
from node.cli.demo.world import make_world
from node.cli.failure import CommandFailure

pytestmark = [pytest.mark.e2e, pytest.mark.model]

LINE = re.compile(r"(?P<pid>\d+) +(?P<at>[\d.]+) (?P<call>\w+)\((?P<args>.*)\) += (?P<result>-?\d+)(?P<error>.*)")
UNFINISHED = re.compile(r"(\d+) +([\d.]+) (\w+\(.*) <unfinished \.\.\.>")
RESUMED = re.compile(r"(\d+) +[\d.]+ <\.\.\. \w+ resumed>(.*)")
PROBE = "AF_INET, SOCK_DGRAM|SOCK_CLOEXEC, IPPROTO_IP"
"""The one attempt that a boxed worker makes itself, to see that its box holds."""


@dataclass(frozen=True)
class Call:
    """One network system call, as strace saw it."""

    pid: int
    at_s: float
    call: str
    args: str
    result: int
    error: str

    @property
    def is_internet_socket(self) -> bool:
        return self.call == "socket" and re.match(r"AF_INET6?\b", self.args) is not None


def read_trace(path: Path) -> list[Call]:
    """The calls in a record written with -f -ttt; calls that another thread interrupted are put together again."""
    begun: dict[str, tuple[str, str]] = {}
    found = []
    for line in path.read_text(errors="replace").splitlines():
        if match := UNFINISHED.match(line):
            begun[match[1]] = (match[2], match[3])
            continue
        if (match := RESUMED.match(line)) and match[1] in begun:
            at, start = begun.pop(match[1])
            line = f"{match[1]} {at} {start}{match[2]}"
        if match := LINE.match(line):
            found.append(Call(
                int(match["pid"]), float(match["at"]), match["call"], match["args"], int(match["result"]),
                match["error"].strip(),
            ))
    return found


def leaks_of(calls: list[Call], node_pid: int) -> list[Call]:
    """Internet sockets that no worker's own probe explains: one failed attempt for each process other than the node."""
    attempts = [call for call in calls if call.is_internet_socket]
    probes = [
        call for call in attempts
        if call.pid != node_pid and call.args == PROBE and call.result == -1 and call.error[:5] in ("EPERM", "EACCE")
    ]
    many = {pid for pid, count in Counter(call.pid for call in probes).items() if count > 1}
    return [call for call in attempts if call not in probes or call.pid in many]


def tracer() -> tuple[str, ...]:
    """The strace command; skips where there is none or it may not trace."""
    strace = shutil.which("strace")
    if strace is None:
        pytest.skip("strace is not installed (apt install strace)")
    # not --seccomp-bpf: the workers' own filters would then refuse a call before the tracer hears of it
    command = (strace, "-f", "-e", "trace=network", "-ttt", "-s", "16")
    if subprocess.run([*command, "-o", "/dev/null", "true"], capture_output=True, check=False).returncode == 0:
        return (*command, "-D")  # the node stays our own child, so that signals reach it
    pytest.skip("this system does not let strace trace (ptrace is forbidden)")


@dataclass
class Traced:
    """What one traced life showed. Moments are seconds since the epoch, as in the record."""

    node_pid: int
    calls: list[Call]
    answers: dict[str, str]
    booked: int
    lan_from_s: float
    offline_again_s: float
    spells: list[tuple[float, float]]
    """From when to when it was offline again, between other modes."""
    refused: list[bool]
    ports: list[list[str]]
    left_open: list[list[str]]
    """The node's internet sockets at the end of each spell, as the kernel lists them."""


@pytest.fixture(scope="module")
def traced() -> Iterator[Traced]:
    command = tracer()
    model_path()
    with tempfile.TemporaryDirectory(prefix="ko-") as folder:
        root = Path(folder)
        world = make_world(root, datetime.now(ZoneInfo("Europe/London")))
        record = root / "trace"
        with DemoNode("phone", world.phone, (*command, "-o", str(record), *DAEMON, "--mode", "offline")) as phone:
            phone.start()
            pid = phone.pid
            client = phone.client()
            owner = Owner(client)
            stage = Stage(world, phone, phone, owner)
            day = world.tuesday
            answers = {
                "tool": owner.ask("What is on my calendar tomorrow?"),
                "model": owner.ask(HEAVY),
                "booking": owner.ask(BOOKING.format(date=f"{day.day} {day:%B}"), expect={"title": "roof"}),
            }
            booked = sum("roof" in title.lower() for title, _, _ in _events(stage))
            assert {answer["ran_on"] for answer in answers.values()} == {"phone"}
            assert phone.status()["addresses"] == []

            lan_from_s = time.time()
            ports, refused, spells, left_open = [], [], [], []
            for mode in ("online", "lan"):
                client.put("/v1/mode", {"mode": mode})
                ports.append(phone.status()["addresses"])
                assert connects(ports[-1])
                began_s = time.time()
                client.put("/v1/mode", {"mode": "offline"})
                assert phone.status()["addresses"] == []
                assert client.get("/v1/mode")["effective"] == "offline"
                closed_s = time.time()
                refused.append(not connects(ports[-1]))
                assert owner.ask("What is on my calendar tomorrow?")["ran_on"] == "phone"
                time.sleep(2)           # whoever looks or calls from time to time would do so now
                left_open.append(internet_sockets(pid))
                spells.append((closed_s, time.time()))
                if mode == "online":
                    offline_again_s = began_s
            client.put("/v1/mode", {"mode": "lan"})
            ports.append(phone.status()["addresses"])
            assert connects(ports[-1])
        yield Traced(
            pid, finished_trace(record, pid), {name: answer["text"] for name, answer in answers.items()}, booked,
            lan_from_s, offline_again_s, spells, refused, ports, left_open,
        )


def connects(addresses: list[str]) -> bool:
    """Whether the port of the first address takes a connection; False only for a plain refusal."""
    _, _, host, _, port, *_ = addresses[0].split("/")
    try:
        socket.create_connection((host, int(port)), timeout=5).close()
    except ConnectionRefusedError:
        return False
    return True


def internet_sockets(pid: int) -> list[str]:
    """What /proc shows of sockets that a process and its children hold, outside of Unix and netlink ones."""
    processes = [psutil.Process(pid), *psutil.Process(pid).children(recursive=True)]
    return [str(one.laddr) for process in processes for one in process.net_connections("inet")]


def finished_trace(record: Path, pid: int) -> list[Call]:
    """The whole record, once the tracer has seen the node's end."""
    deadline = time.monotonic() + WAIT_S
    while f"{pid} " not in "".join(line for line in record.read_text().splitlines(True) if "+++" in line):
        if time.monotonic() > deadline:
            raise CommandFailure("the tracer did not finish its record")
        time.sleep(0.05)
    return read_trace(record)


def test_the_agent_does_its_work_offline(traced: Traced) -> None:
    assert "Fertility clinic appointment" in traced.answers["tool"]
    assert traced.answers["model"].strip()
    assert traced.booked == 1


def test_no_internet_socket_of_the_node_or_its_children_while_offline(traced: Traced) -> None:
    before = [call for call in traced.calls if call.at_s < traced.lan_from_s]
    assert any(call.call == "bind" and "AF_UNIX" in call.args for call in before)   # the record is a real one
    assert leaks_of(before, traced.node_pid) == []
    assert len({call.pid for call in before if call.is_internet_socket}) >= 2       # both workers tried and failed


def test_offline_again_after_other_modes_not_one_call_reaches_for_a_network(traced: Traced) -> None:
    assert len(traced.spells) == 2
    for began_s, ended_s in traced.spells:
        during = [call for call in traced.calls if began_s <= call.at_s < ended_s]
        assert leaks_of(during, traced.node_pid) == []
        reaching = [
            call for call in during
            if call.call in ("connect", "bind", "sendto", "sendmsg", "listen") and "AF_INET" in call.args
            and call.result >= 0
        ]
        assert reaching == []
    assert traced.left_open == [[], []]


def test_the_same_look_finds_the_listener_of_online_mode(traced: Traced) -> None:
    during = [call for call in traced.calls if traced.lan_from_s <= call.at_s < traced.offline_again_s]
    found = leaks_of(during, traced.node_pid)
    assert any(call.pid == traced.node_pid and call.result >= 0 for call in found)


def test_a_switch_closes_the_port_and_the_next_one_opens_the_same(traced: Traced) -> None:
    assert traced.refused == [True, True]
    assert traced.ports[0] == traced.ports[1] == traced.ports[2] != []


@pytest.mark.parametrize(("line", "leaks"), [
    ('9 1.5 socket(AF_INET, SOCK_DGRAM|SOCK_CLOEXEC, IPPROTO_IP) = -1 EPERM (Operation not permitted)', 0),
    ('9 1.5 socket(AF_INET, SOCK_DGRAM|SOCK_CLOEXEC, IPPROTO_IP) = 5', 1),
    ('9 1.5 socket(AF_INET, SOCK_STREAM|SOCK_CLOEXEC, IPPROTO_IP) = -1 EPERM (Operation not permitted)', 1),
    ('9 1.5 socket(AF_INET6, SOCK_DGRAM|SOCK_CLOEXEC, IPPROTO_IP) = 5', 1),
    ('7 1.5 socket(AF_INET, SOCK_DGRAM|SOCK_CLOEXEC, IPPROTO_IP) = -1 EPERM (Operation not permitted)', 1),
    ('9 1.5 socket(AF_UNIX, SOCK_STREAM|SOCK_CLOEXEC, 0) = 5', 0),
])
def test_only_a_workers_failed_probe_is_explained(line: str, leaks: int, tmp_path: Path) -> None:
    (tmp_path / "trace").write_text(line + "\n")
    assert len(leaks_of(read_trace(tmp_path / "trace"), node_pid=7)) == leaks


def test_two_probes_of_one_process_are_no_longer_explained(tmp_path: Path) -> None:
    line = "9 1.5 socket(AF_INET, SOCK_DGRAM|SOCK_CLOEXEC, IPPROTO_IP) = -1 EPERM (Operation not permitted)\n"
    (tmp_path / "trace").write_text(line * 2)
    assert len(leaks_of(read_trace(tmp_path / "trace"), node_pid=7)) == 2


def test_a_call_that_another_thread_interrupted_is_read_whole(tmp_path: Path) -> None:
    (tmp_path / "trace").write_text(
        "9 1.5 socket(AF_INET, SOCK_STREAM, IPPROTO_IP <unfinished ...>\n8 1.6 bind(3, {sa_family=AF_UNIX}, 9) = 0\n"
        "9 1.7 <... socket resumed>) = 5\n"
    )
    assert [call.call for call in leaks_of(read_trace(tmp_path / "trace"), node_pid=7)] == ["socket"]
