"""What kith net advises, most important first, and nothing when all is well; and how it is drawn."""

from typing import Any

import pytest

from node.api.net_views import NetPeerView, NetRelayView, NetView, TurnedAwayView
from node.cli.cmd_net import render
from node.daemon.net_desk import advise


def peer(name: str = "bea", **changed: Any) -> NetPeerView:
    plain: dict[str, Any] = {
        "name": name, "peer_id": "12D3KooWx", "here": True, "route": "lan", "address": "/ip4/192.168.1.9/tcp/1",
        "rtt_ms": 1.5, "failure": "", "direct_problem": "", "addresses": ["/ip4/192.168.1.9/tcp/1"],
    }
    return NetPeerView(**{**plain, **changed})


def view(**changed: Any) -> NetView:
    plain: dict[str, Any] = {
        "mode": "online", "listening": ["/ip4/192.168.1.7/tcp/1"], "told": ["/ip4/192.168.1.7/tcp/1"], "stated": [],
        "mapped": ["/ip4/203.0.113.2/tcp/1"], "mapping": "passes calls on (UPnP)", "discovery": "nothing",
        "seen_at": [],
        "relays": [], "carrying": True, "places": [], "circuits": 0, "peers": [peer()], "advice": [],
    }
    return NetView(**{**plain, **changed})


def test_all_is_well_and_nothing_is_advised() -> None:
    assert advise(view()) == []
    assert advise(view(mode="lan", mapped=[])) == []


def test_offline_comes_before_all_else() -> None:
    (only,) = advise(view(mode="offline", listening=[], told=[], mapped=[]))
    assert "kith mode lan" in only


@pytest.mark.parametrize("way", [
    {"mapped": ["/ip4/203.0.113.2/tcp/1"]}, {"stated": ["/dns/home.example/tcp/1"]},
    {"told": ["/ip4/8.8.8.8/tcp/1"]}, {"told": ["/ip6/2a00:1450:4001::1/tcp/1"]},
    {"relays": [NetRelayView(name="attic", peer_id="x", place=True, problem="")]},
])
def test_one_way_in_from_the_internet_is_enough(way: dict[str, Any]) -> None:
    closed = view(mapped=[])
    (only,) = advise(closed)
    assert "Nobody can call this node from the internet" in only
    assert advise(view(**{"mapped": [], **way})) == []


def test_a_node_that_listens_on_loopback_alone_is_told_how_to_listen() -> None:
    (only,) = advise(view(mode="lan", told=[], listening=["/ip4/127.0.0.1/tcp/1"]))
    assert "kith pair" in only
    assert "net.listen" in only


def test_reasons_are_told_for_relays_peers_and_missing_direct_ways() -> None:
    found = advise(view(
        relays=[NetRelayView(name="attic", peer_id="x", place=False, problem="it has no place left")],
        peers=[peer("bea", here=False, route="", failure="The peer does not answer."),
               peer("cara", route="relayed via attic", direct_problem="no answer in time")],
    ))
    assert found == [
        "attic keeps no place for this node: it has no place left",
        "cara is relayed via attic, which works but is slower. Directly: no answer in time",
        "bea is away: The peer does not answer.",
    ]


def test_a_peer_far_away_is_a_reason_to_go_online() -> None:
    far = peer(here=False, route="", addresses=["/dns/home.example/tcp/1"])
    assert "kith mode online" in advise(view(mode="lan", peers=[far]))[0]
    assert advise(view(mode="lan", peers=[peer(here=False, route="")])) == []


def test_it_is_drawn_with_every_way_and_harmlessly() -> None:
    import msgspec

    shown = view(
        relays=[NetRelayView(name="at\x1b[31mtic", peer_id="x", place=True, problem="")], places=["cara"], circuits=2,
        peers=[peer(), peer("cara", route="relayed via attic", address="/p2p/x/p2p-circuit"),
               peer("dana", here=False, route="", rtt_ms=None, address="")],
        advice=["Do this."],
    )
    text = render(msgspec.to_builtins(shown))
    assert "\x1b" not in text
    for part in ("mode       online", "listening  /ip4/192.168.1.7/tcp/1", "router     passes calls on (UPnP)",
                 "can be called through it", "2 circuits", "places for cara", "relayed via attic", "1.5 ms", "away",
                 "- Do this."):
        assert part in text
    assert "p2p-circuit" not in text


def test_a_flood_of_calls_is_told_while_it_lasts() -> None:
    (advice,) = advise(view(turned_away=TurnedAwayView(calls=1200, lately=True)))
    assert "1200 were closed" in advice
    assert advise(view(turned_away=TurnedAwayView(calls=1200))) == []
