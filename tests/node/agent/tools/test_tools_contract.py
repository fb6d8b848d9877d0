"""What holds for every tool: its description, its arguments, its labels."""

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest

from node.agent.tools.builtin import builtin_tools
from node.agent.tools.errors import BadArgument
from node.agent.tools.peers import PeerEntry
from node.agent.tools.registry import Param, ReadTool, Registry, ToolSpec, WriteTool, check_args
from node.sources.ics import Calendars
from node.sources.notes import NoteFolder
from node.sources.vcf import Contacts

SHARED = Path(__file__).parents[5] / "shared" / "data" / "agent"
NAMES = {
    "clock_now",
    "calendar_list",
    "calendar_free",
    "calendar_create",
    "contact_lookup",
    "note_read",
    "note_search",
    "note_write",
    "file_read",
    "file_search",
    "peers_list",
}
MOMENT = datetime(2026, 3, 18, tzinfo=UTC)


class StillClock:
    def now(self) -> datetime:
        return MOMENT

    def monotonic_s(self) -> float:
        return 0.0


class NoPeers:
    async def peers(self) -> list[PeerEntry]:
        return []


@pytest.fixture
def registry(tmp_path: Path) -> Registry:
    return builtin_tools(
        calendars=Calendars(tmp_path, ZoneInfo("UTC")),
        contacts=Contacts(tmp_path),
        notes=NoteFolder(tmp_path),
        files={"Documents": NoteFolder(tmp_path, suffixes=None)},
        peers=NoPeers(),
        clock=StillClock(),
    )


def test_the_eleven_tools(registry: Registry) -> None:
    assert {spec.name for spec in registry.specs()} == NAMES
    assert len(registry) == 11
    for tool in registry:
        assert registry.get(tool.spec.name) is tool
        assert isinstance(tool, ReadTool) is (tool.spec.kind == "read")
        assert isinstance(tool, WriteTool) is (tool.spec.kind != "read")
    assert {tool.spec.name for tool in registry if tool.spec.kind != "read"} == {"calendar_create", "note_write"}


def test_descriptions_are_complete(registry: Registry) -> None:
    for spec in registry.specs():
        assert len(set(spec.examples)) >= 8, spec.name
        assert set(spec.required) <= set(spec.params)
        assert all(cue == cue.lower() for cue in spec.cues)
        schema = spec.schema()
        assert list(schema["properties"]) == list(spec.params)
        json.dumps(schema)
    assert len({example for spec in registry.specs() for example in spec.examples}) == sum(
        len(spec.examples) for spec in registry.specs()
    )


def test_no_example_is_taken_from_the_banks(registry: Registry) -> None:
    if not SHARED.exists():
        pytest.skip("the development cases are not beside the checkout")
    banks = {
        json.loads(line)["text"].casefold().strip(" .?!")
        for name in ("cases_dev", "booking_dev")
        for line in (SHARED / f"{name}.jsonl").read_text().splitlines()
    }
    banks |= {
        each.casefold()
        for tool in json.loads((SHARED / "tools.json").read_text())["tools"]
        for each in tool["examples"]
    }
    assert len(banks) > 100
    assert not banks & {each.casefold().strip(" .?!") for spec in registry.specs() for each in spec.examples}


def test_two_tools_of_one_name_are_refused(registry: Registry) -> None:
    tools = list(registry)
    with pytest.raises(ValueError, match="two tools"):
        Registry([*tools, tools[0]])


SPEC = ToolSpec(
    "t",
    "d",
    {
        "text": Param("a text", "text"),
        "when": Param("a window", "window"),
        "at": Param("a moment", "moment"),
        "length": Param("minutes", "minutes"),
        "who": Param("names", "names"),
        "which": Param("one", "choice", ("a", "b")),
    },
    (),
    (),
    "read",
)
HOUR = (MOMENT, MOMENT + timedelta(hours=1))


@pytest.mark.parametrize(
    "args",
    [
        {},
        {"text": "x", "when": HOUR, "at": MOMENT, "length": 30, "who": ("Bo",), "which": "b"},
        {"when": (HOUR, HOUR)},
        {"who": ()},
    ],
)
def test_good_arguments_pass(args: dict) -> None:
    check_args(SPEC, args)


@pytest.mark.parametrize(
    "args",
    [
        {"nothing": "x"},
        {"text": ""},
        {"text": "  "},
        {"text": 5},
        {"text": "x" * 20_001},
        {"when": "tomorrow"},
        {"when": ()},
        {"when": HOUR[::-1]},
        {"when": (MOMENT.replace(tzinfo=None), MOMENT)},
        {"when": (HOUR, "x")},
        {"at": MOMENT.replace(tzinfo=None)},
        {"at": "now"},
        {"length": 0},
        {"length": True},
        {"length": 60 * 24 * 32},
        {"length": "30"},
        {"who": "Bo"},
        {"who": ("",)},
        {"who": ("Bo",) * 51},
        {"which": "c"},
    ],
)
def test_bad_arguments_are_refused(args: dict) -> None:
    with pytest.raises(BadArgument) as caught:
        check_args(SPEC, args)
    assert caught.value.name == next(iter(args))


def test_a_missing_argument_is_named(registry: Registry) -> None:
    tool = registry.get("calendar_create")
    assert tool is not None
    with pytest.raises(BadArgument) as caught:
        check_args(tool.spec, {"title": "x"})
    assert caught.value.name == "start"
