"""The gated chooser of kith eval: the model gets the chosen tool alone, and is not asked where none fits."""

from agent_node import StaticEmbedder

from node.agent.described import DescribedChooser
from node.daemon.gated_chooser import GatedChooser
from offload.evaluation.cases import Case, Tool
from offload.evaluation.chooser import Choice

TOOLS = [
    Tool(name="set_timer", description="Set a timer for some minutes.", parameters={
        "required": ["minutes"], "properties": {"minutes": {"type": "integer", "description": "How many minutes."}}}),
    Tool(name="get_weather", description="Get the weather of a city.", parameters={
        "required": ["city"], "properties": {"city": {"type": "string", "description": "The city."}}}),
]


class Filling:
    """Calls whatever single tool it gets, and keeps the cases."""

    def __init__(self) -> None:
        self.given: list[Case] = []

    async def choose(self, case: Case) -> Choice:
        self.given.append(case)
        return Choice(kind="call", name=case.tools[0].name)


def case(text: str, right: str | None = None) -> Case:
    return Case(case_id="1", kind="multiple" if right else "irrelevance", messages=[("user", text)], tools=TOOLS,
                right_tool=right)


async def test_the_model_gets_the_chosen_tool_alone() -> None:
    filling = Filling()
    gated = GatedChooser(DescribedChooser(StaticEmbedder()), filling)
    assert (await gated.choose(case("Set a timer for 9 minutes.", "set_timer"))).name == "set_timer"
    assert (await gated.choose(case("What is the weather in the city of Oslo?", "get_weather"))).name == "get_weather"
    assert [[tool.name for tool in one.tools] for one in filling.given] == [["set_timer"], ["get_weather"]]


async def test_none_is_called_where_none_fits_unless_one_must_be() -> None:
    filling = Filling()
    chooser = DescribedChooser(StaticEmbedder())
    assert (await GatedChooser(chooser, filling).choose(case("Who wrote Hamlet?"))).kind == "none"
    assert filling.given == []
    assert (await GatedChooser(chooser, filling, may_decline=False).choose(case("Who wrote Hamlet?"))).kind == "call"
