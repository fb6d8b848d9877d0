"""An answer outlives the machines that write it: word for word one text, whoever goes on, and no end but a true one."""

import itertools
from collections.abc import Awaitable, Callable
from dataclasses import replace

import pytest
import trio
from stream_house import NAME, House
from stream_provider import DIGESTS, words

from node.agent.ports import ThinkResult

Act = Callable[[House], Awaitable[None]]


async def while_thinking(house: House, at_s: float, act: Act, **more: object) -> ThinkResult:
    """The result of one answer during which something happens."""
    results: list[ThinkResult] = []

    async def think() -> None:
        results.append(await house.think(**more))

    async with house.open(), trio.open_nursery() as nursery:
        nursery.start_soon(think)
        await trio.sleep(at_s)
        await act(house)
    (result,) = results
    assert result.text == house.text
    return result


async def home_dies(house: House) -> None:
    await house.providers[0].die()


async def home_freezes(house: House) -> None:
    house.providers[0].freeze()


async def home_gets_stuck(house: House) -> None:
    house.providers[0].engine.stuck = True


async def home_withdraws(house: House) -> None:
    house.providers[0].granted = False


@pytest.mark.parametrize(
    ("act", "why", "within_s"),
    [
        (home_dies, "the connection broke", 0.5), (home_freezes, "nothing moved for 3 seconds", 3.6),
        (home_gets_stuck, "nothing moved for 3 seconds", 3.6), (home_withdraws, "the grant there was withdrawn", 0.5),
    ],
)  # fmt: skip
async def test_another_peer_goes_on_from_the_very_words(
    autojump_clock: object, act: Act, why: str, within_s: float
) -> None:
    house = await House.build("alpha", "alpha", here="beta")
    times: list[float] = []
    read = house.on_text

    async def on_text(text: str) -> bool:
        times.append(trio.current_time())
        return await read(text)

    house.on_text = on_text  # type: ignore[method-assign]
    result = await while_thinking(house, 2.05, act)
    assert result.text == house.expected("alpha")
    assert (result.ran_on, result.finish_reason) == ("laptop", "stop")
    assert f"home-pc stopped in mid-answer ({why}" in result.reason
    assert "laptop went on from there" in result.reason
    assert [(leg.ran_on, bool(leg.ended)) for leg in result.legs] == [("home-pc", True), ("laptop", False)]
    assert max(later - earlier for earlier, later in itertools.pairwise(times)) <= within_s
    second = house.providers[1].engine.requests[0]
    assert second.token_ids_so_far == tuple(range(len(second.token_ids_so_far)))
    assert NAME not in second.text_so_far
    report = await house.near.ledger.verify()
    assert (report.ok, report.entries, report.open_entries) == (True, 2, 0)
    assert all(NAME.encode() not in data for _, _, data in house.near.tapped)
    assert house.peers.at_work == 0


async def test_the_model_here_goes_on_with_the_masked_words(autojump_clock: object) -> None:
    house = await House.build("alpha", here="alpha")
    result = await while_thinking(house, 2.05, home_dies)
    assert result.text == house.expected("alpha")
    assert house.here is not None
    (request,) = house.here.requests
    assert NAME not in str(request.prompt) + request.text_so_far
    assert request.token_ids_so_far
    assert result.draft


async def test_another_model_goes_on_by_text_and_the_result_says_so(autojump_clock: object) -> None:
    house = await House.build("alpha", here="beta")
    result = await while_thinking(house, 2.05, home_dies)
    begun_at = result.legs[1].begun_at
    shown_first = result.text[:begun_at]
    assert house.expected("alpha").startswith(shown_first)
    assert result.text[begun_at:] == house.expected("beta")[begun_at:]
    assert "went on from there with another model, beta" in result.reason
    assert [leg.digest for leg in result.legs] == [DIGESTS["alpha"], DIGESTS["beta"]]
    assert house.here is not None
    assert house.here.requests[0].token_ids_so_far == ()
    assert any("goes on with this answer" in note for note in house.notes)


async def test_the_model_that_began_is_preferred_to_a_nearer_one(autojump_clock: object) -> None:
    """Of a home PC with another model and a friend with the same one, the friend goes on."""
    house = await House.build("alpha", "beta", "alpha", here="beta")
    house.providers[1].connected = False

    async def die(house: House) -> None:
        house.providers[1].come_back()
        await house.providers[0].die()

    result = await while_thinking(house, 2.05, die)
    assert (result.ran_on, result.text) == ("dana", house.expected("alpha"))


async def test_the_owner_is_asked_for_each_peer_and_a_no_goes_on_here(autojump_clock: object) -> None:
    house = await House.build("alpha", "alpha", here="alpha", asks=True)

    async def die_and_refuse(house: House) -> None:
        house.near.owner.allows = False
        await house.providers[0].die()

    result = await while_thinking(house, 2.05, die_and_refuse)
    assert [question.peer_name for question in house.near.owner.questions] == ["home-pc", "laptop"]
    assert (result.ran_on, result.text) == ("phone", house.expected("alpha"))
    assert house.providers[1].engine.requests == []


@pytest.mark.parametrize("place", ["home-pc", "auto"])
async def test_a_link_that_breaks_for_a_moment_is_taken_up_at_the_same_peer(autojump_clock: object, place: str) -> None:
    """Named, or the only one that can: it is not asked about again for what it was sent and wrote itself."""
    house = await House.build("alpha", here=None if place == "auto" else "beta", asks=True)

    async def cut(house: House) -> None:
        await house.providers[0].cut()
        await trio.sleep(1)
        house.providers[0].come_back()

    result = await while_thinking(house, 2.05, cut, place=place)
    assert (result.ran_on, result.text) == ("home-pc", house.expected("alpha"))
    assert len(house.near.owner.questions) == 1
    assert len(result.legs) == 2


async def test_a_named_peer_that_stays_away_is_no_clean_end(autojump_clock: object) -> None:
    house = await House.build("alpha", "alpha", here="alpha")
    result = await while_thinking(house, 2.05, home_dies, place="home-pc")
    assert result.finish_reason == "broken"
    assert house.expected("alpha").startswith(result.text)
    assert 0 < len(result.text) < len(house.expected("alpha"))
    assert house.providers[1].engine.requests == []


@pytest.mark.parametrize("told", [True, False])
async def test_a_named_peer_that_takes_its_grant_back_is_not_waited_for(autojump_clock: object, told: bool) -> None:
    """told: whether this device knows of the end of the grant before the peer refuses to go on."""
    house = await House.build("alpha", "alpha", here="alpha")
    one = house.providers[0]
    known = one.candidate
    if not told:
        one.candidate = lambda: replace(known(), grants_infer=True)  # type: ignore[method-assign]
    ended: list[float] = []

    async def withdraw(house: House) -> None:
        await home_withdraws(house)
        ended.append(trio.current_time())

    result = await while_thinking(house, 2.05, withdraw, place="home-pc")
    assert trio.current_time() - ended[0] < 1
    assert (result.finish_reason, result.ran_on) == ("broken", "home-pc")
    assert "the grant there was withdrawn" in result.reason
    assert ("it has not granted this device the use of its models" in result.reason) is not told
    assert not [note for note in house.notes if "Nobody is here" in note]
    assert house.providers[1].engine.requests == []


async def test_a_named_peer_is_asked_whatever_it_said_a_moment_ago(autojump_clock: object) -> None:
    house = await House.build("alpha", here="beta")
    async with house.open():
        one = house.providers[0]
        one.refused, one.refused_until_s = "nothing moved for 3 seconds", 3600.0
        unnamed = await house.think()
        named = await house.think(place="home-pc")
    assert (unnamed.ran_on, named.ran_on) == ("phone", "home-pc")


async def test_an_answer_that_began_here_goes_on_at_home_when_it_is_back(autojump_clock: object) -> None:
    house = await House.build("alpha", here="alpha")
    house.providers[0].connected = False

    async def back(house: House) -> None:
        house.providers[0].come_back()

    result = await while_thinking(house, 2.05, back)
    assert result.text == house.expected("alpha")
    assert [(leg.ran_on, leg.ended) for leg in result.legs] == [("phone", "handed it over"), ("home-pc", "")]
    assert result.ran_on == "home-pc"
    assert house.here is not None
    assert NAME not in str(house.here.requests[0].prompt)   # it was begun so that it could go there
    assert not result.draft


@pytest.mark.parametrize("why", ["another model", "the owner would be asked", "switched off", "a friend's"])
async def test_an_answer_that_began_here_ends_here_where_it_may_not_go_on(autojump_clock: object, why: str) -> None:
    models = ("beta", "alpha", "alpha") if why == "a friend's" else ("beta" if why == "another model" else "alpha",)
    house = await House.build(*models, here="alpha", asks=why == "the owner would be asked")
    for provider in house.providers:
        provider.connected = False
    if why == "switched off":
        thinker = house.thinker()
        object.__setattr__(thinker._places, "go_on_at_home", False)
        house.thinker = lambda: thinker  # type: ignore[method-assign]

    async def back(house: House) -> None:
        house.providers[-1].come_back()

    result = await while_thinking(house, 2.05, back)
    assert (result.ran_on, len(result.legs)) == ("phone", 1)
    assert result.text in (house.expected("alpha"), "".join(words("alpha", 60)))    # read in clear where nobody waits
    assert result.draft
    assert all(provider.engine.requests == [] for provider in house.providers)


async def test_a_home_that_refuses_to_take_over_costs_nothing(autojump_clock: object) -> None:
    house = await House.build("alpha", here="alpha")
    house.providers[0].connected = False

    async def back_but_busy(house: House) -> None:
        house.providers[0].come_back()
        house.providers[0].server._closing = True

    result = await while_thinking(house, 2.05, back_but_busy)
    assert (result.ran_on, result.text) == ("phone", house.expected("alpha"))
    assert len(result.legs) == 1


async def test_a_killed_asker_goes_on_from_what_was_durable(autojump_clock: object) -> None:
    house = await House.build("alpha", here="beta")
    async with house.open():
        assert await house.think_until_killed(2.05, house.think) is None
        assert 0 < len(house.text) < len(house.expected("alpha"))
        result = await house.take_up()
    assert result.text == house.text == house.expected("alpha")
    assert [leg.ran_on for leg in result.legs] == ["home-pc", "home-pc"]
    assert house.providers[0].engine.requests[1].token_ids_so_far


async def test_an_asker_that_is_killed_behind_the_end_keeps_the_answer_as_it_is(autojump_clock: object) -> None:
    """Its turn was not stored yet: nobody writes on behind an end."""
    house = await House.build("alpha", here="beta")
    async with house.open():
        result = await house.think()
        house.shown.clear()
        again = await house.take_up()
    assert (again.text, again.finish_reason, again.ran_on) == (result.text, "stop", "home-pc")
    assert len(house.providers[0].engine.requests) == 1


async def test_an_asker_that_is_killed_before_the_first_word_begins_anew(autojump_clock: object) -> None:
    house = await House.build("alpha", here="beta")
    async with house.open():
        assert await house.think_until_killed(0.15, house.think) is None
        assert house.text == ""
        result = await house.take_up()
    assert result.text == house.expected("alpha")
    assert len(result.legs) == 1


async def test_the_exact_lane_stays_exact_with_the_same_model_only(autojump_clock: object) -> None:
    house = await House.build("alpha", "alpha", here="beta")
    result = await while_thinking(house, 2.05, home_dies, exact=True)
    assert (result.exact, result.text) == (True, house.expected("alpha"))
    lanes = [provider.engine.requests[0].lane for provider in house.providers]
    assert lanes == ["exact", "exact"]
    house = await House.build("alpha", here="beta")
    result = await while_thinking(house, 2.05, home_dies, exact=True)
    assert not result.exact
    assert house.here is not None
    assert house.here.requests[0].lane == "normal"


def test_the_engine_of_these_tests_writes_what_is_expected() -> None:
    assert "".join(words("alpha", 5)) == "a0 a1 a2 [PERSON_1] a4 "
