"""The router's choice, row by row: what it picks, and the words it gives for it."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from offload.prediction import Speed
from offload.router import JobNeeds, LocalView, Offer, PeerCandidate, choose

HERE = LocalView("phone", "smollm2", "d" * 64, 2048)
NO_MODEL = LocalView("phone", None)
BIG = Offer("qwen-7b", "a" * 64, 8192)


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


FAST = Speed(prompt_token_s=0.002, output_token_s=0.02, load_s=4.0)  # 200 to read, 256 to write: 0.4 + 5.12 s
QUICK = Offer("qwen-7b", "a" * 64, 8192, speed=FAST)
SAME = Offer("smollm2", "d" * 64, 8192, speed=FAST)


def test_the_numbers_of_every_place_are_in_its_line():
    choice = choose(
        needs(held={("id-home-pc", "a" * 64): 100}), HERE, (peer(models=(QUICK,), wait_s=3.0, rtt_s=0.01),), mode="lan")
    line = choice.candidates[1]
    assert line.prediction is not None
    assert (line.prediction.wait_s, line.prediction.prompt_s, line.prediction.rtt_s) == (3.0, 0.2, 0.01)
    assert line.prediction.answer_s == pytest.approx(5.12)
    assert (line.prefix_tokens, line.score_s) == (100, pytest.approx(8.33))
    assert choice.work_s == pytest.approx(5.32)     # what others wait for: neither the queue nor the way


@pytest.mark.parametrize(("one", "other", "winner"), [
    ({"wait_s": 5.0}, {}, "b"),                                     # idle before busy
    ({}, {"wait_s": 0.01}, "a"),
    ({"rtt_s": 0.3}, {"rtt_s": 0.001}, "b"),
    ({"models": (QUICK,)}, {"models": (BIG,)}, "a"),                # measured fast before assumed slow
    ({"models": (QUICK,)}, {"models": (Offer("qwen-7b", "a" * 64, 8192, warm=False, speed=FAST),)}, "a"),
    ({"saving": True}, {}, "b"),                                    # mains before battery
    ({"trust": "friend"}, {"wait_s": 1.0}, "b"),                    # 5.52 s * 1.5 against 6.52 s
    ({"trust": "friend"}, {"wait_s": 9.0}, "a"),                    # 8.28 s against 14.52 s
    ({"doubted": "gave other words than its model"}, {"wait_s": 60.0}, "b"),
    ({"max_context": 499}, {"wait_s": 60.0}, "b"),
    ({"hindrance": "closed until 22:00"}, {"wait_s": 60.0}, "b"),
])
def test_of_two_the_one_that_is_done_first_and_costs_least(one, other, winner):
    base = {"models": (QUICK,)}
    pair = (peer("a", **(base | one)), peer("b", **(base | other)))
    assert choose(needs(), HERE, pair, mode="lan").peer_name == winner
    assert choose(needs(), HERE, pair[::-1], mode="lan").peer_name == winner


def test_a_conversation_stays_where_it_was_read_until_waiting_costs_more():
    long = needs(prompt_tokens=3000, held={("id-a", "a" * 64): 2900}, last="id-a")  # 2900 tokens: 5.8 s

    def of(wait_s: float) -> str:
        pair = (peer("a", models=(QUICK,), wait_s=wait_s), peer("b", models=(QUICK,)))
        return choose(long, HERE, pair, mode="lan").peer_name

    assert [of(wait_s) for wait_s in (0.0, 5.0, 6.0, 9.0)] == ["a", "a", "a", "b"]
    assert "has read this conversation" in choose(
        long, HERE, (peer("a", models=(QUICK,)), peer("b", models=(QUICK,))), mode="lan").reason


def test_it_does_not_swing_between_two_that_are_about_equal():
    pair = (peer("a", models=(QUICK,), wait_s=0.4), peer("b", models=(QUICK,)))
    assert choose(needs(last="id-a"), HERE, pair, mode="lan").peer_name == "a"
    assert choose(needs(last="id-b"), HERE, pair, mode="lan").peer_name == "b"
    assert choose(needs(), HERE, pair, mode="lan").peer_name == "b"


def test_this_device_takes_over_only_for_the_same_model_and_a_long_wait():
    own = LocalView("phone", "smollm2", "d" * 64, 2048, speed=FAST)  # 5.52 s, weighed 11.04 + 30

    def of(wait_s: float, offer: Offer = SAME, here: LocalView = own) -> str:
        return choose(needs(), here, (peer(models=(offer,), wait_s=wait_s),), mode="lan").where

    assert [of(wait_s) for wait_s in (0.0, 35.0, 36.0)] == ["peer", "peer", "here"]
    assert of(600.0, QUICK) == "peer"  # another model: the owner asked for heavy work
    on_battery = LocalView("phone", "smollm2", "d" * 64, 2048, speed=FAST, battery=0.8)  # 22.08 + 30
    assert [of(wait_s, SAME, on_battery) for wait_s in (46.0, 47.0)] == ["peer", "here"]
    low = LocalView("phone", "smollm2", "d" * 64, 2048, speed=FAST, battery=0.1)
    assert of(600.0, SAME, low) == "peer"
    assert choose(needs(), low, (), mode="lan").where == "here"  # there is nobody else
    words = choose(needs(), own, (peer(models=(SAME,), wait_s=66.0),), mode="lan").reason
    assert words == "the same model here is done 66 s before home-pc"


def test_what_one_knows_of_a_model_here_counts_for_the_same_model_there():
    """A peer that has not measured anything yet is not taken for slow when it runs the same model."""
    own = LocalView("phone", "smollm2", "d" * 64, 2048, speed=FAST)
    fresh = Offer("smollm2", "d" * 64, 8192)
    (_, line) = choose(needs(), own, (peer(models=(fresh,)),), mode="lan").candidates
    assert line.prediction is not None
    assert line.prediction.total_s == pytest.approx(5.52)


def test_a_doubted_peer_still_answers_when_it_is_named():
    doubted = peer(doubted="gave other words than its model")
    assert choose(needs(place="id-home-pc"), HERE, (doubted,), mode="lan").where == "peer"
    assert choose(needs(), HERE, (doubted,), mode="lan").where == "here"
