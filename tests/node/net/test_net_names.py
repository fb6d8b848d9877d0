"""What we take from libp2p: one pinned version, public names only, and no clash with its private ones."""

import ast
import importlib.metadata
import inspect
import re
from pathlib import Path

import pytest
from libp2p.network.connection.swarm_connection import SwarmConn
from libp2p.network.stream.net_stream import NetStream
from libp2p.network.swarm import Swarm

from node.net.muxer import Muxer
from node.net.muxstream import MuxStream
from node.net.noise import GatedNoise
from node.net.rawconn import TcpConnection
from node.net.upgrade import Upgrader

_NET = Path(__file__).parents[3] / "node" / "net"


def test_libp2p_is_the_version_that_was_measured() -> None:
    assert importlib.metadata.version("libp2p") == "0.8.1"


@pytest.mark.parametrize("path", sorted(_NET.glob("*.py")), ids=lambda path: path.name)
def test_no_private_name_of_anyone_else_is_used(path: Path) -> None:
    foreign = [
        f"{path.name}:{node.lineno} {ast.unparse(node)}"
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Attribute) and re.match(r"_[a-z]", node.attr)
        and not (isinstance(node.value, ast.Name) and node.value.id in ("self", "cls"))
    ]
    imported = [
        f"{path.name}:{node.lineno} {alias.name}"
        for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.ImportFrom)
        for alias in node.names if alias.name.startswith("_") or "._" in (node.module or "")
    ]
    assert foreign + imported == []


@pytest.mark.parametrize("ours", [Muxer, MuxStream, GatedNoise, TcpConnection, Upgrader])
def test_our_private_names_do_not_shadow_those_of_the_class_below(ours: type) -> None:
    mine = set(re.findall(r"self\.(_[a-z]\w*)", inspect.getsource(ours)))
    below = {
        name for base in ours.__mro__[1:] if base.__module__.startswith("libp2p.")
        for name in re.findall(r"self\.(_[a-z]\w*)", inspect.getsource(base))
    }
    assert mine & below == set()


def test_every_abstract_name_of_libp2ps_interfaces_is_there() -> None:
    for ours in (Muxer, MuxStream):
        assert not getattr(ours, "__abstractmethods__", None)


def test_what_the_swarm_asks_of_a_muxer_is_there() -> None:
    asked = set(re.findall(r"muxed_conn\.(\w+)", inspect.getsource(Swarm.add_conn) + inspect.getsource(SwarmConn)))
    # asked with hasattr, or set in __init__
    optional = {"set_resource_scope", "peer_id", "event_started", "secured_conn"}
    assert {name for name in asked - optional if not hasattr(Muxer, name)} <= {"negotiated_security_protocol"}


def test_what_we_ask_of_the_swarm_is_there() -> None:
    assert {"transports", "connection_config"} <= set(inspect.signature(Swarm.__init__).parameters)
    assert "direction" in inspect.signature(Swarm.add_conn).parameters
    assert callable(Swarm.set_stream_handler)
    assert "muxed_stream" in NetStream.__annotations__
