"""Health, money and law: a caution beside a model's answer, once a conversation each, and never beside a tool's."""

from pathlib import Path

import pytest
from agent_node import World, fill_folder, world

from node.agent.domains import caution_for


@pytest.fixture
def one(tmp_path: Path) -> World:
    fill_folder(tmp_path)
    return world(tmp_path)


@pytest.mark.parametrize(("text", "domain"), [
    ("how much ibuprofen can I take", "health"), ("my son has a fever of 39", "health"),
    ("should I invest in shares", "money"), ("is a fixed mortgage better", "money"),
    ("can my landlord evict me", "law"), ("is it legal to record a call", "law"),
    ("why is the sky blue", None), ("summarise the roof note", None), ("tell me a story about a ship", None),
])
def test_the_domain_is_told_from_the_words(text: str, domain: str | None) -> None:
    found = caution_for(text, ())
    assert (found and found[0]) == domain
    if domain:
        assert caution_for(text, [domain]) is None


async def test_it_is_told_once_a_conversation_and_again_in_the_next(one: World) -> None:
    first = await one.ask("why does a fever make me shiver?")
    assert "not medical advice" in first.caution
    second = await one.ask("how long does a fever last?", conversation_id=first.conversation_id)
    assert second.caution == ""
    third = await one.ask("is a fixed mortgage better?", conversation_id=first.conversation_id)
    assert "financial" in third.caution
    assert (await one.ask("why does a fever make me shiver?")).caution != ""


async def test_a_tools_answer_has_none_and_a_models_says_that_nothing_stands_behind_it(one: World) -> None:
    assert (await one.ask("read my note Garden plan")).caution == ""
    assert (await one.ask("why is the sky blue?")).reason.endswith("the model's own words, no source")
    assert "own words" not in (await one.ask("summarise the roof repair note")).reason
