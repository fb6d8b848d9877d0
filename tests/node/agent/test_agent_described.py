"""Tools known by description alone: the one that is asked for, none where none fits, and what is looked at."""

from collections.abc import Sequence

import pytest
from agent_node import StaticEmbedder

from node.agent.described import FEATURES, Described, DescribedChooser, features_of, load_described

WEATHER = Described.of("get_weather_forecast", "Get the weather forecast of a city for some days.", {
    "type": "dict", "required": ["city"],
    "properties": {"city": {"type": "string", "description": "The city."}, "days": {"type": "integer"}}})
AREA = Described.of("geometry.triangleArea", "Calculate the area of a triangle from base and height.", {
    "type": "dict", "required": ["base", "height"], "properties": {
        "base": {"type": "integer", "description": "The base."},
        "height": {"type": "integer", "description": "Height."},
    }})
STOCK = Described.of("stock_price", "Look up the current price of a company's stock.", {
    "properties": {"company": {"type": "string", "description": "Name of the company."}}, "required": ["company"]})
ALL = (WEATHER, AREA, STOCK)


@pytest.mark.parametrize(("text", "name"), [
    ("What is the weather forecast for Lisbon for the next three days?", WEATHER.name),
    ("Find the area of a triangle with base 6 and height 10.", AREA.name),
    ("What's the current stock price of Siemens?", STOCK.name),
])
async def test_the_right_one_of_several(text: str, name: str) -> None:
    best = await DescribedChooser(StaticEmbedder()).choose(text, ALL)
    assert best is not None
    assert (best.name, best.called) == (name, True)


@pytest.mark.parametrize("text", [
    "Who painted the ceiling of the chapel?", "Please write a short poem about my grandmother's garden.",
    "How do I get red wine out of a carpet?",
])
async def test_none_where_none_fits(text: str) -> None:
    best = await DescribedChooser(StaticEmbedder()).choose(text, ALL)
    assert best is not None
    assert not best.called


async def test_no_tools_and_odd_ones() -> None:
    chooser = DescribedChooser(StaticEmbedder())
    assert await chooser.choose("anything", ()) is None
    bare = [Described.of("", "", {}), Described.of("x", "", {"properties": None, "required": 3}),
            Described.of("y", "ü" * 5000, {"properties": {"a": None}, "required": ["a", "b"]})]
    found = await chooser.features("", bare)
    assert all(len(one) == len(FEATURES) and all(-1.001 <= value <= 1.001 for value in one) for one in found)
    assert await chooser.choose("", bare) is not None


def test_names_in_a_request_do_not_count_and_a_missing_number_does() -> None:
    words = ["find", "area", "triangle", "geometry", "calculate", "base", "height"]
    vectors = dict.fromkeys([*words, "of", "paris"], (1.0, 0.0))
    told = "geometry triangle area. Calculate the area of a triangle from base and height."
    texts = ("geometry triangle area", told, f"{told} base The base. height Height.")
    said = ("area of a triangle in Paris", "area of a triangle, base 6, in Paris")
    vectors.update(dict.fromkeys((*texts, *said), (1.0, 0.0)))
    without, with_number = (dict(zip(FEATURES, features_of(text, AREA, vectors), strict=True)) for text in said)
    assert (without["numbers_lacking"], with_number["numbers_lacking"]) == (1.0, 0.0)
    assert without["same_words"] == 1.0 and without["same_name"] == pytest.approx(2 / 3)


async def test_each_text_is_embedded_once() -> None:
    asked: list[str] = []

    class Counting(StaticEmbedder):
        async def embed(self, texts: Sequence[str]) -> Sequence[Sequence[float]]:
            asked.extend(texts)
            return await super().embed(texts)

    chooser = DescribedChooser(Counting())
    await chooser.choose("Find the area of a triangle", ALL)
    count = len(asked)
    await chooser.choose("Find the area of a triangle", ALL)
    assert len(asked) == count == len(set(asked))


def test_the_constants_say_what_they_were_fitted_on() -> None:
    constants = load_described()
    assert constants.features == FEATURES
    assert "even SHA-256" in constants.fitted and 0.3 < constants.call_p < 0.9
