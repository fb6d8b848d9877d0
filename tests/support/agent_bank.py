"""The small agent's development bank: its tools as specs, its cases, and how a filled call is compared with the gold.

The bank's fifteen tools are wider than the node's own: they measure readers, choice and gate, nothing else.
"""

import json
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

from node.agent.readers.people import AddressBook
from node.agent.readers.quantities import evaluate
from node.agent.readers.windows import Locale
from node.agent.slots import Filled, SlotReader
from node.agent.tools.examples import examples_of, sections
from node.agent.tools.registry import Param, ToolSpec

DATA = Path(__file__).resolve().parent.parent / "data" / "agent"
TOOLS = json.loads((DATA / "tools.json").read_text())
ZONE = ZoneInfo(TOOLS["zone"])
_OWN_EXAMPLES = sections((DATA / "examples.txt").read_text().splitlines())
LOCALE = Locale(ZONE)
NOW = datetime.fromisoformat(TOOLS["now"])
BOOK = AddressBook(TOOLS["contacts"])

_READS = {
    "when": "window", "start": "moment", "duration": "minutes", "attendees": "names", "to": "names", "name": "names",
    "place": "place",
}
_MORE = {
    "calendar_list": ["what's on my calendar", "which appointments are coming up", "tell me my plans for the weekend",
                      "do I have anything on in the evening", "go through my schedule with me"],
    "calendar_free": ["when am I free", "do I have an opening on Wednesday", "look for two free hours this week",
                      "what time slots are open on Friday"],
    "calendar_create": ["create an event for the school play on the 9th", "pencil in a dentist visit Monday at 11",
                        "set up a meeting with the landlord", "block off Wednesday from 1 to 3"],
    "contact_lookup": ["how can I reach my aunt", "do we have the plumber's number", "get me her address",
                       "find the mail address of the teacher"],
    "notes_search": ["look through my notes for the recipe", "do any of my notes mention the boat",
                     "do I have notes about the insurance", "search what I wrote about the exam"],
    "notes_read": ["show the travel note", "what is in my note about the house", "read me the shopping list note",
                   "display my note titled Ideas"],
    "notes_write": ["jot down that the train was late", "start a new note", "write down the code for the gate",
                    "remember that the key is under the mat", "make a note: call back the bank"],
    "reminder_set": ["set a reminder for 5pm", "remind me about the laundry", "make sure I don't forget the dentist",
                     "nudge me at noon to drink water"],
    "message_send": ["write to my sister that dinner is ready", "send him a message", "message Carla the address",
                     "tell everyone the party is off"],
    "clock_now": ["tell me the time", "do you have the time", "what's the hour in Cairo now", "what is today's date"],
    "files_list": ["show me the contents of my music folder", "what do I have in pictures", "list my files",
                   "everything under videos"],
    "calculate": ["work out 15 plus 8 times 2", "do some maths for me", "how much is 90 divided by 6",
                  "compute 3 to the power of 5"],
    "convert_units": ["how many grams are in an ounce", "change 4 feet into metres", "3 gallons in litres",
                      "convert this to kilograms"],
    "device_set": ["set the brightness to 20", "turn on bluetooth", "I want do not disturb on", "mute the sound",
                   "change a setting"],
    "web_search": ["find reviews of a phone online", "google how to tie a tie", "search the web for a hotel in Rome",
                   "look on the internet for train strikes"],
}
_CUES = {
    "calendar_lis"
    "t": ("agenda", "appointments", "my calendar", "schedule for", "meetings do i", "my schedule", "'s schedule",
                      "do i have on", "what do i have"),
    "calendar_free": ("free", "available", "availability", "gap", "slot", "have time", "opening"),
    "calendar_create": (
        "schedule", "book", "to my calendar", "entry in my calendar", "calendar event", "put", "add", "add an event",
        "block", "set up a meeting", "appointment on", "pencil",
    ),
    "contact_lookup": ("phone", "email", "number of", "address", "birthday", "reach"),
    "notes_search": ("search my notes", "my notes for", "notes about", "notes on", "any notes", "notes mention"),
    "notes_rea"
    "d": ("note called", "read the note", "open the note", "note say", "the note", "note titled", "repair note"),
    "notes_write": ("make a note", "take a note", "write down", "note that", "jot", "note:", "to my note"),
    "reminder_set": ("remind", "reminder", "don't let me forget", "forget"),
    "message_send": ("message", "text", "tell", "let", "know that", "send", "ask"),
    "clock_now": ("what time is it", "the time in", "how late is it", "time is it", "current time"),
    "files_list": (
        "files", "folder", "contents of", "whats in", "directory", "everything under", "documents", "downloads",
    ),
    "calculat"
    "e": ("calculat"
          "e", "calculation", "divided by", "times", "plus", "minus", "percent of", "square root", "multiplied"),
    "convert_units": ("convert", "how many", "in cups", "into"),
    "device_se"
    "t": ("turn on", "turn off", "switch", "brightness", "volume", "dark mode", "bluetooth", "wifi", "disturb"),
    "web_search": ("google", "online", "web", "internet"),
}
_WRITES = {"calendar_create", "notes_write", "reminder_set", "message_send", "device_set"}


def specs() -> tuple[ToolSpec, ...]:
    """The bank's tools."""
    return tuple(
        ToolSpec(
            tool["name"], tool["descriptio"
                               "n"], {name: _param(tool["name"], name, prop) for name, prop in tool["props"].items()},
            tuple(tool["required"]), _examples(tool["name"], tool["examples"]),
            "write" if tool["name"] in _WRITES else "read", _CUES[tool["name"]], sends=tool["name"] == "message_send",
        ) for tool in TOOLS["tools"]
    )


def _examples(tool: str, first: list[str]) -> tuple[str, ...]:
    """The bank's own, and what the node's tool of the same use ships with."""
    shipped = examples_of(tool.replace("notes_", "note_")) or _OWN_EXAMPLES[tool]
    return tuple(dict.fromkeys([*first, *_MORE[tool], *shipped]))


def _param(tool: str, name: str, prop: dict[str, Any]) -> Param:
    choices = tuple(prop.get("enum", ()))
    reads: Any = "choice" if choices else _READS.get(name, "text")
    if tool == "reminder_set" and name == "when":
        reads = "moment"
    return Param(prop["description"], reads, choices)


@dataclass(frozen=True)
class Case:
    """One request with its gold."""

    text: str
    tool: str | None
    args: dict[str, Any]
    missing: tuple[str, ...]


def cases() -> list[Case]:
    """The development requests."""
    rows = [json.loads(line) for line in (DATA / "cases_dev.jsonl").read_text().splitlines()]
    return [Case(row["text"], row["tool"], row["args"], tuple(row["missing"])) for row in rows]


def bookings() -> list[dict[str, Any]]:
    """The booking requests."""
    return [json.loads(line) for line in (DATA / "booking_dev.jsonl").read_text().splitlines()]


def reader() -> SlotReader:
    """A reader that knows the bank's people."""
    return SlotReader(BOOK, LOCALE)


def _plain(value: Any, name: str) -> Any:
    if isinstance(value, datetime):
        return value.astimezone(ZONE).strftime("%Y-%m-%dT%H:%M")
    if isinstance(value, tuple) and value and isinstance(value[0], datetime):
        return "/".join(_plain(edge, name) for edge in value)
    if isinstance(value, tuple) and value and isinstance(value[0], tuple):
        return ";".join(_plain(edge, name) for edge in value)
    if name == "expression":
        result = evaluate(value)
        return f"{result:g}" if result is not None else value
    return value


def differs(filled: Filled, case: Case) -> list[str]:
    """What is wrong with the arguments; empty when the call is exact."""
    wrong = [f"missing {filled.missing} not {case.missing}"] if set(filled.missing) != set(case.missing) else []
    for name in {*filled.values, *case.args}:
        got = _plain(filled.values[name].value, name) if name in filled.values else None
        gold = case.args.get(name)
        if isinstance(got, tuple):
            fits = sorted(got) == sorted(gold if isinstance(gold, list) else [gold])
        elif isinstance(gold, list):
            fits = got is not None and any(_same(got, option) for option in gold)
        else:
            fits = gold is not None and got is not None and _same(got, gold)
        if not fits:
            wrong.append(f"{name}: {got!r} not {gold!r}")
    return wrong


def _same(got: Any, gold: Any) -> bool:
    return str(got).strip(" .!?").lower() == str(gold).strip(" .!?").lower()
