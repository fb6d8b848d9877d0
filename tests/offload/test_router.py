"""The router's choice, row by row: what it picks, and the words it gives for it."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from offload.router import JobNeeds, LocalView, PeerCandidate, choose

HERE = LocalView("phone", "smollm2", "d" * 64, 2048)
NO_MODEL = LocalView("phone", None)
BIG = ("qwen-7b", "a" * 64, 8192)


def peer(name: str = "home-pc", **changes: object) -> PeerCandidate:
    given_: dict[str, object] = {
        "peer_id": f"id-{name}",
        "name": name,
        "trust": "home",
        "connected": True,
        "grants_infer": True,
        "models": (BIG,),
    }
    return PeerCandidate(**{**given_, **changes})  # type: ignore[arg-type]


def needs(**changes: object) -> JobNeeds:
    return JobNeeds(**{"place": "auto", "prompt_tokens": 200, "max_tokens": 300, **changes})  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("job", "here", "peers", "mode", "where", "reason"),
    [
        (needs(), HERE, (peer(),), "lan", "peer", "home-pc is reachable"),
        (needs(), HERE, (), "lan", "here", "no peer is paired"),
        (needs(), HERE, (peer(connected=False),), "lan", "here", "home-pc: not reachable now"),
        (needs(), HERE, (peer(grants_infer=False),), "lan", "here", "has not granted inference"),
        (needs(), HERE, (peer(models=()),), "lan", "here", "offers no model"),
        (needs(), HERE, (peer(refused_lately="busy"),), "lan", "here", "refused a moment ago: busy"),
        (needs(), HERE, (peer(),), "offline", "here", "this node is offline"),
        (needs(place="local"), HERE, (peer(),), "lan", "here", "this device only"),
        (needs(place="local"), NO_MODEL, (peer(),), "lan", "nowhere", "no model on this device"),
        (needs(), NO_MODEL, (peer(connected=False),), "lan", "nowhere", "no model on this device"),
        (needs(prompt_tokens=4000), HERE, (peer(),), "lan", "peer", "reachable"),
        (needs(prompt_tokens=4000), HERE, (), "lan", "nowhere", "context of 4300 tokens"),
        (needs(prompt_tokens=9000), HERE, (peer(),), "lan", "nowhere", "context of 9300 tokens"),
        (needs(place="id-home-pc"), HERE, (peer(),), "lan", "peer", "you named it"),
        (needs(place="id-home-pc"), HERE, (peer(connected=False),), "lan", "nowhere", "not reachable now"),
        (needs(place="id-stranger"), HERE, (peer(),), "lan", "nowhere", "not paired"),
        (needs(model="qwen-7b"), HERE, (peer(),), "lan", "peer", "reachable"),
        (needs(model="gpt-4o"), HERE, (peer(),), "lan", "nowhere", "does not offer gpt-4o"),
    ],
)
def test_choice_and_words(job, here, peers, mode, where, reason):
    choice = choose(job, here, peers, mode=mode)
    assert choice.where == where
    assert reason in choice.reason


def test_the_idle_peer_is_picked_before_the_busy_one_whatever_the_order():
    busy, idle = peer("a-busy", in_flight=2), peer("z-idle")
    assert choose(needs(), HERE, (busy, idle), mode="lan").peer_name == "z-idle"
    assert choose(needs(), HERE, (idle, busy), mode="lan").peer_name == "z-idle"


def test_home_comes_before_friend_when_both_are_idle():
    friend, home = peer("a-friend", trust="friend"), peer("b-home")
    assert choose(needs(), HERE, (friend, home), mode="lan").peer_name == "b-home"


def test_every_place_is_explained():
    choice = choose(needs(), HERE, (peer("one"), peer("two", connected=False)), mode="lan")
    assert [(line.name, line.able) for line in choice.candidates] == [("phone", True), ("one", True), ("two", False)]


@given(
    st.builds(
        peer,
        st.sampled_from(["a", "b"]),
        connected=st.booleans(),
        grants_infer=st.booleans(),
        in_flight=st.integers(0, 9),
        models=st.sampled_from([(), (BIG,)]),
        trust=st.sampled_from(["home", "friend", "self", "none"]),
    ),
    st.sampled_from(["auto", "local", "id-a"]),
    st.sampled_from(["offline", "lan", "online"]),
)
def test_never_a_peer_that_cannot_or_may_not(one, place, mode):
    choice = choose(needs(place=place), HERE, (one,), mode=mode)
    if choice.where == "peer":
        assert one.connected and one.grants_infer and one.models and mode != "offline" and place != "local"
