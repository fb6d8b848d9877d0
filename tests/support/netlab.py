"""Two homes behind routers with the internet between them, made of network namespaces: for tests with real nodes.

    home A 192.168.1.2 -- router A 198.51.100.2 -- internet 198.51.100.1 | 203.0.113.1 -- router B 203.0.113.2 -- home B
                                                   (a third node lives there)                     192.168.2.2

Needs root, ip and nft; without them tests skip and say so. Everything is removed at the end. Must not know kith.
"""

import contextlib
import os
import shutil
import subprocess
import time
from collections.abc import Iterator
from dataclasses import dataclass

import pytest

__all__ = [
    "HOME_A", "HOME_A6", "HOME_B", "INTERNET_A", "INTERNET_B", "ROUTER_A6", "ROUTER_LAN", "Lab", "lab",
    "reason_to_skip",
]

HOME_A, HOME_B = "192.168.1.2", "192.168.2.2"
ROUTER_LAN = "192.168.1.1"
HOME_A6, ROUTER_A6 = "fd00:a::2", "fd00:a::1"
INTERNET_A, INTERNET_B = "198.51.100.1", "203.0.113.1"
ROUTER_A, ROUTER_B = "198.51.100.2", "203.0.113.2"
_KEEP_IPV6 = "/proc/sys/net/ipv6/conf/all/keep_addr_on_down"
_FORWARD = "/proc/sys/net/ipv4/ip_forward"


def reason_to_skip() -> str:
    """Why there can be no namespaces here; empty when there can."""
    if os.geteuid() != 0:
        return "network namespaces need root"
    for tool in ("ip", "nft"):
        if shutil.which(tool) is None:
            return f"{tool} is not installed (Debian: iproute2, nftables)"
    probe = f"kp{os.getpid()}"
    made = subprocess.run(["ip", "netns", "add", probe], capture_output=True, check=False)
    subprocess.run(["ip", "netns", "del", probe], capture_output=True, check=False)
    return "" if made.returncode == 0 else "this machine gives no network namespaces"


@dataclass
class Lab:
    """The five namespaces: a, ra, net, rb, b."""

    prefix: str

    def name(self, place: str) -> str:
        return f"{self.prefix}{place}"

    def enter(self, place: str) -> tuple[str, ...]:
        """What to put before a command to run it there."""
        return ("ip", "netns", "exec", self.name(place))

    def run(self, place: str, *command: str, check: bool = True) -> str:
        done = subprocess.run(
            [*self.enter(place), *command], capture_output=True, text=True, check=False, timeout=30
        )
        assert not check or done.returncode == 0, (command, done.stderr)
        return done.stdout

    def build(self) -> None:
        for place in ("a", "ra", "net", "rb", "b"):
            _ip("netns", "add", self.name(place))
            self.run(place, "ip", "link", "set", "lo", "up")
            self.run(place, "sh", "-c", f"echo 1 > {_KEEP_IPV6}")
        self._wire("a", "eth0", f"{HOME_A}/24", "ra", "lan", f"{ROUTER_LAN}/24")
        self._wire("ra", "wan", f"{ROUTER_A}/24", "net", "toa", f"{INTERNET_A}/24")
        self._wire("rb", "wan", f"{ROUTER_B}/24", "net", "tob", f"{INTERNET_B}/24")
        self._wire("b", "eth0", f"{HOME_B}/24", "rb", "lan", "192.168.2.1/24")
        for place, port, address in (("a", "eth0", HOME_A6), ("ra", "lan", ROUTER_A6)):
            self.run(place, "ip", "addr", "add", f"{address}/64", "dev", port, "nodad")
        for place, gateway in (("a", ROUTER_LAN), ("b", "192.168.2.1"), ("ra", INTERNET_A), ("rb", INTERNET_B)):
            self.run(place, "ip", "route", "add", "default", "via", gateway)
        for place in ("ra", "net", "rb"):
            self.run(place, "sh", "-c", f"echo 1 > {_FORWARD}")
        self.open_up()

    def _wire(self, one: str, port: str, address: str, other: str, far_port: str, far_address: str) -> None:
        _ip("link", "add", port, "netns", self.name(one), "type", "veth", "peer", "name", far_port, "netns",
            self.name(other))
        for place, name, where in ((one, port, address), (other, far_port, far_address)):
            self.run(place, "ip", "addr", "add", where, "dev", name)
            self.run(place, "ip", "link", "set", name, "up")

    # -- what lies between --

    def open_up(self) -> None:
        """No NAT: the two homes reach each other, as if they were one network."""
        for place in ("ra", "rb"):
            self.run(place, "nft", "flush", "ruleset")
        self.run("net", "ip", "route", "replace", "192.168.1.0/24", "via", ROUTER_A)
        self.run("net", "ip", "route", "replace", "192.168.2.0/24", "via", ROUTER_B)

    def close_up(self, *, symmetric: bool = False) -> None:
        """Both routers masquerade and let in only what was asked for; symmetric: each call gets a random port."""
        for network in ("192.168.1.0/24", "192.168.2.0/24"):
            self.run("net", "ip", "route", "del", network, check=False)
        for place in ("ra", "rb"):
            self.nft(place, f"""
                flush ruleset
                table ip nat {{
                    chain post {{
                        type nat hook postrouting priority 100
                        oifname "wan" masquerade {"random" if symmetric else ""}
                    }}
                }}
                table ip filter {{
                    chain through {{
                        type filter hook forward priority 0; policy drop
                        ct state established,related accept
                        oifname "wan" accept
                    }}
                    chain inward {{
                        type filter hook input priority 0; policy accept
                        iifname "wan" ct state new drop
                    }}
                }}
                """)

    def nft(self, place: str, rules: str) -> None:
        done = subprocess.run(
            [*self.enter(place), "nft", "-f", "-"], input=rules, text=True, check=False, capture_output=True, timeout=30
        )
        assert done.returncode == 0, done.stderr

    def lose(self, place: str, percent: int, hook: str = "forward") -> None:
        """Drop this share of what a router forwards, or with the hook "output" of what a machine sends, by count: no
        two runs differ in how many."""
        self.nft(place, f"""
            table ip loss {{
                chain through {{
                    type filter hook {hook} priority -10
                    numgen inc mod 100 < {percent} drop
                }}
            }}
            """)

    def slow_down(self, place: str, port: str, rate: str) -> None:
        """Limit the rate of a port."""
        self.run(place, "tc", "qdisc", "replace", "dev", port, "root", "tbf", "rate", rate, "burst", "16kb",
                 "latency", "300ms")

    def smooth(self, place: str, port: str) -> None:
        """No loss and no limit any more."""
        self.run(place, "tc", "qdisc", "del", "dev", port, "root")
        self.run(place, "nft", "delete", "table", "ip", "loss")

    def cut(self, place: str, port: str, *, back: bool = False) -> None:
        """Pull a cable, or put it back. Routes through it come back too."""
        self.run(place, "ip", "link", "set", port, "up" if back else "down")
        if back:
            gateway = {"a": "192.168.1.1", "b": "192.168.2.1", "ra": INTERNET_A, "rb": INTERNET_B}.get(place)
            if gateway is not None:
                self.run(place, "ip", "route", "replace", "default", "via", gateway)

    def readdress_a(self, old: str, new: str) -> None:
        """Home A gets another address from its router."""
        self.run("a", "ip", "addr", "del", f"{old}/24", "dev", "eth0")
        self.run("a", "ip", "addr", "add", f"{new}/24", "dev", "eth0")
        self.run("a", "ip", "route", "replace", "default", "via", "192.168.1.1")

    def no_ipv4(self, place: str, network: str) -> None:
        """IPv4 to this network is lost; IPv6 goes on."""
        self.nft(place, f"""
            table ip old {{
                chain out {{
                    type filter hook output priority 0
                    ip daddr {network} tcp dport 4711 drop
                    ip daddr {network} tcp sport 4711 drop
                }}
            }}
            """)

    def no_multicast(self, *places: str) -> None:
        """As on guest networks and in many offices."""
        for place in places:
            self.nft(place, """
                table ip quiet {
                    chain out {
                        type filter hook output priority 0
                        ip daddr 224.0.0.0/4 drop
                    }
                    chain inward {
                        type filter hook input priority 0
                        ip daddr 224.0.0.0/4 drop
                    }
                }
                """)

    def tear_down(self) -> None:
        for place in ("a", "ra", "net", "rb", "b"):
            with contextlib.suppress(AssertionError):
                _ip("netns", "del", self.name(place))


@contextlib.contextmanager
def lab(letter: str = "x") -> Iterator[Lab]:
    """A lab of one's own; skips the test where there can be none."""
    reason = reason_to_skip()
    if reason:
        pytest.skip(reason)
    made = Lab(f"k{os.getpid() % 100000}{letter}{time.monotonic_ns() % 1000}")
    try:
        made.build()
        yield made
    finally:
        made.tear_down()


def _ip(*arguments: str) -> None:
    done = subprocess.run(["ip", *arguments], capture_output=True, text=True, check=False, timeout=30)
    assert done.returncode == 0, (arguments, done.stderr)
