"""A digest in a peer's advert is its word: what that is worth once it was found to be wrong, and what it never is."""

from offload.prediction import Speed
from offload.router import JobNeeds, LocalView, Offer, PeerCandidate, choose

FAST = Speed(prompt_token_s=0.002, output_token_s=0.02, load_s=4.0)
DIGEST = "d" * 64
HERE = LocalView("phone", "smollm2", DIGEST, 2048, speed=FAST)
WORDS = "its answers are not those of smollm2, which it names"


def claiming(*, doubted: str = "") -> PeerCandidate:
    return PeerCandidate(
        "id-home-pc", "home-pc", "home", connected=True, grants_infer=True,
        models=(Offer("smollm2", DIGEST, 8192, speed=FAST),), doubted=doubted)


def needs(place: str = "auto", model: str | None = None) -> JobNeeds:
    return JobNeeds(place, 400, 100, model)


def test_no_answer_of_this_model_goes_on_at_a_peer_that_only_names_it() -> None:
    """What a hand-over asks: this peer, and this very model."""
    going_on = needs("id-home-pc", DIGEST)
    nothing = LocalView("", None)
    assert choose(going_on, nothing, (claiming(),), mode="lan").where == "peer"     # the control: not found out
    choice = choose(going_on, nothing, (claiming(doubted=WORDS),), mode="lan")
    assert (choice.where, choice.reason) == ("nowhere", f"home-pc: {WORDS}")


def test_asked_for_by_the_models_name_it_is_no_place_either() -> None:
    for model in ("smollm2", DIGEST):
        assert choose(needs("id-home-pc", model), HERE, (claiming(doubted=WORDS),), mode="lan").where == "nowhere"
        assert choose(needs("auto", model), HERE, (claiming(doubted=WORDS),), mode="lan").where == "here"


def test_named_alone_it_still_answers() -> None:
    assert choose(needs("id-home-pc"), HERE, (claiming(doubted=WORDS),), mode="lan").where == "peer"
