"""Grants between two real daemons: shown, narrowed, used up, revoked in mid-answer, given again.

Both owners read which limit was met. Statements on stopping are about tokens, never about time.
"""

import contextlib
import json
from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from embedded_model import models_folder
from running_nodes import Household, cli, failing, household, peer_of, until

pytestmark = [pytest.mark.e2e, pytest.mark.model]

LONG = "Explain how a sailing boat works in detail"
SHORT = "Explain in one sentence what salt is"


@pytest.fixture(scope="module")
def house() -> Iterator[Household]:
    models_folder()
    with household() as running:
        yield running


@pytest.fixture(autouse=True)
def full_grant(house: Household) -> Iterator[None]:
    """Each test begins and ends with the grant of an own device."""
    yield
    everything = "infer,mail,models,relay,search"
    grant(house, "edit", "phone", "--services", everything, "--models", "*", "--tokens-per-day", "20000000",
          "--max-context", "131072", "--max-concurrency", "8", "--until", "2040-01-01", "--hours", "all")
    wait_allowed(house, True)


def grant(house: Household, *arguments: str) -> dict[str, Any]:
    """What `kith grant ... --json` prints at the home PC."""
    done = cli(house.home_pc, "grant", *arguments, "--json")
    assert done.returncode == 0, done.stderr
    view: dict[str, Any] = json.loads(done.stdout)
    return view


def wait_allowed(house: Household, allowed: bool) -> None:
    """Wait until the phone has heard in a greeting whether it may ask the home PC."""
    def heard() -> bool:
        return ("infer" in (house.phone.client().get("/v1/peers/home-pc/grant")["allows_us"] or ())) is allowed

    until(heard, f"the phone hears that inference is {'' if allowed else 'not '}granted")
    house.wait_connected()


def answered_here(house: Household, why: str) -> dict[str, Any]:
    """The phone's own answer to a request that the home PC would not take, for a reason that says `why`.

    The first tries may meet a connection that the change has just cut.
    """
    def look() -> dict[str, Any] | None:
        answer = house.owner.ask(SHORT)
        return answer if answer["ran_on"] == "phone" and why in answer["reason"] else None

    return until(look, f"the phone answers by itself: {why}")


def test_a_grant_is_shown_with_what_was_used(house: Household) -> None:
    before = grant(house, "show", "phone")
    assert (before["state"], before["models"]) == ("in force", ["*"])
    assert before["services"] == ["infer", "mail", "models", "relay", "search"]
    assert house.owner.ask(SHORT)["ran_on"] == "home-pc"
    after = until(lambda: _booked(house, before), "the request is booked")
    assert after["requests_today"] == before["requests_today"] + 1
    shown = cli(house.home_pc, "grant", "show", "phone")
    assert f"{after['tokens_today']:,} tokens in {after['requests_today']} request" in shown.stdout
    assert "20,000,000" in shown.stdout


def _booked(house: Household, before: dict[str, Any]) -> dict[str, Any] | None:
    view = grant(house, "show", "phone")
    return view if view["tokens_today"] > before["tokens_today"] and not view["running"] else None


def test_a_day_used_up_is_told_to_both_owners(house: Household) -> None:
    house.owner.ask(SHORT)
    view = grant(house, "edit", "phone", "--tokens-per-day", "1")
    assert view["tokens_today"] >= 1
    wait_allowed(house, True)
    answered_here(house, "this device may use 1 tokens a day there (UTC), and they are used up")
    named = failing(lambda: house.owner.ask(SHORT, on="home-pc", now=True))
    assert "used up" in str(named)
    refusal = grant(house, "show", "phone")["refusals"][-1]
    assert (refusal["code"], refusal["limit"], refusal["text"]) == ("quota", 1, "quota: 1 token a day")


def test_a_short_context_is_told_with_its_number(house: Household) -> None:
    grant(house, "edit", "phone", "--max-context", "100")
    wait_allowed(house, True)
    answer = answered_here(house, "longer than the 100 tokens it allows")
    assert "home-pc" in answer["reason"]


def test_a_change_is_told_on_the_open_link_and_a_closed_hour_with_its_end(house: Household) -> None:
    before = peer_of(house.phone)["last_contact"]
    now = datetime.now(ZoneInfo("Europe/London"))
    # one that ends at midnight is told as ending at 24:00
    opens = (now + timedelta(hours=4 if now.hour == 20 else 3)).replace(minute=0)
    hours = f"{opens:%H:00}-{opens + timedelta(hours=1):%H:00}"
    grant(house, "edit", "phone", "--hours", hours, "--tokens-per-day", "5000000")

    def heard() -> bool:
        held = house.phone.client().get("/v1/peers/home-pc/grant")["allowed_us"]
        return held is not None and (held["hours"], held["tokens_per_day"]) == (hours, 5_000_000)

    until(heard, "the phone has the new grant")
    line = next(line for line in house.phone.client().post("/v1/offload/explain", {"text": SHORT})["candidates"]
                if line["name"] == "home-pc")
    assert not line["able"] and "does not hold at this time of the day (again in" in line["reason"]
    answered_here(house, "does not hold at this time of the day")
    assert f"{hours} (Europe/London)" in cli(house.home_pc, "grant", "show", "phone").stdout
    assert peer_of(house.phone)["last_contact"] == before  # nothing was cut or greeted anew for it
    grant(house, "edit", "phone", "--hours", "all")
    until(lambda: house.owner.ask(SHORT)["ran_on"] == "home-pc", "it is open again")


def test_narrowing_ends_the_answer_that_it_does_not_cover(house: Household) -> None:
    owner, narrowed = house.owner, False
    answer: dict[str, Any] = {}
    with contextlib.closing(owner.follow(LONG)) as events:
        for event in events:
            if event["event"] == "delta" and not narrowed and len(_deltas(owner.events)) >= 3:
                grant(house, "edit", "phone", "--max-context", "200")
                narrowed = True
                assert [peer["connected"] for peer in house.home_pc.status()["peers"]] == [True]
            answer = event
    assert "home-pc stopped in mid-answer (the grant there was narrowed" in answer["reason"]
    assert "".join(_deltas(owner.events)) == answer["text"]


def test_a_model_that_is_not_granted_is_not_offered(house: Household) -> None:
    grant(house, "edit", "phone", "--models", "another-model")
    answered_here(house, "offers no model")


def test_revoking_cuts_a_running_answer_and_the_reader_gets_the_rest(house: Household) -> None:
    owner = house.owner
    answer = None
    revoked = False
    with contextlib.closing(owner.follow(LONG)) as events:
        for event in events:
            if event["event"] == "delta" and not revoked and len(_deltas(owner.events)) >= 3:
                view = grant(house, "revoke", "phone")
                revoked = True
                assert (view["state"], view["running"], view["services"]) == ("none", 0, [])
                spent = view["tokens_today"]
            if event["event"] == "answer":
                answer = event
    assert answer is not None
    assert "home-pc stopped in mid-answer" in answer["reason"]
    assert "withdrawn, changed or ran out" in answer["reason"]
    assert "".join(_deltas(owner.events)) == answer["text"]
    view = grant(house, "show", "phone")
    assert view["tokens_today"] == spent  # not one token more was computed for it
    assert view["refusals"][-1]["code"] == "revoked"
    # still paired, and nothing is served to it any more
    wait_allowed(house, False)
    again = house.owner.ask(SHORT)
    assert again["ran_on"] == "phone"
    assert "has not granted inference" in again["reason"]
    named = failing(lambda: house.owner.ask(SHORT, on="home-pc", now=True))
    assert named.exit_code == 6


@pytest.mark.parametrize("how", ["trust none", "forget"])
def test_distrust_cuts_a_running_answer_and_the_connection(house: Household, how: str) -> None:
    """Whoever is refused a connection gets not one byte more; the reader still gets a whole answer."""
    owner = house.owner
    answer = None
    cut = False
    with contextlib.closing(owner.follow(LONG)) as events:
        for event in events:
            if event["event"] == "delta" and not cut and len(_deltas(owner.events)) >= 3:
                words = ("trust", "phone", "none") if how == "trust none" else ("forget", "phone", "--yes")
                done = cli(house.home_pc, *words)
                cut = True
                assert done.returncode == 0, done.stderr
                assert not [peer for peer in house.home_pc.status()["peers"] if peer["connected"]]
            if event["event"] == "answer":
                answer = event
    assert answer is not None
    assert "home-pc stopped in mid-answer (the grant there was withdrawn" in answer["reason"]
    assert "".join(_deltas(owner.events)) == answer["text"]
    house.wait_apart(house.phone)
    named = cli(house.phone, "ping", "home-pc", "-n", "2", "-i", "0.5", "-w", "1")
    assert (named.returncode, named.stdout) == (5, "")
    if how == "trust none":
        assert cli(house.home_pc, "trust", "phone", "self").returncode == 0
    else:
        assert cli(house.phone, "forget", "home-pc", "--yes").returncode == 0
        house.pair()
    house.phone.client().post("/v1/peers/home-pc/ping", {"timeout_s": 30})
    house.wait_connected()


def test_a_wider_grant_lets_a_running_answer_go_on(house: Household) -> None:
    """The control of the cut: an edit that takes nothing away takes no answer away either."""
    owner = house.owner
    with contextlib.closing(owner.follow(LONG)) as events:
        widened = False
        for event in events:
            if event["event"] == "delta" and not widened:
                grant(house, "edit", "phone", "--tokens-per-day", "30000000")
                widened = True
            answer = event
    assert (answer["event"], answer["ran_on"]) == ("answer", "home-pc")
    assert "mid-answer" not in answer["reason"]


def test_a_changed_trust_shows_at_the_other_side(house: Household) -> None:
    before = peer_of(house.home_pc)["trust"]

    def shown() -> str:
        trust: str = peer_of(house.phone)["their_trust"]
        return trust

    assert shown() == before
    for trust in ("friend", before):
        assert cli(house.home_pc, "trust", "phone", trust).returncode == 0
        until(lambda wanted=trust: shown() == wanted, f"the phone shows that it is {trust} to the home PC")
        house.wait_connected()


@pytest.mark.parametrize(("arguments", "exit_code", "said"), [
    (["edit", "phone"], 2, "Nothing was said to change"),
    (["edit", "phone", "--services", "infer,shell"], 2, "'shell' is no service"),
    (["edit", "phone", "--until", "soon"], 2, "'soon' is no date"),
    (["edit", "phone", "--until", "2001-01-01"], 2, "over already"),
    (["edit", "phone", "--tokens-per-day", "-1"], 2, "-1"),
    (["edit", "phone", "--models", "no such"], 2, "by their name or digest"),
    (["show", "attic"], 6, "attic"),
])
def test_a_wrong_command_changes_nothing(
    house: Household, arguments: list[str], exit_code: int, said: str
) -> None:
    before = grant(house, "show", "phone")
    done = cli(house.home_pc, "grant", *arguments)
    assert (done.returncode, done.stdout) == (exit_code, "")
    assert said in done.stderr
    assert grant(house, "show", "phone")["epoch"] == before["epoch"]


def _deltas(events: list[dict[str, Any]]) -> list[str]:
    return [event["text"] for event in events if event["event"] == "delta"]
